package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/server/internal/prom/embedded"
	"holdfast/server/observe"
)

func TestC27NaNIsAValueThatSaysNoData(t *testing.T) {
	t.Parallel()
	x := newExporter(t, "tokens_per_second NaN\ndecode_ms +Inf\n")
	box := &inbox{}
	e := start(t, options(t.TempDir(), box, alertRule("Low", "tokens_per_second < 100 or decode_ms / 0 < 1", "0s"), x.job()))
	comes(t, e, "tokens_per_second", math.IsNaN)
	comes(t, e, "decode_ms", func(v float64) bool { return math.IsInf(v, 1) })
	comes(t, e, "0/0", math.IsNaN)
	require.Empty(t, ask(t, e, "queue_depth"), "missing is empty, not zero")
	require.False(t, ask(t, e, "tokens_per_second")[0].Valid())
	// One evaluation and more after both are there: nothing fires.
	require.Eventually(t, func() bool {
		groups, err := e.Rules(t.Context())
		return err == nil && groups[0].Rules[1].EvaluatedAt.After(time.Now().Add(-interval))
	}, patience, tick)
	groups, err := e.Rules(t.Context())
	require.NoError(t, err)
	require.Equal(t, observe.RuleInactive, groups[0].Rules[1].State)
}

func TestQueryLimits(t *testing.T) {
	t.Parallel()
	o := options(t.TempDir(), &inbox{}, "")
	o.MaxSamples, o.Queries, o.QueryTimeout = 100, 1, 300*time.Millisecond
	e := start(t, o)
	now := time.Now()
	for name, tt := range map[string]struct {
		query string
		r     observe.Range
		kind  error
		want  string
	}{
		"too many samples": {"1", observe.Range{Start: now.Add(-time.Hour), End: now, Step: time.Second}, observe.ErrBadQuery, "too many samples"},
		"too many points":  {"1", observe.Range{Start: now.Add(-24 * time.Hour), End: now, Step: time.Second}, observe.ErrBadQuery, "86401 points"},
		"not PromQL":       {"sum(", observe.Range{Start: now, End: now, Step: time.Second}, observe.ErrBadQuery, "parse error"},
		"a range vector":   {"up[1m]", observe.Range{Start: now, End: now, Step: time.Second}, observe.ErrBadQuery, "must be Scalar or instant Vector"},
	} {
		_, err := e.QueryRange(t.Context(), tt.query, tt.r)
		require.ErrorIs(t, err, tt.kind, name)
		require.ErrorContains(t, err, tt.want, name)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := e.Query(canceled, "1", now)
	require.ErrorIs(t, err, observe.ErrUnavailable)
	_, err = e.Query(t.Context(), strings.Repeat("(", observe.MaxQueryBytes), now)
	require.ErrorIs(t, err, observe.ErrBadQuery, "deep, but no crash")
	for _, q := range []string{`"text"`, "up[1m]"} {
		_, err = e.Query(t.Context(), q, now)
		require.ErrorIs(t, err, observe.ErrBadQuery, q)
		require.ErrorContains(t, err, "want a scalar or an instant vector")
	}
}

func TestQueriesRunWhileTheEngineStops(t *testing.T) {
	t.Parallel()
	x := newExporter(t, "queue 1\n")
	e := start(t, options(t.TempDir(), &inbox{}, "", x.job()))
	comes(t, e, "queue", is(1))
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for {
				_, err := e.Query(context.Background(), "sum_over_time(queue[1m:100ms])", time.Time{})
				if err != nil {
					if !errors.Is(err, observe.ErrUnavailable) {
						t.Error(err)
					}
					return
				}
			}
		})
	}
	stop(t, e)
	wait.Wait()
}

// FuzzQuery: no text makes it panic or answer with an error of another kind.
func FuzzQuery(f *testing.F) {
	for _, q := range queries {
		f.Add(q)
	}
	f.Add("queue offset 9223372036854775807s")
	f.Add("queue @ 9223372036854775807")
	f.Add("count_values(\"\xff\", queue)")
	x := newExporter(f, page)
	o := options(f.TempDir(), &inbox{}, "", x.job())
	o.QueryTimeout, o.MaxSamples = time.Second, 100_000
	e := start(f, o)
	comes(f, e, "sum(queue)", is(123))
	f.Fuzz(func(t *testing.T, query string) {
		_, err := e.Query(context.Background(), query, time.Time{})
		if err != nil && !errors.Is(err, observe.ErrBadQuery) && !errors.Is(err, observe.ErrUnavailable) {
			t.Fatal(err)
		}
		now := time.Now()
		_, err = e.QueryRange(context.Background(), query, observe.Range{Start: now.Add(-time.Minute), End: now, Step: 10 * time.Second})
		if err != nil && !errors.Is(err, observe.ErrBadQuery) && !errors.Is(err, observe.ErrUnavailable) {
			t.Fatal(err)
		}
	})
}

// seriesPage has n series of one counter, as an engine with many labels has.
func seriesPage(n int) string {
	var b strings.Builder
	b.WriteString("# TYPE vllm:request_success_total counter\n")
	for i := range n {
		fmt.Fprintf(&b, "vllm:request_success_total{model_name=\"m-%d\",finished_reason=\"stop\",engine=\"%d\"} %d\n", i/10, i%10, 1000+i)
	}
	return b.String()
}

// counted serves a page and says when it was asked for.
func counted(b *testing.B, page string) (address string, asked chan struct{}) {
	asked = make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = io.WriteString(w, page)
		select {
		case asked <- struct{}{}:
		case <-r.Context().Done():
		case <-time.After(10 * time.Millisecond):
		}
	}))
	b.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://"), asked
}

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkScrape: one scrape of 1,000 series in processor time, serving the page
// included, and what a series takes in memory. The wall time is the interval's.
func BenchmarkScrape(b *testing.B) {
	const n = 1000
	address, asked := counted(b, seriesPage(n))
	before := heap()
	e := start(b, options(b.TempDir(), &inbox{}, "", embedded.Job{Name: "engine", Addresses: []string{address}}))
	comes(b, e, "count(vllm:request_success_total)", is(n))
	used := heap() - before
	begun, scrapes := cpu(), 0
	for b.Loop() {
		<-asked
		scrapes++
	}
	b.ReportMetric(float64(cpu()-begun)/float64(scrapes), "cpu-ns/scrape")
	b.ReportMetric(float64(used)/n, "heap-B/series")
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkQuery: an instant query over 1,000 series, as a rule or a check asks.
func BenchmarkQuery(b *testing.B) {
	x := newExporter(b, seriesPage(1000))
	e := start(b, options(b.TempDir(), &inbox{}, "", x.job()))
	comes(b, e, "count(rate(vllm:request_success_total[1m]))", is(1000))
	for _, q := range []string{
		"up", "sum(vllm:request_success_total)", "sum by (service, environment) (rate(vllm:request_success_total[1m]))",
	} {
		b.Run(q, func(b *testing.B) {
			b.ReportAllocs()
			begun := cpu()
			defer func() { b.ReportMetric(float64(cpu()-begun)/float64(b.N), "cpu-ns/op") }()
			for b.Loop() {
				if _, err := e.Query(b.Context(), q, time.Time{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
