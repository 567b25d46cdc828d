package policy

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/strict"
)

// now is the instant all tests share.
var now = time.Date(2026, 3, 1, 14, 0, 0, 0, time.UTC)

// example is the document of testdata/example.json.
func example(t testing.TB) Document {
	t.Helper()
	d, err := Decode(exampleJSON(t))
	require.NoError(t, err)
	return d
}

func exampleJSON(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/example.json")
	require.NoError(t, err)
	return data
}

// problems is the list in err as "path: message" lines.
func problems(t testing.TB, err error) []string {
	t.Helper()
	var errs strict.Errors
	if err != nil && !errors.As(err, &errs) {
		t.Fatalf("not strict.Errors: %v", err)
	}
	lines := make([]string, len(errs))
	for i, fe := range errs {
		lines[i] = fe.Path + ": " + fe.Message
	}
	return lines
}
