package actions

import (
	"time"

	"holdfast/gpuguard/policy"
)

// Traffic is what the live gateways counted over about the last minute, from
// two readings of their counters.
type Traffic struct {
	// Dependencies is the flow by dependency; "" are requests that never chose one.
	Dependencies map[string]Flow
	Total        Flow
}

// Flow counts requests that came as far as the limits: refusals before any
// route's work (no key, no route, malformed) are left out, what a limit or a
// breaker answered is in.
type Flow struct {
	Requests int64
	// PerSecond is the mean rate (requests/s), summed over gateways.
	PerSecond float64
}

// mostWindow bounds the distance of the two readings: a longer one says little about now.
const mostWindow = 3 * time.Minute

// Measure reads the traffic; false when no live gateway has two readings that can be compared.
func Measure(snap Snapshot) (Traffic, bool) {
	t := Traffic{Dependencies: map[string]Flow{}}
	known := false
	for _, g := range snap.Gateways {
		window := g.StateAt.Sub(g.PriorAt)
		if !g.Live || g.PriorAt.IsZero() || window <= 0 || window > mostWindow {
			continue
		}
		counts, ok := growth(g.Prior.Outcomes, g.State.Outcomes)
		if !ok {
			continue
		}
		known = true
		for dependency, n := range counts {
			t.Dependencies[dependency] = t.Dependencies[dependency].plus(n, window)
			t.Total = t.Total.plus(n, window)
		}
	}
	return t, known
}

func (f Flow) plus(n int64, window time.Duration) Flow {
	return Flow{Requests: f.Requests + n, PerSecond: f.PerSecond + float64(n)/window.Seconds()}
}

// growth is the difference of two readings by dependency; false when a counter
// fell, which means that the gateway was restarted in between.
func growth(before, after map[string]map[policy.Outcome]int64) (map[string]int64, bool) {
	grown := map[string]int64{}
	for dependency, outcomes := range after {
		for outcome, n := range outcomes {
			d := n - before[dependency][outcome]
			if d < 0 {
				return nil, false
			}
			if !refusedEarly(outcome) {
				grown[dependency] += d
			}
		}
	}
	return grown, true
}

func refusedEarly(o policy.Outcome) bool {
	switch o {
	case policy.OutcomeUnauthenticated, policy.OutcomeNoRoute, policy.OutcomeBadRequest, policy.OutcomeBodyTooLarge:
		return true
	default:
		return false
	}
}
