package policy

import (
	"maps"
	"time"
)

// DefaultMaxBodyBytes caps request bodies of routes that set none: 8 MiB. A
// prompt of a million tokens is about 4 MiB of text, and several MiB is what
// case C58 asks for; images beyond that deserve a limit of their own.
const DefaultMaxBodyBytes = 8 << 20

// Defaults of routes, fallbacks and credentials.
const (
	DefaultFallbackStatus      = 200
	DefaultFallbackContentType = "application/json"
	DefaultCredentialHeader    = "Authorization"
	DefaultCredentialPrefix    = "Bearer "
)

// DefaultBreaker is the breaker of a dependency that sets nothing.
func DefaultBreaker() Breaker {
	return Breaker{
		// INCIDENTS B uses 30 s for its vector database. At 30 s a failure rate of
		// 40 % is seen after 22 s, and outage C was lost in 28 s; at 10 s it is seen
		// after 8 s. A count window is too noisy at thousands of calls a second.
		WindowTime: Duration(10 * time.Second),
		// INCIDENTS A: 30 % errors.
		FailureRate: 0.30,
		// INCIDENTS B judges "50 % of 10 calls": the smallest sample of the reports (C44).
		MinimumCalls: 10,
		// The second rule for low traffic (C44): five in a row, so that a dependency
		// with one call a second is cut after 5 s of total failure.
		ConsecutiveFailures: 5,
		// INCIDENTS A: open 10 s.
		OpenFor: Duration(10 * time.Second),
		// INCIDENTS B: three half-open probes.
		HalfOpenProbes: 3,
		// Longer than the default total limit (20 s), so that the slowest probe can still end (C69).
		HalfOpenFor: Duration(30 * time.Second),
	}
}

// DefaultTimeouts are the limits of a dependency that sets nothing.
func DefaultTimeouts() Timeouts {
	return Timeouts{
		// INCIDENTS A: connect 3 s, response 15 s, total 20 s.
		Connect:   Duration(3 * time.Second),
		FirstByte: Duration(15 * time.Second),
		Total:     Duration(20 * time.Second),
		// Total must not cut healthy streams (C40, INCIDENTS "literal values"): a
		// stream is bounded by its silence instead. 30 s is 250 times the 120 ms a
		// token that the sick engine of outage A needed, and leaves room for a
		// preempted sequence to be computed again.
		Idle: Duration(30 * time.Second),
		// The absolute cap of a stream: 7,500 tokens at those 120 ms.
		StreamTotal: Duration(15 * time.Minute),
	}
}

// WithDefaults returns a copy in which every field that may be left out has the
// value that holds for it. Hash and Diff tell it from the original.
func (d Document) WithDefaults() Document {
	d.Dependencies = mapValues(d.Dependencies, func(name string, v Dependency) Dependency {
		if v.Service == "" {
			v.Service = name
		}
		v.Breaker = v.Breaker.WithDefaults()
		v.Timeouts = v.Timeouts.WithDefaults()
		return v
	})
	d.Tenants = mapValues(d.Tenants, func(_ string, v Tenant) Tenant {
		v.Limit = v.Limit.withDefaults()
		return v
	})
	d.Pools = mapValues(d.Pools, func(_ string, v Pool) Pool {
		v.Credential = v.Credential.withDefaults()
		return v
	})
	d.Routes = mapValues(d.Routes, func(_ string, v Route) Route { return v.withDefaults() })
	d.Limits.Global = d.Limits.Global.withDefaults()
	return d
}

// WithDefaults fills the fields that are zero. With a count window the default
// of MinimumCalls is never larger than the window.
func (b Breaker) WithDefaults() Breaker {
	def := DefaultBreaker()
	if b.WindowCalls == 0 {
		b.WindowTime = or(b.WindowTime, def.WindowTime)
	}
	b.FailureRate = or(b.FailureRate, def.FailureRate)
	if b.MinimumCalls == 0 {
		b.MinimumCalls = def.MinimumCalls
		if b.WindowTime == 0 {
			b.MinimumCalls = min(def.MinimumCalls, b.WindowCalls)
		}
	}
	b.ConsecutiveFailures = or(b.ConsecutiveFailures, def.ConsecutiveFailures)
	b.OpenFor = or(b.OpenFor, def.OpenFor)
	b.HalfOpenProbes = or(b.HalfOpenProbes, def.HalfOpenProbes)
	b.HalfOpenFor = or(b.HalfOpenFor, def.HalfOpenFor)
	return b
}

// WithDefaults fills the fields that are zero.
func (t Timeouts) WithDefaults() Timeouts {
	def := DefaultTimeouts()
	return Timeouts{
		Connect:     or(t.Connect, def.Connect),
		FirstByte:   or(t.FirstByte, def.FirstByte),
		Idle:        or(t.Idle, def.Idle),
		Total:       or(t.Total, def.Total),
		StreamTotal: or(t.StreamTotal, def.StreamTotal),
	}
}

func (r Route) withDefaults() Route {
	r.Auth = or(r.Auth, AuthRequired)
	r.Expect = or(r.Expect, ExpectAny)
	r.MaxBodyBytes = or(r.MaxBodyBytes, DefaultMaxBodyBytes)
	r.Limit = r.Limit.withDefaults()
	if r.Fallback != nil {
		f := *r.Fallback
		f.Status = or(f.Status, DefaultFallbackStatus)
		f.ContentType = or(f.ContentType, DefaultFallbackContentType)
		r.Fallback = &f
	}
	return r
}

func (l *Limit) withDefaults() *Limit {
	if l == nil {
		return nil
	}
	v := *l
	v.Burst = or(v.Burst, max(1, v.RequestsPerSecond))
	return &v
}

func (c *Credential) withDefaults() *Credential {
	if c == nil {
		return nil
	}
	v := *c
	v.Header = or(v.Header, DefaultCredentialHeader)
	if v.Header == DefaultCredentialHeader {
		v.Prefix = or(v.Prefix, DefaultCredentialPrefix)
	}
	return &v
}

// or is v, or def when v is zero.
func or[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// mapValues is a copy of m with each value changed by f; nil stays nil.
func mapValues[V any](m map[string]V, f func(string, V) V) map[string]V {
	out := maps.Clone(m)
	for name, v := range out {
		out[name] = f(name, v)
	}
	return out
}
