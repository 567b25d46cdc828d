package actions_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/actions"
	"holdfast/actions/actionstest"
)

var errKilled = errors.New("killed")

// TestKillBetweenAnyTwoStepsLosesAndRepeatsNothing drives one run from request
// to end while the process is killed at random calls, and started again over
// the same database. Promise 1 of the design: an acknowledged action is durable
// and takes effect at most once.
func TestKillBetweenAnyTwoStepsLosesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		store := actionstest.NewStore(actionstest.Document(), nil)
		store.SetRole(alice.PersonID, "responder")
		store.Apply("gw-1")
		w := &walk{rt: rt, t: t, store: store, engine: newEngine(t, store)}

		id := w.accept()
		w.until(id, actions.StatusActive)
		layers := store.Overrides()
		require.Len(t, layers, 1)
		ended := actions.EndExpired
		if rapid.Bool().Draw(rt, "revert") {
			ended = actions.EndReverted
			w.revert(id)
		} else {
			store.Advance(16 * time.Minute)
		}
		w.until(id, actions.StatusEnded)

		run := w.find(id)
		require.Equal(t, ended, run.EndReason)
		require.Equal(t, 1, store.Inserted(id), "in force once")
		require.Empty(t, store.Overrides(), "and not left behind")
		require.Equal(t, int64(3), store.Revision(), "one revision in, one out: %v", store.Causes())
		opened, closed := store.Calendar(id)
		require.Equal(t, []int{1, 1}, []int{opened, closed})
		w.oneEventForEachTransition(id)
	})
}

// walk is one random history.
type walk struct {
	rt     *rapid.T
	t      *testing.T
	store  *actionstest.Store
	engine *actions.Engine
	kills  int
}

// arm makes the next calls fail after a random number of them, sometimes.
func (w *walk) arm() {
	w.store.SetFault(nil)
	if w.kills >= 12 || !rapid.Bool().Draw(w.rt, "kill") {
		return
	}
	w.kills++
	left := rapid.IntRange(0, 25).Draw(w.rt, "calls before the kill")
	w.store.SetFault(func(string) error {
		if left--; left < 0 {
			return errKilled // a dead process calls nothing any more
		}
		return nil
	})
}

// restart is a new process over the same database.
func (w *walk) restart() {
	w.store.SetFault(nil)
	w.engine = newEngine(w.t, w.store)
}

// accept repeats the request with one key, as a client does that got no answer.
func (w *walk) accept() string {
	req := actions.Request{
		Action: "trip_breaker", Params: json.RawMessage(`{"dependency":"llm"}`), TTL: 15 * time.Minute,
		Reason: "r", Actor: alice, Key: "one-key-for-all",
	}
	for {
		w.arm()
		run, err := w.engine.Run(context.Background(), req)
		if err == nil || errors.Is(err, actions.ErrDuplicate) {
			w.restart()
			return run.ID
		}
		require.ErrorIs(w.t, err, errKilled)
		w.restart()
	}
}

func (w *walk) revert(id string) {
	for {
		w.arm()
		_, err := w.engine.Revert(context.Background(), id, alice)
		if err == nil || errors.Is(err, actions.ErrWrongState) {
			w.restart()
			return
		}
		require.ErrorIs(w.t, err, errKilled)
		w.restart()
	}
}

func (w *walk) until(id string, status actions.Status) {
	for range 200 {
		if w.find(id).Status == status {
			return
		}
		w.arm()
		if _, err := w.engine.Tick(context.Background()); err != nil {
			require.ErrorIs(w.t, err, errKilled)
			w.restart()
		}
		w.store.SetFault(nil)
		if rapid.Bool().Draw(w.rt, "gateway applies") {
			w.store.Apply("gw-1")
		}
		w.store.Advance(time.Second)
	}
	w.rt.Fatalf("run is %s and never became %s", w.find(id).Status, status)
}

func (w *walk) find(id string) actions.Run {
	run, err := w.engine.Find(context.Background(), id)
	require.NoError(w.t, err)
	return run
}

func (w *walk) oneEventForEachTransition(id string) {
	kinds := w.store.Kinds(id)
	for _, once := range []actions.EventKind{
		actions.EventAccepted, actions.EventExecuted, actions.EventEnforced, actions.EventReverting, actions.EventEnded,
	} {
		n := 0
		for _, k := range kinds {
			if k == once {
				n++
			}
		}
		require.Equal(w.t, 1, n, "%s in %v", once, kinds)
	}
	require.True(w.t, slices.IsSortedFunc([]int{
		slices.Index(kinds, actions.EventAccepted), slices.Index(kinds, actions.EventExecuted), slices.Index(kinds, actions.EventEnforced),
		slices.Index(kinds, actions.EventReverting), slices.Index(kinds, actions.EventEnded),
	}, func(a, b int) int { return a - b }), "order of %v", kinds)
}

// TestKillAtEachCallInTurn is the same without chance: one kill at the n-th call, for every n.
func TestKillAtEachCallInTurn(t *testing.T) {
	t.Parallel()
	for n := range 60 {
		f := newFixture(t, "gw-1")
		left := n
		f.store.SetFault(func(string) error {
			if left--; left < 0 {
				return errKilled
			}
			return nil
		})
		req := f.request("trip_breaker", `{"dependency":"llm"}`)
		run, err := f.engine.Run(context.Background(), req)
		if err == nil {
			_, err = f.engine.Tick(context.Background())
		}
		if left < 0 {
			require.ErrorIs(t, err, errKilled)
		}
		f.store.SetFault(nil)
		f.engine = newEngine(t, f.store)
		again, err := f.engine.Run(context.Background(), req)
		if err != nil {
			require.ErrorIs(t, err, actions.ErrDuplicate)
		}
		if run.ID != "" {
			require.Equal(t, run.ID, again.ID)
		}
		for range 3 {
			f.tick(10 * time.Second) // past the time for which a failed run is set aside
			f.apply("gw-1")
		}
		require.Equal(t, actions.StatusActive, f.run(again.ID).Status, "kill at call %d", n)
		require.Equal(t, 1, f.store.Inserted(again.ID))
		require.Equal(t, int64(2), f.store.Revision())
	}
}
