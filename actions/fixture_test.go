package actions_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/actions"
	"holdfast/actions/actionstest"
	"holdfast/actions/builtin"
)

// fixture is an engine over a store in memory, moved by hand.
type fixture struct {
	t      testing.TB
	store  *actionstest.Store
	engine *actions.Engine
	keys   int
}

var (
	alice = actions.Actor{PersonID: "p-alice", Name: "Alice", Channel: "console"}
	bob   = actions.Actor{PersonID: "p-bob", Name: "Bob", Channel: "slack"}
)

func newEngine(t testing.TB, store actions.Store) *actions.Engine {
	t.Helper()
	registry, err := actions.NewRegistry(builtin.All()...)
	require.NoError(t, err)
	e, err := actions.NewEngine(actions.Options{Store: store, Registry: registry})
	require.NoError(t, err)
	return e
}

// newFixture has alice as responder, bob as viewer, and the named gateways, which hold revision 1.
func newFixture(t testing.TB, gateways ...string) *fixture {
	t.Helper()
	store := actionstest.NewStore(actionstest.Document(), nil)
	store.SetRole(alice.PersonID, "responder")
	store.SetRole(bob.PersonID, "viewer")
	f := &fixture{t: t, store: store, engine: newEngine(t, store)}
	f.apply(gateways...)
	return f
}

func (f *fixture) apply(gateways ...string) {
	for _, g := range gateways {
		f.store.Apply(g)
	}
}

func (f *fixture) request(action, params string) actions.Request {
	f.keys++
	return actions.Request{
		Action: action, Params: json.RawMessage(params), TTL: 15 * time.Minute, Reason: "errors at 23 %",
		IncidentID: "inc1", Actor: alice, Key: fmt.Sprintf("key-%08d", f.keys),
	}
}

func (f *fixture) trip() actions.Run {
	f.t.Helper()
	run, err := f.engine.Run(context.Background(), f.request("trip_breaker", `{"dependency":"llm"}`))
	require.NoError(f.t, err)
	return run
}

// tick moves the clock and then everything that is due.
func (f *fixture) tick(d time.Duration) {
	f.t.Helper()
	f.store.Advance(d)
	_, err := f.engine.Tick(context.Background())
	require.NoError(f.t, err)
}

func (f *fixture) run(id string) actions.Run {
	f.t.Helper()
	run, err := f.engine.Find(context.Background(), id)
	require.NoError(f.t, err)
	return run
}

// active trips llm and brings it into force on gw-1.
func (f *fixture) active() actions.Run {
	f.t.Helper()
	run := f.trip()
	f.tick(0)
	f.apply("gw-1")
	f.tick(0)
	run = f.run(run.ID)
	require.Equal(f.t, actions.StatusActive, run.Status)
	return run
}
