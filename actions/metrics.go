package actions

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics count what happens to runs. The zero registerer keeps them private.
type metrics struct {
	events  *prometheus.CounterVec
	enforce prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "holdfast_action_events_total",
			Help: "What happened to action runs, by action and event.",
		}, []string{"action", "event"}),
		enforce: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "holdfast_action_enforce_seconds",
			Help: "Time from acceptance of an action run until every live gateway acknowledged it (seconds).",
			// Below a second when all is well, up to a membership lease and more when a gateway is gone.
			Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 20, 60},
		}),
	}
	if reg == nil {
		return m, nil
	}
	return m, errors.Join(reg.Register(m.events), reg.Register(m.enforce))
}

// saw counts an event after its transaction was committed.
func (m *metrics) saw(run Run, kind EventKind) {
	if kind == "" {
		return
	}
	m.events.WithLabelValues(run.Action, string(kind)).Inc()
	if kind == EventEnforced {
		m.enforce.Observe(run.EnforcedAt.Sub(run.AcceptedAt).Seconds())
	}
}
