package embedded_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/gpuguard/signals"
	"holdfast/server/alert"
	"holdfast/server/internal/prom/embedded"
)

// Real time, as short as it goes: the scraper's clock cannot be injected.
const (
	interval = 100 * time.Millisecond
	patience = 15 * time.Second
	tick     = 20 * time.Millisecond
)

// exporter is a target whose page a test writes.
type exporter struct {
	*httptest.Server
	mu     sync.Mutex
	page   string
	status int
	header http.Header
}

func newExporter(t testing.TB, page string) *exporter {
	x := &exporter{page: page, status: http.StatusOK}
	x.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.header = r.Header.Clone()
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		w.WriteHeader(x.status)
		_, _ = io.WriteString(w, x.page)
	}))
	t.Cleanup(x.Close)
	return x
}

func (x *exporter) says(page string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.page = page
}

func (x *exporter) answers(status int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.status = status
}

func (x *exporter) address() string { return strings.TrimPrefix(x.URL, "http://") }

func (x *exporter) job() embedded.Job {
	return embedded.Job{
		Name: "engine", Addresses: []string{x.address()},
		Labels: map[string]string{"service": "llm", "environment": "prod"},
	}
}

// inbox takes what the engine delivers, as the server's intake does.
type inbox struct {
	mu  sync.Mutex
	got []alert.Notification
}

func (b *inbox) deliver(_ context.Context, body []byte) error {
	n, err := alert.ParseAlertmanager(body, "embedded")
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.got = append(b.got, n)
	return nil
}

// last is the newest alert of that name and status.
func (b *inbox) last(name string, status alert.Status) (alert.Incoming, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range slices.Backward(b.got) {
		for _, a := range n.Alerts {
			if a.Labels["alertname"] == name && a.Status == status {
				return a, true
			}
		}
	}
	return alert.Incoming{}, false
}

func (b *inbox) wait(t *testing.T, name string, status alert.Status) alert.Incoming {
	t.Helper()
	require.Eventually(t, func() bool { _, ok := b.last(name, status); return ok }, patience, tick, "%s %s", name, status)
	a, _ := b.last(name, status)
	return a
}

func (b *inbox) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.got = nil
}

func options(dir string, box *inbox, rules string, jobs ...embedded.Job) embedded.Options {
	o := embedded.Options{
		Dir: dir, ScrapeInterval: interval, EvaluationInterval: interval, Jobs: jobs, Deliver: box.deliver,
		ExternalURL: "https://holdfast.example", Link: func(expr string) string { return "https://holdfast.example/?q=" + expr[:1] },
	}
	if rules != "" {
		o.Rules = []embedded.RuleFile{{Name: "test.yml", Data: []byte(rules)}}
	}
	return o
}

// start makes an engine run until the end of the test, or until it is stopped.
func start(t testing.TB, o embedded.Options) *embedded.Engine {
	t.Helper()
	e, err := embedded.New(o)
	require.NoError(t, err)
	require.NoError(t, e.Start(context.Background()))
	t.Cleanup(func() { stop(t, e) })
	return e
}

func stop(t testing.TB, e *embedded.Engine) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(t, e.Stop(ctx))
}

// ask is a query that must be answered.
func ask(t testing.TB, e *embedded.Engine, query string) []signals.Sample {
	t.Helper()
	got, err := e.Query(t.Context(), query, time.Time{})
	require.NoError(t, err, query)
	return got
}

// comes waits until a query gives one value that satisfies ok.
func comes(t testing.TB, e *embedded.Engine, query string, ok func(float64) bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		got, err := e.Query(t.Context(), query, time.Time{})
		return err == nil && len(got) == 1 && ok(got[0].Value)
	}, patience, tick, query)
}

func is(want float64) func(float64) bool { return func(got float64) bool { return got == want } }

// alertRule is a rule file with one alert.
func alertRule(name, expr, wait string) string {
	return fmt.Sprintf(`groups:
  - name: g
    rules:
      - record: service:queue:requests
        expr: sum by (service, environment) (queue)
      - alert: %s
        expr: %s
        for: %s
        labels: {severity: critical}
        annotations: {summary: "{{ $labels.service }} queues {{ $value }}", runbook: slow-model}
`, name, expr, wait)
}
