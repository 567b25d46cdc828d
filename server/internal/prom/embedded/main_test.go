package embedded_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"holdfast/internal/testenv"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(victimEnv); dir != "" {
		victim(dir)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(testenv.Exit))
}
