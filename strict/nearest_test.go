package strict

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"breaker", "timeouts", "first_byte", "url", "service"}
	for name, want := range map[string]string{
		"braker": "breaker", "breakre": "breaker", "timeout": "timeouts", "firstByte": "first_byte",
		"first-byte": "first_byte", "URL": "url", "urls": "url", "servcie": "service",
		"": "", "limits": "", "x": "", "ur": "url", "completely-different": "",
	} {
		require.Equal(t, want, Nearest(name, known), name)
	}
	require.Empty(t, Nearest("a", nil))
}

func TestNearestIsAlwaysACandidate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		candidates := rapid.SliceOf(rapid.StringN(0, 8, -1)).Draw(t, "candidates")
		got := Nearest(rapid.StringN(0, 12, -1).Draw(t, "name"), candidates)
		if got != "" {
			require.Contains(t, candidates, got)
		}
	})
}

func TestPaths(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a.b-c_9", Join("a", "b-c_9"))
	require.Equal(t, "a", Join("", "a"))
	require.Equal(t, `a["b.c"]`, Join("a", "b.c"))
	require.Equal(t, `[""]`, Join("", ""))
	require.Equal(t, "a[3]", Index("a", 3))
	require.Equal(t, "a.b", under("a", "b"))
	require.Equal(t, "a[0]", under("a", "[0]"))
	require.Equal(t, "a", under("a", ""))
	require.Equal(t, "b", under("", "b"))
}

func TestErrors(t *testing.T) {
	t.Parallel()
	var errs Errors
	require.NoError(t, errs.Err())
	errs.Addf("a.b", "is %d", 3)
	errs = append(errs, FieldError{Path: "c", Message: "is wrong", File: "x.yaml", Line: 7}, FieldError{Message: "is empty", File: "y.yaml"})
	require.Equal(t, strings.Join([]string{"a.b: is 3", "x.yaml:7: c: is wrong", "y.yaml: is empty"}, "\n"), errs.Err().Error())
}
