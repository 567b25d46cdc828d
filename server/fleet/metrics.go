package fleet

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	revision, live prometheus.Gauge
	apply          prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		revision: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "holdfast_policy_revision", Help: "Newest revision of the policy.",
		}),
		live: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "holdfast_gateways_live", Help: "Gateways by which limits are divided: those heard within the membership lease, at least 1.",
		}),
		apply: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "holdfast_gateway_apply_seconds", Help: "Time a gateway took from receipt of a revision until it was in force (seconds).",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .05, .1, .5, 1},
		}),
	}
	if reg == nil {
		return m, nil
	}
	if err := errors.Join(reg.Register(m.revision), reg.Register(m.live), reg.Register(m.apply)); err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	return m, nil
}
