// Package version names the build: the linker sets its variables, and a build
// without them (plain `go build` or `go run`) says so.
package version

import "fmt"

// Set by the linker, for example:
//
//	go build -ldflags "-X holdfast/version.Version=v1.2.3"
var (
	// Version is the release or `git describe` of the sources, "dev" when unset.
	Version = "dev"
	// Commit is the full commit hash, "unknown" when unset.
	Commit = "unknown"
	// Date is the commit's time in RFC 3339, "unknown" when unset. It is not the
	// build's time, so that the same sources give the same binary.
	Date = "unknown"
)

// String returns the three in one line: "v1.2.3 (commit abc, 2026-01-02T03:04:05Z)".
func String() string {
	return fmt.Sprintf("%s (commit %s, %s)", Version, Commit, Date)
}
