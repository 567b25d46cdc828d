package store_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"holdfast/internal/testenv"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(victimEnv); url != "" {
		victim(url)
	}
	if url := os.Getenv(runbookVictimEnv); url != "" {
		runbookVictim(url)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(testenv.Exit))
}
