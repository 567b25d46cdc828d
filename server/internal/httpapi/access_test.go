package httpapi

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryOperationHasAnAccessRule(t *testing.T) {
	t.Parallel()
	d, err := describe()
	require.NoError(t, err)
	require.NoError(t, checkAccessTable(d.operations()))
	require.ErrorContains(t, checkAccessTable(append(d.operations(), "launchMissiles")), `"launchMissiles" has no entry`)
	require.ErrorContains(t, checkAccessTable(d.operations()[1:]), "not described")
}
