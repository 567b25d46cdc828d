package runbooks

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/gpuguard/signals"
)

const systemName = "system"

// askedAt is when an action step was pressed, or began by itself.
func askedAt(s StepState) time.Time {
	if s.AnsweredAt.After(s.StartedAt) {
		return s.AnsweredAt
	}
	return s.StartedAt
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05 UTC") }

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// sentence ends a text with a full stop.
func sentence(text string) string {
	if text == "" || strings.HasSuffix(text, ".") || strings.HasSuffix(text, "?") || strings.HasSuffix(text, "!") {
		return text
	}
	return text + "."
}

// text says what was seen and what was wanted, such as "23 % (want < 5 %)".
func (j judgement) text(c signals.Criterion) string {
	want := fmt.Sprintf("want %s %s", c.Is, figure(c.Value, c.Unit))
	switch {
	case j.problem != "":
		return fmt.Sprintf("no data: %s (%s)", clip(j.problem, 200), want)
	case j.Value == nil:
		return fmt.Sprintf("no data (%s)", want)
	case j.Verdict == signals.NoData:
		return fmt.Sprintf("%s%s, but some series have no data (%s)", figure(*j.Value, c.Unit), about(j.Labels), want)
	default:
		return fmt.Sprintf("%s%s (%s)", figure(*j.Value, c.Unit), about(j.Labels), want)
	}
}

// known are labels that every series of a runbook's query has.
var knownLabels = []string{"__name__", "service", "environment", "dependency"}

// about names the labels that tell one series from another, such as its source.
func about(labels map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if !slices.Contains(knownLabels, name) && len(parts) < 3 {
			parts = append(parts, name+" "+clip(labels[name], 40))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " at " + strings.Join(parts, ", ")
}

// figure shows a number with three significant digits and its unit; a ratio as per cent.
func figure(v float64, unit string) string {
	if unit == "ratio" {
		return digits(v*100) + " %"
	}
	if unit == "" {
		return digits(v)
	}
	return digits(v) + " " + unit
}

func digits(v float64) string {
	if a := math.Abs(v); a >= 1000 && a < 1e15 {
		return strconv.FormatFloat(math.Round(v), 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
