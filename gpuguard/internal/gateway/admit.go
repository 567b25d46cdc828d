package gateway

import (
	"net/http"
	"time"

	"holdfast/gpuguard/policy"
)

// admit asks the dependency's breaker.
func (x *exchange) admit() *refusal {
	d := x.to.pool.dependency
	now := x.gateway.opts.Clock()
	permit, ok, wait := d.breaker.Acquire(now)
	if ok {
		x.permit = permit
		return nil
	}
	no := &refusal{
		outcome: policy.OutcomeBreakerOpen, status: http.StatusServiceUnavailable,
		kind: serverError, code: "breaker_open", message: "The dependency behind this route is switched off while it recovers.",
		reason: "breaker open", retryAfter: wait, noRetry: true, degradable: true,
	}
	if d.forcedOpen {
		no.reason = "breaker forced open"
		no.retryAfter = leaseLeft(d.forcedUntil, now)
	}
	return no
}

// leaseLeft is the time to the end of a lease, or the longest wait that is
// told when it has no end.
func leaseLeft(until, now time.Time) time.Duration {
	if until.IsZero() {
		return maxRetryAfter
	}
	return until.Sub(now)
}
