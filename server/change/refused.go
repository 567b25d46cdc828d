package change

import (
	"errors"
	"strings"
)

// RefusedError says why something was refused, with the decision behind it. It
// matches its cause: ErrDenied, ErrOutdated or ErrConflict.
type RefusedError struct {
	// Cause is the sentinel.
	Cause    error
	Decision Decision
}

// Error gives the cause and the reasons, which name who is in the way and until when.
func (e *RefusedError) Error() string {
	texts := make([]string, len(e.Decision.Reasons))
	for i, r := range e.Decision.Reasons {
		texts[i] = r.Text
	}
	return e.Cause.Error() + ": " + strings.Join(texts, "; ")
}

// Unwrap gives the cause.
func (e *RefusedError) Unwrap() error { return e.Cause }

// isRefusal tells a refusal, which is audited, from a failure, which is not.
func isRefusal(err error) bool {
	for _, sentinel := range []error{ErrSelfConfirm, ErrWrongState, ErrOutdated, ErrDenied, ErrConflict, ErrRunMismatch} {
		if errors.Is(err, sentinel) {
			return true
		}
	}
	return false
}
