package prom

import (
	"context"
	"slices"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"holdfast/server/observe"
)

// Rules implements observe.Source.
func (r *Remote) Rules(ctx context.Context) ([]observe.RuleGroup, error) {
	var answer v1.RulesResult
	err := r.ask(ctx, "rules", func(ctx context.Context) (err error) {
		answer, err = r.api.Rules(ctx, nil)
		return err
	})
	if err != nil {
		return nil, err
	}
	out := make([]observe.RuleGroup, len(answer.Groups))
	for i, g := range answer.Groups {
		out[i] = observe.RuleGroup{Name: g.Name, Interval: seconds(g.Interval), Rules: []observe.Rule{}}
		for _, rule := range g.Rules {
			switch rule := rule.(type) {
			case v1.RecordingRule:
				out[i].Rules = append(out[i].Rules, recording(rule))
			case v1.AlertingRule:
				out[i].Rules = append(out[i].Rules, alerting(rule))
			}
		}
	}
	return out, nil
}

func recording(r v1.RecordingRule) observe.Rule {
	return observe.Rule{
		Name: r.Name, Query: r.Query, Labels: set(r.Labels),
		Health: string(r.Health), LastError: r.LastError, EvaluatedAt: r.LastEvaluation,
	}
}

func alerting(r v1.AlertingRule) observe.Rule {
	out := observe.Rule{
		Name: r.Name, Query: r.Query, Alerting: true, For: seconds(r.Duration), State: stateOf(r.State),
		Labels: set(r.Labels), Annotations: set(r.Annotations),
		Health: string(r.Health), LastError: r.LastError, EvaluatedAt: r.LastEvaluation,
	}
	for _, a := range r.Alerts {
		if a != nil {
			out.Alerts = append(out.Alerts, observe.ActiveAlert{
				Labels: set(a.Labels), State: stateOf(string(a.State)), ActiveAt: a.ActiveAt, Value: number(a.Value),
			})
		}
	}
	slices.SortFunc(out.Alerts, func(a, b observe.ActiveAlert) int { return compare(a.Labels, b.Labels) })
	return out
}

// stateOf takes what is unknown, such as a rule that was not evaluated yet, for inactive.
func stateOf(s string) observe.RuleState {
	switch state := observe.RuleState(s); state {
	case observe.RuleFiring, observe.RulePending:
		return state
	default:
		return observe.RuleInactive
	}
}

// Targets implements observe.Source.
func (r *Remote) Targets(ctx context.Context) ([]observe.Target, error) {
	var answer v1.TargetsResult
	err := r.ask(ctx, "targets", func(ctx context.Context) (err error) {
		answer, err = r.api.Targets(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	out := make([]observe.Target, len(answer.Active))
	for i, t := range answer.Active {
		out[i] = observe.Target{
			Job: string(t.Labels[model.JobLabel]), URL: t.ScrapeURL, Labels: set(t.Labels), Health: string(t.Health),
			LastError: t.LastError, ScrapedAt: t.LastScrape, Took: seconds(t.LastScrapeDuration),
		}
	}
	slices.SortStableFunc(out, observe.CompareTargets)
	return out, nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
