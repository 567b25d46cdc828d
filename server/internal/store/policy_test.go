package store_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"holdfast/actions"
	"holdfast/gpuguard/policy"
	"holdfast/server/fleet"
	"holdfast/server/internal/store"
	"holdfast/server/internal/store/storetest"
)

// base is a small valid policy with two dependencies.
const base = `{"version":1,
 "dependencies":{"llm":{"service":"llm-serving"},"search":{}},
 "pools":{"main":{"dependency":"llm","endpoints":{"a":{"url":"http://127.0.0.1:9101"}}},
          "index":{"dependency":"search","endpoints":{"a":{"url":"http://127.0.0.1:9102"}}}},
 "routes":{"chat":{"match":{"path_prefix":"/v1/chat"},"pool":"main"},
           "find":{"match":{"path_prefix":"/v1/find"},"pool":"index"}}}`

func override(id, dependency string, expires time.Time) policy.Override {
	return policy.Override{
		ID: id, Path: policy.BreakerForcedPath(dependency), Value: json.RawMessage(`"open"`),
		Owner: "Alice", Reason: "it burns", Expires: expires,
	}
}

func initPolicy(t *testing.T, db *storetest.DB) {
	t.Helper()
	inTx(t, db, func(tx *store.Tx) { require.NoError(t, tx.InitPolicy("lin1", true, json.RawMessage(base))) })
}

func TestPolicyBeginsWithRevisionOne(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		inTx(t, db, func(tx *store.Tx) {
			_, err := tx.PolicyHead()
			require.ErrorIs(t, err, fleet.ErrNotFound)
			_, err = tx.PolicySnapshot()
			require.ErrorIs(t, err, fleet.ErrNotFound)
			_, err = tx.BumpRevision("x", "y")
			require.ErrorIs(t, err, fleet.ErrNotFound)
			require.ErrorIs(t, tx.SetBase(json.RawMessage(base)), fleet.ErrNotFound)
			require.ErrorIs(t, tx.ConfirmLineage(), fleet.ErrNotFound)
		})
		initPolicy(t, db)
		view(t, db, func(tx *store.Tx) {
			head, err := tx.PolicyHead()
			require.NoError(t, err)
			require.Equal(t, fleet.Head{
				Lineage: "lin1", LineageConfirmed: true, Revision: 1, Base: json.RawMessage(base), Overrides: []policy.Override{},
			}, head)
			history, err := tx.Revisions(0, 10)
			require.NoError(t, err)
			require.Len(t, history, 1)
			require.Equal(t, t0, history[0].At)
		})
		inTx(t, db, func(tx *store.Tx) {
			require.ErrorIs(t, tx.InitPolicy("lin1", true, json.RawMessage(base)), fleet.ErrInvalid, "the same lineage again")
		})
		inTx(t, db, func(tx *store.Tx) {
			_, err := tx.BumpRevision("edit", "Alice")
			require.NoError(t, err)
			require.NoError(t, tx.InitPolicy("lin2", false, json.RawMessage(base)))
			head, err := tx.PolicyHead()
			require.NoError(t, err)
			require.Equal(t, "lin2", head.Lineage)
			require.EqualValues(t, 1, head.Revision)
			require.False(t, head.LineageConfirmed)
			require.NoError(t, tx.ConfirmLineage())
			head, err = tx.PolicyHead()
			require.NoError(t, err)
			require.True(t, head.LineageConfirmed)
			history, err := tx.Revisions(0, 10)
			require.NoError(t, err)
			require.Len(t, history, 1, "the history is that of the current lineage")
		})
	})
}

func TestRevisionHoldsTheEffectivePolicy(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		initPolicy(t, db)
		fleetWake, runWake := db.Fleet().Wake(), db.Actions().Wake()
		forced := func(raw json.RawMessage) policy.ForcedState {
			document, err := decodeEffective(raw)
			require.NoError(t, err)
			return document.Dependencies["llm"].Breaker.Forced
		}
		inTx(t, db, func(tx *store.Tx) {
			require.NoError(t, tx.InsertOverride(override("run1", "llm", t0.Add(time.Minute))))
			revision, err := tx.BumpRevision("run run1 executed", "Alice")
			require.NoError(t, err)
			require.EqualValues(t, 2, revision)
			require.False(t, woken(fleetWake), "not before the commit")
		})
		require.True(t, woken(fleetWake))
		require.True(t, woken(runWake))
		inTx(t, db, func(tx *store.Tx) {
			gone, err := tx.DeleteOverride("run1")
			require.NoError(t, err)
			require.True(t, gone)
			gone, err = tx.DeleteOverride("run1")
			require.NoError(t, err)
			require.False(t, gone)
			_, err = tx.BumpRevision("reverted", "Bob")
			require.NoError(t, err)

			history, err := tx.Revisions(0, 10)
			require.NoError(t, err)
			require.Len(t, history, 3)
			require.Equal(t, policy.ForcedNone, forced(history[0].Effective))
			require.Equal(t, policy.ForcedOpen, forced(history[1].Effective))
			require.Equal(t, "run run1 executed", history[1].Cause)
			older, err := tx.Revisions(2, 10)
			require.NoError(t, err)
			require.Len(t, older, 1)
			require.EqualValues(t, 1, older[0].Revision)
		})
	})
}

// decodeEffective reads a merged document, in which forced states are allowed.
func decodeEffective(raw json.RawMessage) (policy.Document, error) {
	var d policy.Document
	err := json.Unmarshal(raw, &d)
	return d, err
}

func TestRevisionThatDoesNotFitIsRefused(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		initPolicy(t, db)
		try := func(fn func(tx *store.Tx) error) error {
			return db.InTx(t.Context(), func(tx *store.Tx) error {
				if err := fn(tx); err != nil {
					return err
				}
				_, err := tx.BumpRevision("x", "y")
				return err
			})
		}
		err := try(func(tx *store.Tx) error { return tx.SetBase(json.RawMessage(`{"version":1,"surprise":true}`)) })
		require.ErrorIs(t, err, fleet.ErrInvalid)
		require.ErrorContains(t, err, "surprise")
		err = try(func(tx *store.Tx) error { return tx.InsertOverride(override("r", "nobody", t0.Add(time.Hour))) })
		require.ErrorIs(t, err, fleet.ErrInvalid)
		require.ErrorContains(t, err, "nobody")
		view(t, db, func(tx *store.Tx) {
			head, err := tx.PolicyHead()
			require.NoError(t, err)
			require.EqualValues(t, 1, head.Revision)
			require.Empty(t, head.Overrides)
		})
	})
}

func TestOneLeaseForAPath(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		initPolicy(t, db)
		expires := t0.Add(time.Minute)
		inTx(t, db, func(tx *store.Tx) {
			require.NoError(t, tx.InsertOverride(override("run1-1", "llm", expires)))
			err := tx.InsertOverride(override("run2", "llm", expires))
			var leased *actions.LeasedError
			require.ErrorAs(t, err, &leased)
			require.ErrorIs(t, err, actions.ErrPathLeased)
			require.Equal(t, actions.LeaseRef{
				RunID: "run1", Path: "dependencies.llm.breaker.forced", Owner: "Alice", Reason: "it burns", Expires: expires,
			}, leased.Lease)
			require.NoError(t, tx.InsertOverride(override("run2", "search", expires)), "the transaction goes on")

			require.NoError(t, tx.ExtendOverride("run1-1", expires.Add(time.Minute)))
			require.ErrorIs(t, tx.ExtendOverride("nobody", expires), actions.ErrNotFound)
			head, err := tx.PolicyHead()
			require.NoError(t, err)
			require.Len(t, head.Overrides, 2)
			require.Equal(t, expires.Add(time.Minute), head.Overrides[0].Expires)
			require.InDelta(t, 120, head.Overrides[0].RemainingSeconds, 1e-9)
		})
		db.Advance(t, time.Minute)
		view(t, db, func(tx *store.Tx) {
			head, err := tx.PolicyHead()
			require.NoError(t, err)
			require.Len(t, head.Overrides, 1, "the lease that ended is not in force")
			snapshot, err := tx.PolicySnapshot()
			require.NoError(t, err)
			require.Len(t, snapshot.Overrides, 2, "the engine sees it until it is removed")
			require.Equal(t, policy.ForcedOpen, snapshot.Effective.Dependencies["llm"].Breaker.Forced)
			require.Equal(t, policy.ForcedNone, snapshot.Effective.Dependencies["search"].Breaker.Forced)
		})
	})
}

func TestParallelLeasesOfOnePathHaveOneWinner(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		initPolicy(t, db)
		errs := parallel(12, func(i int) error {
			return db.InTx(t.Context(), func(tx *store.Tx) error {
				if err := tx.InsertOverride(override(name("run", i), "llm", t0.Add(time.Hour))); err != nil {
					return err
				}
				_, err := tx.BumpRevision("executed", "Alice")
				return err
			})
		})
		won := 0
		for _, err := range errs {
			var leased *actions.LeasedError
			if err == nil {
				won++
				continue
			}
			require.ErrorAs(t, err, &leased)
			require.NotEmpty(t, leased.Lease.RunID)
		}
		require.Equal(t, 1, won)
		view(t, db, func(tx *store.Tx) {
			head, err := tx.PolicyHead()
			require.NoError(t, err)
			require.EqualValues(t, 2, head.Revision)
		})
	})
}

// The newest revision has every layer that was committed before it: a second
// writer waits for the first and then looks again.
func TestConcurrentRevisionsLoseNoLayer(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.Postgres)
	db.Freeze(t, t0)
	initPolicy(t, db)
	lease := func(dependency string) func(tx *store.Tx) error {
		return func(tx *store.Tx) error {
			if err := tx.InsertOverride(override("run-of-"+dependency, dependency, t0.Add(time.Hour))); err != nil {
				return err
			}
			_, err := tx.BumpRevision("executed", "Alice")
			return err
		}
	}
	second := make(chan error, 1)
	inTx(t, db, func(tx *store.Tx) {
		require.NoError(t, lease("llm")(tx))
		go func() { second <- db.InTx(t.Context(), lease("search")) }()
		require.Eventually(t, func() bool {
			return len(lines(t, db, "SELECT 'waits' FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()")) == 1
		}, 20*time.Second, 10*time.Millisecond)
	})
	require.NoError(t, <-second)
	view(t, db, func(tx *store.Tx) {
		history, err := tx.Revisions(0, 1)
		require.NoError(t, err)
		require.EqualValues(t, 3, history[0].Revision)
		document, err := decodeEffective(history[0].Effective)
		require.NoError(t, err)
		require.Equal(t, policy.ForcedOpen, document.Dependencies["llm"].Breaker.Forced)
		require.Equal(t, policy.ForcedOpen, document.Dependencies["search"].Breaker.Forced)
	})
}

func TestGateways(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		initPolicy(t, db)
		g := fleet.Gateway{
			Name: "gw-1", Instance: "x", Version: "v1", Lineage: "lin1", Revision: 1, Result: policy.AckApplied,
			Error: "routes.chat: bad", RejectedRevision: 9, ApplySeconds: 0.012, AckedAt: t0, LastHeardAt: t0,
			State: policy.State{
				Breakers: map[string]policy.BreakerState{"llm": {State: "open", FailureRate: 0.5, Calls: 20}},
				Outcomes: map[string]map[policy.Outcome]int64{"llm": {policy.OutcomeOK: 12}},
				InFlight: 3, ActiveOverrides: []string{"run1"},
			},
			Prior:   policy.State{InFlight: 1},
			PriorAt: t0.Add(-time.Minute), StateAt: t0,
		}
		wake := db.Actions().Wake()
		inTx(t, db, func(tx *store.Tx) {
			require.NoError(t, tx.SaveGateway(g))
			got, err := tx.Gateway("gw-1")
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(g, got, cmpopts.EquateEmpty()))
			_, err = tx.Gateway("gw-9")
			require.ErrorIs(t, err, fleet.ErrNotFound)
		})
		require.True(t, woken(wake), "an acknowledgement can let a run move on")

		live := func() bool {
			var out bool
			view(t, db, func(tx *store.Tx) {
				snapshot, err := tx.PolicySnapshot()
				require.NoError(t, err)
				require.Len(t, snapshot.Gateways, 1)
				require.Equal(t, "open", snapshot.Gateways[0].State.Breakers["llm"].State)
				require.Equal(t, g.PriorAt, snapshot.Gateways[0].PriorAt)
				out = snapshot.Gateways[0].Live
			})
			return out
		}
		db.Advance(t, 15*time.Second-time.Microsecond)
		require.True(t, live())
		db.Advance(t, time.Microsecond)
		require.False(t, live(), "the membership lease is over")

		inTx(t, db, func(tx *store.Tx) {
			n, err := tx.DeleteGatewaysUnheard(t0)
			require.NoError(t, err)
			require.Zero(t, n)
			n, err = tx.DeleteGatewaysUnheard(t0.Add(time.Microsecond))
			require.NoError(t, err)
			require.Equal(t, 1, n)
			all, err := tx.Gateways()
			require.NoError(t, err)
			require.Empty(t, all)
		})
	})
}

var errUndo = errors.New("undo")

func TestNothingIsWokenByARollback(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		initPolicy(t, db)
		wake := db.Fleet().Wake()
		events, cancel := db.Events().Subscribe()
		defer cancel()
		err := db.InTx(t.Context(), func(tx *store.Tx) error {
			_, err := tx.BumpRevision("x", "y")
			require.NoError(t, err)
			return errUndo
		})
		require.ErrorIs(t, err, errUndo)
		require.False(t, woken(wake))
		require.Empty(t, events)
	})
}
