package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// run feeds lines of go test -json to a report and returns its verdict and text.
func run(t *testing.T, noSkips bool, allow string, lines ...string) (bool, string) {
	t.Helper()
	allowed, err := parseAllowed([]byte(allow))
	require.NoError(t, err)
	var out strings.Builder
	r := newReport(&out)
	require.NoError(t, r.read(strings.NewReader(strings.Join(lines, "\n"))))
	return r.finish(noSkips, allowed), out.String()
}

const (
	startA  = `{"Action":"start","Package":"m/a"}`
	passOne = `{"Action":"pass","Package":"m/a","Test":"TestOne"}`
	okA     = `{"Action":"output","Package":"m/a","Output":"ok  \tm/a\t0.1s\n"}`
	passA   = `{"Action":"pass","Package":"m/a"}`
	skipWhy = `{"Action":"output","Package":"m/a","Test":"TestTwo","Output":"    a_test.go:5: no database\n"}`
	skipTwo = `{"Action":"skip","Package":"m/a","Test":"TestTwo"}`
)

func TestPassingRunPrintsClosingLinesOnly(t *testing.T) {
	t.Parallel()
	noise := `{"Action":"output","Package":"m/a","Test":"TestOne","Output":"noise\n"}`
	ok, out := run(t, true, "", startA, noise, passOne, okA, passA)
	require.True(t, ok)
	require.Equal(t, "ok  \tm/a\t0.1s\n1 passed, 0 failed, 0 skipped\n", out)
}

func TestFiguresOfPassingTestsAreShownWhenWanted(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	r := newReport(&out)
	r.figures = true
	logged := `{"Action":"output","Package":"m/a","Test":"TestOne","Output":"    a_test.go:9: click to enforced 70 ms\n"}`
	begun := `{"Action":"output","Package":"m/a","Test":"TestOne","Output":"=== RUN   TestOne\n"}`
	silent := `{"Action":"pass","Package":"m/a","Test":"TestThree"}`
	require.NoError(t, r.read(strings.NewReader(strings.Join([]string{startA, begun, logged, passOne, silent, okA, passA}, "\n"))))
	require.True(t, r.finish(true, nil))
	require.Equal(t, "PASS TestOne\n    a_test.go:9: click to enforced 70 ms\nok  \tm/a\t0.1s\n2 passed, 0 failed, 0 skipped\n", out.String())
}

func TestSkipIsLoudAndFailsWhereItIsForbidden(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		noSkips bool
		allow   string
		want    bool
		says    string
	}{
		{"on a developer's machine", false, "", true, "SKIP m/a TestTwo\n    a_test.go:5: no database\n"},
		{"forbidden", true, "", false, "FAIL: 1 skipped tests should have run\n"},
		{"allowed by name", true, "m/a TestTwo # needs a cluster", true, "SKIP m/a TestTwo"},
		{"allowed for another package", true, "m/b TestTwo", false, "SKIP (not allowed) m/a TestTwo"},
		{"a pattern matches whole names", true, "m/a Test", false, "SKIP (not allowed) m/a TestTwo"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ok, out := run(t, tt.noSkips, tt.allow, startA, passOne, skipWhy, skipTwo, okA, passA)
			require.Equal(t, tt.want, ok)
			require.Contains(t, out, tt.says)
			require.True(t, strings.HasSuffix(out, "1 passed, 0 failed, 1 skipped\n"), out)
		})
	}
}

func TestFailingTestShowsItsOutput(t *testing.T) {
	t.Parallel()
	why := `{"Action":"output","Package":"m/a","Test":"TestOne","Output":"    a_test.go:9: why\n"}`
	fail := `{"Action":"fail","Package":"m/a","Test":"TestOne"}`
	ok, out := run(t, false, "", startA, why, fail, `{"Action":"fail","Package":"m/a"}`)
	require.False(t, ok)
	require.Contains(t, out, "a_test.go:9: why")
	require.Contains(t, out, "0 passed, 1 failed, 0 skipped\n")
}

func TestBrokenRunIsNeverGood(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		lines []string
		says  string
	}{
		{"nothing ran", nil, "no test ran"},
		{"only packages without tests", []string{startA, passA}, "no test ran"},
		{"a build failed", []string{
			`{"ImportPath":"m/a","Action":"build-output","Output":"a.go:3: undefined: x\n"}`,
			startA, `{"Action":"fail","Package":"m/a"}`,
		}, "a.go:3: undefined: x"},
		{"go test was killed", []string{startA, passOne}, "go test ended before m/a did"},
		{"a test panicked and never ended", []string{
			startA, passOne,
			`{"Action":"output","Package":"m/a","Test":"TestTwo","Output":"panic: boom\n"}`,
			`{"Action":"fail","Package":"m/a"}`,
		}, "panic: boom"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ok, out := run(t, false, "", tt.lines...)
			require.False(t, ok)
			require.Contains(t, out, tt.says)
		})
	}
}

func TestInputOfAnotherProgramIsRefused(t *testing.T) {
	t.Parallel()
	err := newReport(&strings.Builder{}).read(strings.NewReader("ok  m/a 0.1s\n"))
	require.ErrorContains(t, err, `"ok  m/a 0.1s"`)
}

func TestAllowFileErrorsNameTheLine(t *testing.T) {
	t.Parallel()
	for _, content := range []string{"# fine\nonly-one-field", "\nm/a Test(", "\nm/( TestTwo", "\na b c"} {
		_, err := parseAllowed([]byte(content))
		require.ErrorContains(t, err, "line 2")
	}
}
