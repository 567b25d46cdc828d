package embedded_test

import (
	"testing"

	"go.uber.org/goleak"

	"holdfast/internal/testenv"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(testenv.Exit))
}
