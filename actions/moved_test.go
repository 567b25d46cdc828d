package actions_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/actions"
	"holdfast/actions/actionstest"
	"holdfast/actions/builtin"
)

// meddled is an action during whose planning something else happens, from the second time on.
type meddled struct {
	actions.Action
	mu      sync.Mutex
	planned int
	meddle  func()
}

func (m *meddled) Plan(ctx context.Context, params json.RawMessage, snap actions.Snapshot) (actions.Plan, error) {
	plan, err := m.Action.Plan(ctx, params, snap)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.planned++; m.planned == 2 {
		m.meddle()
	}
	return plan, err
}

func TestPlanMadeOnAnOlderPolicyIsNotExecuted(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "gw-1")
	without := actionstest.Document()
	delete(without.Dependencies, "llm")
	delete(without.Pools, "llm")
	delete(without.Routes, "chat")
	registry, err := actions.NewRegistry(&meddled{Action: builtin.TripBreaker(), meddle: func() { f.store.SetBase(without) }})
	require.NoError(t, err)
	f.engine, err = actions.NewEngine(actions.Options{Store: f.store, Registry: registry})
	require.NoError(t, err)
	run := f.trip()
	f.tick(0)
	run = f.run(run.ID)
	require.Equal(t, actions.EndInvalid, run.EndReason, "the dependency went away while it was planned")
	require.Empty(t, f.store.Overrides())
}

func TestTwoServersTickAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "gw-1")
	run := f.trip()
	engines := []*actions.Engine{newEngine(t, f.store), newEngine(t, f.store), newEngine(t, f.store)}
	var wg sync.WaitGroup
	for _, e := range engines {
		wg.Go(func() {
			for range 5 {
				if _, err := e.Tick(context.Background()); err != nil {
					t.Error(err)
				}
				f.store.Apply("gw-1")
			}
		})
	}
	wg.Wait()
	require.Equal(t, actions.StatusActive, f.run(run.ID).Status)
	require.Equal(t, 1, f.store.Inserted(run.ID))
	require.Equal(t, []actions.EventKind{actions.EventAccepted, actions.EventExecuted, actions.EventEnforced}, f.store.Kinds(run.ID))
}
