package slackapp

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	requests  *prometheus.CounterVec
	delivered *prometheus.CounterVec
	alarms    *prometheus.CounterVec
	pending   prometheus.Gauge
	oldest    prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) (metrics, error) {
	m := metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "holdfast_slack_requests_total",
			Help: "Requests from Slack by what became of them.",
		}, []string{"result"}),
		delivered: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "holdfast_slack_deliveries_total",
			Help: "Attempts to deliver a message to Slack by kind and result.",
		}, []string{"kind", "result"}),
		alarms: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "holdfast_slack_operator_alarms_total",
			Help: "Refusals by Slack that only an operator can mend, such as an archived channel, by Slack's error name.",
		}, []string{"reason"}),
		pending: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "holdfast_slack_pending_messages",
			Help: "Messages waiting for Slack.",
		}),
		oldest: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "holdfast_slack_pending_age_seconds",
			Help: "Age of the oldest message waiting for Slack.",
		}),
	}
	if reg == nil {
		return m, nil
	}
	var errs []error
	for _, c := range []prometheus.Collector{m.requests, m.delivered, m.alarms, m.pending, m.oldest} {
		errs = append(errs, reg.Register(c))
	}
	return m, errors.Join(errs...)
}
