package store_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"holdfast/actions"
	"holdfast/gpuguard/signals"
	"holdfast/runbooks"
	"holdfast/server/audit"
	"holdfast/server/incident"
	"holdfast/server/internal/store"
	"holdfast/server/internal/store/storetest"
)

func newRunbookRun(id string) runbooks.Run {
	return runbooks.Run{
		ID: id, Key: "key-" + id, IncidentID: "i1", Status: runbooks.StatusRunning,
		Runbook: runbooks.Runbook{
			ID: "slow-model", Version: "v1", Title: "The model answers slowly", Summary: "s", Owner: "inference",
			Params: []runbooks.Param{{Name: "dependency", Kind: "dependency", Required: true, Help: "h", FromLabels: []string{"dependency"}}},
			Steps: []runbooks.Step{
				{
					ID: "trip", Phase: runbooks.PhaseIsolate, Title: "Trip ${dependency}", Kind: runbooks.StepAction, Command: "c", Expect: "e",
					Criterion: &signals.Criterion{Query: "up", Is: signals.Below, Value: 0.05, Unit: "ratio"}, Timeout: 90 * time.Second,
					OnFailure: runbooks.FailAsk, Action: "trip_breaker", Params: map[string]string{"dependency": "${dependency}"}, TTL: 15 * time.Minute,
				},
				{
					ID: "where", Phase: runbooks.PhaseLocate, Title: "Where", Kind: runbooks.StepDecision, Command: "c", Expect: "e", OnFailure: runbooks.FailStop,
					Question: "Which?", Choices: []runbooks.Choice{{ID: "gpu", Label: "GPU", Goto: "end"}, {ID: "code", Label: "<code> & \"quotes\""}},
				},
				{ID: "wait", Phase: runbooks.PhaseRestore, Title: "Wait", Kind: runbooks.StepWait, Command: "c", Expect: "e", OnFailure: runbooks.FailContinue, Wait: time.Minute},
			},
		},
		Params:    map[string]string{"dependency": "llm"},
		StartedBy: actions.Actor{PersonID: "p1", Name: "Alice", Channel: "console"},
		Steps: []runbooks.StepState{
			{Status: runbooks.StepPending, Attempt: 1}, {Status: runbooks.StepPending, Attempt: 1}, {Status: runbooks.StepPending, Attempt: 1},
		},
		StartedAt: t0, NextAt: t0,
	}
}

func TestRunbookRunRoundTripAndCompareAndSet(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		run := newRunbookRun("r1")
		inTx(t, db, func(tx *store.Tx) {
			require.NoError(t, tx.InsertRunbookRun(&run))
			require.EqualValues(t, 1, run.Version)
			got, err := tx.RunbookRun("r1")
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(run, got))

			stale := run
			value := 0.034
			run.Status, run.Current, run.NextAt = runbooks.StatusWaiting, 1, time.Time{}
			run.Steps = []runbooks.StepState{
				{
					Status: runbooks.StepPassed, Attempt: 2, StartedAt: t0, Deadline: t0.Add(90 * time.Second), EndedAt: t0.Add(1234 * time.Microsecond),
					ActionRun: "a1", Value: &value, Detail: "0.034 < 0.05", PressedBy: &run.StartedBy,
				},
				{Status: runbooks.StepAsking, Attempt: 1, StartedAt: t0},
				run.Steps[2],
			}
			require.NoError(t, tx.SaveRunbookRun(&run))
			require.EqualValues(t, 2, run.Version)
			require.ErrorIs(t, tx.SaveRunbookRun(&stale), runbooks.ErrStale)
			require.EqualValues(t, 1, stale.Version, "a lost save changes nothing")
			got, err = tx.RunbookRun("r1")
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(run, got))

			run.Status, run.Current, run.EndedAt, run.EndedBy = runbooks.StatusCancelled, 3, t0.Add(time.Hour), "Bob"
			require.NoError(t, tx.SaveRunbookRun(&run))
			byKey, err := tx.RunbookRunByKey("key-r1")
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(run, byKey))

			absent := newRunbookRun("r9")
			require.ErrorIs(t, tx.SaveRunbookRun(&absent), runbooks.ErrNotFound)
			_, err = tx.RunbookRun("r9")
			require.ErrorIs(t, err, runbooks.ErrNotFound)
			_, err = tx.RunbookRunByKey("key-r9")
			require.ErrorIs(t, err, runbooks.ErrNotFound)
		})
	})
}

func TestOneRunbookRunForAKey(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		errs := parallel(10, func(i int) error {
			run := newRunbookRun(name("r", i))
			run.Key = "one press"
			return db.InTx(t.Context(), func(tx *store.Tx) error { return tx.InsertRunbookRun(&run) })
		})
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
				continue
			}
			require.ErrorIs(t, err, runbooks.ErrDuplicate)
		}
		require.Equal(t, 1, won)
	})
}

// After a refused key the transaction goes on, on either database.
func TestARefusedRunbookKeyLeavesTheTransaction(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		first, second := newRunbookRun("r1"), newRunbookRun("r2")
		second.Key = first.Key
		inTx(t, db, func(tx *store.Tx) {
			require.NoError(t, tx.InsertRunbookRun(&first))
			require.ErrorIs(t, tx.InsertRunbookRun(&second), runbooks.ErrDuplicate)
			got, err := tx.RunbookRunByKey(first.Key)
			require.NoError(t, err)
			require.Equal(t, "r1", got.ID)
		})
	})
}

// The database itself refuses rows that would never move again or never end.
func TestTheSchemaRefusesImpossibleRunbookRuns(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		for what, spoil := range map[string]func(*runbooks.Run){
			"a status nobody knows":   func(r *runbooks.Run) { r.Status = "paused" },
			"ended without a time":    func(r *runbooks.Run) { r.Status, r.NextAt = runbooks.StatusFailed, time.Time{} },
			"live with an end":        func(r *runbooks.Run) { r.EndedAt, r.NextAt = t0, time.Time{} },
			"ended and due":           func(r *runbooks.Run) { r.Status, r.EndedAt = runbooks.StatusSucceeded, t0 },
			"a step before the first": func(r *runbooks.Run) { r.Current = -1 },
		} {
			run := newRunbookRun("r1")
			spoil(&run)
			require.Error(t, db.InTx(t.Context(), func(tx *store.Tx) error { return tx.InsertRunbookRun(&run) }), what)
		}
	})
}

func runbookRunIDs(list []runbooks.Run, err error) []string {
	if err != nil {
		return []string{err.Error()}
	}
	ids := make([]string, len(list))
	for i, r := range list {
		ids[i] = r.ID
	}
	return ids
}

func TestRunbookRunLists(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		inTx(t, db, func(tx *store.Tx) {
			for i, status := range []runbooks.Status{
				runbooks.StatusRunning, runbooks.StatusWaiting, runbooks.StatusSucceeded, runbooks.StatusFailed, runbooks.StatusCancelled,
			} {
				run := newRunbookRun(name("r", i))
				run.Status, run.StartedAt, run.NextAt = status, t0.Add(time.Duration(i)*time.Second), t0.Add(time.Duration(1-i)*time.Second)
				if i%2 == 1 {
					run.IncidentID = ""
				}
				if !run.Live() {
					run.NextAt, run.EndedAt = time.Time{}, t0
				}
				require.NoError(t, tx.InsertRunbookRun(&run))
			}
			list := func(f runbooks.Filter) []string { return runbookRunIDs(tx.RunbookRuns(f)) }
			require.Equal(t, []string{"r-04", "r-03", "r-02", "r-01", "r-00"}, list(runbooks.Filter{}))
			require.Equal(t, []string{"r-01", "r-00"}, list(runbooks.Filter{Live: true}))
			require.Equal(t, []string{"r-04", "r-02", "r-00"}, list(runbooks.Filter{IncidentID: "i1"}))
			require.Equal(t, []string{"r-00"}, list(runbooks.Filter{IncidentID: "i1", Live: true}))
			require.Equal(t, []string{"r-02", "r-01"}, list(runbooks.Filter{Before: t0.Add(3 * time.Second), Limit: 2}))
			require.Equal(t, []string{"r-01"}, runbookRunIDs(tx.DueRunbookRuns(10)))
		})
		db.Advance(t, time.Second)
		inTx(t, db, func(tx *store.Tx) {
			require.Equal(t, []string{"r-01", "r-00"}, runbookRunIDs(tx.DueRunbookRuns(10)), "longest due first; one that ended is never due")
			require.Equal(t, []string{"r-01"}, runbookRunIDs(tx.DueRunbookRuns(1)))
		})
	})
}

// Two servers never work on one run at the same moment.
func TestDueRunbookRunsSkipWhatAnotherServerHolds(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.Postgres)
	db.Freeze(t, t0)
	inTx(t, db, func(tx *store.Tx) {
		for i := range 4 {
			run := newRunbookRun(name("r", i))
			require.NoError(t, tx.InsertRunbookRun(&run))
		}
	})
	second := db.Second(t)
	inTx(t, db, func(tx *store.Tx) {
		require.Equal(t, []string{"r-00", "r-01"}, runbookRunIDs(tx.DueRunbookRuns(2)))
		inTx(t, second, func(other *store.Tx) {
			require.Equal(t, []string{"r-02", "r-03"}, runbookRunIDs(other.DueRunbookRuns(10)))
		})
	})
}

// The walks of the ticker and of the card read indexes, however long the history.
func TestRunbookRunsAreFoundByIndex(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.SQLite)
	for query, index := range map[string]string{
		"SELECT * FROM runbook_runs WHERE next_at <= 5 ORDER BY next_at, id":                                     "runbook_runs_due",
		"SELECT * FROM runbook_runs WHERE status IN ('running', 'waiting') ORDER BY started_at DESC, id DESC":    "runbook_runs_live",
		"SELECT * FROM runbook_runs WHERE incident_id = 'i1' AND incident_id <> '' ORDER BY started_at DESC":     "runbook_runs_incident",
		"UPDATE runbook_runs SET next_at = 5 WHERE waits_for = 'a1' AND waits_for <> '' AND next_at IS NOT NULL": "runbook_runs_waits",
		"SELECT * FROM runbook_runs WHERE started_at < 5 ORDER BY started_at DESC, id DESC LIMIT 10":             "runbook_runs_newest",
	} {
		require.Contains(t, queryPlan(t, rawDB(t, db), query), index, query)
	}
}

func queryPlan(t *testing.T, conn *sql.DB, query string) (plan string) {
	t.Helper()
	rows, err := conn.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query)
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	for rows.Next() {
		var id, parent, unused int
		var detail string
		require.NoError(t, rows.Scan(&id, &parent, &unused, &detail))
		plan += detail + "\n"
	}
	require.NoError(t, rows.Err())
	return plan
}

func TestRunbookRunWakes(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		port := db.Runbooks()
		wake := port.Wake()
		run := newRunbookRun("r1")
		inTx(t, db, func(tx *store.Tx) { require.NoError(t, tx.InsertRunbookRun(&run)) })
		require.True(t, woken(wake))
		require.False(t, woken(port.Wake()), "one channel for one port")
		run.NextAt = t0.Add(time.Second)
		inTx(t, db, func(tx *store.Tx) { require.NoError(t, tx.SaveRunbookRun(&run)) })
		require.False(t, woken(wake), "not due yet")
		run.NextAt = t0
		inTx(t, db, func(tx *store.Tx) { require.NoError(t, tx.SaveRunbookRun(&run)) })
		require.True(t, woken(wake))
		require.NoError(t, port.View(t.Context(), func(tx runbooks.Tx) error {
			_, err := tx.RunbookRun("r1")
			return err
		}))
	})
}

// A runbook that waits for an action sees it move with the same commit.
func TestAnActionRunThatMovesMakesItsRunbookRunDue(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		wake := db.Runbooks().Wake()
		action, other := newRun("a1"), newRun("a2")
		waiting, elsewhere := newRunbookRun("r1"), newRunbookRun("r2")
		waiting.Steps[0].ActionRun, waiting.NextAt = "a1", t0.Add(time.Minute)
		elsewhere.Steps[0].ActionRun, elsewhere.NextAt, elsewhere.Current = "a1", t0.Add(time.Minute), 1
		inTx(t, db, func(tx *store.Tx) {
			require.NoError(t, tx.InsertRun(&action))
			require.NoError(t, tx.InsertRun(&other))
			require.NoError(t, tx.InsertRunbookRun(&waiting))
			require.NoError(t, tx.InsertRunbookRun(&elsewhere))
		})
		require.True(t, woken(wake))
		due := func() (ids []string) {
			inTx(t, db, func(tx *store.Tx) { ids = runbookRunIDs(tx.DueRunbookRuns(10)) })
			return ids
		}
		inTx(t, db, func(tx *store.Tx) { require.NoError(t, tx.SaveRun(&other)) })
		require.False(t, woken(wake), "nobody waits for that one")
		require.Empty(t, due())
		require.Error(t, db.InTx(t.Context(), func(tx *store.Tx) error {
			copied := action
			require.NoError(t, tx.SaveRun(&copied))
			return context.Canceled
		}))
		require.False(t, woken(wake), "what was rolled back wakes nobody")
		require.Empty(t, due())
		inTx(t, db, func(tx *store.Tx) { require.NoError(t, tx.SaveRun(&action)) })
		require.True(t, woken(wake))
		require.Equal(t, []string{"r1"}, due(), "the run whose step in progress it is, and no other")
		inTx(t, db, func(tx *store.Tx) { require.NoError(t, tx.SaveRun(&action)) })
		require.True(t, woken(wake), "a run that is due already is looked at again")
		inTx(t, db, func(tx *store.Tx) {
			waiting.NextAt = time.Time{}
			require.NoError(t, tx.SaveRunbookRun(&waiting), "nothing was decided: the version is the same")
			require.NoError(t, tx.SaveRun(&action))
		})
		require.False(t, woken(wake))
		require.Empty(t, due(), "what waits for a person is left to them")
	})
}

func TestRecordRunbookEventLandsEverywhere(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		queue := db.Outbox()
		events, cancel := db.Events().Subscribe()
		defer cancel()
		run := newRunbookRun("r1")
		run.Steps[0].Status, run.Steps[0].ActionRun = runbooks.StepPassed, "a1"
		inTx(t, db, func(tx *store.Tx) {
			in := newIncident("i1", "g")
			require.NoError(t, tx.InsertIncident(&in))
			require.NoError(t, tx.RecordRunbookEvent(runbooks.Event{
				Run: run, Kind: runbooks.EventStep, Actor: actions.Actor{Name: "system", Channel: "system"}, Step: "trip",
				Text: "Step 1 of 3 passed", Thread: true,
			}))
			require.NoError(t, tx.RecordRunbookEvent(runbooks.Event{
				Run: run, Kind: runbooks.EventAsked, Actor: run.StartedBy, Step: "where", Text: "only for the timeline",
			}))
			entries, err := tx.Timeline("i1", 0, 10)
			require.NoError(t, err)
			require.Len(t, entries, 2)
			require.Equal(t, incident.EntryRunbook, entries[0].Kind)
			require.Equal(t, "runbook-run:r1", entries[0].Ref)
			require.Equal(t, "system", entries[0].Actor)
			require.Equal(t, "Step 1 of 3 passed", entries[0].Text)
		})
		require.Equal(t, []string{"runbook-runs r1", "incidents i1"}, drain(events), "once for each, however often it was touched")

		decisions, err := db.AuditEntries(t.Context(), 0, 10)
		require.NoError(t, err)
		require.Len(t, decisions, 2)
		got := decisions[1].Entry
		require.Equal(t, audit.Entry{
			ID: got.ID, At: t0, ActorName: "system", Channel: "system", Verb: "runbook.step",
			Subject: "runbook-run:r1", Decision: audit.Allowed, Reason: "Step 1 of 3 passed",
			Details: map[string]string{
				"runbook": "slow-model", "version": "v1", "incident": "i1", "status": "running", "step": "trip",
				"step_status": "passed", "action_run": "a1", "attempt": "1",
			},
		}, got)
		require.Equal(t, []string{"card incident:i1", "thread incident:i1 Step 1 of 3 passed"}, deliverAll(t, queue))
	})
}

func TestDeniedRunbookEventWithoutRunOrIncidentIsAudited(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		inTx(t, db, func(tx *store.Tx) {
			denied := runbooks.Event{
				Run: runbooks.Run{Runbook: runbooks.Runbook{ID: "slow-model"}}, Kind: runbooks.EventDenied,
				Actor: actions.Actor{Name: "Mallory", Channel: "console"}, Text: "refused", Reason: "not allowed",
			}
			require.NoError(t, tx.RecordRunbookEvent(denied))
			denied.Run.IncidentID = "made up"
			require.NoError(t, tx.RecordRunbookEvent(denied), "nonsense beside it does not keep a refusal out of the audit")
			run := newRunbookRun("r1")
			require.ErrorIs(t, tx.RecordRunbookEvent(runbooks.Event{Run: run, Kind: runbooks.EventStarted}), incident.ErrNotFound)
		})
		decisions, err := db.AuditEntries(t.Context(), 0, 10)
		require.NoError(t, err)
		require.Len(t, decisions, 3)
		first := decisions[2]
		require.Equal(t, audit.Denied, first.Decision)
		require.Equal(t, "runbook:slow-model", first.Subject)
		require.Equal(t, "not allowed", first.Reason)
		require.Empty(t, deliverAll(t, db.Outbox()))
	})
}
