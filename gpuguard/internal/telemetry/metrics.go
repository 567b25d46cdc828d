// Package telemetry is what the gateway says about itself: gpuguard_* metrics
// on an injected registerer, outcome counts for acknowledgements, and the one
// log line per request. Labels are closed sets: names from the policy and
// constants, never anything a caller sent.
package telemetry

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast/gpuguard/policy"
)

// outcomes fixes the index of each outcome.
var outcomes = policy.Outcomes()

func indexOf(o policy.Outcome) int {
	for i, known := range outcomes {
		if known == o {
			return i
		}
	}
	return indexOf(policy.OutcomeInternal)
}

var (
	// Engines answer in 10 ms to minutes; the incident reports have 0.2, 0.8, 8.3, 12 and 30 s.
	requestBuckets   = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 8, 12, 20, 30, 60, 120, 300, 900}
	firstByteBuckets = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.2, 2, 3, 5, 8, 15, 30, 60}
)

// Metrics count requests. The zero value is not usable; see New.
type Metrics struct {
	requests      *prometheus.CounterVec
	requestTime   *prometheus.HistogramVec
	firstByte     *prometheus.HistogramVec
	degraded      *prometheus.CounterVec
	emptyChoices  *prometheus.CounterVec
	retries       *prometheus.CounterVec
	misconfigured *prometheus.GaugeVec
	panics        prometheus.Counter
	policyApplied *prometheus.CounterVec
	leasesEnded   prometheus.Counter
	applySeconds  prometheus.Gauge

	inFlight atomic.Int64

	mu     sync.Mutex
	counts map[string]*counts // by dependency
	series map[[2]string]*Series
}

type counts [32]atomic.Int64 // by outcome index; more than there are outcomes

// New makes the metrics and registers them, together with what state reads at
// each scrape. A nil registerer publishes nothing; counting goes on all the same.
func New(reg prometheus.Registerer, state func() Reading) (*Metrics, error) {
	m := &Metrics{counts: map[string]*counts{}, series: map[[2]string]*Series{}}
	routed := []string{"route", "dependency"}
	m.requests = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gpuguard_requests_total", Help: "Finished requests by how they ended.",
	}, append(routed, "outcome"))
	m.requestTime = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "gpuguard_request_seconds", Help: "Time from a request's header to the end of its answer.", Buckets: requestBuckets,
	}, routed)
	m.firstByte = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "gpuguard_first_byte_seconds", Help: "Time from calling an upstream to the first byte of its answer's body.", Buckets: firstByteBuckets,
	}, routed)
	m.degraded = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gpuguard_degraded_total", Help: "Requests answered by a degrade path; useful ones with a 2xx status.",
	}, append(routed, "kind", "useful"))
	m.emptyChoices = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gpuguard_empty_choices_total", Help: "Good answers that carried no choice.",
	}, routed)
	m.retries = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gpuguard_connect_retries_total", Help: "Second attempts after a connection could not be made.",
	}, []string{"dependency"})
	m.misconfigured = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "gpuguard_upstream_misconfigured", Help: "1 while the upstream refuses the gateway's credential or account.",
	}, []string{"dependency"})
	m.panics = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "gpuguard_panics_total", Help: "Requests ended by a fault of the gateway's own code.",
	})
	m.policyApplied = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gpuguard_policy_updates_total", Help: "Policy updates received, by what became of them.",
	}, []string{"result"})
	m.leasesEnded = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "gpuguard_overrides_expired_total", Help: "Overrides whose lease the gateway ended by its own clock.",
	})
	m.applySeconds = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "gpuguard_policy_apply_seconds", Help: "Time the last policy update took to take effect.",
	})
	for _, result := range []policy.AckResult{policy.AckApplied, policy.AckRejected} {
		m.policyApplied.WithLabelValues(string(result))
	}
	if reg == nil {
		return m, nil
	}
	return m, register(reg, m.requests, m.requestTime, m.firstByte, m.degraded, m.emptyChoices, m.retries,
		m.misconfigured, m.panics, m.policyApplied, m.leasesEnded, m.applySeconds,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "gpuguard_in_flight", Help: "Requests inside the gateway now.",
		}, func() float64 { return float64(m.inFlight.Load()) }),
		&collector{read: state})
}

func register(reg prometheus.Registerer, cs ...prometheus.Collector) error {
	var errs []error
	for _, c := range cs {
		if err := reg.Register(c); err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("register gpuguard metrics: %w", err)
	}
	return nil
}

// Series are the metrics of one route, resolved once so that a request costs no lookups.
type Series struct {
	counts       *counts
	requests     []prometheus.Counter
	requestTime  prometheus.Observer
	firstByte    prometheus.Observer
	emptyChoices prometheus.Counter
	retries      prometheus.Counter
	// degraded by usefulness: a refusal in a degrade path's words, an answer.
	degraded [2]prometheus.Counter

	misconfigured prometheus.Gauge
}

// Series returns the metrics of a route; both names are empty for requests that
// match none.
func (m *Metrics) Series(route, dependency string) *Series {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := [2]string{route, dependency}
	if s, ok := m.series[key]; ok {
		return s
	}
	c := m.counts[dependency]
	if c == nil {
		c = &counts{}
		m.counts[dependency] = c
	}
	s := &Series{
		counts:      c,
		requestTime: m.requestTime.WithLabelValues(route, dependency),
		firstByte:   m.firstByte.WithLabelValues(route, dependency),
	}
	if route != "" { // what follows cannot happen without a route
		s.emptyChoices = m.emptyChoices.WithLabelValues(route, dependency)
		for i, useful := range []string{"false", "true"} {
			s.degraded[i] = m.degraded.WithLabelValues(route, dependency, KindStatic, useful)
		}
		s.retries = m.retries.WithLabelValues(dependency)
		s.misconfigured = m.misconfigured.WithLabelValues(dependency)
	}
	for _, o := range outcomes {
		s.requests = append(s.requests, m.requests.WithLabelValues(route, dependency, string(o)))
	}
	m.series[key] = s
	return s
}

// Outcomes counts finished requests since the start by dependency and outcome;
// outcomes that never happened are left out.
func (m *Metrics) Outcomes() map[string]map[policy.Outcome]int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make(map[string]map[policy.Outcome]int64, len(m.counts))
	for dependency, c := range m.counts {
		byOutcome := map[policy.Outcome]int64{}
		for i, o := range outcomes {
			if n := c[i].Load(); n > 0 {
				byOutcome[o] = n
			}
		}
		if len(byOutcome) > 0 {
			all[dependency] = byOutcome
		}
	}
	return all
}

// InFlight is the number of requests between Enter and Leave.
func (m *Metrics) InFlight() int64 { return m.inFlight.Load() }

// Enter counts a request in; each is followed by one Leave.
func (m *Metrics) Enter() { m.inFlight.Add(1) }

// Leave counts a request out.
func (m *Metrics) Leave() { m.inFlight.Add(-1) }

// Panicked counts a fault of the gateway's own code.
func (m *Metrics) Panicked() { m.panics.Inc() }

// PolicyUpdate counts an update and, when it was applied, how long that took.
func (m *Metrics) PolicyUpdate(r policy.AckResult, took time.Duration) {
	m.policyApplied.WithLabelValues(string(r)).Inc()
	if r == policy.AckApplied {
		m.applySeconds.Set(took.Seconds())
	}
}

// LeasesEnded counts overrides that the gateway ended by itself.
func (m *Metrics) LeasesEnded(n int) { m.leasesEnded.Add(float64(n)) }

// Finished counts a request; firstByte is 0 when no upstream sent one.
func (s *Series) Finished(o policy.Outcome, took, firstByte time.Duration) {
	i := indexOf(o)
	s.counts[i].Add(1)
	s.requests[i].Inc()
	s.requestTime.Observe(took.Seconds())
	if firstByte > 0 {
		s.firstByte.Observe(firstByte.Seconds())
	}
}

// KindStatic is the degrade path that answers with a route's static text.
const KindStatic = "static"

// Degraded counts an answer of the static degrade path. With a 2xx status it is
// useful to the caller; with another it is a refusal in the route's own words.
func (s *Series) Degraded(status int) {
	if status >= http.StatusOK && status < http.StatusMultipleChoices {
		s.degraded[1].Inc()
		return
	}
	s.degraded[0].Inc()
}

// EmptyChoices counts an answer that is well formed and says nothing.
func (s *Series) EmptyChoices() { s.emptyChoices.Inc() }

// Retried counts a second attempt.
func (s *Series) Retried() { s.retries.Inc() }

// Misconfigured says whether the upstream refuses our credential or account.
func (s *Series) Misconfigured(yes bool) {
	v := 0.0
	if yes {
		v = 1
	}
	s.misconfigured.Set(v)
}
