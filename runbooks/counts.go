package runbooks

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// counts are the metrics of the engine. A nil registerer keeps them private.
type counts struct {
	events *prometheus.CounterVec
	steps  *prometheus.CounterVec
}

func newCounts(reg prometheus.Registerer) (*counts, error) {
	c := &counts{
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "holdfast_runbook_events_total",
			Help: "What happened to runbook runs, by runbook and event.",
		}, []string{"runbook", "event"}),
		steps: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "holdfast_runbook_steps_total",
			Help: "Steps of runbook runs that came to an end, by runbook and how they ended.",
		}, []string{"runbook", "status"}),
	}
	if reg == nil {
		return c, nil
	}
	return c, errors.Join(reg.Register(c.events), reg.Register(c.steps))
}

// saw counts events after their transaction was committed.
func (c *counts) saw(runbook string, kinds ...EventKind) {
	for _, k := range kinds {
		c.events.WithLabelValues(runbook, string(k)).Inc()
	}
}
