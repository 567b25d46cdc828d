package observe

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/gpuguard/signals"
)

// metrics answers range queries by the series they name.
type metrics struct {
	series map[string][]signals.Series
	usual  map[string]float64
	rules  []RuleGroup
	err    error
	asked  int
}

func (m *metrics) Query(_ context.Context, query string, at time.Time) ([]signals.Sample, error) {
	for name, v := range m.usual {
		if strings.Contains(query, name) {
			return []signals.Sample{{Labels: llm, Value: v, At: at}}, m.err
		}
	}
	return nil, m.err
}

func (m *metrics) QueryRange(_ context.Context, query string, r Range) ([]signals.Series, error) {
	m.asked++
	for name, s := range m.series {
		if strings.Contains(query, name) {
			return s, m.err
		}
	}
	return nil, m.err
}

func (m *metrics) Rules(context.Context) ([]RuleGroup, error) { return m.rules, m.err }
func (m *metrics) Targets(context.Context) ([]Target, error)  { return nil, m.err }
func (m *metrics) Kind() Kind                                 { return Embedded }

var (
	now = time.Date(2026, 3, 1, 14, 2, 0, 0, time.UTC)
	llm = map[string]string{"service": "llm", "environment": "prod"}
)

func withSource(source string) map[string]string {
	return map[string]string{"service": "llm", "environment": "prod", "source": source}
}

func one(labels map[string]string, age time.Duration, v float64) signals.Series {
	return signals.Series{Labels: labels, Points: []signals.Point{{At: now.Add(-age), Value: v}}}
}

func signal(t *testing.T, s ServiceSignals, name string) Signal {
	t.Helper()
	for _, sig := range s.Signals {
		if sig.Name == name {
			return sig
		}
	}
	require.Fail(t, "no signal "+name)
	return Signal{}
}

func TestBoardShowsEverySignalOfEveryService(t *testing.T) {
	t.Parallel()
	m := &metrics{
		series: map[string][]signals.Series{
			"service:queue:requests":           {one(llm, 0, 140)},
			"service:decode:seconds_per_token": {one(llm, 0, 0.07)},
			"service:errors:ratio_rate1m":      {one(llm, 0, math.NaN())},
			"service:kv_use:ratio":             {one(llm, 5*time.Minute, 0.5)},
			"service:fragmentation:ratio":      {one(withSource(signals.SourceEngineKV), 0, 0.9), one(withSource(signals.SourceAllocator), 0, 0.05)},
		},
		usual: map[string]float64{"service:decode_baseline": 0.05},
		rules: []RuleGroup{{Rules: []Rule{{Name: "EngineQueueGrowing", Alerting: true, Alerts: []ActiveAlert{
			{Labels: map[string]string{"service": "llm", "environment": "prod", "severity": "critical"}, State: RuleFiring},
			{Labels: map[string]string{"service": "embeddings", "environment": "prod", "severity": "warning"}, State: RuleFiring},
			{Labels: map[string]string{"service": "llm", "environment": "prod"}, State: RulePending},
		}}}}},
	}
	board := NewBoard(m, func() time.Time { return now })
	all, err := board.Board(t.Context(), "", "")
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.Equal(t, "embeddings", all[0].Service, "an alert alone makes a service known")
	require.Equal(t, signals.Warning, all[0].Health)

	s := all[1]
	require.Equal(t, signals.Critical, s.Health)
	require.Equal(t, []string{"EngineQueueGrowing"}, s.Firing)
	require.Len(t, s.Signals, len(signals.Golden()), "what is not there is shown as no data")
	require.Equal(t, signals.Critical, signal(t, s, signals.Queue).Health)
	decode := signal(t, s, signals.Decode)
	require.Equal(t, signals.OK, decode.Health, "70 ms is less than 1.5 times the usual 50 ms")
	require.InDelta(t, 0.075, *decode.WarningAbove, 1e-9)
	for _, name := range []string{signals.Errors, signals.KVUse, signals.P95} { // C27 NaN, old, missing
		require.Nil(t, signal(t, s, name).Value, name)
		require.Equal(t, signals.HealthNoData, signal(t, s, name).Health, name)
	}
	frag := signal(t, s, signals.Fragmentation)
	require.Equal(t, signals.SourceAllocator, frag.Source, "a source never stands in for another unseen")
	require.InDelta(t, 0.05, *frag.Value, 1e-9)

	asked := m.asked
	_, err = board.Board(t.Context(), "llm", "prod")
	require.NoError(t, err)
	require.Equal(t, asked, m.asked, "an answer is good for a moment")
	none, err := board.Board(t.Context(), "llm", "staging")
	require.NoError(t, err)
	require.Empty(t, none)
}

func TestBoardSaysWhenTheSourceIsGone(t *testing.T) {
	t.Parallel()
	_, err := NewBoard(&metrics{err: ErrUnavailable}, nil).Board(t.Context(), "", "")
	require.ErrorIs(t, err, ErrUnavailable)
}
