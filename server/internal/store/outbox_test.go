package store_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"holdfast/server/internal/store"
	"holdfast/server/internal/store/storetest"
	"holdfast/server/outbox"
)

func line(key, text string) outbox.Message {
	payload, _ := json.Marshal(outbox.Text{Text: text})
	return outbox.Message{Topic: outbox.TopicChat, Key: key, Kind: outbox.KindThread, Subject: key, Payload: payload}
}

func card(key string) outbox.Message {
	return outbox.Message{Topic: outbox.TopicChat, Key: key, Kind: outbox.KindCard, Subject: key, Coalesce: true}
}

func enqueue(t *testing.T, db *storetest.DB, messages ...outbox.Message) {
	t.Helper()
	inTx(t, db, func(tx *store.Tx) {
		for _, m := range messages {
			require.NoError(t, tx.Enqueue(m))
		}
	})
}

// claimed leases for a minute and shows "<key> <text>" of each message.
func claimed(t *testing.T, queue outbox.Queue, limit int) (messages []outbox.Message, shown []string) {
	t.Helper()
	messages, err := queue.Claim(t.Context(), outbox.TopicChat, limit, time.Minute)
	require.NoError(t, err)
	for _, m := range messages {
		var text outbox.Text
		if len(m.Payload) > 0 {
			require.NoError(t, json.Unmarshal(m.Payload, &text))
		}
		shown = append(shown, strings.TrimSpace(m.Key+" "+m.Kind+" "+text.Text))
	}
	return messages, shown
}

func TestMessagesOfOneKeyLeaveOneAtATimeInOrder(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		queue := db.Outbox()
		wake := queue.Wake(outbox.TopicChat)
		enqueue(t, db, line("a", "1"), line("a", "2"), line("b", "1"))
		require.True(t, woken(wake))
		first, shown := claimed(t, queue, 10)
		require.Equal(t, []string{"a thread 1", "b thread 1"}, shown)
		require.Equal(t, 1, first[0].Attempts)
		require.Equal(t, t0, first[0].CreatedAt)
		_, shown = claimed(t, queue, 10)
		require.Empty(t, shown, "a waits for its head")
		require.NoError(t, queue.Done(t.Context(), first[1].ID))
		require.NoError(t, queue.Done(t.Context(), first[0].ID))
		_, shown = claimed(t, queue, 10)
		require.Equal(t, []string{"a thread 2"}, shown)
	})
}

// What a killed deliverer held is delivered by the next one, still in order.
func TestLapsedLeaseIsClaimedAgain(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		enqueue(t, db, line("a", "1"), line("a", "2"))
		_, shown := claimed(t, db.Outbox(), 10)
		require.Equal(t, []string{"a thread 1"}, shown)

		restarted := db.Second(t)
		db.Advance(t, time.Minute-time.Microsecond)
		_, shown = claimed(t, restarted.Outbox(), 10)
		require.Empty(t, shown)
		db.Advance(t, time.Microsecond)
		again, shown := claimed(t, restarted.Outbox(), 10)
		require.Equal(t, []string{"a thread 1"}, shown)
		require.Equal(t, 2, again[0].Attempts)
	})
}

func TestRetryHoldsTheWholeKey(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		queue := db.Outbox()
		enqueue(t, db, line("a", "1"), line("a", "2"))
		messages, _ := claimed(t, queue, 10)
		require.NoError(t, queue.Retry(t.Context(), messages[0].ID, 10*time.Second, strings.Repeat("rate limited ", 1000)))
		_, shown := claimed(t, queue, 10)
		require.Empty(t, shown)
		db.Advance(t, 10*time.Second)
		messages, shown = claimed(t, queue, 10)
		require.Equal(t, []string{"a thread 1"}, shown)
		require.Less(t, len(messages[0].LastError), 1100)
		require.Contains(t, messages[0].LastError, "rate limited")

		// A message that can never be delivered is set aside and its key goes on.
		require.NoError(t, queue.Bury(t.Context(), messages[0].ID, "channel_not_found"))
		_, shown = claimed(t, queue, 10)
		require.Equal(t, []string{"a thread 2"}, shown)
		count, oldest, err := queue.Pending(t.Context(), outbox.TopicChat)
		require.NoError(t, err)
		require.Equal(t, 1, count)
		require.Equal(t, 10*time.Second, oldest)
	})
}

func TestNotBeforeHoldsTheKey(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		later := line("a", "1")
		later.NotBefore = t0.Add(time.Second)
		enqueue(t, db, later, line("a", "2"), line("b", "1"))
		_, shown := claimed(t, db.Outbox(), 10)
		require.Equal(t, []string{"b thread 1"}, shown)
		db.Advance(t, time.Second)
		_, shown = claimed(t, db.Outbox(), 10)
		require.Equal(t, []string{"a thread 1"}, shown)
	})
}

func TestCoalescing(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		queue := db.Outbox()
		newer := card("a")
		newer.Payload = json.RawMessage(`{"text":"newer"}`)
		enqueue(t, db, card("a"), line("a", "1"), newer, card("b"))
		count, _, err := queue.Pending(t.Context(), outbox.TopicChat)
		require.NoError(t, err)
		require.Equal(t, 3, count)
		messages, shown := claimed(t, queue, 10)
		require.Equal(t, []string{"a card newer", "b card"}, shown, "the newer content in the older place")

		// The card is being drawn: what changes now needs another one.
		enqueue(t, db, card("a"), card("a"))
		count, _, err = queue.Pending(t.Context(), outbox.TopicChat)
		require.NoError(t, err)
		require.Equal(t, 4, count)
		require.NoError(t, queue.Done(t.Context(), messages[0].ID))
		messages, shown = claimed(t, queue, 10)
		require.Equal(t, []string{"a thread 1"}, shown)
		require.NoError(t, queue.Done(t.Context(), messages[0].ID))
		messages, shown = claimed(t, queue, 10)
		require.Equal(t, []string{"a card"}, shown)

		// Put back, it takes newer content again.
		require.NoError(t, queue.Retry(t.Context(), messages[0].ID, 0, "x"))
		enqueue(t, db, newer)
		again, shown := claimed(t, queue, 10)
		require.Equal(t, []string{"a card newer"}, shown)
		require.Equal(t, messages[0].ID, again[0].ID)
	})
}

// A lapsed lease may still be at work with the old content: it is not touched.
func TestLapsedMessageIsNotCoalescedInto(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		queue := db.Outbox()
		enqueue(t, db, card("a"))
		slow, _ := claimed(t, queue, 1)
		db.Advance(t, time.Hour)
		enqueue(t, db, card("a"))
		require.NoError(t, queue.Done(t.Context(), slow[0].ID))
		count, _, err := queue.Pending(t.Context(), outbox.TopicChat)
		require.NoError(t, err)
		require.Equal(t, 1, count, "the newer request survives the slow delivery of the older")
	})
}

func TestEnqueueRefusesWhatCannotBeDelivered(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		inTx(t, db, func(tx *store.Tx) {
			big := line("a", strings.Repeat("x", 64<<10))
			require.ErrorContains(t, tx.Enqueue(big), "at most 65536")
			require.ErrorContains(t, tx.Enqueue(outbox.Message{Topic: "chat", Kind: "thread", Payload: []byte("{")}), "not JSON")
		})
		count, oldest, err := db.Outbox().Pending(t.Context(), outbox.TopicChat)
		require.NoError(t, err)
		require.Zero(t, count)
		require.Zero(t, oldest)
	})
}

// Several deliverers at once: nothing is lost, nothing is delivered twice, each
// key keeps its order.
func TestParallelDeliverersKeepOrderPerKey(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		const keys, each = 6, 8
		var messages []outbox.Message
		for n := range each {
			for k := range keys {
				messages = append(messages, line(name("k", k), fmt.Sprint(n)))
			}
		}
		enqueue(t, db, messages...)
		var mu sync.Mutex
		got := make(map[string][]string)
		delivered := 0
		for _, err := range parallel(4, func(int) error {
			queue := db.Outbox()
			for {
				mu.Lock()
				done := delivered == keys*each
				mu.Unlock()
				if done {
					return nil
				}
				batch, err := queue.Claim(t.Context(), outbox.TopicChat, 3, time.Minute)
				if err != nil {
					return err
				}
				for _, m := range batch {
					mu.Lock()
					got[m.Key] = append(got[m.Key], string(m.Payload))
					delivered++
					mu.Unlock()
					if err := queue.Done(t.Context(), m.ID); err != nil {
						return err
					}
				}
			}
		}) {
			require.NoError(t, err)
		}
		var want []string
		for n := range each {
			want = append(want, string(line("", fmt.Sprint(n)).Payload))
		}
		require.Len(t, got, keys)
		for key, lines := range got {
			require.Empty(t, cmp.Diff(want, lines), key)
			require.True(t, slices.IsSorted(lines))
		}
	})
}
