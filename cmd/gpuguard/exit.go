package main

import (
	"errors"
	"fmt"
)

// Exit codes.
const (
	exitOK      = 0
	exitFailure = 1 // the gateway could not run, or requests were cut at the end
	exitUsage   = 2 // flags, environment or policy files are wrong
)

// errReported says that the problems have been printed already.
var errReported = errors.New("problems were reported")

// failure is an error of running, not of usage.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

func codeOf(err error) int {
	var f failure
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &f):
		return exitFailure
	default:
		return exitUsage
	}
}

// message is what is left to be said about err.
func message(err error) string {
	if err == nil || errors.Is(err, errReported) {
		return ""
	}
	return fmt.Sprintf("gpuguard: %v", err)
}
