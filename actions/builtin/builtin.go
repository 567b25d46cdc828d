// Package builtin holds the actions that ship with holdfast, one file each. All
// of them lay leased overrides over the policy; none has an effect of its own.
package builtin

import (
	"encoding/json"
	"errors"
	"fmt"

	"holdfast/actions"
	"holdfast/strict"
)

// All makes the actions in the order in which they are proposed.
func All() []actions.Action {
	return []actions.Action{TripBreaker(), SetRateLimit(), CloseBreaker()}
}

// decode reads parameters strictly; what is wrong is named by parameter.
func decode(params json.RawMessage, dst any) error {
	err := strict.DecodeJSON(params, dst)
	var errs strict.Errors
	switch {
	case err == nil:
		return nil
	case errors.As(err, &errs):
		return actions.InvalidParams(errs)
	default:
		return fmt.Errorf("%w: %w", actions.ErrInvalidParams, err)
	}
}

// encode writes what cannot fail to be written.
func encode(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return raw
}

func percent(ratio float64) string { return fmt.Sprintf("%.0f %%", ratio*100) }
