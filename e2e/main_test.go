//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"holdfast/internal/testenv"
)

// programs is the folder of the programs under test, built from this tree.
var programs string

// patience is how long a step may take before a test gives up: far above what
// it takes, since a busy machine slows it down.
const patience = 60 * time.Second

func TestMain(m *testing.M) {
	code, err := withPrograms(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	testenv.Exit(code)
}

// withPrograms builds the programs into a folder of their own and runs the tests.
// The build is the Makefile's, so that it is mostly cached.
func withPrograms(run func() int) (code int, err error) {
	programs, err = os.MkdirTemp("", "holdfast-e2e-")
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(programs) }()
	build := exec.Command("go", "build", "-trimpath", "-o", programs+string(filepath.Separator), "../cmd/holdfast", "../cmd/changecheck")
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return 1, fmt.Errorf("build the programs: %w\n%s", err, out)
	}
	return run(), nil
}

func program(name string) string { return filepath.Join(programs, name) }
