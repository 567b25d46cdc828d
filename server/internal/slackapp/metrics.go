package slackapp

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	requests  *prometheus.CounterVec
	delivered *prometheus.CounterVec
	pending   prometheus.Gauge
	oldest    prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) metrics {
	m := metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "holdfast_slack_requests_total",
			Help: "Requests from Slack by what became of them.",
		}, []string{"result"}),
		delivered: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "holdfast_slack_deliveries_total",
			Help: "Attempts to deliver a message to Slack by kind and result.",
		}, []string{"kind", "result"}),
		pending: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "holdfast_slack_pending_messages",
			Help: "Messages waiting for Slack.",
		}),
		oldest: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "holdfast_slack_pending_age_seconds",
			Help: "Age of the oldest message waiting for Slack.",
		}),
	}
	if reg != nil {
		reg.MustRegister(m.requests, m.delivered, m.pending, m.oldest)
	}
	return m
}
