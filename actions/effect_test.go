package actions_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/actions"
	"holdfast/actions/builtin"
	"holdfast/gpuguard/signals"
)

// answer is metrics that always say the same.
type answer struct {
	samples []signals.Sample
	err     error
	asked   *[]string
}

func (a answer) Query(_ context.Context, query string, _ time.Time) ([]signals.Sample, error) {
	*a.asked = append(*a.asked, query)
	return a.samples, a.err
}

// TestEffectIsJudgedWithData has a rate limit in force by the gateways' own
// reports; what the metrics say decides whether it helped.
func TestEffectIsJudgedWithData(t *testing.T) {
	t.Parallel()
	one := func(v float64) []signals.Sample { return []signals.Sample{{Value: v}} }
	cases := []struct {
		name        string
		samples     []signals.Sample
		err         error
		early, late actions.Verdict
		lateSays    string
	}{
		{name: "few errors", samples: one(0.02), early: actions.Verified, late: actions.Verified, lateSays: "errors of llm: 2.0 %, wanted < 5.0 %"},
		{name: "still many errors", samples: one(0.23), late: actions.NotVerified, lateSays: "in force, but errors of llm: 23.0 %"},
		{name: "C27 NaN is no data", samples: one(math.NaN()), late: actions.Inconclusive, lateSays: "no data"},
		{name: "C27 infinite is no data", samples: one(math.Inf(1)), late: actions.Inconclusive, lateSays: "no data"},
		{name: "missing is no data", late: actions.Inconclusive, lateSays: "no data"},
		{name: "nobody answers", err: errors.New("connection refused"), late: actions.Inconclusive, lateSays: "connection refused"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var asked []string
			f := newFixture(t, "gw-1")
			f.engine = engineWith(t, f.store, answer{samples: c.samples, err: c.err, asked: &asked})
			run := f.active()

			f.apply("gw-1")
			f.tick(3 * time.Second)
			require.Equal(t, c.early, f.run(run.ID).Verification.Verdict, "while the window still holds what was before")

			for range 20 {
				f.apply("gw-1")
				f.tick(5 * time.Second)
			}
			found := f.run(run.ID).Verification
			require.Equal(t, c.late, found.Verdict)
			require.Contains(t, found.Detail, c.lateSays)
			require.Contains(t, asked[0], `service:errors:ratio_rate1m{dependency="llm"}`)
		})
	}
}

func engineWith(t *testing.T, store actions.Store, m actions.Metrics) *actions.Engine {
	t.Helper()
	registry, err := actions.NewRegistry(builtin.All()...)
	require.NoError(t, err)
	e, err := actions.NewEngine(actions.Options{Store: store, Registry: registry, Metrics: m})
	require.NoError(t, err)
	return e
}
