package actions_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"holdfast/actions"
	"holdfast/actions/actionstest"
	"holdfast/actions/builtin"
	"holdfast/gpuguard/policy"
	"holdfast/strict"
)

func TestRunGoesFromAcceptedToEnded(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "gw-1", "gw-2")
	run := f.trip()
	require.Equal(t, actions.StatusAccepted, run.Status)
	require.Empty(t, f.store.Overrides(), "accepted is durable, and nothing has been done")

	f.tick(0)
	run = f.run(run.ID)
	require.Equal(t, actions.StatusExecuting, run.Status)
	require.Equal(t, int64(2), run.Revision)
	require.Equal(t, actionstest.Lineage, run.Lineage)
	require.Len(t, f.store.Overrides(), 1)
	require.Equal(t, run.ID, f.store.Overrides()[0].ID)
	require.Equal(t, "dependencies.llm.breaker.forced", f.store.Overrides()[0].Path)

	f.apply("gw-1")
	f.tick(0)
	require.Equal(t, actions.StatusExecuting, f.run(run.ID).Status, "gw-2 has not acknowledged")
	f.apply("gw-2")
	f.tick(0)
	require.Equal(t, actions.StatusActive, f.run(run.ID).Status)

	f.tick(2 * time.Second)
	require.Equal(t, actions.Verified, f.run(run.ID).Verification.Verdict)

	run, err := f.engine.Revert(context.Background(), run.ID, alice)
	require.NoError(t, err)
	require.Equal(t, actions.StatusReverting, run.Status)
	require.Empty(t, f.store.Overrides())
	f.tick(0)
	require.Equal(t, actions.StatusReverting, f.run(run.ID).Status)
	f.apply("gw-1", "gw-2")
	f.tick(0)
	run = f.run(run.ID)
	require.Equal(t, actions.StatusEnded, run.Status)
	require.Equal(t, actions.EndReverted, run.EndReason)
	require.Equal(t, "Alice", run.EndedBy)
	require.True(t, run.NextAt.IsZero())
	require.Equal(t, []actions.EventKind{
		actions.EventAccepted, actions.EventExecuted, actions.EventEnforced, actions.EventVerified, actions.EventReverting, actions.EventEnded,
	}, f.store.Kinds(run.ID))
	opened, closed := f.store.Calendar(run.ID)
	require.Equal(t, []int{1, 1}, []int{opened, closed})
}

func TestOneKeyMakesOneRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "gw-1")
	req := f.request("trip_breaker", `{"dependency":"llm"}`)
	var wg sync.WaitGroup
	ids, errs := make([]string, 20), make([]error, 20)
	for i := range ids {
		wg.Go(func() {
			run, err := f.engine.Run(context.Background(), req)
			ids[i], errs[i] = run.ID, err
		})
	}
	wg.Wait()
	first := 0
	for i, err := range errs {
		require.Equal(t, ids[0], ids[i])
		if err == nil {
			first++
			continue
		}
		require.ErrorIs(t, err, actions.ErrDuplicate)
		require.ErrorContains(t, err, "by Alice at 12:00:00 UTC")
	}
	require.Equal(t, 1, first)
	require.Equal(t, []actions.EventKind{actions.EventAccepted}, f.store.Kinds(ids[0]))
}

// A key that comes back with another request must not be answered with the first
// run, as if that were what was asked for.
func TestAKeyIsForOneRequest(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "gw-1")
	req := f.request("trip_breaker", `{"dependency":"llm"}`)
	first, err := f.engine.Run(t.Context(), req)
	require.NoError(t, err)
	for name, change := range map[string]func(*actions.Request){
		"another action":   func(r *actions.Request) { r.Action = "close_breaker" },
		"other parameters": func(r *actions.Request) { r.Params = json.RawMessage(`{"dependency":"embeddings"}`) },
		"no parameters":    func(r *actions.Request) { r.Params = nil },
		"another incident": func(r *actions.Request) { r.IncidentID = "other" },
	} {
		other := req
		change(&other)
		run, err := f.engine.Run(t.Context(), other)
		require.ErrorIs(t, err, actions.ErrDuplicate, name)
		require.ErrorContains(t, err, "something else", name)
		require.Empty(t, run.ID, name)
	}
	again := req
	again.Params, again.Reason = json.RawMessage(` { "dependency" : "llm" } `), "again"
	run, err := f.engine.Run(t.Context(), again)
	require.ErrorIs(t, err, actions.ErrDuplicate)
	require.Equal(t, first.ID, run.ID, "the same request in other words")
}

func TestRefusedRequestsAreAuditedAndLeaveNothing(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*fixture, *actions.Request)
		want   error
		text   string
	}{
		{"role too low", func(_ *fixture, r *actions.Request) { r.Actor = bob }, actions.ErrForbidden, "needs the role responder"},
		{"nobody", func(_ *fixture, r *actions.Request) { r.Actor = actions.Actor{Name: "x", Channel: "api"} }, actions.ErrForbidden, ""},
		{"another plan was seen", func(_ *fixture, r *actions.Request) { r.PlanHash = "beef" }, actions.ErrOutdated, "plan again"},
		{"path is leased", func(f *fixture, _ *actions.Request) { f.active() }, actions.ErrPathLeased, "leased by Alice until 2026-03-01T12:15:00Z"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, "gw-1")
			req := f.request("close_breaker", `{"dependency":"llm"}`)
			req.TTL = 0
			tt.change(f, &req)
			before := len(f.store.Events())
			_, err := f.engine.Run(context.Background(), req)
			require.ErrorIs(t, err, tt.want)
			require.ErrorContains(t, err, tt.text)
			events := f.store.Events()[before:]
			require.Len(t, events, 1)
			require.Equal(t, actions.EventDenied, events[0].Kind)
			require.Empty(t, events[0].Run.ID, "a refused request has no run")
			require.NotEmpty(t, events[0].Reason)
			runs, err := f.engine.List(context.Background(), time.Time{}, 10)
			require.NoError(t, err)
			for _, r := range runs {
				require.NotEqual(t, "close_breaker", r.Action)
			}
		})
	}
}

func TestMalformedRequestsNameTheField(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*actions.Request)
		want   error
		field  string
	}{
		{"unknown action", func(r *actions.Request) { r.Action = "trip_braker" }, actions.ErrUnknownAction, `did you mean "trip_breaker"?`},
		{"unknown dependency", func(r *actions.Request) { r.Params = json.RawMessage(`{"dependency":"lm"}`) }, actions.ErrInvalidParams, `dependency: no dependency is named "lm": did you mean "llm"?`},
		{"unknown parameter", func(r *actions.Request) { r.Params = json.RawMessage(`{"dependency":"llm","x":1}`) }, actions.ErrInvalidParams, "x"},
		{"missing parameter", func(r *actions.Request) { r.Params = nil }, actions.ErrInvalidParams, "dependency: is missing"},
		{"wrong type", func(r *actions.Request) { r.Params = json.RawMessage(`{"dependency":5}`) }, actions.ErrInvalidParams, "dependency"},
		{"garbage", func(r *actions.Request) { r.Params = json.RawMessage(`{`) }, actions.ErrInvalidParams, ""},
		{"too large", func(r *actions.Request) {
			r.Params = json.RawMessage(`{"dependency":"` + strings.Repeat("a", 70<<10) + `"}`)
		}, actions.ErrInvalidParams, "params"},
		{"lease too long", func(r *actions.Request) { r.TTL = 5 * time.Hour }, actions.ErrInvalidParams, "ttl"},
		{"lease negative", func(r *actions.Request) { r.TTL = -1 }, actions.ErrInvalidParams, "ttl"},
		{"no reason", func(r *actions.Request) { r.Reason = " " }, actions.ErrInvalidParams, "reason"},
		{"no key", func(r *actions.Request) { r.Key = "" }, actions.ErrInvalidParams, "key"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, "gw-1")
			req := f.request("trip_breaker", `{"dependency":"llm"}`)
			tt.change(&req)
			_, err := f.engine.Run(context.Background(), req)
			require.ErrorIs(t, err, tt.want)
			require.ErrorContains(t, err, tt.field)
			if errors.Is(err, actions.ErrInvalidParams) {
				var fields strict.Errors
				require.ErrorAs(t, err, &fields)
			}
			require.Empty(t, f.store.Events())
		})
	}
}

func TestRoleIsCheckedAgainAtExecution(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "gw-1")
	run := f.trip()
	f.store.SetRole(alice.PersonID, "viewer")
	f.tick(0)
	run = f.run(run.ID)
	require.Equal(t, actions.StatusFailed, run.Status)
	require.Equal(t, actions.EndRefused, run.EndReason)
	require.Empty(t, f.store.Overrides())
	require.Equal(t, int64(1), f.store.Revision())
	require.Equal(t, []actions.EventKind{actions.EventAccepted, actions.EventDenied}, f.store.Kinds(run.ID))
}

func TestTripAndCloseOfOneBreakerExcludeEachOther(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "gw-1")
	trip := f.trip()
	closing, err := f.engine.Run(context.Background(), actions.Request{
		Action: "close_breaker", Params: json.RawMessage(`{"dependency":"llm"}`), Reason: "r", Actor: alice, Key: "close-key",
	})
	require.NoError(t, err, "neither is in force yet, so both are accepted")
	f.tick(0)
	runs := []actions.Run{f.run(trip.ID), f.run(closing.ID)}
	statuses := map[actions.Status]int{}
	for _, r := range runs {
		statuses[r.Status]++
		if r.Status == actions.StatusFailed {
			require.Equal(t, actions.EndLeased, r.EndReason)
			require.Contains(t, r.EndDetail, "leased by Alice")
		}
	}
	require.Equal(t, map[actions.Status]int{actions.StatusExecuting: 1, actions.StatusFailed: 1}, statuses)
	require.Len(t, f.store.Overrides(), 1)
}

func TestRejectedRevisionIsTakenBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "gw-1", "gw-2")
	run := f.trip()
	f.tick(0)
	f.apply("gw-1")
	f.store.Reject("gw-2", "dependencies.llm: unknown")
	f.tick(0)
	run = f.run(run.ID)
	require.Equal(t, actions.StatusFailed, run.Status)
	require.Equal(t, actions.EndRejected, run.EndReason)
	require.Equal(t, "gateway gw-2 rejected revision 2: dependencies.llm: unknown", run.EndDetail)
	require.Empty(t, f.store.Overrides())
	require.Equal(t, int64(3), f.store.Revision())
	require.Equal(t, int64(3), run.RevertRevision)
	_, closed := f.store.Calendar(run.ID)
	require.Equal(t, 1, closed)
}

func TestWithoutAGatewayVerificationIsInconclusive(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	run := f.trip()
	f.tick(0)
	run = f.run(run.ID)
	require.Equal(t, actions.StatusActive, run.Status)
	require.Equal(t, actions.Inconclusive, run.Verification.Verdict)
	require.Equal(t, "no live gateway", run.Verification.Detail)
	require.Contains(t, run.Plan.Warnings, "No gateway is connected: nothing enforces this until one is.")

	f.apply("gw-1")
	f.tick(5 * time.Second)
	require.Equal(t, actions.Verified, f.run(run.ID).Verification.Verdict, "a gateway that connects is judged")
}

func TestGatewaysThatAllLookGoneGetTimeToAnswer(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.store.SetGateway(actions.Gateway{Name: "gw-1", Lineage: actionstest.Lineage, Revision: 1})
	run := f.trip()
	f.tick(0)
	require.Equal(t, actions.StatusExecuting, f.run(run.ID).Status)
	f.apply("gw-1")
	f.tick(time.Second)
	require.Equal(t, actions.StatusActive, f.run(run.ID).Status)
	require.Empty(t, f.run(run.ID).Verification.Verdict)
}

func TestMissingGatewayIsNamedAndLeavesByItsLease(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "gw-1", "gw-2")
	run := f.trip()
	f.tick(0)
	f.apply("gw-1")
	f.tick(9 * time.Second)
	require.Empty(t, f.run(run.ID).Missing)
	f.tick(time.Second)
	require.Equal(t, []string{"gw-2"}, f.run(run.ID).Missing)
	require.Equal(t, actions.StatusExecuting, f.run(run.ID).Status)
	f.tick(time.Second)
	f.store.SetGateway(actions.Gateway{Name: "gw-2", Lineage: actionstest.Lineage, Revision: 1, Live: false})
	f.tick(time.Second)
	run = f.run(run.ID)
	require.Equal(t, actions.StatusActive, run.Status)
	require.Empty(t, run.Missing)
	require.Equal(t, []actions.EventKind{actions.EventAccepted, actions.EventExecuted, actions.EventWaiting, actions.EventEnforced}, f.store.Kinds(run.ID))
}

func TestGatewayOfAnotherLineageIsMissing(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "gw-1")
	f.store.SetGateway(actions.Gateway{Name: "gw-9", Live: true, Lineage: "other", Revision: 77, RejectedRevision: 1, Error: "lineage not confirmed"})
	run := f.trip()
	f.tick(0)
	f.apply("gw-1")
	f.tick(10 * time.Second)
	run = f.run(run.ID)
	require.Equal(t, actions.StatusExecuting, run.Status, "a refusal of the lineage is no refusal of the revision")
	require.Equal(t, []string{"gw-9"}, run.Missing)
}

func TestLeaseWarnsThenExpires(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "gw-1")
	run := f.active()
	f.tick(2 * time.Second)
	f.tick(13*time.Minute - 3*time.Second)
	require.False(t, f.run(run.ID).Warned)
	f.tick(2 * time.Second)
	require.True(t, f.run(run.ID).Warned)
	f.tick(2 * time.Minute)
	run = f.run(run.ID)
	require.Equal(t, actions.StatusReverting, run.Status)
	require.Equal(t, actions.EndExpired, run.EndReason)
	require.Empty(t, f.store.Overrides())
	f.apply("gw-1")
	f.tick(0)
	run = f.run(run.ID)
	require.Equal(t, actions.StatusEnded, run.Status)
	require.Equal(t, "system", run.EndedBy)
	require.Equal(t, []actions.EventKind{
		actions.EventAccepted, actions.EventExecuted, actions.EventEnforced, actions.EventVerified,
		actions.EventWarned, actions.EventReverting, actions.EventEnded,
	}, f.store.Kinds(run.ID))
}

func TestGatewayThatEndedTheLeaseByItselfCountsAsReleased(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "gw-1")
	run := f.active()
	f.tick(16 * time.Minute)
	require.Equal(t, actions.StatusReverting, f.run(run.ID).Status)
	// It never takes the new revision, but reports that the lease is over.
	f.store.SetGateway(actions.Gateway{Name: "gw-1", Live: true, Lineage: actionstest.Lineage, Revision: run.Revision, StateAt: f.store.Now()})
	f.tick(0)
	require.Equal(t, actions.StatusEnded, f.run(run.ID).Status)
}

func TestRenewMovesTheEndAndIsBounded(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	f := newFixture(t, "gw-1")
	run := f.active()
	f.store.Advance(10 * time.Minute)

	_, err := f.engine.Renew(ctx, run.ID, bob, time.Hour)
	require.ErrorIs(t, err, actions.ErrForbidden)

	renewed, err := f.engine.Renew(ctx, run.ID, alice, 30*time.Minute)
	require.NoError(t, err)
	require.Equal(t, f.store.Now().Add(30*time.Minute), renewed.ExpiresAt)
	require.Equal(t, renewed.ExpiresAt, f.store.Overrides()[0].Expires)
	revision := f.store.Revision()
	require.Equal(t, int64(3), revision, "gateways are told")

	f.store.Advance(20 * time.Second)
	again, err := f.engine.Renew(ctx, run.ID, alice, 30*time.Minute)
	require.NoError(t, err)
	require.Equal(t, renewed.ExpiresAt, again.ExpiresAt, "a click replayed after a crash changes nothing")
	require.Equal(t, revision, f.store.Revision())

	shorter, err := f.engine.Renew(ctx, run.ID, alice, time.Minute)
	require.NoError(t, err)
	require.Equal(t, renewed.ExpiresAt, shorter.ExpiresAt, "never shorter than it was")

	longest, err := f.engine.Renew(ctx, run.ID, alice, 100*time.Hour)
	require.NoError(t, err)
	require.Equal(t, f.store.Now().Add(4*time.Hour), longest.ExpiresAt)

	f.apply("gw-1")
	f.tick(4*time.Hour + time.Second)
	require.Equal(t, actions.StatusReverting, f.run(run.ID).Status)
	_, err = f.engine.Renew(ctx, run.ID, alice, time.Hour)
	require.ErrorIs(t, err, actions.ErrWrongState)
	require.ErrorContains(t, err, "its lease expired")
	_, err = f.engine.Renew(ctx, run.ID, alice, 0)
	require.ErrorIs(t, err, actions.ErrInvalidParams)
}

func TestSecondRevertSaysWhoAndWhen(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	f := newFixture(t, "gw-1")
	run := f.active()
	_, err := f.engine.Revert(ctx, run.ID, bob)
	require.ErrorIs(t, err, actions.ErrForbidden)
	require.Len(t, f.store.Overrides(), 1)
	_, err = f.engine.Revert(ctx, run.ID, alice)
	require.NoError(t, err)
	f.store.SetRole(bob.PersonID, "responder")
	f.store.Advance(time.Minute)
	second, err := f.engine.Revert(ctx, run.ID, bob)
	require.ErrorIs(t, err, actions.ErrWrongState)
	require.ErrorContains(t, err, "taken back by Alice at 12:00:00 UTC")
	require.Equal(t, run.ID, second.ID)
	require.Equal(t, int64(3), f.store.Revision(), "one revert, one revision")
	_, err = f.engine.Revert(ctx, "absent", alice)
	require.ErrorIs(t, err, actions.ErrNotFound)
}

func TestRevertBeforeExecutionWithdraws(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "gw-1")
	run := f.trip()
	got, err := f.engine.Revert(context.Background(), run.ID, alice)
	require.NoError(t, err)
	require.Equal(t, actions.StatusEnded, got.Status)
	f.tick(time.Second)
	require.Empty(t, f.store.Overrides())
	require.Equal(t, int64(1), f.store.Revision())
}

func TestOldAcceptedRunIsNotDoneAnyMore(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "gw-1")
	run := f.trip()
	f.tick(16 * time.Minute)
	run = f.run(run.ID)
	require.Equal(t, actions.StatusFailed, run.Status)
	require.Equal(t, actions.EndExpired, run.EndReason)
	require.Empty(t, f.store.Overrides())
}

func TestParametersAreCheckedAgainAtExecution(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "gw-1")
	run := f.trip()
	base := actionstest.Document()
	delete(base.Dependencies, "llm")
	delete(base.Pools, "llm")
	delete(base.Routes, "chat")
	f.store.SetBase(base)
	f.tick(0)
	run = f.run(run.ID)
	require.Equal(t, actions.EndInvalid, run.EndReason)
	require.Contains(t, run.EndDetail, "llm")
}

func TestRestoredDatabaseFollowsTheNewLineage(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "gw-1")
	run := f.trip()
	f.tick(0)
	f.store.Restore("lineage2")
	f.tick(0)
	require.Equal(t, "lineage2", f.run(run.ID).Lineage)
	require.Equal(t, actions.StatusExecuting, f.run(run.ID).Status, "the gateway still holds the old lineage")
	f.apply("gw-1")
	f.tick(0)
	require.Equal(t, actions.StatusActive, f.run(run.ID).Status)
}

func TestLayerWithoutALiveRunIsSweptAfterItsLease(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "gw-1")
	f.store.InsertOverride(policy.Override{
		ID: "gone", Path: "limits.global", Value: json.RawMessage(`{"requests_per_second":5}`), Owner: "x", Reason: "y", Expires: f.store.Now().Add(time.Minute),
	})
	f.tick(time.Minute)
	require.Len(t, f.store.Overrides(), 1, "it gets a moment of grace")
	f.tick(10 * time.Second)
	require.Empty(t, f.store.Overrides())
	require.Equal(t, []string{"1 expired layers without a live run removed"}, f.store.Causes())
}

func TestOneStuckRunStopsNoOther(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "gw-1")
	stuck := f.trip()
	req := f.request("set_rate_limit", `{"target":"global","requests_per_second":500}`)
	other, err := f.engine.Run(context.Background(), req)
	require.NoError(t, err)
	failing := errors.New("disk full")
	var current string
	f.store.SetFault(func(op string) error {
		if id, ok := strings.CutPrefix(op, "run:"); ok {
			current = id
		}
		if op == "insert override" && current == stuck.ID {
			return failing
		}
		return nil
	})
	_, err = f.engine.Tick(context.Background())
	require.ErrorIs(t, err, failing)
	require.Equal(t, actions.StatusExecuting, f.run(other.ID).Status)
	require.Equal(t, actions.StatusAccepted, f.run(stuck.ID).Status)
	require.Equal(t, f.store.Now().Add(5*time.Second), f.run(stuck.ID).NextAt, "set aside")
	f.store.SetFault(nil)
	f.tick(5 * time.Second)
	require.Equal(t, actions.StatusExecuting, f.run(stuck.ID).Status)
}

func TestActionThatIsGoneCanStillBeTakenBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "gw-1")
	run := f.active()
	registry, err := actions.NewRegistry(builtin.SetRateLimit())
	require.NoError(t, err)
	older, err := actions.NewEngine(actions.Options{Store: f.store, Registry: registry})
	require.NoError(t, err)
	f.store.Advance(2 * time.Second)
	_, err = older.Tick(context.Background())
	require.NoError(t, err)
	require.Equal(t, actions.Inconclusive, f.run(run.ID).Verification.Verdict)
	f.store.SetRole(alice.PersonID, "admin")
	_, err = older.Revert(context.Background(), run.ID, alice)
	require.NoError(t, err)
}

func TestStartedEngineMovesRunsAndStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := actionstest.NewStore(actionstest.Document(), time.Now)
		store.SetRole(alice.PersonID, "responder")
		store.Apply("gw-1")
		registry, err := actions.NewRegistry(builtin.All()...)
		require.NoError(t, err)
		metrics := prometheus.NewRegistry()
		engine, err := actions.NewEngine(actions.Options{Store: store, Registry: registry, Registerer: metrics})
		require.NoError(t, err)
		engine.Start(t.Context())
		engine.Start(t.Context())
		defer engine.Stop()

		run, err := engine.Run(t.Context(), actions.Request{
			Action: "trip_breaker", Params: json.RawMessage(`{"dependency":"llm"}`), TTL: time.Minute, Reason: "r", Actor: alice, Key: "12345678",
		})
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, int64(2), store.Revision(), "woken by the commit, without waiting for the poll")
		store.Apply("gw-1")
		synctest.Wait()
		pass(3 * time.Second)
		got, err := engine.Find(t.Context(), run.ID)
		require.NoError(t, err)
		require.Equal(t, actions.StatusActive, got.Status)
		require.Equal(t, actions.Verified, got.Verification.Verdict)
		pass(time.Minute)
		store.Apply("gw-1")
		synctest.Wait()
		got, err = engine.Find(t.Context(), run.ID)
		require.NoError(t, err)
		require.Equal(t, actions.StatusEnded, got.Status)
		engine.Stop()
		n, err := testutil.GatherAndCount(metrics, "holdfast_action_events_total", "holdfast_action_enforce_seconds")
		require.NoError(t, err)
		require.Equal(t, 8, n, "seven kinds of event and the histogram")
	})
}

// pass lets time go by inside a synctest bubble, which costs none.
func pass(d time.Duration) { <-time.After(d) }
