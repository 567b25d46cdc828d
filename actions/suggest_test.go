package actions_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/actions"
	"holdfast/actions/actionstest"
	"holdfast/gpuguard/policy"
)

// busy has llm at 90 of 100 requests/s on one gateway.
func busy(t *testing.T) *fixture {
	f := newFixture(t)
	f.store.Advance(time.Minute)
	f.store.SetGateway(actions.Gateway{
		Name: "gw-1", Live: true, Lineage: actionstest.Lineage, Revision: 1,
		PriorAt: f.store.Now().Add(-time.Minute), StateAt: f.store.Now(),
		State: policy.State{Outcomes: map[string]map[policy.Outcome]int64{
			"llm": {policy.OutcomeOK: 3000, policy.OutcomeUpstreamError: 2400}, "milvus": {policy.OutcomeOK: 600},
		}},
	})
	return f
}

func TestSuggest(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name                string
		labels, annotations map[string]string
		want                []string
	}{
		{"by dependency", map[string]string{"dependency": "llm"}, nil, []string{`Trip breaker: llm {"dependency":"llm"}`, `Set rate limit: route:chat, 45 requests/s {"burst":45,"requests_per_second":45,"target":"route:chat"}`}},
		{"by service", map[string]string{"service": "chat-model"}, nil, []string{`Trip breaker: llm {"dependency":"llm"}`, `Set rate limit: route:chat, 45 requests/s {"burst":45,"requests_per_second":45,"target":"route:chat"}`}},
		{"nothing known", map[string]string{"service": "checkout"}, nil, nil},
		{"no labels", nil, nil, nil},
		{"annotation before labels", map[string]string{"dependency": "llm"}, map[string]string{"suggested_actions": "close_breaker"}, []string{`Close breaker: llm {"dependency":"llm"}`}},
		{"annotation with parameters", nil, map[string]string{"suggested_actions": "set_rate_limit:target=global;requests_per_second=500, trip_breaker:dependency=milvus"}, []string{`Set rate limit: global, 500 requests/s {"burst":500,"requests_per_second":500,"target":"global"}`, `Trip breaker: milvus {"dependency":"milvus"}`}},
		{"what cannot be planned is left out", nil, map[string]string{"suggested_actions": "reboot, trip_breaker, trip_breaker:dependency=nope,,trip_breaker:dependency=llm,trip_breaker:dependency=llm"}, []string{`Trip breaker: llm {"dependency":"llm"}`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := busy(t)
			got, err := f.engine.Suggest(context.Background(), tt.labels, tt.annotations, 2)
			require.NoError(t, err)
			var texts []string
			for _, s := range got {
				texts = append(texts, s.Title+" "+string(s.Params))
				require.NotEmpty(t, s.Why)
			}
			require.Equal(t, tt.want, texts)
		})
	}
}

func TestSuggestLeavesOutWhatIsInForce(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "gw-1")
	f.active()
	got, err := f.engine.Suggest(context.Background(), map[string]string{"dependency": "llm"}, nil, 2)
	require.NoError(t, err)
	require.Empty(t, got, "the path is leased, and without a measured rate there is no limit to propose")
}

func TestPlanIsCanonicalAndMeasuresItsBlast(t *testing.T) {
	t.Parallel()
	f := busy(t)
	plan, err := f.engine.Plan(context.Background(), "trip_breaker", json.RawMessage(` { "dependency" : "llm" } `), 0)
	require.NoError(t, err)
	require.JSONEq(t, `{"dependency":"llm"}`, string(plan.Params))
	require.Equal(t, "Force the breaker of llm open for 15m0s", plan.Summary)
	require.InDelta(t, 900, plan.TTLSeconds, 0)
	require.InDelta(t, .9, *plan.Blast.Share, 1e-9)
	require.Equal(t, int64(6000), plan.Blast.Requests)
	require.Equal(t, []string{"chat"}, plan.Blast.Routes)
	require.Equal(t, []string{"gw-1"}, plan.Blast.Gateways)
	require.Len(t, plan.Diff, 1)
	require.Contains(t, plan.Diff[0].Path, "dependencies.llm.breaker")
	require.Len(t, plan.Hash, 64)
	require.Empty(t, f.store.Events(), "a plan has no effect")
	again, err := f.engine.Plan(context.Background(), "trip_breaker", json.RawMessage(`{"dependency":"llm"}`), time.Hour)
	require.NoError(t, err)
	require.Equal(t, plan.Hash, again.Hash, "the hash binds the parameters")

	req := f.request("trip_breaker", `{"dependency":"llm"}`)
	req.PlanHash = plan.Hash
	_, err = f.engine.Run(context.Background(), req)
	require.NoError(t, err)

	global, err := f.engine.Plan(context.Background(), "set_rate_limit", json.RawMessage(`{"target":"global","requests_per_second":5}`), 0)
	require.NoError(t, err)
	require.InDelta(t, 1, *global.Blast.Share, 0)
	tenant, err := f.engine.Plan(context.Background(), "set_rate_limit", json.RawMessage(`{"target":"tenant:acme","requests_per_second":5}`), 0)
	require.NoError(t, err)
	require.Nil(t, tenant.Blast.Share, "requests of a tenant are not counted apart")
	choices, err := f.engine.Choices(context.Background())
	require.NoError(t, err)
	require.Equal(t, []string{"global", "route:chat", "route:search", "tenant:acme"}, choices["limit_target"])
}

type specOnly struct {
	actions.Action
	spec actions.Spec
}

func (s specOnly) Spec() actions.Spec { return s.spec }

func TestRegistryRefusesBadSpecs(t *testing.T) {
	t.Parallel()
	good := actions.Spec{Name: "a_b", Title: "T", Summary: "S", Role: "responder", DefaultTTL: time.Minute, MaxTTL: time.Hour}
	for text, change := range map[string]func(*actions.Spec){
		"name":         func(s *actions.Spec) { s.Name = "A-B" },
		"title":        func(s *actions.Spec) { s.Title = "" },
		"summary":      func(s *actions.Spec) { s.Summary = "" },
		"role":         func(s *actions.Spec) { s.Role = "viewer" },
		"lease":        func(s *actions.Spec) { s.MaxTTL = time.Second },
		"unknown kind": func(s *actions.Spec) { s.Params = []actions.Param{{Name: "p", Kind: "blob", Help: "h"}} },
		"twice": func(s *actions.Spec) {
			s.Params = []actions.Param{{Name: "p", Kind: "text", Help: "h"}, {Name: "p", Kind: "text", Help: "h"}}
		},
		"not JSON": func(s *actions.Spec) {
			s.Params = []actions.Param{{Name: "p", Kind: "text", Help: "h", Default: json.RawMessage("x")}}
		},
	} {
		spec := good
		change(&spec)
		_, err := actions.NewRegistry(specOnly{spec: spec})
		require.ErrorIs(t, err, actions.ErrInvalidSpec, text)
		require.ErrorContains(t, err, text)
	}
	_, err := actions.NewRegistry(specOnly{spec: good})
	require.NoError(t, err)
	_, err = actions.NewEngine(actions.Options{})
	require.Error(t, err)
}
