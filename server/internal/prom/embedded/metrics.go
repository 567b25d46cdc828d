package embedded

import (
	"errors"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are this package's own; those of Prometheus' packages stay inside.
type metrics struct {
	series     atomic.Pointer[func() uint64]
	deliveries *prometheus.CounterVec
	failures   prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		deliveries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "holdfast_metrics_alerts_delivered_total",
			Help: "Webhooks of the embedded Prometheus by result: delivered or failed (and sent again).",
		}, []string{"result"}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "holdfast_metrics_rule_evaluation_failures_total",
			Help: "Rule evaluations of the embedded Prometheus that failed.",
		}),
	}
	m.deliveries.WithLabelValues("delivered")
	m.deliveries.WithLabelValues("failed")
	if reg == nil {
		return m, nil
	}
	series := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "holdfast_metrics_series",
		Help: "Series that the embedded Prometheus holds in memory.",
	}, func() float64 {
		if count := m.series.Load(); count != nil {
			return float64((*count)())
		}
		return 0
	})
	return m, errors.Join(reg.Register(m.deliveries), reg.Register(m.failures), reg.Register(series))
}

// follow makes the gauge count; nil when there is nothing to count.
func (m *metrics) follow(count func() uint64) {
	if count == nil {
		m.series.Store(nil)
		return
	}
	m.series.Store(&count)
}

func (m *metrics) delivered(err error) {
	result := "delivered"
	if err != nil {
		result = "failed"
	}
	m.deliveries.WithLabelValues(result).Inc()
}
