package fleet

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A gateway that comes back while the server stops must not hold it up.
func TestAClosedHubTakesNobodyIn(t *testing.T) {
	t.Parallel()
	h := newHub()
	h.closeAll()
	ch, leave := h.join()
	_, open := <-ch
	require.False(t, open)
	leave()
	require.Empty(t, h.subs)
	h.open()
	ch, leave = h.join()
	require.Len(t, h.subs, 1)
	leave()
	_, open = <-ch
	require.False(t, open)
}
