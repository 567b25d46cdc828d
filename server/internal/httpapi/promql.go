package httpapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/gpuguard/signals"
	"holdfast/server/internal/httpapi/gen"
	"holdfast/server/observe"
)

// errNoMetrics answers a question about metrics where there is no source of them.
var errNoMetrics = errors.New("no source of metrics")

// leastStep is the finest resolution of Prometheus, which counts in milliseconds.
const leastStep = time.Millisecond

// metricSource names where metrics come from.
func (a *handlers) metricSource() gen.MetricSource {
	if a.Metrics == nil {
		return gen.None
	}
	return gen.MetricSource(a.Metrics.Kind())
}

// askable says why nothing can be asked.
func (a *handlers) askable() error {
	if a.Metrics == nil {
		return fmt.Errorf("%w: give the address of a Prometheus in HOLDFAST_PROMETHEUS_URL, or let holdfast scrape by itself", errNoMetrics)
	}
	return nil
}

// asked completes what a source answers: a source that took all of the time there
// is did not answer.
func asked(err error) error {
	if errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, observe.ErrUnavailable) {
		return fmt.Errorf("%w: %w", observe.ErrUnavailable, err)
	}
	return err
}

func (a *handlers) QueryMetrics(ctx context.Context, r gen.QueryMetricsRequestObject) (gen.QueryMetricsResponseObject, error) {
	if err := a.askable(); err != nil {
		return nil, err
	}
	found, err := a.Metrics.Query(ctx, r.Params.Query, value(r.Params.Time))
	if err != nil {
		return nil, asked(err)
	}
	return gen.QueryMetrics200JSONResponse{Items: convert(found, toSample), Source: a.metricSource()}, nil
}

func (a *handlers) QueryMetricsRange(ctx context.Context, r gen.QueryMetricsRangeRequestObject) (gen.QueryMetricsRangeResponseObject, error) {
	span, err := metricRange(r.Params)
	if err != nil {
		return nil, err
	}
	if err := a.askable(); err != nil {
		return nil, err
	}
	found, err := a.Metrics.QueryRange(ctx, r.Params.Query, span)
	if err != nil {
		return nil, asked(err)
	}
	return gen.QueryMetricsRange200JSONResponse{Items: convert(found, toSeries), Source: a.metricSource()}, nil
}

// metricRange refuses what would be refused or would take for ever, before anybody is asked.
func metricRange(p gen.QueryMetricsRangeParams) (observe.Range, error) {
	step, err := duration("step", &p.Step, 0)
	if err != nil {
		return observe.Range{}, err
	}
	e := &requestError{}
	if step < leastStep {
		e.add("step", "want "+leastStep.String()+" or more")
	}
	if p.End.Before(p.Start) {
		e.add("end", "lies before start")
	}
	if len(e.fields) == 0 && p.End.Sub(p.Start)/step >= observe.MaxPoints {
		e.add("step", fmt.Sprintf("gives more than %d points: take a longer step or a shorter range", observe.MaxPoints))
	}
	if len(e.fields) > 0 {
		return observe.Range{}, e
	}
	return observe.Range{Start: p.Start, End: p.End, Step: step}, nil
}

func (a *handlers) ListRules(ctx context.Context, _ gen.ListRulesRequestObject) (gen.ListRulesResponseObject, error) {
	out := gen.ListRules200JSONResponse{Items: []gen.AlertRule{}, Source: a.metricSource()}
	if a.Metrics == nil {
		return out, nil
	}
	groups, err := a.Metrics.Rules(ctx)
	if err != nil {
		return nil, asked(err)
	}
	for _, g := range groups {
		for _, r := range g.Rules {
			out.Items = append(out.Items, toRule(g.Name, r))
		}
	}
	return out, nil
}

func (a *handlers) ListTargets(ctx context.Context, _ gen.ListTargetsRequestObject) (gen.ListTargetsResponseObject, error) {
	out := gen.ListTargets200JSONResponse{Items: []gen.ScrapeTarget{}, Source: a.metricSource()}
	if a.Metrics == nil {
		return out, nil
	}
	targets, err := a.Metrics.Targets(ctx)
	if err != nil {
		return nil, asked(err)
	}
	out.Items = convert(targets, toTarget)
	return out, nil
}

func (a *handlers) ListSignals(ctx context.Context, r gen.ListSignalsRequestObject) (gen.ListSignalsResponseObject, error) {
	out := gen.ListSignals200JSONResponse{Items: []gen.ServiceSignals{}, Source: a.metricSource()}
	if a.Metrics == nil || a.Signals == nil {
		return out, nil
	}
	board, err := a.Signals.Board(ctx, value(r.Params.Service), value(r.Params.Environment))
	if err != nil {
		return nil, asked(err)
	}
	out.Items = convert(board, toServiceSignals)
	return out, nil
}

// finite is a number as JSON knows it: NaN and infinity are no data, null.
func finite(v float64) *float64 {
	if !signals.IsData(v) {
		return nil
	}
	return &v
}

func finiteOf(v *float64) *float64 {
	if v == nil {
		return nil
	}
	return finite(*v)
}

// labelsOf shows labels as {} when there are none.
func labelsOf(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

func toSample(s signals.Sample) gen.MetricSample {
	return gen.MetricSample{Labels: labelsOf(s.Labels), Value: finite(s.Value), At: s.At.UTC()}
}

func toPoint(p signals.Point) gen.MetricPoint {
	return gen.MetricPoint{At: p.At.UTC(), Value: finite(p.Value)}
}

func toSeries(s signals.Series) gen.MetricSeries {
	return gen.MetricSeries{Labels: labelsOf(s.Labels), Points: convert(s.Points, toPoint)}
}

func toServiceSignals(s observe.ServiceSignals) gen.ServiceSignals {
	return gen.ServiceSignals{
		Service: s.Service, Environment: s.Environment, Health: gen.SignalHealth(s.Health),
		Signals: convert(s.Signals, toSignal), Firing: append([]string{}, s.Firing...),
	}
}

func toSignal(s observe.Signal) gen.GoldenSignal {
	return gen.GoldenSignal{
		Name: s.Name, Title: s.Title, Help: text(s.Help), Unit: gen.GoldenSignalUnit(s.Unit), Query: s.Query,
		Value: finiteOf(s.Value), At: moment(s.At), Health: gen.SignalHealth(s.Health), Source: text(s.Source),
		WarningAbove: finiteOf(s.WarningAbove), CriticalAbove: finiteOf(s.CriticalAbove),
		WarningBelow: finiteOf(s.WarningBelow), CriticalBelow: finiteOf(s.CriticalBelow),
		Points: convert(s.Points, toPoint),
	}
}

func toRule(group string, r observe.Rule) gen.AlertRule {
	out := gen.AlertRule{
		Group: group, Name: r.Name, Query: r.Query, Alerting: r.Alerting, Health: gen.AlertRuleHealth(r.Health),
		Error: text(r.LastError), EvaluatedAt: moment(r.EvaluatedAt), Labels: mapping(r.Labels), Annotations: mapping(r.Annotations),
	}
	if out.Health == "" {
		out.Health = gen.AlertRuleHealthUnknown
	}
	if !r.Alerting {
		return out
	}
	out.For = text(r.For.String())
	if state := gen.AlertRuleState(r.State); state != "" {
		out.State = &state
	}
	for _, al := range r.Alerts {
		out.Alerts = appendTo(out.Alerts, struct {
			ActiveAt time.Time                `json:"active_at"`
			Labels   map[string]string        `json:"labels"`
			State    gen.AlertRuleAlertsState `json:"state"`
			Value    *float64                 `json:"value"`
		}{al.ActiveAt.UTC(), labelsOf(al.Labels), gen.AlertRuleAlertsState(al.State), finite(al.Value)})
	}
	return out
}

func appendTo[T any](to *[]T, v T) *[]T {
	all := append(value(to), v)
	return &all
}

// mapping leaves an empty map out of the answer.
func mapping(m map[string]string) *map[string]string {
	if len(m) == 0 {
		return nil
	}
	return &m
}

func toTarget(t observe.Target) gen.ScrapeTarget {
	out := gen.ScrapeTarget{
		Job: t.Job, Url: t.URL, Labels: labelsOf(t.Labels), Health: gen.ScrapeTargetHealth(t.Health),
		Error: text(t.LastError), ScrapedAt: moment(t.ScrapedAt),
	}
	if out.Health == "" {
		out.Health = gen.ScrapeTargetHealthUnknown
	}
	if !t.ScrapedAt.IsZero() {
		took := t.Took.Seconds()
		out.TookSeconds = &took
	}
	return out
}
