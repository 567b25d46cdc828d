package store_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"holdfast/server/change"
	"holdfast/server/internal/store"
	"holdfast/server/internal/store/storetest"
)

func newChange(id string, start time.Time, length time.Duration) change.Change {
	return change.Change{
		ID: id, Service: "svc-" + id, Environment: "prod", Kind: change.KindDeploy, Status: change.StatusClaimed,
		Start: start, End: start.Add(length), RunID: "run-" + id, CreatedAt: t0,
	}
}

func changeIDs(list []change.Change, err error) []string {
	if err != nil {
		return []string{err.Error()}
	}
	ids := make([]string, len(list))
	for i, c := range list {
		ids[i] = c.ID
	}
	return ids
}

func TestChangeRoundTripAndCompareAndSet(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		c := newChange("c1", t0, time.Hour)
		c.Summary, c.URL, c.RequesterID, c.RequesterName = "s", "u", "p1", "Alice"
		c.Blockers, c.ParamsHash, c.ConfirmBy = []string{"c0"}, "ph", t0.Add(time.Hour)
		c.DecidedByID, c.DecidedBy, c.DecidedAt = "p2", "Bob", t0
		c.FencingToken, c.ClaimedUntil, c.FinishedAt = 7, t0.Add(time.Minute), t0.Add(time.Second)
		inTx(t, db, func(tx *store.Tx) {
			require.NoError(t, tx.InsertChange(&c))
			require.EqualValues(t, 1, c.Version)
			got, err := tx.Change("c1")
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(c, got))

			stale := c
			c.Status, c.Blockers, c.ConfirmBy = change.StatusRunning, nil, time.Time{}
			require.NoError(t, tx.SaveChange(&c))
			require.ErrorIs(t, tx.SaveChange(&stale), change.ErrStale)
			got, err = tx.Change("c1")
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(c, got))

			absent := newChange("c9", t0, 0)
			require.ErrorIs(t, tx.SaveChange(&absent), change.ErrNotFound)
			_, err = tx.Change("c9")
			require.ErrorIs(t, err, change.ErrNotFound)
		})
	})
}

func TestLiveChangesMeetTheWindow(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		insert := func(tx *store.Tx, id string, start time.Time, length time.Duration, edit func(*change.Change)) {
			c := newChange(id, start, length)
			if edit != nil {
				edit(&c)
			}
			require.NoError(t, tx.InsertChange(&c))
		}
		status := func(s change.Status) func(*change.Change) { return func(c *change.Change) { c.Status = s } }
		inTx(t, db, func(tx *store.Tx) {
			hour := time.Hour
			insert(tx, "before", t0.Add(-2*hour), hour, nil)
			insert(tx, "touching", t0.Add(-hour), hour, nil)
			insert(tx, "over-start", t0.Add(-hour), hour+time.Microsecond, nil)
			insert(tx, "point-at-start", t0, 0, nil)
			insert(tx, "ended", t0, hour, status(change.StatusSucceeded))
			insert(tx, "held", t0, hour, status(change.StatusHeld))
			insert(tx, "cancelled", t0, hour, status(change.StatusCancelled))
			insert(tx, "staging", t0, hour, func(c *change.Change) { c.Environment = "staging" })
			insert(tx, "emergency-anywhere", t0, hour, func(c *change.Change) { c.Environment = "" })
			insert(tx, "overrunning", t0.Add(-5*hour), hour, status(change.StatusRunning))
			insert(tx, "point-at-end", t0.Add(hour), 0, nil)
		})
		view(t, db, func(tx *store.Tx) {
			require.ElementsMatch(t, []string{"over-start", "point-at-start", "ended", "emergency-anywhere", "overrunning"},
				changeIDs(tx.LiveChanges("prod", t0, t0.Add(time.Hour))))
			require.ElementsMatch(t, []string{"point-at-start", "ended", "over-start", "emergency-anywhere", "overrunning"},
				changeIDs(tx.LiveChanges("prod", t0, t0)), "a question of no length is a point")
		})
	})
}

func TestChangesPages(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		inTx(t, db, func(tx *store.Tx) {
			for i := range 6 {
				c := newChange(name("c", i), t0.Add(time.Duration(i)*time.Hour), 0)
				// Three pairs that share their time: the id decides.
				c.CreatedAt = t0.Add(time.Duration(i/2) * time.Second)
				if i%3 == 0 {
					c.Service = "llm"
				}
				if i == 5 {
					c.Status = change.StatusSucceeded
				}
				require.NoError(t, tx.InsertChange(&c))
			}
			var seen []string
			filter := change.Filter{Limit: 2}
			for {
				page, err := tx.Changes(filter)
				require.NoError(t, err)
				if len(page) == 0 {
					break
				}
				seen = append(seen, changeIDs(page, nil)...)
				filter.Before = page[len(page)-1].Cursor()
			}
			require.Equal(t, []string{"c-05", "c-04", "c-03", "c-02", "c-01", "c-00"}, seen)
			require.Equal(t, []string{"c-03", "c-00"}, changeIDs(tx.Changes(change.Filter{Service: "llm", Environment: "prod"})))
			require.Equal(t, []string{"c-04", "c-03"}, changeIDs(tx.Changes(change.Filter{Active: true, From: t0.Add(3 * time.Hour)})))
			require.Equal(t, []string{"c-01", "c-00"}, changeIDs(tx.Changes(change.Filter{To: t0.Add(2 * time.Hour)})))
			_, err := tx.Changes(change.Filter{Before: "yesterday"})
			require.ErrorIs(t, err, change.ErrInvalid)
		})
	})
}

func TestChangeByRunAndLapsed(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		inTx(t, db, func(tx *store.Tx) {
			old := newChange("old", t0, 0)
			old.RunID, old.Service, old.Status = "r", "llm", change.StatusSucceeded
			require.NoError(t, tx.InsertChange(&old))
			_, err := tx.ChangeByRun("r", "llm", "prod")
			require.ErrorIs(t, err, change.ErrNotFound)
			for i, status := range []change.Status{change.StatusHeld, change.StatusClaimed} {
				c := newChange(string(status), t0, 0)
				c.RunID, c.Service, c.Status = "r", "llm", status
				c.CreatedAt = t0.Add(time.Duration(i) * time.Second)
				c.ConfirmBy, c.ClaimedUntil = t0.Add(time.Minute), t0.Add(2*time.Minute)
				require.NoError(t, tx.InsertChange(&c))
			}
			newest, err := tx.ChangeByRun("r", "llm", "prod")
			require.NoError(t, err)
			require.Equal(t, "claimed", newest.ID)
			require.Empty(t, changeIDs(tx.LapsedChanges(10)))
		})
		db.Advance(t, time.Minute)
		inTx(t, db, func(tx *store.Tx) { require.Equal(t, []string{"held"}, changeIDs(tx.LapsedChanges(10))) })
		db.Advance(t, time.Minute)
		inTx(t, db, func(tx *store.Tx) { require.Equal(t, []string{"held", "claimed"}, changeIDs(tx.LapsedChanges(10))) })
	})
}

func TestFencingTokensRiseWithoutRepeats(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		tokens := make([]int64, 20)
		for _, err := range parallel(len(tokens), func(i int) error {
			return db.InTx(t.Context(), func(tx *store.Tx) (err error) {
				tokens[i], err = tx.NextFencingToken()
				return err
			})
		}) {
			require.NoError(t, err)
		}
		seen := make(map[int64]bool)
		for _, token := range tokens {
			require.Positive(t, token)
			require.False(t, seen[token])
			seen[token] = true
		}
	})
}

func TestFreezes(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		bounded := change.Freeze{
			ID: "f1", Reason: "sale", Services: []string{"api"}, Environments: []string{"prod"},
			Kinds: []change.Kind{change.KindDeploy}, Start: t0, End: t0.Add(time.Hour), CreatedBy: "Alice", CreatedAt: t0,
		}
		open := change.Freeze{ID: "f2", Reason: "holiday", Start: t0.Add(30 * time.Minute), CreatedBy: "Bob", CreatedAt: t0}
		inTx(t, db, func(tx *store.Tx) {
			require.NoError(t, tx.InsertFreeze(&bounded))
			require.NoError(t, tx.InsertFreeze(&open))
			got, err := tx.Freeze("f1")
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(bounded, got))
			for _, c := range []struct {
				from, to time.Time
				want     []string
			}{
				{t0.Add(-time.Hour), t0, nil},
				{t0, t0, []string{"f1"}},
				{t0, t0.Add(time.Hour), []string{"f1", "f2"}},
				{t0.Add(time.Hour), t0.Add(2 * time.Hour), []string{"f2"}},
				{time.Time{}, time.Time{}, []string{"f1", "f2"}},
			} {
				found, err := tx.Freezes(c.from, c.to)
				require.NoError(t, err)
				var ids []string
				for _, f := range found {
					ids = append(ids, f.ID)
				}
				require.Equal(t, c.want, ids, "%s – %s", c.from, c.to)
			}
			require.NoError(t, tx.DeleteFreeze("f1"))
			require.ErrorIs(t, tx.DeleteFreeze("f1"), change.ErrNotFound)
			_, err = tx.Freeze("f1")
			require.ErrorIs(t, err, change.ErrNotFound)
		})
	})
}

// guarded is the hold of a window with a band of two hours: half on each side.
func guarded(id string, start, end time.Time, resources ...change.Resource) change.Hold {
	return change.Hold{ChangeID: id, Resources: resources, Start: start.Add(-time.Hour), End: end.Add(time.Hour)}
}

var (
	exclusive = change.Resource{Key: "env/prod/svc/llm"}
	shared    = change.Resource{Key: "env/prod/svc/llm", Shared: true}
	elsewhere = change.Resource{Key: "env/prod/svc/search"}
)

func TestHoldsConflictAsTheyShould(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		exempt := guarded("b", t0, t0, exclusive)
		exempt.Exempt = true
		twoHours := t0.Add(2 * time.Hour)
		cases := []struct {
			name     string
			first    change.Hold
			second   change.Hold
			conflict bool
		}{
			{"same instant", guarded("a", t0, t0, exclusive), guarded("b", t0, t0, exclusive), true},
			{"exactly two hours later is free", guarded("a", t0, t0, exclusive), guarded("b", twoHours, twoHours, exclusive), false},
			{"exactly two hours earlier is free", guarded("a", twoHours, twoHours, exclusive), guarded("b", t0, t0, exclusive), false},
			{"one microsecond less is not", guarded("a", t0, t0, exclusive), guarded("b", twoHours.Add(-time.Microsecond), twoHours, exclusive), true},
			{"shared and shared", guarded("a", t0, t0, shared), guarded("b", t0, t0, shared), false},
			{"exclusive then shared", guarded("a", t0, t0, exclusive), guarded("b", t0, t0, shared), true},
			{"shared then exclusive", guarded("a", t0, t0, shared), guarded("b", t0, t0, exclusive), true},
			{"another resource", guarded("a", t0, t0, exclusive), guarded("b", t0, t0, elsewhere), false},
			{"one of several resources", guarded("a", t0, t0, exclusive), guarded("b", t0, t0, elsewhere, exclusive), true},
			{"exempt beside exclusive", guarded("a", t0, t0, exclusive), exempt, false},
			{
				"no length, no guard, same instant",
				change.Hold{ChangeID: "a", Resources: []change.Resource{exclusive}, Start: t0, End: t0},
				change.Hold{ChangeID: "b", Resources: []change.Resource{exclusive}, Start: t0, End: t0},
				true,
			},
			{"its own hold moved", guarded("a", t0, t0, exclusive), guarded("a", t0.Add(time.Minute), t0.Add(time.Minute), exclusive), false},
		}
		inTx(t, db, func(tx *store.Tx) {
			for _, id := range []string{"a", "b"} {
				c := newChange(id, t0, 0)
				require.NoError(t, tx.InsertChange(&c))
			}
		})
		for _, c := range cases {
			inTx(t, db, func(tx *store.Tx) {
				require.NoError(t, tx.PutHold(c.first), c.name)
				err := tx.PutHold(c.second)
				if c.conflict {
					require.ErrorIs(t, err, change.ErrConflict, c.name)
				} else {
					require.NoError(t, err, c.name)
				}
				_, err = tx.Change("a")
				require.NoError(t, err, "%s: the transaction goes on", c.name)
				require.NoError(t, tx.DropHold("a"))
				require.NoError(t, tx.DropHold("b"))
			})
		}
	})
}

// A hold that cannot be moved stays where it was.
func TestRefusedHoldKeepsTheOldOne(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		far := t0.Add(10 * time.Hour)
		inTx(t, db, func(tx *store.Tx) {
			for _, id := range []string{"a", "b", "c"} {
				c := newChange(id, t0, 0)
				require.NoError(t, tx.InsertChange(&c))
			}
			require.NoError(t, tx.PutHold(guarded("a", t0, t0, exclusive)))
			require.NoError(t, tx.PutHold(guarded("b", far, far, exclusive)))
			require.ErrorIs(t, tx.PutHold(guarded("b", t0, t0, exclusive)), change.ErrConflict)
		})
		inTx(t, db, func(tx *store.Tx) {
			require.ErrorIs(t, tx.PutHold(guarded("c", far, far, exclusive)), change.ErrConflict, "b still holds its slot")
			require.ErrorIs(t, tx.PutHold(change.Hold{ChangeID: "c", Start: t0, End: t0}), change.ErrInvalid)
			require.ErrorIs(t, tx.PutHold(change.Hold{ChangeID: "c", Resources: []change.Resource{exclusive}, Start: t0, End: t0.Add(-1000)}), change.ErrInvalid)
			require.ErrorIs(t, tx.PutHold(guarded("nobody", t0, t0, elsewhere)), change.ErrNotFound)
		})
	})
}

// The constraint alone, without the lock that the calendar takes: case C16 (1)
// and (2) at the level of the database.
func TestC16_ParallelClaimsHaveOneWinner(t *testing.T) { //nolint:tparallel // each() runs its databases side by side; more would fight for two cores
	for _, offset := range []time.Duration{0, 119 * time.Minute} {
		t.Run(fmt.Sprintf("every second one %s later", offset), func(t *testing.T) {
			each(t, func(t *testing.T, db *storetest.DB) {
				errs := parallel(20, func(i int) error {
					start := t0
					if i%2 == 1 {
						start = t0.Add(offset)
					}
					return claim(t, db, name("c", i), start, exclusive, elsewhere)
				})
				won := 0
				for _, err := range errs {
					if err == nil {
						won++
						continue
					}
					require.ErrorIs(t, err, change.ErrConflict)
				}
				require.Equal(t, 1, won)
			})
		})
	}
}

// Case C16 (3): exactly two hours apart is free, whoever comes first.
func TestC16_ExactlyTwoHoursApartIsFree(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		for _, err := range parallel(2, func(i int) error {
			return claim(t, db, name("c", i), t0.Add(time.Duration(i)*2*time.Hour), exclusive)
		}) {
			require.NoError(t, err)
		}
	})
}

// Claims that take the same resources in opposite order do not deadlock.
func TestClaimsInOppositeOrderDoNotDeadlock(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		for round := range 10 {
			errs := parallel(4, func(i int) error {
				resources := []change.Resource{exclusive, elsewhere}
				if i%2 == 1 {
					resources = []change.Resource{elsewhere, exclusive}
				}
				start := t0.Add(time.Duration(round) * 24 * time.Hour)
				return claim(t, db, fmt.Sprintf("c-%d-%d", round, i), start, resources...)
			})
			won := 0
			for _, err := range errs {
				if err == nil {
					won++
				} else {
					require.ErrorIs(t, err, change.ErrConflict)
				}
			}
			require.Equal(t, 1, won)
		}
	})
}

// claim inserts a change with its hold, in one transaction.
func claim(t *testing.T, db *storetest.DB, id string, start time.Time, resources ...change.Resource) error {
	return db.InTx(t.Context(), func(tx *store.Tx) error {
		c := newChange(id, start, 0)
		return errors.Join(tx.InsertChange(&c), tx.PutHold(guarded(id, start, start, resources...)))
	})
}
