package library_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/actions"
	"holdfast/actions/actionstest"
	"holdfast/actions/builtin"
	"holdfast/gpuguard/signals"
	"holdfast/runbooks"
	"holdfast/runbooks/runbookstest"
)

var alice = actions.Actor{PersonID: "p-alice", Name: "Alice", Channel: "console"}

// signalsOf answers queries by the recorded series they name.
type signalsOf struct {
	mu     sync.Mutex
	values map[string]float64
}

func (s *signalsOf) set(series string, v float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[series] = v
}

func (s *signalsOf) Query(_ context.Context, query string, _ time.Time) ([]signals.Sample, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, series := range slices.Sorted(maps.Keys(s.values)) {
		if strings.HasPrefix(query, series+`{service="llm",environment="prod"}`) {
			return []signals.Sample{{Value: s.values[series]}}, nil
		}
	}
	return nil, nil
}

// outage is the runbook over the real action engine, with one gateway.
type outage struct {
	t       *testing.T
	store   *runbookstest.Store
	fleet   *actionstest.Store
	acting  *actions.Engine
	engine  *runbooks.Engine
	signals *signalsOf
	id      string
}

func newOutage(t *testing.T) *outage {
	t.Helper()
	registry, err := actions.NewRegistry(builtin.All()...)
	require.NoError(t, err)
	o := &outage{
		t: t, store: runbookstest.NewStore(nil), fleet: actionstest.NewStore(actionstest.Document(), nil),
		signals: &signalsOf{values: map[string]float64{
			"service:errors:ratio_rate1m": 0.23, "service:queue:requests": 300, "service:fragmentation:ratio": 0.27,
			"service:decode:seconds_per_token": 4, "service:output:tokens_rate1m": 0.3,
		}},
	}
	o.store.SetRole(alice.PersonID, "responder")
	o.fleet.SetRole(alice.PersonID, "responder")
	o.fleet.Apply("gw-1")
	o.acting, err = actions.NewEngine(actions.Options{Store: o.fleet, Registry: registry})
	require.NoError(t, err)
	lib, _ := load(t)
	o.engine, err = runbooks.NewEngine(runbooks.Options{Store: o.store, Actions: o.acting, Metrics: o.signals, Library: lib})
	require.NoError(t, err)
	suggested := o.engine.Suggest(map[string]string{"service": "llm", "environment": "prod"}, map[string]string{"runbook": "slow-model"})
	require.Len(t, suggested, 1)
	require.Empty(t, suggested[0].Missing, "one click starts it")
	run, err := o.engine.Launch(t.Context(), runbooks.StartRequest{Runbook: "slow-model", Params: suggested[0].Params, Actor: alice, Key: "12345678"})
	require.NoError(t, err)
	o.id = run.ID
	o.pass(0)
	return o
}

// pass lets time go by, second by second, with a gateway that applies what it is given.
func (o *outage) pass(d time.Duration) {
	o.t.Helper()
	for left := d; ; left -= time.Second {
		_, err := o.engine.Tick(o.t.Context())
		require.NoError(o.t, err)
		_, err = o.acting.Tick(o.t.Context())
		require.NoError(o.t, err)
		o.fleet.Apply("gw-1")
		if left <= 0 {
			return
		}
		o.store.Advance(time.Second)
		o.fleet.Advance(time.Second)
	}
}

func (o *outage) run() runbooks.Run {
	o.t.Helper()
	run, err := o.engine.Find(o.t.Context(), o.id)
	require.NoError(o.t, err)
	return run
}

// at wants the run at a step, asking or running.
func (o *outage) at(step string, status runbooks.StepStatus) runbooks.StepState {
	o.t.Helper()
	run := o.run()
	require.True(o.t, run.Live(), "%s", run.Status)
	require.Equal(o.t, step, run.Runbook.Steps[run.Current].ID)
	require.Equal(o.t, status, run.Steps[run.Current].Status, run.Steps[run.Current].Detail)
	return run.Steps[run.Current]
}

func (o *outage) answer(step, word string) {
	o.t.Helper()
	state := o.at(step, o.run().Steps[o.run().Current].Status)
	_, err := o.engine.Answer(o.t.Context(), o.id, runbooks.AnswerRequest{Step: step, Attempt: state.Attempt, Answer: word, Actor: alice})
	require.NoError(o.t, err)
	o.pass(0)
}

func (o *outage) revert(actionRun string) {
	o.t.Helper()
	_, err := o.acting.Revert(o.t.Context(), actionRun, alice)
	require.NoError(o.t, err)
	o.pass(2 * time.Second)
}

// limit is what is laid on the chat route (requests/s); 0 without a limit.
func (o *outage) limit() float64 {
	o.t.Helper()
	for _, l := range o.fleet.Overrides() {
		if strings.HasPrefix(l.Path, "routes.chat.") {
			var value struct {
				RequestsPerSecond float64 `json:"requests_per_second"`
			}
			require.NoError(o.t, json.Unmarshal(l.Value, &value))
			return value.RequestsPerSecond
		}
	}
	return 0
}

// TestSlowModelIsolatesLocatesAndRestores walks the way that INCIDENTS A should have taken.
func TestSlowModelIsolatesLocatesAndRestores(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	began := o.store.Now()
	o.at("limit", runbooks.StepAsking)
	o.answer("limit", "run")
	o.pass(10 * time.Second)
	o.at("limit", runbooks.StepRunning)
	require.InDelta(t, 8, o.limit(), 0)
	o.signals.set("service:errors:ratio_rate1m", 0.01)
	o.pass(2 * time.Second)
	o.answer("enough", "holds")
	o.at("queue", runbooks.StepRunning)
	o.signals.set("service:queue:requests", 4)
	o.pass(20 * time.Second) // evidence is gathered, good or bad
	run := o.run()
	for i, want := range map[int]runbooks.StepStatus{2: runbooks.StepSkipped, 4: runbooks.StepFailed, 5: runbooks.StepFailed, 6: runbooks.StepFailed} {
		require.Equal(t, want, run.Steps[i].Status, run.Runbook.Steps[i].ID)
	}
	require.Equal(t, "4 times the usual (want < 1.5 times the usual)", run.Steps[4].Detail)
	o.answer("change", "undo")
	o.answer("undone", "done")
	o.answer("replicas", "unchanged")
	o.at("recovered", runbooks.StepRunning)
	o.signals.set("service:decode:seconds_per_token", 1)
	o.pass(2 * time.Second)

	first := o.run().Steps[0].ActionRun
	o.revert(first)
	o.answer("release", "reverted")
	o.pass(5 * time.Second)
	o.at("half-window", runbooks.StepRunning)
	require.InDelta(t, 17, o.limit(), 0)
	o.pass(32 * time.Second)
	half := o.run().Steps[slices.IndexFunc(o.run().Runbook.Steps, func(s runbooks.Step) bool { return s.ID == "half" })].ActionRun
	o.revert(half)
	o.answer("open", "reverted")
	o.pass(32 * time.Second)
	run = o.run()
	require.Equal(t, runbooks.StatusSucceeded, run.Status)
	require.InDelta(t, 0, o.limit(), 0)
	require.Empty(t, o.fleet.Overrides())
	require.Less(t, o.store.Now().Sub(began), 3*time.Minute, "short enough for a demo")
}

// Whoever forgets to revert is told who holds the path, and tries again.
func TestSlowModelTellsOfTheLeaseInTheWay(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	o.answer("limit", "run")
	for series, v := range map[string]float64{
		"service:errors:ratio_rate1m": 0.01, "service:queue:requests": 4, "service:decode:seconds_per_token": 1,
		"service:fragmentation:ratio": 0.01, "service:output:tokens_rate1m": 1,
	} {
		o.signals.set(series, v)
	}
	o.pass(10 * time.Second)
	o.answer("enough", "holds")
	o.answer("change", "none")
	o.answer("replicas", "unchanged")
	o.answer("release", "expired")
	state := o.at("half", runbooks.StepFailed)
	require.Contains(t, state.Detail, "is leased by Alice until 2026-03-01T12:30:")
	o.revert(o.run().Steps[0].ActionRun)
	o.answer("half", "retry")
	o.pass(5 * time.Second)
	o.at("half-window", runbooks.StepRunning)
}

// The last resort: the limit alone does not do it.
func TestSlowModelTripsTheBreakerLast(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	o.answer("limit", "run")
	o.pass(3*time.Minute + 2*time.Second)
	require.Equal(t, runbooks.StepFailed, o.run().Steps[0].Status)
	o.answer("enough", "breaker")
	o.answer("breaker", "run")
	o.signals.set("service:errors:ratio_rate1m", 0.02)
	o.pass(5 * time.Second)
	o.at("queue", runbooks.StepRunning)
	require.Len(t, o.fleet.Overrides(), 2)
}

func TestSlowModelWarmsNewReplicasUp(t *testing.T) {
	t.Parallel()
	o := newOutage(t)
	o.answer("limit", "skip")
	o.answer("enough", "holds")
	o.pass(2*time.Minute + 2*time.Second)
	o.answer("queue", "skip")
	o.pass(20 * time.Second)
	o.answer("change", "none")
	o.answer("replicas", "added")
	o.pass(5*time.Minute - time.Second)
	o.at("warm-up", runbooks.StepRunning)
	o.pass(2 * time.Second)
	o.at("recovered", runbooks.StepRunning)
}
