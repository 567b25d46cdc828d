package builtin

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"holdfast/actions"
	"holdfast/actions/actionstest"
	"holdfast/gpuguard/policy"
)

var t0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func snapshot(change func(*policy.Document), gateways ...actions.Gateway) actions.Snapshot {
	doc := actionstest.Document()
	if change != nil {
		change(&doc)
	}
	return actions.Snapshot{Now: t0, Lineage: "l", Revision: 4, Base: doc, Effective: doc, Gateways: gateways}
}

// counting is a live gateway that saw rate requests/s to each dependency for a minute.
func counting(rate map[string]int64) actions.Gateway {
	g := actions.Gateway{Name: "gw-1", Live: true, Lineage: "l", Revision: 4, PriorAt: t0, StateAt: t0.Add(time.Minute)}
	g.State.Outcomes = map[string]map[policy.Outcome]int64{}
	for name, r := range rate {
		g.State.Outcomes[name] = map[policy.Outcome]int64{policy.OutcomeOK: r * 60}
	}
	return g
}

func TestEveryBuiltinRegisters(t *testing.T) {
	t.Parallel()
	r, err := actions.NewRegistry(All()...)
	require.NoError(t, err)
	require.Len(t, r.Specs(), 3)
	require.ErrorIs(t, r.Register(TripBreaker()), actions.ErrDuplicate)
}

func TestTripBreakerPlan(t *testing.T) {
	t.Parallel()
	open := actions.Gateway{Name: "gw-1", Live: true, State: policy.State{Breakers: map[string]policy.BreakerState{"milvus": {State: "open", FailureRate: .54}}}}
	plan, err := TripBreaker().Plan(context.Background(), json.RawMessage(`{"dependency":"milvus"}`), snapshot(nil, open))
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(actions.Plan{
		Params: json.RawMessage(`{"dependency":"milvus"}`), Summary: "Force the breaker of milvus open", Service: "milvus",
		Layers: []actions.Layer{{Path: "dependencies.milvus.breaker.forced", Value: json.RawMessage(`"open"`)}},
		Warnings: []string{
			"The breaker has opened by its own rule already on gw-1 (failure rate up to 54 %); tripping holds it open without probes.",
			"Route search has no fallback: its callers get 503.",
		},
	}, plan))
	plan, err = TripBreaker().Plan(context.Background(), json.RawMessage(`{"dependency":"llm"}`), snapshot(nil))
	require.NoError(t, err)
	require.Equal(t, "chat-model", plan.Service, "the catalogue's name")
	require.Empty(t, plan.Warnings)
}

func TestBreakerVerdicts(t *testing.T) {
	t.Parallel()
	run := actions.Run{Params: json.RawMessage(`{"dependency":"llm"}`), Lineage: "l", Revision: 5, ExecutedAt: t0}
	gw := func(name, state string, revision int64, at time.Duration) actions.Gateway {
		return actions.Gateway{
			Name: name, Live: true, Lineage: "l", Revision: revision, StateAt: t0.Add(at),
			State: policy.State{Breakers: map[string]policy.BreakerState{"llm": {State: state}}},
		}
	}
	gone := gw("gw-3", "closed", 5, time.Second)
	gone.Live = false
	tests := []struct {
		name     string
		action   actions.Action
		gateways []actions.Gateway
		want     actions.Verdict
		detail   string
	}{
		{"all forced open", TripBreaker(), []actions.Gateway{gw("gw-1", "forced_open", 5, 1), gw("gw-2", "forced_open", 6, 1)}, actions.Verified, "2 gateways report the breaker of llm as forced_open"},
		{"one is not", TripBreaker(), []actions.Gateway{gw("gw-1", "forced_open", 5, 1), gw("gw-2", "open", 5, 1)}, actions.NotVerified, "gw-2 reports the breaker of llm as open"},
		{"C89: opened by itself is not held by hand", TripBreaker(), []actions.Gateway{gw("gw-1", "open", 5, 1)}, actions.NotVerified, "gw-1 reports"},
		{"no such breaker", TripBreaker(), []actions.Gateway{{Name: "gw-1", Live: true, Lineage: "l", Revision: 5, StateAt: t0}}, actions.NotVerified, "gw-1 reports no breaker of llm"},
		{"older revision", TripBreaker(), []actions.Gateway{gw("gw-1", "forced_open", 4, 1)}, actions.Inconclusive, "no report since the revision from gw-1"},
		{"older report", TripBreaker(), []actions.Gateway{gw("gw-1", "forced_open", 5, -1)}, actions.Inconclusive, "gw-1"},
		{"one late", TripBreaker(), []actions.Gateway{gw("gw-1", "forced_open", 5, 1), gw("gw-2", "closed", 4, 1)}, actions.Inconclusive, "gw-2"},
		{"no gateway", TripBreaker(), nil, actions.Inconclusive, "no live gateway"},
		{"only one that is gone", TripBreaker(), []actions.Gateway{gone}, actions.Inconclusive, "no live gateway"},
		{"closed", CloseBreaker(), []actions.Gateway{gw("gw-1", "forced_closed", 5, 1)}, actions.Verified, ""},
		{"closed by its own rule", CloseBreaker(), []actions.Gateway{gw("gw-1", "closed", 5, 1)}, actions.NotVerified, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := tt.action.Verify(context.Background(), run, actions.Snapshot{Gateways: tt.gateways})
			require.NoError(t, err)
			require.Equal(t, tt.want, got.Verdict, got.Detail)
			require.Contains(t, got.Detail, tt.detail)
		})
	}
}

func TestSetRateLimitPlan(t *testing.T) {
	t.Parallel()
	limited := func(d *policy.Document) { d.Limits.Global = &policy.Limit{RequestsPerSecond: 200} }
	tests := []struct {
		name, params, summary, path, value, service, warning string
		snap                                                 actions.Snapshot
	}{
		{"INCIDENTS A: 2000 to 500", `{"target":"global","requests_per_second":500}`, "Limit all routes together to 500 requests/s", "limits.global", `{"requests_per_second":500,"burst":500}`, "", "of the measured 2000 requests/s, 500 will reach the engine and about 1500 (75 %) will be refused", snapshot(nil, counting(map[string]int64{"llm": 1500, "milvus": 500}))},
		{"route", `{"target":"route:chat","requests_per_second":0.5,"burst":2}`, "Limit route chat to 0.5 requests/s", "routes.chat.limit", `{"requests_per_second":0.5,"burst":2}`, "chat-model", "is not measured", snapshot(nil)},
		{"above the measured rate", `{"target":"route:chat","requests_per_second":100}`, "", "", "", "", "At the measured 20 requests/s a limit of 100 refuses nothing.", snapshot(nil, counting(map[string]int64{"llm": 20}))},
		{"tenant", `{"target":"tenant:acme","requests_per_second":0}`, "", "tenants.acme.limit", `{"requests_per_second":0,"burst":1}`, "", "A rate of 0 refuses every request of tenant acme.", snapshot(nil)},
		{"raises", `{"target":"global","requests_per_second":500}`, "", "", "", "", "This raises the limit in force, 200 requests/s.", snapshot(limited)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			plan, err := SetRateLimit().Plan(context.Background(), json.RawMessage(tt.params), tt.snap)
			require.NoError(t, err)
			require.Contains(t, plan.Summary, tt.summary)
			require.Len(t, plan.Layers, 1)
			require.Contains(t, plan.Layers[0].Path, tt.path)
			require.Contains(t, string(plan.Layers[0].Value), tt.value)
			require.Contains(t, plan.Service, tt.service)
			require.Contains(t, joined(plan.Warnings), tt.warning)
		})
	}
}

func joined(list []string) string {
	text := ""
	for _, s := range list {
		text += s + "\n"
	}
	return text
}

func TestSetRateLimitRefusesByField(t *testing.T) {
	t.Parallel()
	for params, want := range map[string]string{
		`{"target":"route:chta","requests_per_second":5}`:          `target: no route is named "chta": did you mean "chat"?`,
		`{"target":"pool:x","requests_per_second":5}`:              "target: no target is named",
		`{"requests_per_second":5}`:                                "target: is missing",
		`{"target":"global"}`:                                      "requests_per_second: is missing",
		`{"target":"global","requests_per_second":-1}`:             "requests_per_second: is -1",
		`{"target":"global","requests_per_second":1e10}`:           "requests_per_second: is 1e+10",
		`{"target":"global","requests_per_second":5,"burst":0.5}`:  "burst: is 0.5",
		`{"target":"global","requests_per_second":"5"}`:            "requests_per_second",
		`{"target":"global","requests_per_second":5,"rps":1}`:      "rps",
		`{"target":"global","requests_per_second":5} {"target":1}`: "",
	} {
		_, err := SetRateLimit().Plan(context.Background(), json.RawMessage(params), snapshot(nil))
		require.ErrorIs(t, err, actions.ErrInvalidParams, params)
		require.ErrorContains(t, err, want, params)
	}
}

func TestRateLimitVerdicts(t *testing.T) {
	t.Parallel()
	run := actions.Run{Params: json.RawMessage(`{"target":"global","requests_per_second":500,"burst":500}`), Lineage: "l", Revision: 5, ExecutedAt: t0}
	gw := func(name string, rate float64) actions.Gateway {
		return actions.Gateway{
			Name: name, Live: true, Lineage: "l", Revision: 5, StateAt: t0,
			State: policy.State{Limits: map[string]policy.Limit{"limits.global": {RequestsPerSecond: rate}}},
		}
	}
	bare := gw("gw-3", 0)
	bare.State = policy.State{}
	for _, tt := range []struct {
		name     string
		gateways []actions.Gateway
		want     actions.Verdict
		detail   string
	}{
		{"divided", []actions.Gateway{gw("gw-1", 250), gw("gw-2", 250)}, actions.Verified, "2 gateways enforce 500 requests/s on all routes together"},
		{"a share waits for a gateway that is gone", []actions.Gateway{gw("gw-1", 250)}, actions.Verified, "1 gateway enforces 250"},
		{"multiplied by the gateways", []actions.Gateway{gw("gw-1", 500), gw("gw-2", 500)}, actions.NotVerified, "2 gateways allow 1000 requests/s together, more than 500"},
		{"more than the whole", []actions.Gateway{gw("gw-1", 2000)}, actions.NotVerified, "gw-1 reports 2000 requests/s"},
		{"none reported", []actions.Gateway{gw("gw-1", 250), bare}, actions.NotVerified, "gw-3 reports no limit"},
		{"nobody there", nil, actions.Inconclusive, "no live gateway"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			snap := snapshot(nil, tt.gateways...)
			got, err := SetRateLimit().Verify(context.Background(), run, snap)
			require.NoError(t, err)
			require.Equal(t, tt.want, got.Verdict, got.Detail)
			require.Contains(t, got.Detail, tt.detail)
		})
	}
}

func TestSuggestedRateIsHalfOfTheMeasured(t *testing.T) {
	t.Parallel()
	s := SetRateLimit().(actions.Suggester)
	params, why, ok := s.Suggest("llm", snapshot(nil, counting(map[string]int64{"llm": 843})))
	require.True(t, ok)
	require.JSONEq(t, `{"target":"route:chat","requests_per_second":420}`, string(params))
	require.Equal(t, "420 is about half of the 843 requests/s measured now", why)
	_, _, ok = s.Suggest("llm", snapshot(nil))
	require.False(t, ok, "without a measured rate there is no figure to propose")
}

func FuzzParams(f *testing.F) {
	for _, s := range []string{`{"dependency":"llm"}`, `{"target":"global","requests_per_second":1e309}`, `[]`, `null`, `{"target":"route:"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, a := range All() {
			plan, err := a.Plan(context.Background(), raw, snapshot(nil))
			if err != nil {
				require.ErrorIs(t, err, actions.ErrInvalidParams)
				continue
			}
			again, err := a.Plan(context.Background(), plan.Params, snapshot(nil))
			require.NoError(t, err, "canonical parameters are valid parameters")
			require.Equal(t, string(plan.Params), string(again.Params))
		}
	})
}
