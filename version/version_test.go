package version

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStringOfAnUnstampedBuildSaysSo(t *testing.T) {
	t.Parallel()
	require.Equal(t, "dev (commit unknown, unknown)", String())
}
