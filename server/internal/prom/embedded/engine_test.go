package embedded_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"holdfast/server/alert"
	"holdfast/server/internal/prom/embedded"
	"holdfast/server/observe"
)

func TestItScrapesRecordsAlertsAndResolves(t *testing.T) {
	t.Parallel()
	x, box, reg := newExporter(t, "queue 3\n"), &inbox{}, prometheus.NewRegistry()
	o := options(t.TempDir(), box, alertRule("QueueGrowing", "service:queue:requests > 100", "200ms"), x.job())
	o.Registerer = reg
	e := start(t, o)
	comes(t, e, `service:queue:requests{service="llm"}`, is(3))
	require.Equal(t, observe.Embedded, e.Kind())

	x.says("queue 120\n")
	a := box.wait(t, "QueueGrowing", alert.StatusFiring)
	require.Equal(t, map[string]string{"alertname": "QueueGrowing", "service": "llm", "environment": "prod", "severity": "critical"}, a.Labels)
	require.Equal(t, "llm queues 120", a.Annotations["summary"])
	require.Equal(t, "https://holdfast.example/?q=s", a.GeneratorURL)
	groups, err := e.Rules(t.Context())
	require.NoError(t, err)
	require.Len(t, groups, 1)
	rule := groups[0].Rules[1]
	require.Equal(t, observe.RuleFiring, rule.State)
	require.Equal(t, 200*time.Millisecond, rule.For)
	require.Equal(t, "ok", rule.Health)
	require.Len(t, rule.Alerts, 1)
	require.Equal(t, 120.0, rule.Alerts[0].Value)
	require.False(t, groups[0].Rules[0].Alerting)

	x.says("queue 3\n")
	over := box.wait(t, "QueueGrowing", alert.StatusResolved)
	require.Equal(t, a.StartsAt, over.StartsAt)
	require.Equal(t, a.Fingerprint, over.Fingerprint)
	require.True(t, over.EndsAt.After(a.StartsAt))
	require.Positive(t, gathered(t, reg, "holdfast_metrics_series"))
	require.Positive(t, gathered(t, reg, "holdfast_metrics_alerts_delivered_total"))
	require.Zero(t, gathered(t, reg, "holdfast_metrics_rule_evaluation_failures_total"))
}

// gathered is the value of one metric of a registry.
func gathered(t *testing.T, reg *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := reg.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue() + f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	require.Fail(t, "no metric", name)
	return 0
}

// C92, C94: what cannot be scraped is down and its series are gone at once, not
// after five minutes; nothing becomes zero.
func TestC94ATargetThatIsDownIsMarkedAndItsSeriesAreGone(t *testing.T) {
	t.Parallel()
	x, box := newExporter(t, "queue 3\n"), &inbox{}
	e := start(t, options(t.TempDir(), box, alertRule("EngineDown", `up{job="engine"} == 0`, "0s"), x.job()))
	comes(t, e, `up{job="engine"}`, is(1))
	comes(t, e, "queue", is(3))
	x.answers(http.StatusInternalServerError)
	box.wait(t, "EngineDown", alert.StatusFiring)
	require.Eventually(t, func() bool { return len(ask(t, e, "queue")) == 0 }, patience, tick)
	targets, err := e.Targets(t.Context())
	require.NoError(t, err)
	require.Len(t, targets, 1)
	require.Equal(t, "down", targets[0].Health)
	require.Contains(t, targets[0].LastError, "500")
	require.Equal(t, "engine", targets[0].Job)
	require.Equal(t, x.URL+"/metrics", targets[0].URL)
	require.NotZero(t, targets[0].ScrapedAt)
	x.answers(http.StatusOK)
	box.wait(t, "EngineDown", alert.StatusResolved)
	comes(t, e, "queue", is(3))
}

func TestGatewaysComeAndGo(t *testing.T) {
	t.Parallel()
	a, b := newExporter(t, "queue 1\n"), newExporter(t, "queue 2\n")
	e := start(t, options(t.TempDir(), &inbox{}, "", a.job()))
	comes(t, e, "sum(queue)", is(1))
	gateway := embedded.Job{Name: "gateway", Addresses: []string{b.address()}, Path: "/stats", BearerToken: "s3cret"}
	require.NoError(t, e.SetJobs(t.Context(), []embedded.Job{a.job(), gateway}))
	comes(t, e, "sum(queue)", is(3))
	b.mu.Lock()
	require.Equal(t, "Bearer s3cret", b.header.Get("Authorization"))
	b.mu.Unlock()
	// Two jobs of one name, each with its own labels.
	other := a.job()
	other.Addresses, other.Labels = []string{b.address()}, map[string]string{"service": "embedding"}
	require.NoError(t, e.SetJobs(t.Context(), []embedded.Job{a.job(), other}))
	comes(t, e, `queue{job="engine",service="embedding"}`, is(2))
	require.NoError(t, e.SetJobs(t.Context(), []embedded.Job{other}))
	comes(t, e, "sum(queue)", is(2))
	comes(t, e, "count(up)", is(1))
	require.Error(t, e.SetJobs(t.Context(), []embedded.Job{{Name: "x", Addresses: []string{"http://x"}}}))
	require.NoError(t, e.SetJobs(t.Context(), nil))
	require.Eventually(t, func() bool { return len(ask(t, e, "up")) == 0 }, patience, tick)
}

func TestDataSurvivesARestartAndTheLockOfAKilledProcess(t *testing.T) {
	t.Parallel()
	x, dir := newExporter(t, "queue 3\n"), t.TempDir()
	o := options(dir, &inbox{}, "", x.job())
	first := start(t, o)
	comes(t, first, "queue", is(3))
	before := time.Now()

	// Somebody else holds the folder: clear error, no second writer.
	second, err := embedded.New(o)
	require.NoError(t, err)
	require.ErrorContains(t, second.Start(t.Context()), "lock")

	stop(t, first)
	_, err = first.Query(t.Context(), "queue", time.Time{})
	require.ErrorIs(t, err, observe.ErrUnavailable)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tsdb", "lock"), nil, 0o600))
	x.answers(http.StatusServiceUnavailable)
	again := start(t, o)
	got, err := again.Query(t.Context(), "queue", before)
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Equal(t, 3.0, got[0].Value)
	require.ErrorContains(t, again.Start(t.Context()), "started before")
}

func TestAPendingAlertKeepsItsTimeAndAFiringOneItsStart(t *testing.T) {
	t.Parallel()
	x, dir, box := newExporter(t, "queue 120\n"), t.TempDir(), &inbox{}
	o := options(dir, box, alertRule("QueueGrowing", "queue > 100", "1s"), x.job())
	e := start(t, o)
	a := box.wait(t, "QueueGrowing", alert.StatusFiring)
	stop(t, e)
	box.clear()
	begun := time.Now()
	e = start(t, o)
	b := box.wait(t, "QueueGrowing", alert.StatusFiring)
	groups, err := e.Rules(t.Context())
	require.NoError(t, err)
	require.True(t, groups[0].Rules[1].Alerts[0].ActiveAt.Before(begun), "it was active before: no second wait")
	require.Equal(t, a.StartsAt, b.StartsAt, "one episode")
	require.Equal(t, a.Fingerprint, b.Fingerprint)
	stop(t, e)

	// It ends while nothing runs: the receiver learns it.
	box.clear()
	x.says("queue 1\n")
	start(t, o)
	over := box.wait(t, "QueueGrowing", alert.StatusResolved)
	require.Equal(t, a.StartsAt, over.StartsAt)
	_, fired := box.last("QueueGrowing", alert.StatusFiring)
	require.False(t, fired)
}

func TestBeforeStartAndBadOptions(t *testing.T) {
	t.Parallel()
	e, err := embedded.New(embedded.Options{Dir: t.TempDir()})
	require.NoError(t, err)
	_, err = e.Query(t.Context(), "up", time.Time{})
	require.ErrorIs(t, err, observe.ErrUnavailable)
	_, err = e.Rules(t.Context())
	require.ErrorIs(t, err, observe.ErrUnavailable)
	_, err = e.Targets(t.Context())
	require.ErrorIs(t, err, observe.ErrUnavailable)
	require.NoError(t, e.SetJobs(t.Context(), []embedded.Job{{Name: "a"}}))
	require.NoError(t, e.Stop(t.Context()))
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, e.Start(canceled), context.Canceled)

	job := func(j embedded.Job) embedded.Options {
		return embedded.Options{Dir: "x", Jobs: []embedded.Job{j}}
	}
	for name, tt := range map[string]struct {
		o    embedded.Options
		want string
	}{
		"no dir":            {embedded.Options{}, "Dir is empty"},
		"interval":          {embedded.Options{Dir: "x", ScrapeInterval: time.Millisecond}, "at least 100ms"},
		"timeout":           {embedded.Options{Dir: "x", ScrapeTimeout: time.Minute}, "longer than"},
		"retention":         {embedded.Options{Dir: "x", Retention: time.Minute}, "at least 1h"},
		"nameless job":      {job(embedded.Job{}), "no name"},
		"scheme":            {job(embedded.Job{Name: "a", Scheme: "ftp"}), "want http or https"},
		"path":              {job(embedded.Job{Name: "a", Path: "metrics"}), "does not start with /"},
		"address":           {job(embedded.Job{Name: "a", Addresses: []string{"http://x/metrics"}}), "want host:port"},
		"empty address":     {job(embedded.Job{Name: "a", Addresses: []string{""}}), "want host:port"},
		"label":             {job(embedded.Job{Name: "a", Labels: map[string]string{"job": "b"}}), `"job" cannot be set`},
		"hidden label":      {job(embedded.Job{Name: "a", Labels: map[string]string{"__x": "b"}}), "cannot be set"},
		"two tokens":        {embedded.Options{Dir: "x", Jobs: []embedded.Job{{Name: "a"}, {Name: "a", BearerToken: "t"}}}, "two bearer tokens"},
		"nobody to deliver": {embedded.Options{Dir: "x", Rules: []embedded.RuleFile{{Name: "a", Data: []byte(alertRule("A", "up", "0s"))}}}, "Deliver is nil"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := embedded.New(tt.o)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestRuleFilesAreCheckedWithFileAndLine(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ data, want string }{
		"expression":   {"groups:\n  - name: g\n    rules:\n      - alert: A\n        expr: sum(\n", `bad.yml:5:15: group "g", rule 1, "A": could not parse expression`},
		"unknown key":  {"groups:\n  - name: g\n    rulez: []\n", "bad.yml"},
		"not YAML":     {"groups: [\n", "bad.yml:"},
		"template":     {"groups:\n  - name: g\n    rules:\n      - alert: A\n        expr: up\n        annotations: {x: '{{ .Nope'}\n", "bad.yml"},
		"group twice":  {"groups:\n  - name: g\n  - name: g\n", "bad.yml"},
		"no such func": {"groups:\n  - name: g\n    rules:\n      - record: a\n        expr: nope(up)\n", "unknown function"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			good := embedded.RuleFile{Name: "good.yml", Data: []byte(alertRule("B", "up", "0s"))}
			_, err := embedded.New(embedded.Options{Dir: "x", Deliver: (&inbox{}).deliver, Rules: []embedded.RuleFile{
				good, {Name: "bad.yml", Data: []byte(tt.data)},
			}})
			require.ErrorContains(t, err, tt.want)
		})
	}
	_, err := embedded.New(embedded.Options{Dir: "x", Rules: []embedded.RuleFile{{Name: "a"}, {Name: "a"}}})
	require.ErrorContains(t, err, "used twice")
}
