package actions

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/gpuguard/policy"
)

var (
	t0    = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	waits = timing{ackWait: 10 * time.Second, verifyAfter: 2 * time.Second, verifyEvery: 5 * time.Second, verifyFor: time.Minute}
)

func activeRun(ttl time.Duration) Run {
	return Run{
		ID: "r", Status: StatusActive, TTL: ttl, Lineage: "l", Revision: 5, AcceptedAt: t0, ExecutedAt: t0, EnforcedAt: t0,
		ExpiresAt: t0.Add(ttl), NextAt: t0, Plan: Plan{Summary: "Do it", Layers: []Layer{{Path: "limits.global"}}},
	}
}

func TestNextLookOfAnActiveRun(t *testing.T) {
	t.Parallel()
	verified := func(r *Run) { r.Verification = Verification{Verdict: Verified, At: t0} }
	tests := []struct {
		name   string
		ttl    time.Duration
		change func(*Run)
		want   time.Duration
	}{
		{"first judgement", 15 * time.Minute, nil, 2 * time.Second},
		{"again while inconclusive", 15 * time.Minute, func(r *Run) {
			r.Verification = Verification{Verdict: Inconclusive, At: t0.Add(2 * time.Second)}
		}, 7 * time.Second},
		{"again while not verified", 15 * time.Minute, func(r *Run) {
			r.Verification = Verification{Verdict: NotVerified, At: t0.Add(50 * time.Second)}
		}, 55 * time.Second},
		{"not for ever", 15 * time.Minute, func(r *Run) {
			r.Verification = Verification{Verdict: Inconclusive, At: t0.Add(58 * time.Second)}
		}, 13 * time.Minute},
		{"warned two minutes ahead", 15 * time.Minute, verified, 13 * time.Minute},
		{"short leases a quarter ahead", 4 * time.Minute, verified, 3 * time.Minute},
		{"end after the warning", 15 * time.Minute, func(r *Run) { verified(r); r.Warned = true }, 15 * time.Minute},
		{"nothing is judged at the very end", 3 * time.Second, nil, 2250 * time.Millisecond},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := activeRun(tt.ttl)
			if tt.change != nil {
				tt.change(&r)
			}
			require.Equal(t, t0.Add(tt.want), nextLook(r, waits))
		})
	}
}

func TestOnlyAnotherVerdictIsNews(t *testing.T) {
	t.Parallel()
	r := activeRun(15 * time.Minute)
	now := t0.Add(2 * time.Second)
	tr, ok := next(r, view{verification: &Verification{Verdict: NotVerified, Detail: "gw-1 reports closed"}}, now, waits)
	require.True(t, ok)
	require.Equal(t, EventVerified, tr.kind)
	require.Equal(t, "Do it: not verified: gw-1 reports closed", tr.text)
	now = now.Add(5 * time.Second)
	tr, ok = next(tr.run, view{verification: &Verification{Verdict: NotVerified}}, now, waits)
	require.True(t, ok)
	require.Empty(t, tr.kind)
	require.Equal(t, now, tr.run.Verification.At)
	now = now.Add(5 * time.Second)
	tr, ok = next(tr.run, view{verification: &Verification{Verdict: Verified}}, now, waits)
	require.True(t, ok)
	require.Equal(t, EventVerified, tr.kind)
	_, ok = next(tr.run, view{verification: &Verification{Verdict: NotVerified}}, now.Add(5*time.Second), waits)
	require.False(t, ok, "a verified run is not judged again")
}

func TestRejectionIsOfTheRunsOwnLayersOnly(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		g    Gateway
		want bool
	}{
		{"this revision", Gateway{Live: true, Lineage: "l", Revision: 4, RejectedRevision: 5}, true},
		{"a later one that was given instead", Gateway{Live: true, Lineage: "l", Revision: 4, RejectedRevision: 6}, true},
		{"an earlier one", Gateway{Live: true, Lineage: "l", Revision: 3, RejectedRevision: 4}, false},
		{"a later one, after it took this", Gateway{Live: true, Lineage: "l", Revision: 5, RejectedRevision: 6}, false},
		{"not live", Gateway{Lineage: "l", Revision: 4, RejectedRevision: 5}, false},
		{"another lineage", Gateway{Live: true, Lineage: "x", Revision: 4, RejectedRevision: 5}, false},
		{"one that never had a policy", Gateway{Live: true, RejectedRevision: 5}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, got := rejecting(Snapshot{Lineage: "l", Revision: 6, Gateways: []Gateway{tt.g}}, activeRun(time.Minute))
			require.Equal(t, tt.want, got)
		})
	}
}

// TestNextHoldsItsInvariants draws runs, fleets and times at will.
func TestNextHoldsItsInvariants(t *testing.T) {
	t.Parallel()
	seconds := func(rt *rapid.T, name string, from, to int) time.Duration {
		return time.Duration(rapid.IntRange(from, to).Draw(rt, name)) * time.Second
	}
	rapid.Check(t, func(rt *rapid.T) {
		r := activeRun(seconds(rt, "ttl", 1, 3600))
		r.Status = rapid.SampledFrom([]Status{StatusAccepted, StatusExecuting, StatusActive, StatusReverting, StatusEnded, StatusFailed}).Draw(rt, "status")
		r.EndReason, r.RevertRevision, r.EndedAt = EndReverted, 6, t0.Add(seconds(rt, "ended", 0, 60))
		r.Verification = Verification{Verdict: rapid.SampledFrom([]Verdict{"", Verified, NotVerified, Inconclusive}).Draw(rt, "verdict"), At: t0}
		v := view{allowed: rapid.Bool().Draw(rt, "allowed"), plan: r.Plan, snap: Snapshot{Lineage: "l", Revision: 6}}
		if rapid.Bool().Draw(rt, "leased") {
			v.plan.Leased = []LeaseRef{{Path: "limits.global"}}
		}
		if rapid.Bool().Draw(rt, "judged") {
			v.verification = &Verification{Verdict: rapid.SampledFrom([]Verdict{Verified, NotVerified, Inconclusive}).Draw(rt, "found")}
		}
		now := t0.Add(seconds(rt, "now", 0, 4000))
		for i := range rapid.IntRange(0, 3).Draw(rt, "gateways") {
			v.snap.Gateways = append(v.snap.Gateways, Gateway{
				Name: string(rune('a' + i)), Live: rapid.Bool().Draw(rt, "live"), Lineage: rapid.SampledFrom([]string{"l", "x", ""}).Draw(rt, "lineage"),
				Revision:         rapid.Int64Range(0, 8).Draw(rt, "revision"),
				RejectedRevision: rapid.Int64Range(0, 8).Draw(rt, "rejected"), StateAt: now,
			})
		}
		tr, moved := next(r, v, now, waits)
		if !moved {
			return
		}
		after := tr.run
		require.False(t, tr.insert && tr.remove)
		require.Equal(t, tr.insert, tr.openChange)
		if tr.insert {
			require.Equal(t, StatusAccepted, r.Status)
			require.True(t, v.allowed && len(v.plan.Leased) == 0)
		}
		if after.Status == StatusActive && r.Status != StatusActive {
			require.Empty(t, missingAt(v.snap, 5), "active only when every live gateway acknowledged")
		}
		if after.Status == StatusEnded || after.Status == StatusFailed {
			require.True(t, after.NextAt.IsZero(), "nothing is due any more")
			require.False(t, after.EndedAt.IsZero())
		} else {
			require.False(t, after.NextAt.IsZero(), "a live run is looked at again")
		}
		if after.Status == StatusActive {
			require.False(t, after.NextAt.After(after.ExpiresAt), "the end is never slept over")
		}
		order := []Status{StatusAccepted, StatusExecuting, StatusActive, StatusReverting, StatusEnded}
		if after.Status != StatusFailed {
			require.GreaterOrEqual(t, slices.Index(order, after.Status), slices.Index(order, r.Status), "never back")
		}
		if after.Status != r.Status {
			require.NotEmpty(t, tr.kind, "every change of status is recorded")
		}
	})
}

func TestLayerIDsOfSeveralLayers(t *testing.T) {
	t.Parallel()
	r := Run{ID: "abc", Plan: Plan{Layers: []Layer{{Path: "a"}, {Path: "b"}}}}
	require.Equal(t, []string{"abc-0", "abc-1"}, r.LayerIDs())
	require.Equal(t, "abc", runOfLayer("abc-1"))
	require.Equal(t, "abc", runOfLayer("abc"))
}

func TestMeasureComparesTwoReadings(t *testing.T) {
	t.Parallel()
	at := func(n, limited, refused int64) policy.State {
		return policy.State{Outcomes: map[string]map[policy.Outcome]int64{
			"llm": {policy.OutcomeOK: n, policy.OutcomeLimited: limited}, "": {policy.OutcomeNoRoute: refused},
		}}
	}
	g := Gateway{Name: "a", Live: true, Prior: at(100, 0, 0), PriorAt: t0, State: at(700, 60, 999), StateAt: t0.Add(time.Minute)}
	traffic, ok := Measure(Snapshot{Gateways: []Gateway{g}})
	require.True(t, ok)
	require.Equal(t, Flow{Requests: 660, PerSecond: 11}, traffic.Total, "what never came to a limit is left out")

	restarted := g
	restarted.State = at(3, 0, 0)
	for name, other := range map[string]Gateway{
		"counters fell": restarted,
		"one reading":   {Name: "b", Live: true, State: at(1, 0, 0), StateAt: t0},
		"gone":          {Name: "c", Prior: g.Prior, PriorAt: g.PriorAt, State: g.State, StateAt: g.StateAt},
	} {
		_, ok := Measure(Snapshot{Gateways: []Gateway{other}})
		require.False(t, ok, name)
	}
}

func FuzzCanonical(f *testing.F) {
	for _, s := range []string{`{"b":1,"a":[1.50,"<&>"]}`, `{"a":1e400}`, `{} {}`, `"\u0000"`, ``} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		once, err := canonical(raw)
		if err != nil {
			return
		}
		twice, err := canonical(once)
		require.NoError(t, err)
		require.Equal(t, string(once), string(twice))
	})
}

func TestGatewayAheadOfTheDatabaseHoldsNothingOfIt(t *testing.T) {
	t.Parallel()
	ahead := Gateway{Name: "gw-1", Live: true, Lineage: "l", Revision: 9}
	snap := Snapshot{Lineage: "l", Revision: 5, Gateways: []Gateway{ahead}}
	require.Equal(t, []string{"gw-1"}, missingAt(snap, 5))
	snap.Revision = 9
	require.Empty(t, missingAt(snap, 5))
}
