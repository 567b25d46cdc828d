package httpapi

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"holdfast/gpuguard/signals"
	"holdfast/runbooks"
	"holdfast/server/internal/httpapi/gen"
	"holdfast/server/observe"
)

var t0 = time.Date(2026, 2, 3, 14, 0, 0, 0, time.UTC)

// odd are the numbers that JSON does not know.
var odd = []float64{math.NaN(), math.Inf(1), math.Inf(-1)}

// fakeSource answers everything with the same numbers, or with err.
type fakeSource struct {
	values []float64
	err    error
	asked  []observe.Range
}

func (f *fakeSource) Query(context.Context, string, time.Time) (out []signals.Sample, err error) {
	for _, v := range f.values {
		out = append(out, signals.Sample{Value: v, At: t0})
	}
	return out, f.err
}

func (f *fakeSource) QueryRange(_ context.Context, _ string, r observe.Range) ([]signals.Series, error) {
	f.asked = append(f.asked, r)
	s := signals.Series{Labels: map[string]string{"service": "llm"}}
	for _, v := range f.values {
		s.Points = append(s.Points, signals.Point{At: t0, Value: v})
	}
	return []signals.Series{s, {}}, f.err
}

func (f *fakeSource) Rules(context.Context) ([]observe.RuleGroup, error) {
	firing := observe.Rule{Name: "QueueLong", Query: "x > 20", Alerting: true, For: time.Minute, State: observe.RuleFiring, Health: "ok", EvaluatedAt: t0}
	for _, v := range f.values {
		firing.Alerts = append(firing.Alerts, observe.ActiveAlert{State: observe.RuleFiring, ActiveAt: t0, Value: v})
	}
	return []observe.RuleGroup{{Name: "golden", Rules: []observe.Rule{firing, {Name: "service:x", Query: "x"}}}}, f.err
}

func (f *fakeSource) Targets(context.Context) ([]observe.Target, error) {
	return []observe.Target{
		{Job: "engine", URL: "http://127.0.0.1:9101/metrics", Health: "up", ScrapedAt: t0, Took: 1500 * time.Microsecond},
		{Job: "gateway", URL: "http://127.0.0.1:9081/metrics"},
	}, f.err
}

func (f *fakeSource) Kind() observe.Kind { return observe.Embedded }

// Board makes every number of a signal the same.
func (f *fakeSource) Board(_ context.Context, service, environment string) (out []observe.ServiceSignals, err error) {
	s := observe.ServiceSignals{Service: service, Environment: environment, Health: signals.HealthNoData}
	for _, v := range f.values {
		s.Signals = append(s.Signals, observe.Signal{
			Name: "errors", Unit: "ratio", Value: &v, WarningAbove: &v, CriticalAbove: &v, WarningBelow: &v, CriticalBelow: &v,
			Points: []signals.Point{{At: t0, Value: v}},
		})
	}
	return []observe.ServiceSignals{s}, f.err
}

// shown renders what a handler gives, as the generated server does.
func shown(t *testing.T, visit func(http.ResponseWriter) error) map[string]any {
	t.Helper()
	w := httptest.NewRecorder()
	require.NoError(t, visit(w))
	require.Equal(t, http.StatusOK, w.Code)
	var body map[string]any
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &body), w.Body.String())
	return body
}

// at follows keys and indexes into decoded JSON.
func at(t *testing.T, v any, path ...any) any {
	t.Helper()
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, ok := v.(map[string]any)
			require.True(t, ok, "%v has no %s", v, p)
			require.Contains(t, m, p)
			v = m[p]
		case int:
			l, ok := v.([]any)
			require.True(t, ok && p < len(l), "%v has no %d", v, p)
			v = l[p]
		}
	}
	return v
}

func TestC27_NumbersThatAreNoneAreNullInEveryAnswer(t *testing.T) {
	t.Parallel()
	a := &handlers{Options: Options{Metrics: &fakeSource{values: append(odd, 0.25, math.MaxFloat64)}}}
	a.Signals = a.Metrics.(Signals)
	ctx := t.Context()

	query, err := a.QueryMetrics(ctx, gen.QueryMetricsRequestObject{Params: gen.QueryMetricsParams{Query: "x"}})
	require.NoError(t, err)
	got := shown(t, query.VisitQueryMetricsResponse)
	require.Equal(t, "embedded", got["source"])
	for i := range odd {
		require.Nil(t, at(t, got, "items", i, "value"), "C27 query")
		require.Equal(t, map[string]any{}, at(t, got, "items", i, "labels"), "no labels are {}")
	}
	require.InDelta(t, 0.25, at(t, got, "items", 3, "value"), 0)
	require.InDelta(t, math.MaxFloat64, at(t, got, "items", 4, "value"), 0)

	spans, err := a.QueryMetricsRange(ctx, gen.QueryMetricsRangeRequestObject{Params: gen.QueryMetricsRangeParams{Query: "x", Start: t0, End: t0, Step: "1s"}})
	require.NoError(t, err)
	got = shown(t, spans.VisitQueryMetricsRangeResponse)
	for i := range odd {
		require.Nil(t, at(t, got, "items", 0, "points", i, "value"), "C27 query_range")
	}
	require.Equal(t, []any{}, at(t, got, "items", 1, "points"), "an empty series is a list")

	board, err := a.ListSignals(ctx, gen.ListSignalsRequestObject{})
	require.NoError(t, err)
	got = shown(t, board.VisitListSignalsResponse)
	for i := range odd {
		require.Nil(t, at(t, got, "items", 0, "signals", i, "value"), "C27 signals")
		require.Nil(t, at(t, got, "items", 0, "signals", i, "points", 0, "value"))
		require.NotContains(t, at(t, got, "items", 0, "signals", i), "critical_above")
	}
	require.InDelta(t, 0.25, at(t, got, "items", 0, "signals", 3, "critical_above"), 0)
	require.Equal(t, []any{}, at(t, got, "items", 0, "firing"))

	rules, err := a.ListRules(ctx, gen.ListRulesRequestObject{})
	require.NoError(t, err)
	got = shown(t, rules.VisitListRulesResponse)
	for i := range odd {
		require.Nil(t, at(t, got, "items", 0, "alerts", i, "value"), "C27 rules")
	}
	require.Equal(t, "1m0s", at(t, got, "items", 0, "for"))
	require.NotContains(t, at(t, got, "items", 1), "state", "a recording rule has none")
	require.Equal(t, "unknown", at(t, got, "items", 1, "health"), "not evaluated yet")

	targets, err := a.ListTargets(ctx, gen.ListTargetsRequestObject{})
	require.NoError(t, err)
	got = shown(t, targets.VisitListTargetsResponse)
	require.InDelta(t, 0.0015, at(t, got, "items", 0, "took_seconds"), 1e-9)
	require.Equal(t, "unknown", at(t, got, "items", 1, "health"))
	require.NotContains(t, at(t, got, "items", 1), "took_seconds", "not scraped yet")
}

func TestC27_AValueOfARunbookThatIsNoneIsLeftOut(t *testing.T) {
	t.Parallel()
	for _, v := range odd {
		b, err := json.Marshal(toRunbookRun(runbooks.Run{
			Runbook: runbooks.Runbook{Steps: []runbooks.Step{{ID: "a"}}}, Steps: []runbooks.StepState{{Value: &v}},
		}))
		require.NoError(t, err)
		require.NotContains(t, string(b), `"value"`)
	}
}

func TestWithoutASourceListsAreEmptyAndQueriesSaySo(t *testing.T) {
	t.Parallel()
	a := &handlers{}
	ctx := t.Context()
	rules, err := a.ListRules(ctx, gen.ListRulesRequestObject{})
	require.NoError(t, err)
	targets, err := a.ListTargets(ctx, gen.ListTargetsRequestObject{})
	require.NoError(t, err)
	board, err := a.ListSignals(ctx, gen.ListSignalsRequestObject{})
	require.NoError(t, err)
	for _, visit := range []func(http.ResponseWriter) error{rules.VisitListRulesResponse, targets.VisitListTargetsResponse, board.VisitListSignalsResponse} {
		require.Equal(t, map[string]any{"items": []any{}, "source": "none"}, shown(t, visit))
	}
	_, err = a.QueryMetrics(ctx, gen.QueryMetricsRequestObject{})
	p, ok := classify(err)
	require.True(t, ok)
	require.Equal(t, http.StatusServiceUnavailable, p.status)
	require.Equal(t, "no-metrics", p.kind)
	require.Contains(t, p.detail, "HOLDFAST_PROMETHEUS_URL")
	_, err = a.QueryMetricsRange(ctx, gen.QueryMetricsRangeRequestObject{Params: gen.QueryMetricsRangeParams{Start: t0, End: t0, Step: "1s"}})
	require.ErrorIs(t, err, errNoMetrics)
}

func TestErrorsOfASource(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err    error
		status int
		kind   string
		retry  bool
	}{
		"bad query":      {fmt.Errorf("%w: 1:3: parse error: unexpected end of input", observe.ErrBadQuery), 400, "invalid-query", false},
		"away":           {fmt.Errorf("%w: connection refused", observe.ErrUnavailable), 503, "metrics-unavailable", true},
		"out of time":    {fmt.Errorf("query: %w", context.DeadlineExceeded), 503, "metrics-unavailable", true},
		"nobody foresaw": {fmt.Errorf("odd"), 0, "", false},
	} {
		a := &handlers{Options: Options{Metrics: &fakeSource{err: c.err}}}
		a.Signals = a.Metrics.(Signals)
		_, query := a.QueryMetrics(t.Context(), gen.QueryMetricsRequestObject{})
		_, span := a.QueryMetricsRange(t.Context(), gen.QueryMetricsRangeRequestObject{Params: gen.QueryMetricsRangeParams{Start: t0, End: t0, Step: "1s"}})
		_, rules := a.ListRules(t.Context(), gen.ListRulesRequestObject{})
		_, targets := a.ListTargets(t.Context(), gen.ListTargetsRequestObject{})
		_, board := a.ListSignals(t.Context(), gen.ListSignalsRequestObject{})
		for _, err := range []error{query, span, rules, targets, board} {
			p, ok := classify(err)
			require.Equal(t, c.status != 0, ok, name)
			require.Equal(t, c.status, p.status, name)
			require.Equal(t, c.kind, p.kind, name)
			require.Equal(t, c.retry, p.retryAfter != "", name)
		}
	}
}

func TestARangeIsCheckedBeforeAnybodyIsAsked(t *testing.T) {
	t.Parallel()
	hour := t0.Add(time.Hour)
	for name, c := range map[string]struct {
		start, end time.Time
		step       string
		field      string
	}{
		"one point":                 {t0, t0, "1ms", ""},
		"as many as there may be":   {t0, t0.Add(10_999 * time.Second), "1s", ""},
		"one too many":              {t0, t0.Add(11_000 * time.Second), "1s", "step"},
		"turned round":              {hour, t0, "1s", "end"},
		"no step":                   {t0, hour, "0s", "step"},
		"finer than milliseconds":   {t0, t0, "999us", "step"},
		"backwards":                 {t0, hour, "-1s", "step"},
		"not a duration":            {t0, hour, "15", "step"},
		"millions of points":        {time.Unix(0, 0), t0, "1ms", "step"},
		"further than durations go": {time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), "1s", "step"},
	} {
		source := &fakeSource{}
		a := &handlers{Options: Options{Metrics: source}}
		_, err := a.QueryMetricsRange(t.Context(), gen.QueryMetricsRangeRequestObject{Params: gen.QueryMetricsRangeParams{Query: "x", Start: c.start, End: c.end, Step: c.step}})
		if c.field == "" {
			require.NoError(t, err, name)
			require.Len(t, source.asked, 1, name)
			continue
		}
		p, _ := classify(err)
		require.Equal(t, http.StatusBadRequest, p.status, name)
		require.Equal(t, c.field, p.fields[0].Path, name)
		require.Empty(t, source.asked, name)
	}
}

// The description itself refuses what is not a query or a time, over HTTP.
func TestQueriesAreValidatedByTheirDescription(t *testing.T) {
	t.Parallel()
	d, err := describe()
	require.NoError(t, err)
	a := hung()
	a.described = d
	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	r.GET("/api/v1/query", a.validate, func(c *gin.Context) { c.Status(http.StatusNoContent) })
	for name, c := range map[string]struct {
		params url.Values
		status int
	}{
		"plain":     {url.Values{"query": {"up"}}, http.StatusNoContent},
		"at a time": {url.Values{"query": {"up"}, "time": {"2026-02-03T14:00:00Z"}}, http.StatusNoContent},
		"no query":  {url.Values{}, http.StatusBadRequest},
		"empty":     {url.Values{"query": {""}}, http.StatusBadRequest},
		"no time":   {url.Values{"query": {"up"}, "time": {"yesterday"}}, http.StatusBadRequest},
		"too long":  {url.Values{"query": {string(make([]byte, 8001))}}, http.StatusBadRequest},
	} {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/query?"+c.params.Encode(), nil))
		require.Equal(t, c.status, w.Code, "%s: %s", name, w.Body)
	}
}
