package gateway

import (
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"holdfast/gpuguard/policy"
)

// endpoint is one upstream address of a snapshot; slot is what outlives it.
type endpoint struct {
	name    string
	url     *url.URL
	drained bool
	slot    *slot
}

// slot is the run-time state of one address.
type slot struct {
	inFlight atomic.Int64
	// heldUntil is the end of a back-off the upstream asked for (Unix
	// nanoseconds), 0 when none.
	heldUntil atomic.Int64
}

func (s *slot) held(now time.Time) time.Duration {
	return time.Duration(s.heldUntil.Load() - now.UnixNano())
}

// choose picks the endpoint with the fewest requests in flight; equals take turns.
func (x *exchange) choose() *refusal {
	now := x.gateway.opts.Clock()
	e := x.to.pool.pick(now, nil)
	if e != nil {
		x.take(e)
		return nil
	}
	if wait, held := x.to.pool.backOff(now); held {
		return &refusal{
			outcome: policy.OutcomeUpstreamThrottled, status: http.StatusTooManyRequests,
			kind: rateLimit, code: "upstream_throttled", message: "The upstream asked to wait.",
			reason: "every endpoint asked to wait", retryAfter: wait, noRetry: true, degradable: true,
		}
	}
	return &refusal{
		outcome: policy.OutcomeNoEndpoint, status: http.StatusServiceUnavailable,
		kind: serverError, code: "no_endpoint", message: "No endpoint of this route takes requests.",
		reason: "pool " + x.to.pool.name + " has no endpoint", noRetry: true, degradable: true,
	}
}

func (x *exchange) take(e *endpoint) {
	if x.endpoint != nil {
		x.endpoint.slot.inFlight.Add(-1)
	}
	e.slot.inFlight.Add(1)
	x.endpoint = e
	x.record.Endpoint = e.name
}

// pick returns the least loaded endpoint that may be called, other than not
// when there is another; nil when there is none.
func (p *pool) pick(now time.Time, not *endpoint) *endpoint {
	n := len(p.endpoints)
	if n == 0 {
		return nil
	}
	var best *endpoint
	var load int64
	first := int(p.turn.Add(1) % uint32(n))
	for i := range n {
		e := p.endpoints[(first+i)%n]
		if e.drained || e == not || e.slot.held(now) > 0 {
			continue
		}
		if l := e.slot.inFlight.Load(); best == nil || l < load {
			best, load = e, l
		}
	}
	if best == nil && not != nil && not.slot.held(now) <= 0 {
		return not
	}
	return best
}

// backOff is the shortest wait the pool's endpoints asked for; false when none did.
func (p *pool) backOff(now time.Time) (wait time.Duration, held bool) {
	for _, e := range p.endpoints {
		if w := e.slot.held(now); !e.drained && w > 0 && (!held || w < wait) {
			wait, held = w, true
		}
	}
	return wait, held
}
