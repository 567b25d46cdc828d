package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"holdfast/gpuguard/internal/breaker"
	"holdfast/gpuguard/internal/limit"
)

// Reading is the gateway's state at one scrape.
type Reading struct {
	// Services are the catalogue names of the dependencies, by dependency.
	Services map[string]string
	// Breakers by dependency, Limits by policy path, after division by the live gateways.
	Breakers map[string]breaker.Status
	Limits   map[string]limit.Status
	// Endpoints by pool and endpoint name.
	Endpoints []Endpoint
	// Loaded says whether a policy is in force; without one the policy metrics are absent.
	Loaded   bool
	Revision int64
	// AgeSeconds is the time since the policy was last known to be the newest.
	AgeSeconds float64
	// Overrides in force.
	Overrides int
	// LiveGateways is the number of members that limits are divided by.
	LiveGateways int
}

// Endpoint is one upstream address.
type Endpoint struct {
	Pool, Name string
	InFlight   int64
	Drained    bool
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("gpuguard_"+name, help, labels, nil)
}

var (
	dependencyInfo  = desc("dependency_info", "1 for each dependency, with the catalogue service it is.", "dependency", "service")
	breakerState    = desc("breaker_state", "1 for the state the breaker is in.", "dependency", "state")
	breakerFailures = desc("breaker_failure_ratio", "Share of failures in the breaker's window.", "dependency")
	breakerCalls    = desc("breaker_window_calls", "Calls judged in the breaker's window.", "dependency")
	breakerChanges  = desc("breaker_changes_total", "Changes of the breaker's automatic state.", "dependency")
	breakerLate     = desc("breaker_late_results_total", "Results that arrived after their breaker period had ended.", "dependency")
	limitRate       = desc("limit_requests_per_second", "This gateway's share of a limit's rate.", "limit")
	limitBurst      = desc("limit_burst_requests", "This gateway's share of a limit's burst.", "limit")
	limitTokens     = desc("limit_tokens", "Requests the limit would admit at once.", "limit")
	limitRefused    = desc("limit_refused_total", "Requests the limit refused.", "limit")
	endpointFlight  = desc("endpoint_in_flight", "Requests at an endpoint now.", "pool", "endpoint")
	endpointDrained = desc("endpoint_drained", "1 for endpoints that take no new requests.", "pool", "endpoint")
	policyRevision  = desc("policy_revision", "Revision of the policy in force.")
	policyAge       = desc("policy_age_seconds", "Time since the policy in force was last known to be the newest.")
	policyOverrides = desc("policy_overrides", "Leased overrides in force.")
	policyGateways  = desc("policy_live_gateways", "Gateways that limits are divided by.")
)

// collector reads the state at each scrape, so that removed names disappear.
type collector struct{ read func() Reading }

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		dependencyInfo, breakerState, breakerFailures, breakerCalls, breakerChanges, breakerLate,
		limitRate, limitBurst, limitTokens, limitRefused, endpointFlight, endpointDrained,
		policyRevision, policyAge, policyOverrides, policyGateways,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	r := c.read()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v uint64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	for name, service := range r.Services {
		gauge(dependencyInfo, 1, name, service)
	}
	for name, b := range r.Breakers {
		for _, s := range breaker.States() {
			gauge(breakerState, one(s == b.State), name, string(s))
		}
		gauge(breakerFailures, b.FailureRate, name)
		gauge(breakerCalls, float64(b.Calls), name)
		counter(breakerChanges, b.Generation-1, name)
		counter(breakerLate, b.Late, name)
	}
	for path, l := range r.Limits {
		gauge(limitRate, l.Rate.PerSecond, path)
		gauge(limitBurst, l.Rate.Burst, path)
		gauge(limitTokens, l.Tokens, path)
		counter(limitRefused, l.Refused, path)
	}
	for _, e := range r.Endpoints {
		gauge(endpointFlight, float64(e.InFlight), e.Pool, e.Name)
		gauge(endpointDrained, one(e.Drained), e.Pool, e.Name)
	}
	if r.Loaded {
		gauge(policyRevision, float64(r.Revision))
		gauge(policyAge, r.AgeSeconds)
		gauge(policyOverrides, float64(r.Overrides))
		gauge(policyGateways, float64(r.LiveGateways))
	}
}

func one(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
