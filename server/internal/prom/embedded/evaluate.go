package embedded

import (
	"context"
	"time"

	"github.com/prometheus/prometheus/rules"

	"holdfast/server/internal/prom/notify"
)

// evaluate evaluates a group and reports the state of its alerting rules. The
// state is taken whole after each evaluation, so that no change can be missed.
func (e *Engine) evaluate(ctx context.Context, g *rules.Group, at time.Time) {
	rules.DefaultEvalIterationFunc(ctx, g, at)
	if ctx.Err() != nil {
		return
	}
	e.mu.RLock()
	r := e.run
	e.mu.RUnlock()
	if r == nil {
		return // stopping
	}
	for i, rule := range g.Rules() {
		failed := rule.Health() != rules.HealthGood
		if failed {
			e.metrics.failures.Inc()
		}
		if a, ok := rule.(*rules.AlertingRule); ok {
			found := notify.Evaluation{Rule: ruleKey(g.File(), g.Name(), i), At: at, Failed: failed}
			e.take(a, &found)
			r.sender.Evaluated(found)
		}
	}
}

// take copies the active alerts of a rule.
func (e *Engine) take(rule *rules.AlertingRule, into *notify.Evaluation) {
	link := ""
	if e.o.Link != nil {
		link = e.o.Link(rule.Query().String())
	}
	for _, a := range rule.ActiveAlerts() {
		switch a.State {
		case rules.StateFiring:
			into.Firing = append(into.Firing, notify.Alert{
				Labels: a.Labels.Map(), Annotations: a.Annotations.Map(), StartsAt: a.FiredAt, GeneratorURL: link,
			})
		case rules.StatePending:
			into.Pending = append(into.Pending, a.Labels.Map())
		default: // over
		}
	}
}
