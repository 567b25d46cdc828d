package gateway

import (
	"net/http"
	"time"

	"holdfast/gpuguard/internal/limit"
	"holdfast/gpuguard/policy"
)

// gate is a limit a request must pass.
type gate struct {
	path   string
	bucket *limit.Bucket
	// until is the end of the lease that set the limit; zero when none did.
	until time.Time
}

// takeLimits asks global, tenant and route limit, in this order. A refusal
// gives back what was taken before it: end does, because nothing was called.
func (x *exchange) takeLimits() *refusal {
	gates := [...]*gate{x.snap.global, nil, x.to.limit}
	if x.tenant != nil {
		gates[1] = x.tenant.limit
	}
	now := x.gateway.opts.Clock()
	for _, g := range gates {
		if g == nil {
			continue
		}
		ok, wait := g.bucket.Take(now)
		if !ok {
			return g.refusal(now, wait)
		}
		x.taken = append(x.taken, g)
	}
	return nil
}

func (g *gate) refusal(now time.Time, wait time.Duration) *refusal {
	if wait == limit.Never && !g.until.IsZero() {
		wait = g.until.Sub(now)
	}
	return &refusal{
		outcome: policy.OutcomeLimited, status: http.StatusTooManyRequests,
		kind: rateLimit, code: "rate_limit_exceeded", message: "The limit " + g.path + " is reached.",
		reason: g.path, retryAfter: wait, noRetry: true,
	}
}
