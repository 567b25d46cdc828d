package runbooks_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/actions"
	"holdfast/runbooks"
	"holdfast/runbooks/runbookstest"
)

var (
	alice = actions.Actor{PersonID: "p-alice", Name: "Alice", Channel: "console"}
	bob   = actions.Actor{PersonID: "p-bob", Name: "Bob", Channel: "slack"}
)

// short has an action, a check, a decision, an automatic action, a wait and a note.
const short = `id: short
title: Short
summary: A short one.
params:
  - {name: service, kind: service, required: true, help: Which one.}
  - {name: rate, kind: number, default: "8", help: How many.}
steps:
  - id: limit
    phase: isolate
    title: Limit to ${rate}
    kind: action
    command: Limit it.
    expect: Less.
    action: set_rate_limit
    params: {target: global, requests_per_second: "${rate}"}
    ttl: 10m
    criterion: {query: 'errors{service="${service}"}', is: "<", value: 0.05, unit: ratio}
    timeout: 1m
  - id: queue
    phase: isolate
    title: Queue
    kind: check
    command: Look.
    expect: Short.
    criterion: {query: 'queue{service="${service}"}', is: "<", value: 20}
    timeout: 30s
  - id: found
    phase: locate
    title: Found?
    kind: decision
    command: Look.
    expect: A change.
    question: Was it found?
    choices:
      - {id: found, label: "Yes"}
      - {id: lost, label: "No", goto: after}
  - id: trip
    phase: locate
    title: Trip
    kind: action
    command: Trip it.
    expect: Nothing gets there.
    action: trip_breaker
    params: {dependency: llm}
    automatic: true
    on_failure: continue
  - id: warm-up
    phase: restore
    title: Warm up
    kind: wait
    command: Wait.
    expect: Warm.
    wait: 5m
  - id: after
    phase: restore
    title: After
    kind: note
    command: Read.
    expect: Nothing.
    text: Write it down.
`

// fixture is an engine over a store in memory, moved by hand.
type fixture struct {
	t       testing.TB
	store   *runbookstest.Store
	actions *runbookstest.Actions
	metrics *runbookstest.Metrics
	library *runbooks.Library
	engine  *runbooks.Engine
	keys    int
}

// newFixture has alice as responder, bob as viewer, and the runbook short or those given.
func newFixture(t testing.TB, files ...string) *fixture {
	t.Helper()
	if len(files) == 0 {
		files = []string{"short.yaml", short}
	}
	store := runbookstest.NewStore(nil)
	store.SetRole(alice.PersonID, "responder")
	store.SetRole(bob.PersonID, "viewer")
	f := &fixture{
		t: t, store: store, metrics: &runbookstest.Metrics{}, library: load(t, files...),
		actions: runbookstest.NewActions(store.Now, specs(t)...),
	}
	f.restart()
	return f
}

// restart is a new process over the same database.
func (f *fixture) restart() {
	f.t.Helper()
	e, err := runbooks.NewEngine(runbooks.Options{Store: f.store, Actions: f.actions, Metrics: f.metrics, Library: f.library})
	require.NoError(f.t, err)
	f.engine = e
}

func (f *fixture) request() runbooks.StartRequest {
	f.keys++
	return runbooks.StartRequest{
		Runbook: "short", Params: map[string]string{"service": "llm"}, IncidentID: "inc1", Actor: alice, Key: fmt.Sprintf("key-%08d", f.keys),
	}
}

func (f *fixture) launch() runbooks.Run {
	f.t.Helper()
	run, err := f.engine.Launch(context.Background(), f.request())
	require.NoError(f.t, err)
	f.tick(0)
	return f.run(run.ID)
}

// tick moves the clock and then everything that is due.
func (f *fixture) tick(d time.Duration) {
	f.t.Helper()
	f.store.Advance(d)
	_, err := f.engine.Tick(context.Background())
	require.NoError(f.t, err)
}

func (f *fixture) run(id string) runbooks.Run {
	f.t.Helper()
	run, err := f.engine.Find(context.Background(), id)
	require.NoError(f.t, err)
	return run
}

// answer answers the step in progress and moves on.
func (f *fixture) answer(id, answer string) runbooks.Run {
	f.t.Helper()
	run := f.run(id)
	_, err := f.engine.Answer(context.Background(), id, runbooks.AnswerRequest{
		Step: run.Runbook.Steps[run.Current].ID, Attempt: run.Steps[run.Current].Attempt, Answer: answer, Actor: alice,
	})
	require.NoError(f.t, err)
	f.tick(0)
	return f.run(id)
}
