package controlclient

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast/gpuguard/policy"
)

// metrics counts what the link did; its gauges read the client's status.
type metrics struct {
	updates  *prometheus.CounterVec
	ackFails prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, c *Client) (*metrics, error) {
	m := &metrics{
		updates: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gpuguard_control_updates_total",
			Help: "Policy updates received from the server, by result (applied, rejected).",
		}, []string{"result"}),
		ackFails: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gpuguard_control_ack_failures_total",
			Help: "Acknowledgements that the server did not take.",
		}),
	}
	m.updates.WithLabelValues(string(policy.AckApplied))
	m.updates.WithLabelValues(string(policy.AckRejected))
	if reg == nil {
		return m, nil
	}
	connected := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "gpuguard_control_connected",
		Help: "1 while the policy stream is open, else 0.",
	}, func() float64 { return number(c.Status().Connected) })
	age := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "gpuguard_control_age_seconds",
		Help: "Time since the server was last heard on the policy stream (seconds); -1 when never.",
	}, c.ageSeconds)
	storage := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "gpuguard_control_storage_ok",
		Help: "1 while the last-known-good policy can be saved, else 0.",
	}, func() float64 { return number(c.Status().StorageError == "") })
	for _, collector := range []prometheus.Collector{m.updates, m.ackFails, connected, age, storage} {
		if err := reg.Register(collector); err != nil {
			return nil, fmt.Errorf("metrics of the control link: %w", err)
		}
	}
	return m, nil
}

func (m *metrics) update(result policy.AckResult) { m.updates.WithLabelValues(string(result)).Inc() }

func (m *metrics) ackFailed() { m.ackFails.Inc() }

func (c *Client) ageSeconds() float64 {
	heard := c.Status().LastHeard
	if heard.IsZero() {
		return -1
	}
	return max(0, c.opts.Clock().Sub(heard).Seconds())
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
