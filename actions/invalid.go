package actions

import (
	"fmt"
	"strings"

	"holdfast/strict"
)

// InvalidParams makes the error an Action's Plan returns for parameters that do
// not fit; it matches ErrInvalidParams and, by errors.As, strict.Errors, whose
// paths are parameter names.
func InvalidParams(errs strict.Errors) error {
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrInvalidParams, errs)
}

// InvalidParam is InvalidParams for one parameter.
func InvalidParam(name, format string, args ...any) error {
	var errs strict.Errors
	errs.Addf(name, format, args...)
	return InvalidParams(errs)
}

// NoSuch says that a name of the given kind is not there, and which one was
// probably meant or which ones there are.
func NoSuch(kind, name string, known []string) string { return noSuch(kind, name, known) }

const mostNamesShown = 10

func noSuch(kind, name string, known []string) string {
	text := fmt.Sprintf("no %s is named %q", kind, clip(name, 100))
	switch near := strict.Nearest(name, known); {
	case near != "":
		return text + fmt.Sprintf(": did you mean %q?", near)
	case len(known) == 0:
		return text + ": there is none at all"
	case len(known) > mostNamesShown:
		return text + ": there are " + strings.Join(known[:mostNamesShown], ", ") + " and others"
	default:
		return text + ": there are " + strings.Join(known, ", ")
	}
}

// clip shortens untrusted text to at most n runes.
func clip(s string, n int) string {
	runes := 0
	for i := range s {
		if runes == n {
			return s[:i] + "…"
		}
		runes++
	}
	return s
}
