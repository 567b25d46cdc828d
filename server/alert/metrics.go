package alert

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	deliveries *prometheus.CounterVec
	alerts     *prometheus.CounterVec
}

// newMetrics registers the counters; with a nil registerer they count for nobody.
func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		deliveries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "holdfast_alert_deliveries_total",
			Help: "Alert notifications by result: accepted, failed or overloaded.",
		}, []string{"result"}),
		alerts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "holdfast_alerts_total",
			Help: "Alerts of accepted notifications by effect: new, updated, resolved, duplicate or stale.",
		}, []string{"effect"}),
	}
	if r != nil {
		r.MustRegister(m.deliveries, m.alerts)
	}
	return m
}

func (m *metrics) delivery(result string) { m.deliveries.WithLabelValues(result).Inc() }

func (m *metrics) accepted(r Receipt) {
	m.delivery("accepted")
	for _, e := range []struct {
		effect effect
		n      int
	}{
		{effectNew, r.New},
		{effectUpdated, r.Updated},
		{effectResolved, r.Resolved},
		{effectDuplicate, r.Duplicate},
		{effectStale, r.Stale},
	} {
		m.alerts.WithLabelValues(string(e.effect)).Add(float64(e.n))
	}
}
