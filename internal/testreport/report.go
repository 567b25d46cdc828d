package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// event is one line of `go test -json`; see `go doc test2json`.
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
}

// testID names one test; an empty test means the package as a whole.
type testID struct {
	pkg, test string
}

// skip is a test that did not run, with what it said about it.
type skip struct {
	id     testID
	output string
}

// report collects what a run of go test said.
type report struct {
	out io.Writer
	// figures shows what passing tests logged, such as measurements.
	figures bool
	// output holds the lines of tests whose result is not known yet.
	output map[testID]*strings.Builder
	// running holds packages that started and have not ended.
	running        map[string]bool
	passed, failed int
	skips          []skip
	brokenPackages int
}

// newReport writes to out.
func newReport(out io.Writer) *report {
	return &report{out: out, output: map[testID]*strings.Builder{}, running: map[string]bool{}}
}

// read consumes a whole run. A line that is no event is an error: it means that
// go test itself failed or that the input is something else.
func (r *report) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, readErr := lines.ReadBytes('\n')
		if len(strings.TrimSpace(string(line))) > 0 {
			var e event
			if err := json.Unmarshal(line, &e); err != nil {
				return fmt.Errorf("not an event of go test -json: %q", strings.TrimSpace(string(line)))
			}
			r.add(e)
		}
		if readErr == io.EOF {
			return nil
		}
		if readErr != nil {
			return readErr
		}
	}
}

// add takes one event.
func (r *report) add(e event) {
	id := testID{pkg: e.Package, test: e.Test}
	switch e.Action {
	case "start":
		r.running[e.Package] = true
	case "build-output":
		r.print(e.Output)
	case "output":
		r.keep(id, e.Output)
	case "pass":
		r.ended(id, false)
		if id.test != "" {
			r.passed++
		}
	case "fail":
		r.ended(id, true)
		if id.test != "" {
			r.failed++
		} else {
			r.brokenPackages++
		}
	case "skip":
		if id.test != "" {
			r.skips = append(r.skips, skip{id: id, output: r.kept(id)})
		}
		r.ended(id, false)
	}
}

// keep stores a line until its test's result is known. A package's own lines
// are its closing lines and what it printed outside of tests.
func (r *report) keep(id testID, output string) {
	b, ok := r.output[id]
	if !ok {
		b = &strings.Builder{}
		r.output[id] = b
	}
	b.WriteString(output)
}

// kept returns what a test has printed.
func (r *report) kept(id testID) string {
	if b, ok := r.output[id]; ok {
		return b.String()
	}
	return ""
}

// ended prints what a failed test printed (of a passing one what it logged, when
// that is wanted), or a package's closing lines, and forgets the rest.
func (r *report) ended(id testID, failed bool) {
	defer delete(r.output, id)
	if id.test == "" {
		r.packageEnded(id, failed)
		return
	}
	switch logged := reasons(r.kept(id)); {
	case failed:
		r.print(r.kept(id))
	case r.figures && logged != "":
		r.print("PASS " + id.test + "\n" + logged)
	}
}

// packageEnded prints the closing line of a package. When it failed, output of
// tests that never ended (a panic or a timeout) is shown as well: it holds the
// cause.
func (r *report) packageEnded(id testID, failed bool) {
	delete(r.running, id.pkg)
	for other, b := range r.output {
		if other.pkg != id.pkg || other.test == "" {
			continue
		}
		if failed {
			r.print(b.String())
		}
		delete(r.output, other)
	}
	for line := range strings.Lines(r.kept(id)) {
		if failed || isClosing(line) {
			r.print(line)
		}
	}
}

// isClosing reports whether a line of a passing package is go test's own result.
func isClosing(line string) bool {
	return strings.HasPrefix(line, "ok ") || strings.HasPrefix(line, "? ")
}

// finish prints the skips and the tally and reports whether the run is good.
func (r *report) finish(noSkips bool, allowed []allowance) bool {
	refused := 0
	for _, s := range r.skips {
		mark := "SKIP"
		if noSkips && !accepts(allowed, s.id) {
			mark = "SKIP (not allowed)"
			refused++
		}
		r.print(fmt.Sprintf("%s %s %s\n%s", mark, s.id.pkg, s.id.test, reasons(s.output)))
	}
	good := r.failed == 0 && r.brokenPackages == 0
	for _, pkg := range slices.Sorted(maps.Keys(r.running)) {
		r.print(fmt.Sprintf("FAIL: go test ended before %s did\n", pkg))
		good = false
	}
	if refused > 0 {
		r.print(fmt.Sprintf("FAIL: %d skipped tests should have run\n", refused))
		good = false
	}
	if r.passed+r.failed == 0 {
		r.print("FAIL: no test ran\n")
		good = false
	}
	if r.brokenPackages > 0 {
		r.print(fmt.Sprintf("FAIL: %d packages failed\n", r.brokenPackages))
	}
	r.print(fmt.Sprintf("%d passed, %d failed, %d skipped\n", r.passed, r.failed, len(r.skips)))
	return good
}

// reasons keeps what a test itself said.
func reasons(output string) string {
	var b strings.Builder
	for line := range strings.Lines(output) {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "===") || strings.HasPrefix(trimmed, "---") {
			continue
		}
		b.WriteString(line)
	}
	return b.String()
}

// print writes to the report's reader; a closed terminal is no test failure.
func (r *report) print(text string) {
	_, _ = io.WriteString(r.out, text)
}
