package telemetry_test

import (
	"bytes"
	"flag"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/require"

	"holdfast/gpuguard/internal/breaker"
	"holdfast/gpuguard/internal/limit"
	"holdfast/gpuguard/internal/telemetry"
	"holdfast/gpuguard/policy"
)

var update = flag.Bool("update", false, "write the golden file")

func reading() telemetry.Reading {
	return telemetry.Reading{
		Services:  map[string]string{"llm": "chat-model"},
		Breakers:  map[string]breaker.Status{"llm": {State: breaker.Open, FailureRate: 0.5, Calls: 10, Late: 2, Generation: 2}},
		Limits:    map[string]limit.Status{policy.GlobalLimitPath: {Rate: limit.Rate{PerSecond: 500, Burst: 50}, Tokens: 12, Refused: 7}},
		Endpoints: []telemetry.Endpoint{{Pool: "llm", Name: "a", InFlight: 3}, {Pool: "llm", Name: "b", Drained: true}},
		Loaded:    true, Revision: 42, AgeSeconds: 1.5, Overrides: 1, LiveGateways: 2,
	}
}

// filled is a registry with every metric in use.
func filled(t *testing.T) *prometheus.Registry {
	t.Helper()
	reg := prometheus.NewRegistry()
	m, err := telemetry.New(reg, reading)
	require.NoError(t, err)
	s := m.Series("chat", "llm")
	s.Finished(policy.OutcomeOK, 1500*time.Millisecond, 200*time.Millisecond)
	s.Finished(policy.OutcomeBreakerOpen, time.Millisecond, 0)
	s.Degraded(http.StatusOK)
	s.EmptyChoices()
	s.Retried()
	s.Misconfigured(true)
	m.Enter()
	m.Panicked()
	m.PolicyUpdate(policy.AckApplied, 3*time.Millisecond)
	m.LeasesEnded(2)
	return reg
}

func TestExposition(t *testing.T) {
	t.Parallel()
	families, err := filled(t).Gather()
	require.NoError(t, err)
	var got bytes.Buffer
	for _, f := range families {
		_, err := expfmt.MetricFamilyToText(&got, f)
		require.NoError(t, err)
	}
	golden := filepath.Join("testdata", "metrics.txt")
	if *update {
		require.NoError(t, os.WriteFile(golden, got.Bytes(), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), got.String(), "run with -update when the change is meant")
}

func TestMetricsAreNamedByTheBook(t *testing.T) {
	t.Parallel()
	problems, err := testutil.GatherAndLint(filled(t))
	require.NoError(t, err)
	require.Empty(t, problems)
}

func TestWithoutARegistererCountingGoesOn(t *testing.T) {
	t.Parallel()
	m, err := telemetry.New(nil, reading)
	require.NoError(t, err)
	m.Series("chat", "llm").Finished(policy.OutcomeOK, time.Second, 0)
	m.Series("embed", "llm").Finished(policy.OutcomeOK, time.Second, 0)
	m.Series("", "").Finished(policy.OutcomeNoRoute, time.Second, 0)
	require.Equal(t, map[string]map[policy.Outcome]int64{"llm": {policy.OutcomeOK: 2}, "": {policy.OutcomeNoRoute: 1}}, m.Outcomes())
}

func TestTwoGatewaysOnOneRegistererAreRefused(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	_, err := telemetry.New(reg, reading)
	require.NoError(t, err)
	_, err = telemetry.New(reg, reading)
	require.ErrorContains(t, err, "register gpuguard metrics")
}

// Series start at 0: rate() does not see an event that brings its series into being.
func TestSeriesStartAtZero(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	m, err := telemetry.New(reg, reading)
	require.NoError(t, err)
	m.Series("chat", "llm")
	for name, want := range map[string]int{
		"gpuguard_requests_total":         len(policy.Outcomes()),
		"gpuguard_degraded_total":         2, // useful or not
		"gpuguard_empty_choices_total":    1,
		"gpuguard_connect_retries_total":  1,
		"gpuguard_upstream_misconfigured": 1,
	} {
		n, err := testutil.GatherAndCount(reg, name)
		require.NoError(t, err)
		require.Equal(t, want, n, name)
	}
}

func TestADegradedRefusalIsNotUseful(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	m, err := telemetry.New(reg, reading)
	require.NoError(t, err)
	s := m.Series("chat", "llm")
	s.Degraded(http.StatusServiceUnavailable)
	s.Degraded(http.StatusOK)
	s.Degraded(http.StatusOK)
	require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP gpuguard_degraded_total Requests answered by a degrade path; useful ones with a 2xx status.
# TYPE gpuguard_degraded_total counter
gpuguard_degraded_total{dependency="llm",kind="static",route="chat",useful="false"} 1
gpuguard_degraded_total{dependency="llm",kind="static",route="chat",useful="true"} 2
`), "gpuguard_degraded_total"))
}

func TestEveryOutcomeIsCountedUnderItsName(t *testing.T) {
	t.Parallel()
	m, err := telemetry.New(nil, reading)
	require.NoError(t, err)
	s := m.Series("r", "d")
	want := map[policy.Outcome]int64{}
	for i, o := range policy.Outcomes() {
		for range i + 1 {
			s.Finished(o, time.Second, 0)
		}
		want[o] = int64(i + 1)
	}
	require.Equal(t, want, m.Outcomes()["d"])
}

func TestLogLine(t *testing.T) {
	t.Parallel()
	var buf bytes.Buffer
	log := slog.New(slog.NewTextHandler(&buf, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	r := telemetry.Record{
		RequestID: "abc", Route: "chat", Dependency: "llm", Tenant: "alpha", Endpoint: "a", Method: "POST",
		Outcome: policy.OutcomeOK, Status: 200, Stream: true, Attempts: 1, RequestBytes: 10, ResponseBytes: 20,
		Took: 1500 * time.Millisecond, FirstByte: 250 * time.Millisecond,
	}
	r.Log(t.Context(), log)
	require.Equal(t, "level=INFO msg=request outcome=ok status=200 route=chat dependency=llm tenant=alpha endpoint=a method=POST "+
		"stream=true attempts=1 request_bytes=10 response_bytes=20 seconds=1.5 first_byte_seconds=0.25 request_id=abc\n", buf.String())
	quiet := slog.New(slog.NewTextHandler(&buf, &slog.HandlerOptions{Level: slog.LevelWarn}))
	before := buf.Len()
	r.Log(t.Context(), quiet)
	require.Equal(t, before, buf.Len())
}

func BenchmarkFinished(b *testing.B) {
	m, err := telemetry.New(prometheus.NewRegistry(), reading)
	require.NoError(b, err)
	s := m.Series("chat", "llm")
	b.ReportAllocs()
	for b.Loop() {
		s.Finished(policy.OutcomeOK, time.Second, time.Millisecond)
	}
}
