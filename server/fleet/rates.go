package fleet

import "time"

// Bounds of the distance between the two readings that a rate is taken over.
const (
	leastRateWindow = 5 * time.Second
	mostRateWindow  = 3 * time.Minute
)

// Rates are a gateway's traffic over about the last minute.
type Rates struct {
	// PerSecond counts finished requests (requests/s).
	PerSecond float64
	// Failed is the share of requests whose caller got no whole answer through a
	// fault of ours or of an upstream (ratio 0–1); 0 requests make it meaningless, see Known.
	Failed float64
	// Known is false when there are no two comparable readings; FailedKnown also needs a request.
	Known, FailedKnown bool
}

// Rates compares State with Prior. A counter that fell, as after a restart, makes them unknown.
func (g Gateway) Rates() Rates {
	window := g.StateAt.Sub(g.PriorAt)
	if g.PriorAt.IsZero() || window < leastRateWindow || window > mostRateWindow {
		return Rates{}
	}
	var all, failed int64
	for dependency, outcomes := range g.State.Outcomes {
		for outcome, n := range outcomes {
			grown := n - g.Prior.Outcomes[dependency][outcome]
			if grown < 0 {
				return Rates{}
			}
			all += grown
			if outcome.Failed() {
				failed += grown
			}
		}
	}
	r := Rates{PerSecond: float64(all) / window.Seconds(), Known: true}
	if all > 0 {
		r.Failed, r.FailedKnown = float64(failed)/float64(all), true
	}
	return r
}
