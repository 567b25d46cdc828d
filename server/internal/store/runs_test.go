package store_test

import (
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"holdfast/actions"
	"holdfast/gpuguard/policy"
	"holdfast/server/audit"
	"holdfast/server/change"
	"holdfast/server/identity"
	"holdfast/server/incident"
	"holdfast/server/internal/store"
	"holdfast/server/internal/store/storetest"
	"holdfast/server/outbox"
)

func newRun(id string) actions.Run {
	share := 0.25
	return actions.Run{
		ID: id, Key: "key-" + id, Action: "trip_breaker",
		Params:     json.RawMessage(`{"dependency":"llm", "note":"<&>"}`),
		ParamsHash: "ph", IncidentID: "i1", Reason: "it burns", Status: actions.StatusAccepted,
		Plan: actions.Plan{
			Action: "trip_breaker", Params: json.RawMessage(`{"dependency":"llm"}`), Hash: "ph",
			Summary: "Force the breaker of llm open", Service: "llm-serving", TTLSeconds: 900,
			Layers: []actions.Layer{{Path: policy.BreakerForcedPath("llm"), Value: json.RawMessage(`"open"`)}},
			Blast:  actions.Blast{Share: &share, Requests: 100, Routes: []string{"chat"}},
		},
		Requester: actions.Actor{PersonID: "p1", Name: "Alice", Channel: "slack"},
		TTL:       15 * time.Minute, AcceptedAt: t0, NextAt: t0,
	}
}

func TestRunRoundTripAndCompareAndSet(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		run := newRun("r1")
		inTx(t, db, func(tx *store.Tx) {
			require.NoError(t, tx.InsertRun(&run))
			got, err := tx.Run("r1")
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(run, got))
			require.Equal(t, `{"dependency":"llm", "note":"<&>"}`, string(got.Params), "byte for byte: the hash is over it") //nolint:testifylint // the spelling is what counts

			stale := run
			run.Status, run.NextAt, run.Missing = actions.StatusExecuting, time.Time{}, []string{"gw-1"}
			run.Lineage, run.Revision, run.RevertRevision = "lin1", 2, 3
			run.ExecutedAt, run.EnforcedAt, run.ExpiresAt, run.EndedAt = t0, t0, t0.Add(time.Hour), t0.Add(time.Hour)
			run.EndReason, run.EndDetail, run.EndedBy = actions.EndExpired, "d", "system"
			run.Verification = actions.Verification{Verdict: actions.Inconclusive, Detail: "no data", At: t0}
			run.Warned, run.Epoch = true, 4
			require.NoError(t, tx.SaveRun(&run))
			require.ErrorIs(t, tx.SaveRun(&stale), actions.ErrStale)
			got, err = tx.Run("r1")
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(run, got))

			absent := newRun("r9")
			require.ErrorIs(t, tx.SaveRun(&absent), actions.ErrNotFound)
			_, err = tx.Run("r9")
			require.ErrorIs(t, err, actions.ErrNotFound)
			byKey, err := tx.RunByKey("key-r1")
			require.NoError(t, err)
			require.Equal(t, "r1", byKey.ID)
			_, err = tx.RunByKey("key-r9")
			require.ErrorIs(t, err, actions.ErrNotFound)
		})
	})
}

func TestOneRunForAKey(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		errs := parallel(10, func(i int) error {
			run := newRun(name("r", i))
			run.Key = "one click"
			return db.InTx(t.Context(), func(tx *store.Tx) error { return tx.InsertRun(&run) })
		})
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
				continue
			}
			require.ErrorIs(t, err, actions.ErrDuplicate)
		}
		require.Equal(t, 1, won)
	})
}

func runIDs(list []actions.Run, err error) []string {
	if err != nil {
		return []string{err.Error()}
	}
	ids := make([]string, len(list))
	for i, r := range list {
		ids[i] = r.ID
	}
	return ids
}

func TestRunLists(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		inTx(t, db, func(tx *store.Tx) {
			for i, status := range []actions.Status{
				actions.StatusAccepted, actions.StatusExecuting, actions.StatusActive,
				actions.StatusReverting, actions.StatusEnded, actions.StatusFailed,
			} {
				run := newRun(name("r", i))
				run.Status, run.AcceptedAt, run.NextAt = status, t0.Add(time.Duration(i)*time.Second), t0.Add(time.Duration(5-i)*time.Second)
				if i%2 == 1 {
					run.IncidentID = ""
				}
				if i == 4 {
					run.NextAt = time.Time{}
				}
				require.NoError(t, tx.InsertRun(&run))
				require.Equal(t, run.Live(), status != actions.StatusEnded && status != actions.StatusFailed)
			}
			require.Equal(t, []string{"r-03", "r-02", "r-01", "r-00"}, runIDs(tx.LiveRuns("")))
			require.Equal(t, []string{"r-02", "r-00"}, runIDs(tx.LiveRuns("i1")))
			require.Equal(t, []string{"r-04", "r-02", "r-00"}, runIDs(tx.IncidentRuns("i1")))
			require.Empty(t, runIDs(tx.IncidentRuns("")))
			require.Equal(t, []string{"r-05", "r-04"}, runIDs(tx.Runs(time.Time{}, 2)))
			require.Equal(t, []string{"r-03", "r-02"}, runIDs(tx.Runs(t0.Add(4*time.Second), 2)))
			require.Equal(t, []string{"r-05"}, runIDs(tx.DueRuns(10)))
		})
		db.Advance(t, 2*time.Second)
		inTx(t, db, func(tx *store.Tx) {
			require.Equal(t, []string{"r-05", "r-03"}, runIDs(tx.DueRuns(10)), "longest due first; one without a time is never due")
			require.Equal(t, []string{"r-05"}, runIDs(tx.DueRuns(1)))
		})
	})
}

// Two servers never work on one run at the same moment.
func TestDueRunsSkipWhatAnotherServerHolds(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.Postgres)
	db.Freeze(t, t0)
	inTx(t, db, func(tx *store.Tx) {
		for i := range 4 {
			run := newRun(name("r", i))
			require.NoError(t, tx.InsertRun(&run))
		}
	})
	second := db.Second(t)
	inTx(t, db, func(tx *store.Tx) {
		require.Equal(t, []string{"r-00", "r-01"}, runIDs(tx.DueRuns(2)))
		inTx(t, second, func(other *store.Tx) {
			require.Equal(t, []string{"r-02", "r-03"}, runIDs(other.DueRuns(10)))
		})
	})
}

func TestAllowedReadsTheRoleAsOfNow(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		inTx(t, db, func(tx *store.Tx) {
			alice := identity.Person{ID: "p1", Handle: "alice", Role: identity.RoleResponder}
			require.NoError(t, tx.SavePerson(alice))
			allowed := func(actor actions.Actor, role string) bool {
				ok, err := tx.Allowed(actor, role)
				require.NoError(t, err)
				return ok
			}
			actor := actions.Actor{PersonID: "p1", Channel: "slack"}
			require.True(t, allowed(actor, "responder"))
			require.True(t, allowed(actor, "viewer"))
			require.False(t, allowed(actor, "approver"))
			require.False(t, allowed(actor, "emperor"))
			require.False(t, allowed(actor, ""), "no role is nobody's")
			require.False(t, allowed(actions.Actor{PersonID: "p9", Channel: "system"}, "viewer"))
			require.True(t, allowed(actions.Actor{Channel: "system"}, "admin"))
			require.False(t, allowed(actions.Actor{Channel: "api"}, "viewer"))
			alice.Disabled = true
			require.NoError(t, tx.SavePerson(alice))
			require.False(t, allowed(actor, "viewer"))
		})
	})
}

func TestRunWakes(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		port := db.Actions()
		wake := port.Wake()
		run := newRun("r1")
		inTx(t, db, func(tx *store.Tx) { require.NoError(t, tx.InsertRun(&run)) })
		require.True(t, woken(wake))
		require.False(t, woken(port.Wake()), "one channel for one port")
		run.NextAt = t0.Add(time.Second)
		inTx(t, db, func(tx *store.Tx) { require.NoError(t, tx.SaveRun(&run)) })
		require.False(t, woken(wake), "not due yet")
		run.NextAt = t0
		inTx(t, db, func(tx *store.Tx) { require.NoError(t, tx.SaveRun(&run)) })
		require.True(t, woken(wake))
	})
}

func TestRecordEventLandsEverywhere(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		queue := db.Outbox()
		chatWake := queue.Wake(outbox.TopicChat)
		events, cancel := db.Events().Subscribe()
		defer cancel()
		run := newRun("r1")
		inTx(t, db, func(tx *store.Tx) {
			in := newIncident("i1", "g")
			require.NoError(t, tx.InsertIncident(&in))
			for _, text := range []string{"accepted", "executed"} {
				require.NoError(t, tx.RecordEvent(actions.Event{
					Run: run, Kind: actions.EventAccepted, Actor: run.Requester, Text: text,
				}))
			}
			entries, err := tx.Timeline("i1", 0, 10)
			require.NoError(t, err)
			require.Len(t, entries, 2)
			require.Equal(t, incident.EntryAction, entries[0].Kind)
			require.Equal(t, "run:r1", entries[0].Ref)
			require.Equal(t, "Alice", entries[0].Actor)
		})
		require.True(t, woken(chatWake))
		require.Equal(t, []string{"runs r1", "incidents i1"}, drain(events), "once for each, however often it was touched")

		decisions, err := db.AuditEntries(t.Context(), 0, 10)
		require.NoError(t, err)
		require.Len(t, decisions, 2)
		got := decisions[1].Entry
		require.Equal(t, audit.Entry{
			ID: got.ID, At: t0, ActorID: "p1", ActorName: "Alice", Channel: "slack", Verb: "action.accepted",
			Subject: "run:r1", Decision: audit.Allowed, Reason: "accepted",
			Details: map[string]string{
				"action": "trip_breaker", "incident": "i1", "params_hash": "ph", "status": "accepted", "request_reason": "it burns",
			},
		}, got)

		messages := deliverAll(t, queue)
		require.Equal(t, []string{"card incident:i1", "thread incident:i1 accepted", "thread incident:i1 executed"}, messages,
			"one card, before the lines that hang on it")
	})
}

func TestDeniedEventWithoutRunOrIncidentIsAudited(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		inTx(t, db, func(tx *store.Tx) {
			require.NoError(t, tx.RecordEvent(actions.Event{
				Run: actions.Run{Action: "trip_breaker"}, Kind: actions.EventDenied,
				Actor: actions.Actor{Name: "Mallory", Channel: "slack"}, Text: "refused", Reason: "not allowed",
			}))
			require.NoError(t, tx.RecordEvent(actions.Event{
				Run: actions.Run{Action: "close_breaker", IncidentID: "made up"}, Kind: actions.EventDenied,
			}), "nonsense beside it does not keep a refusal out of the audit")
			run := newRun("r1")
			require.ErrorIs(t, tx.RecordEvent(actions.Event{Run: run, Kind: actions.EventAccepted}), incident.ErrNotFound)
		})
		decisions, err := db.AuditEntries(t.Context(), 0, 10)
		require.NoError(t, err)
		require.Len(t, decisions, 3)
		first := decisions[2]
		require.Equal(t, audit.Denied, first.Decision)
		require.Equal(t, "action:trip_breaker", first.Subject)
		require.Equal(t, "not allowed", first.Reason)
		require.Empty(t, deliverAll(t, db.Outbox()))
	})
}

func TestEmergencyChangeFollowsTheLease(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		run := newRun("r1")
		run.ExpiresAt = t0.Add(15 * time.Minute)
		inTx(t, db, func(tx *store.Tx) {
			// Somebody holds the service: an emergency action is never held back.
			c := newChange("c1", t0, time.Hour)
			require.NoError(t, tx.InsertChange(&c))
			require.NoError(t, tx.PutHold(guarded("c1", t0, t0, change.Resource{Key: "env//svc/llm-serving"})))
			require.NoError(t, tx.OpenEmergencyChange(run))
			require.NoError(t, tx.OpenEmergencyChange(run), "repeated")
			live, err := tx.LiveChanges("prod", t0, t0.Add(time.Minute))
			require.NoError(t, err)
			require.Len(t, live, 2)
			got, err := tx.Change("action-r1")
			require.NoError(t, err)
			require.Equal(t, change.KindEmergency, got.Kind)
			require.Equal(t, change.StatusRunning, got.Status)
			require.Equal(t, "llm-serving", got.Service)
			require.Equal(t, "r1", got.ActionRunID)
			require.Equal(t, "p1", got.RequesterID)
			require.Equal(t, t0, got.Start)
			require.Equal(t, run.ExpiresAt, got.End)

			run.ExpiresAt = t0.Add(time.Hour)
			run.IncidentID = ""
			require.NoError(t, tx.RecordEvent(actions.Event{Run: run, Kind: actions.EventRenewed, Actor: run.Requester}))
			got, err = tx.Change("action-r1")
			require.NoError(t, err)
			require.Equal(t, run.ExpiresAt, got.End, "it ends with the lease")
		})
		db.Advance(t, time.Minute)
		inTx(t, db, func(tx *store.Tx) {
			run.Status = actions.StatusEnded
			require.NoError(t, tx.CloseEmergencyChange(run))
			require.NoError(t, tx.CloseEmergencyChange(run), "repeated")
			got, err := tx.Change("action-r1")
			require.NoError(t, err)
			require.Equal(t, change.StatusSucceeded, got.Status)
			require.Equal(t, t0.Add(time.Minute), got.End)
			require.Equal(t, t0.Add(time.Minute), got.FinishedAt)
			require.NoError(t, tx.CloseEmergencyChange(newRun("r9")), "a run that never came into force has none")
		})
	})
}

// drain reads the events that are there, as "topic subject".
func drain(events <-chan store.Event) (out []string) {
	for {
		select {
		case e := <-events:
			out = append(out, e.Topic+" "+e.Subject)
		default:
			return out
		}
	}
}

// deliverAll empties the chat topic, as a deliverer that never fails.
func deliverAll(t *testing.T, queue outbox.Queue) (out []string) {
	t.Helper()
	for {
		messages, err := queue.Claim(t.Context(), outbox.TopicChat, 10, time.Minute)
		require.NoError(t, err)
		if len(messages) == 0 {
			return out
		}
		for _, m := range messages {
			line := m.Kind + " " + m.Subject
			if len(m.Payload) > 0 {
				var text outbox.Text
				require.NoError(t, json.Unmarshal(m.Payload, &text))
				line += " " + text.Text
			}
			out = append(out, line)
			require.NoError(t, queue.Done(t.Context(), m.ID))
		}
	}
}

// A read-modify-write under Lock loses nothing, on either database.
func TestLockSerialises(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		in := newIncident("i1", "g1")
		in.Firing = 0
		inTx(t, db, func(tx *store.Tx) { require.NoError(t, tx.InsertIncident(&in)) })
		var mu sync.Mutex
		inside, most := 0, 0
		errs := parallel(8, func(int) error {
			return db.InTx(t.Context(), func(tx *store.Tx) error {
				if err := tx.Lock("group:g1"); err != nil {
					return err
				}
				mu.Lock()
				inside++
				most = max(most, inside)
				mu.Unlock()
				defer func() { mu.Lock(); inside--; mu.Unlock() }()
				in, err := tx.Incident("i1")
				if err != nil {
					return err
				}
				in.Firing++
				return tx.SaveIncident(&in)
			})
		})
		for _, err := range errs {
			require.NoError(t, err)
		}
		require.Equal(t, 1, most)
		view(t, db, func(tx *store.Tx) {
			in, err := tx.Incident("i1")
			require.NoError(t, err)
			require.Equal(t, 8, in.Firing)
		})
	})
}
