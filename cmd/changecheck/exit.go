package main

import (
	"errors"
	"fmt"
)

// Exit codes are a contract with pipelines (docs/operations.md).
const (
	exitAllowed     = 0
	exitUsage       = 2
	exitConfirm     = 10
	exitDenied      = 20
	exitUnreachable = 30
)

// exitError is an error that knows its exit code.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func exitf(code int, format string, args ...any) error {
	return &exitError{code: code, err: fmt.Errorf(format, args...)}
}

// codeOf maps an error to its exit code; what cobra itself reports is a usage error.
func codeOf(err error) int {
	var e *exitError
	switch {
	case err == nil:
		return exitAllowed
	case errors.As(err, &e):
		return e.code
	default:
		return exitUsage
	}
}
