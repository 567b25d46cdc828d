package store_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"holdfast/server/chat"
	"holdfast/server/internal/store"
	"holdfast/server/internal/store/storetest"
)

func newButton(id, subject, slot string) chat.Button {
	return chat.Button{
		ID: id, Kind: chat.ButtonAction, Subject: subject, Slot: slot, Label: "Trip breaker", Style: "danger",
		Confirm: "sure?", Action: "trip_breaker", Params: json.RawMessage(`{"dependency":"llm"}`), Hash: "h",
		CreatedAt: t0, ExpiresAt: t0.Add(time.Hour),
	}
}

func liveButtons(t *testing.T, tx *store.Tx, subject string) (ids []string) {
	t.Helper()
	found, err := tx.LiveButtons(subject)
	require.NoError(t, err)
	for _, b := range found {
		ids = append(ids, b.ID)
	}
	return ids
}

func TestButtonsLiveUntilUsedRetiredOrExpired(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		subject := "incident:i1"
		inTx(t, db, func(tx *store.Tx) {
			for _, id := range []string{"b1", "b2", "b3"} {
				require.NoError(t, tx.InsertButton(newButton(id, subject, "slot-"+id)))
			}
			forever := newButton("b4", subject, "slot-b4")
			forever.ExpiresAt, forever.Params = time.Time{}, nil
			require.NoError(t, tx.InsertButton(forever))
			got, err := tx.Button("b4")
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(forever, got))
			_, err = tx.Button("b9")
			require.ErrorIs(t, err, chat.ErrNotFound)

			require.NoError(t, tx.RetireButton("b1"))
			first, err := tx.UseButton("b2", "Alice")
			require.NoError(t, err)
			require.True(t, first)
			again, err := tx.UseButton("b2", "Bob")
			require.NoError(t, err)
			require.False(t, again)
			used, err := tx.Button("b2")
			require.NoError(t, err)
			require.Equal(t, "Alice", used.UsedBy)
			require.Equal(t, t0, used.UsedAt)
			require.Equal(t, []string{"b3", "b4"}, liveButtons(t, tx, subject))
			require.NoError(t, tx.InsertButton(newButton("b5", subject, "slot-b2")), "a used one frees its slot")
		})
		db.Advance(t, time.Hour)
		inTx(t, db, func(tx *store.Tx) {
			require.Equal(t, []string{"b4"}, liveButtons(t, tx, subject))
			next := newButton("b6", subject, "slot-b3")
			next.ExpiresAt = t0.Add(2 * time.Hour)
			require.NoError(t, tx.InsertButton(next), "an expired one frees its slot")
			require.Equal(t, []string{"b4", "b6"}, liveButtons(t, tx, subject))
		})
	})
}

// Two servers that draw one card at once end up with one button in the slot:
// the loser's transaction runs again and finds it.
func TestOneLiveButtonForASlot(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		errs := parallel(6, func(i int) error {
			return db.InTx(t.Context(), func(tx *store.Tx) error {
				there, err := tx.LiveButtons("incident:i1")
				if err != nil || len(there) > 0 {
					return err
				}
				return tx.InsertButton(newButton(name("b", i), "incident:i1", "ack"))
			})
		})
		for _, err := range errs {
			require.NoError(t, err)
		}
		view(t, db, func(tx *store.Tx) { require.Len(t, liveButtons(t, tx, "incident:i1"), 1) })
	})
}

// Case C31 at the level of the database: however often one button is pressed at
// once, one press counts.
func TestC31_ParallelPressesUseTheButtonOnce(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		inTx(t, db, func(tx *store.Tx) { require.NoError(t, tx.InsertButton(newButton("b1", "incident:i1", "a"))) })
		used := make([]bool, 12)
		for _, err := range parallel(len(used), func(i int) error {
			return db.InTx(t.Context(), func(tx *store.Tx) (err error) {
				used[i], err = tx.UseButton("b1", name("person", i))
				return err
			})
		}) {
			require.NoError(t, err)
		}
		count := 0
		for _, u := range used {
			if u {
				count++
			}
		}
		require.Equal(t, 1, count)
	})
}

func clickIDs(list []chat.Click, err error) []string {
	if err != nil {
		return []string{err.Error()}
	}
	ids := make([]string, len(list))
	for i, c := range list {
		ids[i] = c.ID
	}
	return ids
}

func TestClicks(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		port := db.Chat()
		wake := port.WakeClicks()
		err := db.InTx(t.Context(), func(tx *store.Tx) error { return tx.InsertClick(chat.Click{ID: "c0", ButtonID: "nothing"}) })
		require.ErrorIs(t, err, chat.ErrNotFound)
		require.False(t, woken(wake))

		click := chat.Click{
			ID: "c1", ButtonID: "b1", PersonID: "p1", PersonName: "Alice", Team: "T", User: "U", Channel: "C",
			MessageTS: "1.2", Status: chat.ClickAccepted, ReceivedAt: t0, NextAt: t0.Add(time.Second), Attempts: 1,
		}
		inTx(t, db, func(tx *store.Tx) {
			require.NoError(t, tx.InsertButton(newButton("b1", "incident:i1", "a")))
			require.NoError(t, tx.InsertButton(newButton("b2", "run:r1", "revert")))
			require.NoError(t, tx.InsertButton(newButton("b3", "incident:other", "a")))
			run := newRun("r1")
			require.NoError(t, tx.InsertRun(&run))
			require.NoError(t, tx.InsertClick(click))
			require.NoError(t, tx.InsertClick(chat.Click{ID: "c2", ButtonID: "b2", Status: chat.ClickAccepted, ReceivedAt: t0}))
			require.NoError(t, tx.InsertClick(chat.Click{ID: "c3", ButtonID: "b3", Status: chat.ClickAccepted, ReceivedAt: t0}))
			got, err := tx.ClickByButton("b1")
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(click, got))
			_, err = tx.ClickByButton("b9")
			require.ErrorIs(t, err, chat.ErrNotFound)
			require.Equal(t, []string{"c2", "c3"}, clickIDs(tx.DueClicks(10)), "one without a time is due at once")
			require.Equal(t, []string{"c1", "c2"}, clickIDs(tx.PendingClicks("incident:i1")), "its own and those of its runs")
			require.Equal(t, []string{"c2"}, clickIDs(tx.PendingClicks("run:r1")))
		})
		require.True(t, woken(wake))
		db.Advance(t, time.Second)
		inTx(t, db, func(tx *store.Tx) {
			require.Equal(t, []string{"c2", "c3", "c1"}, clickIDs(tx.DueClicks(10)))
			click.Status, click.Detail, click.DoneAt, click.NextAt = chat.ClickDone, "done", t0, time.Time{}
			require.NoError(t, tx.SaveClick(click))
			got, err := tx.ClickByButton("b1")
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(click, got))
			require.Equal(t, []string{"c2", "c3"}, clickIDs(tx.DueClicks(10)))
			require.Equal(t, []string{"c2"}, clickIDs(tx.PendingClicks("incident:i1")))
			require.ErrorIs(t, tx.SaveClick(chat.Click{ID: "c9"}), chat.ErrNotFound)
		})
	})
}

func TestMessageRefs(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		ref := chat.MessageRef{Subject: "incident:i1", Channel: "C1", PostKey: "k", UpdatedAt: t0}
		inTx(t, db, func(tx *store.Tx) {
			_, err := tx.MessageRef(ref.Subject)
			require.ErrorIs(t, err, chat.ErrNotFound)
			require.NoError(t, tx.SaveMessageRef(ref))
			ref.TS = "1700000000.000100"
			require.NoError(t, tx.SaveMessageRef(ref))
			got, err := tx.MessageRef(ref.Subject)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(ref, got))
		})
	})
}
