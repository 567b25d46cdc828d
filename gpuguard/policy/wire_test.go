package policy

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/strict"
)

// Messages built with zero values are readable by the strict reader of the other side.
func TestMessagesCarryNoNull(t *testing.T) {
	t.Parallel()
	update, err := json.Marshal(Update{Lineage: "l1", Revision: 1, Base: json.RawMessage(`{}`), LiveGateways: 1})
	require.NoError(t, err)
	ack, err := json.Marshal(Ack{Gateway: "gw-1", State: State{Outcomes: map[string]map[Outcome]int64{"llm": nil}}})
	require.NoError(t, err)
	effective, err := json.Marshal(Effective{})
	require.NoError(t, err)
	for _, data := range [][]byte{update, ack, effective} {
		require.NotContains(t, string(data), "null")
	}
	require.NoError(t, strict.DecodeJSON(update, &Update{}))
	require.NoError(t, strict.DecodeJSON(ack, &Ack{}))
	require.NoError(t, strict.DecodeJSON(effective, &Effective{}))
}
