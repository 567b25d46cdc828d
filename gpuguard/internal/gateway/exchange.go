package gateway

import (
	"net/http"
	"time"

	"holdfast/gpuguard/internal/breaker"
	"holdfast/gpuguard/internal/telemetry"
	"holdfast/gpuguard/policy"
)

// exchange is one request on its way through the stages. It is used by one
// goroutine.
type exchange struct {
	gateway *Gateway
	snap    *snapshot
	w       http.ResponseWriter
	r       *http.Request
	out     responseWriter
	series  *telemetry.Series
	start   time.Time

	to     *route
	tenant *tenant // nil for anonymous callers

	body     *body // nil when there is none, or no longer
	stream   bool
	patience time.Duration // the caller's own limit, 0 when it gave none

	// Rights taken, given back by end.
	taken    []*gate
	called   bool // some upstream was tried, so the tokens are used
	endpoint *endpoint
	permit   breaker.Permit
	result   breaker.Result

	committed bool // the response header is out
	abort     bool // the caller must see a cut
	record    telemetry.Record
}

func newExchange(g *Gateway, w http.ResponseWriter, r *http.Request) *exchange {
	now := g.opts.Clock()
	x := &exchange{
		gateway: g, snap: g.snapshotAt(now), w: w, r: r, series: g.unrouted, start: now,
		result: breaker.Ignored,
	}
	x.out = newResponseWriter(w, g.opts.WriteTimeout)
	x.record.RequestID = requestID(r.Header)
	x.record.Method = methodName(r.Method)
	return x
}

// snapshotAt is the policy to use at now. Leases that ended are taken out
// first, even when the timer that does it is late.
func (g *Gateway) snapshotAt(now time.Time) *snapshot {
	s := g.current.Load()
	if s != nil && !s.nextExpiry.IsZero() && !now.Before(s.nextExpiry) && g.opts.LeaseOver != nil {
		g.opts.LeaseOver()
		s = g.current.Load()
	}
	return s
}

// dropBody lets go of the request body.
func (x *exchange) dropBody() {
	if x.body != nil {
		x.body.release()
		x.body = nil
	}
}

// outcome sets how the request ended and what that means for the breaker.
func (x *exchange) outcome(o policy.Outcome, reason string) {
	x.record.Outcome = o
	x.record.Reason = reason
	x.result = resultOf(o)
}

// resultOf is what an outcome says about the dependency: callers' faults and
// departures, and a credential of ours that is refused, say nothing (C43, C45).
func resultOf(o policy.Outcome) breaker.Result {
	switch o {
	case policy.OutcomeOK:
		return breaker.Success
	case policy.OutcomeUpstreamError, policy.OutcomeUpstreamEmpty, policy.OutcomeUpstreamCut,
		policy.OutcomeUpstreamUnreachable, policy.OutcomeTimeoutFirstByte,
		policy.OutcomeTimeoutIdle, policy.OutcomeTimeoutTotal:
		return breaker.Failure
	default:
		return breaker.Ignored
	}
}
