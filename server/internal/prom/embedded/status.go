package embedded

import (
	"context"
	"maps"
	"slices"

	"github.com/prometheus/common/model"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/scrape"

	"holdfast/server/observe"
)

// Rules implements observe.Source.
func (e *Engine) Rules(context.Context) ([]observe.RuleGroup, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.run == nil {
		return nil, errStopped
	}
	groups := e.run.rules.RuleGroups()
	out := make([]observe.RuleGroup, len(groups))
	for i, g := range groups {
		out[i] = observe.RuleGroup{Name: g.Name(), Interval: g.Interval(), Rules: []observe.Rule{}}
		for _, r := range g.Rules() {
			out[i].Rules = append(out[i].Rules, ruleOf(r))
		}
	}
	return out, nil
}

func ruleOf(r rules.Rule) observe.Rule {
	out := observe.Rule{
		Name: r.Name(), Query: r.Query().String(), Labels: r.Labels().Map(),
		Health: string(r.Health()), EvaluatedAt: r.GetEvaluationTimestamp(),
	}
	if err := r.LastError(); err != nil {
		out.LastError = err.Error()
	}
	a, ok := r.(*rules.AlertingRule)
	if !ok {
		return out
	}
	out.Alerting, out.For, out.Annotations = true, a.HoldDuration(), a.Annotations().Map()
	out.State = stateOf(a.State())
	for _, active := range a.ActiveAlerts() {
		out.Alerts = append(out.Alerts, observe.ActiveAlert{
			Labels: active.Labels.Map(), State: stateOf(active.State), ActiveAt: active.ActiveAt, Value: active.Value,
		})
	}
	slices.SortFunc(out.Alerts, func(a, b observe.ActiveAlert) int {
		return labels.Compare(labels.FromMap(a.Labels), labels.FromMap(b.Labels))
	})
	return out
}

func stateOf(s rules.AlertState) observe.RuleState {
	switch s {
	case rules.StateFiring:
		return observe.RuleFiring
	case rules.StatePending:
		return observe.RulePending
	default:
		return observe.RuleInactive
	}
}

// Targets implements observe.Source.
func (e *Engine) Targets(context.Context) ([]observe.Target, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.run == nil {
		return nil, errStopped
	}
	pools := e.run.scrape.TargetsActive()
	out := []observe.Target{}
	for _, name := range slices.Sorted(maps.Keys(pools)) {
		for _, t := range pools[name] {
			out = append(out, targetOf(t))
		}
	}
	slices.SortStableFunc(out, observe.CompareTargets)
	return out, nil
}

func targetOf(t *scrape.Target) observe.Target {
	set := t.Labels(labels.NewBuilder(labels.EmptyLabels())).Map()
	out := observe.Target{
		Job: set[model.JobLabel], URL: t.URL().String(), Labels: set, Health: string(t.Health()),
		ScrapedAt: t.LastScrape(), Took: t.LastScrapeDuration(),
	}
	if err := t.LastError(); err != nil {
		out.LastError = err.Error()
	}
	return out
}
