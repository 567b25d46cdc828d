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

// saw counts a transition after it was committed.
func (c *counts) saw(tr transition) {
	for _, e := range tr.events {
		c.event(tr.run.Runbook.ID, e.Kind)
	}
	for _, status := range tr.ended {
		c.steps.WithLabelValues(tr.run.Runbook.ID, string(status)).Inc()
	}
}

func (c *counts) event(runbook string, kind EventKind) {
	c.events.WithLabelValues(runbook, string(kind)).Inc()
}
