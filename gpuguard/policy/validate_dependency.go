package policy

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"holdfast/strict"
)

// Upper bounds that no working setting reaches; beyond them a unit was mistaken.
const (
	maxDuration      = 24 * time.Hour
	maxWindowCalls   = 100_000
	maxProbes        = 1_000
	maxServiceLength = 100
	maxWindowTime    = time.Hour
)

func (v *validator) dependencies() {
	for _, name := range sortedKeys(v.doc.Dependencies) {
		path := strict.Join("dependencies", name)
		d := v.doc.Dependencies[name]
		v.name(path, "dependency", name)
		if len(d.Service) > maxServiceLength || strings.ContainsFunc(d.Service, func(r rune) bool { return !unicode.IsGraphic(r) }) {
			v.addf(path+".service", "want at most %d printable characters", maxServiceLength)
		}
		v.breaker(path+".breaker", d.Breaker)
		v.timeouts(path+".timeouts", d.Timeouts)
	}
}

func (v *validator) breaker(path string, b Breaker) {
	if b.Forced != ForcedNone {
		v.addf(path+".forced", "cannot stand in a base policy: only an override with owner, reason and expiry forces a breaker")
	}
	if b.WindowCalls != 0 && b.WindowTime != 0 {
		v.addf(path+".window_calls", "and window_time exclude each other: keep one")
	}
	v.count(path+".window_calls", b.WindowCalls, maxWindowCalls)
	v.duration(path+".window_time", b.WindowTime, maxWindowTime)
	if !(b.FailureRate >= 0 && b.FailureRate <= 1) { // also refuses NaN
		v.addf(path+".failure_rate", "is %g: want a ratio above 0 and up to 1, such as 0.3 for 30 %%", b.FailureRate)
	}
	v.count(path+".minimum_calls", b.MinimumCalls, maxWindowCalls)
	if b.WindowCalls > 0 && b.WindowTime == 0 && b.MinimumCalls > b.WindowCalls {
		v.addf(path+".minimum_calls", "is %d, more than window_calls (%d): the failure rate would never count", b.MinimumCalls, b.WindowCalls)
	}
	v.count(path+".consecutive_failures", b.ConsecutiveFailures, maxWindowCalls)
	v.duration(path+".open_for", b.OpenFor, maxDuration)
	v.count(path+".half_open_probes", b.HalfOpenProbes, maxProbes)
	v.duration(path+".half_open_for", b.HalfOpenFor, maxDuration)
}

// timeouts compares the limits as they will hold, defaults included.
func (v *validator) timeouts(path string, t Timeouts) {
	before := len(v.errs)
	v.duration(path+".connect", t.Connect, maxDuration)
	v.duration(path+".first_byte", t.FirstByte, maxDuration)
	v.duration(path+".idle", t.Idle, maxDuration)
	v.duration(path+".total", t.Total, maxDuration)
	v.duration(path+".stream_total", t.StreamTotal, maxDuration)
	if len(v.errs) > before {
		return
	}
	full := t.WithDefaults()
	field := func(name string, given, value Duration) timeoutField {
		return timeoutField{name, given != 0, value}
	}
	connect := field("connect", t.Connect, full.Connect)
	firstByte := field("first_byte", t.FirstByte, full.FirstByte)
	idle := field("idle", t.Idle, full.Idle)
	total := field("total", t.Total, full.Total)
	stream := field("stream_total", t.StreamTotal, full.StreamTotal)
	for _, pair := range [][2]timeoutField{{connect, total}, {firstByte, total}, {connect, stream}, {firstByte, stream}, {idle, stream}} {
		v.ordered(path, pair[0], pair[1])
	}
}

// timeoutField is one limit with what validation needs to explain it.
type timeoutField struct {
	name  string
	given bool
	value Duration
}

func (f timeoutField) String() string {
	if f.given {
		return fmt.Sprintf("%s (%s)", f.name, f.value)
	}
	return fmt.Sprintf("%s (%s by default)", f.name, f.value)
}

// ordered wants small ≤ large and blames the field that was written.
func (v *validator) ordered(path string, small, large timeoutField) {
	if small.value <= large.value {
		return
	}
	blamed := small
	if !small.given {
		blamed = large
	}
	v.addf(path+"."+blamed.name, "%s is longer than %s and would never be reached: lower %s or raise %s",
		small, large, small.name, large.name)
}

// duration checks 0 (default) or 0 < d ≤ most.
func (v *validator) duration(path string, d Duration, most time.Duration) {
	switch {
	case d < 0:
		v.addf(path, "is %s: want a duration above 0", d)
	case d.D() > most:
		v.addf(path, "is %s: want at most %s", d, most)
	}
}

// count checks 0 (default) or 1 ≤ n ≤ most.
func (v *validator) count(path string, n, most int) {
	if n < 0 || n > most {
		v.addf(path, "is %d: want 1 to %d", n, most)
	}
}
