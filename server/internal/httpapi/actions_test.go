package httpapi

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/actions"
)

// A console that reads the length of a list must not meet null.
func TestAPlanShowsEmptyLists(t *testing.T) {
	t.Parallel()
	out, err := toPlan(actions.Plan{Action: "trip_breaker"})
	require.NoError(t, err)
	b, err := json.Marshal(out)
	require.NoError(t, err)
	var fields map[string]any
	require.NoError(t, json.Unmarshal(b, &fields))
	for _, name := range []string{"warnings", "leased", "layers", "diff"} {
		require.Equal(t, []any{}, fields[name], name)
	}
	require.NotContains(t, string(b), "null")
}
