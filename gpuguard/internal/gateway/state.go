package gateway

import (
	"cmp"
	"time"

	"holdfast/gpuguard/internal/breaker"
	"holdfast/gpuguard/internal/limit"
	"holdfast/gpuguard/internal/telemetry"
	"holdfast/gpuguard/policy"
)

// Effective is the policy in force; false when none is.
func (g *Gateway) Effective() (policy.Effective, bool) {
	s := g.current.Load()
	if s == nil {
		return policy.Effective{}, false
	}
	return s.effective, true
}

// Metrics are the gateway's counters.
func (g *Gateway) Metrics() *telemetry.Metrics { return g.metrics }

// State is what the gateway reports of itself.
func (g *Gateway) State() policy.State {
	out := policy.State{
		Breakers: map[string]policy.BreakerState{}, Limits: map[string]policy.Limit{},
		Outcomes: g.metrics.Outcomes(), InFlight: g.metrics.InFlight(), ActiveOverrides: []string{},
	}
	s := g.current.Load()
	if s == nil {
		return out
	}
	now := g.opts.Clock()
	for name, d := range s.deps {
		b := d.breaker.Status(now)
		out.Breakers[name] = policy.BreakerState{State: string(b.State), FailureRate: b.FailureRate, Calls: b.Calls}
	}
	for _, gt := range s.gates {
		l := gt.bucket.Status(now)
		out.Limits[gt.path] = policy.Limit{RequestsPerSecond: l.Rate.PerSecond, Burst: l.Rate.Burst}
	}
	for _, o := range s.effective.Overrides {
		out.ActiveOverrides = append(out.ActiveOverrides, o.ID)
	}
	return out
}

// reading is the state at one scrape.
func (g *Gateway) reading() telemetry.Reading {
	r := telemetry.Reading{Services: map[string]string{}, Breakers: map[string]breaker.Status{}, Limits: map[string]limit.Status{}}
	s := g.current.Load()
	if s == nil {
		return r
	}
	now := g.opts.Clock()
	for name, d := range s.deps {
		r.Breakers[name] = d.breaker.Status(now)
		r.Services[name] = cmp.Or(s.effective.Document.Dependencies[name].Service, name)
	}
	for _, gt := range s.gates {
		r.Limits[gt.path] = gt.bucket.Status(now)
	}
	for _, p := range s.pools {
		for _, e := range p.endpoints {
			r.Endpoints = append(r.Endpoints, telemetry.Endpoint{Pool: p.name, Name: e.name, InFlight: e.slot.inFlight.Load(), Drained: e.drained})
		}
	}
	r.Loaded = true
	r.Revision = s.effective.Revision
	r.Overrides = len(s.effective.Overrides)
	r.LiveGateways = s.live
	r.AgeSeconds = max(0, now.Sub(g.lastConfirmed()).Seconds())
	return r
}

// lastConfirmed is when the policy in force was last known to be the newest.
func (g *Gateway) lastConfirmed() time.Time {
	var at time.Time
	if applied := g.confirmed.Load(); applied != nil {
		at = *applied
	}
	if g.opts.LastHeard != nil {
		if heard := g.opts.LastHeard(); heard.After(at) {
			at = heard
		}
	}
	return at
}

// Confirm notes that the policy in force came just now.
func (g *Gateway) Confirm() {
	now := g.opts.Clock()
	g.confirmed.Store(&now)
}
