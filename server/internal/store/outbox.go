package store

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"holdfast/server/outbox"
)

const (
	// maxPayload bounds a message (outbox.Message.Payload).
	maxPayload = 64 << 10
	// maxClaim is the largest batch of messages.
	maxClaim = 100
	// maxErrorText keeps the reason of a failure to a few lines.
	maxErrorText = 1000
)

type outboxRow struct {
	ID          int64 `gorm:"primaryKey;autoIncrement"`
	Topic       string
	OrderingKey string
	Kind        string
	Subject     string
	Payload     string
	CoalesceOK  bool `gorm:"column:coalesce_ok"`
	Attempts    int
	LastError   string
	CreatedAt   stamp
	NotBefore   stamp
	LeasedUntil stamp
	BuriedAt    stamp
}

// TableName is the table.
func (outboxRow) TableName() string { return "outbox" }

func (r outboxRow) message() outbox.Message {
	return outbox.Message{
		ID: r.ID, Topic: r.Topic, Key: r.OrderingKey, Kind: r.Kind, Subject: r.Subject,
		Payload: rawOrNil(r.Payload), Coalesce: r.CoalesceOK, Attempts: r.Attempts,
		LastError: r.LastError, CreatedAt: r.CreatedAt.t, NotBefore: r.NotBefore.t,
	}
}

// Enqueue writes a side effect to perform after the commit. With Coalesce it
// takes the place of an undelivered message of the same topic, key, kind and
// subject: the older place in the order, so that a thread line never overtakes
// the card it hangs on.
func (tx *Tx) Enqueue(m outbox.Message) error {
	if len(m.Payload) > maxPayload {
		return fmt.Errorf("store: outbox payload of %d bytes: at most %d are allowed", len(m.Payload), maxPayload)
	}
	if len(m.Payload) > 0 && !json.Valid(m.Payload) {
		return fmt.Errorf("store: outbox payload of %s/%s is not JSON", m.Topic, m.Kind)
	}
	tx.wake(outboxWake(m.Topic))
	if m.Coalesce {
		// Once claimed, a message may be half delivered: it is left alone.
		n, err := tx.affected("coalesce a message",
			"UPDATE outbox SET payload = ? WHERE topic = ? AND ordering_key = ? AND kind = ? AND subject = ?"+
				" AND coalesce_ok = ? AND leased_until IS NULL AND buried_at IS NULL",
			string(m.Payload), m.Topic, m.Key, m.Kind, m.Subject, true)
		if err != nil || n > 0 {
			return err
		}
	}
	return tx.create("enqueue a message", &outboxRow{
		Topic: m.Topic, OrderingKey: m.Key, Kind: m.Kind, Subject: m.Subject,
		Payload: string(m.Payload), CoalesceOK: m.Coalesce, CreatedAt: at(tx.now), NotBefore: at(m.NotBefore),
	})
}

// Outbox is the queue as deliverers see it. Each value has wake channels of its
// own: keep one for each goroutine that waits.
func (s *Store) Outbox() outbox.Queue { return &queue{store: s} }

type queue struct {
	store     *Store
	mu        sync.Mutex
	listeners map[string]*listener
}

// Wake is signalled when a message of the topic was committed by this process.
func (q *queue) Wake(topic string) <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.listeners == nil {
		q.listeners = make(map[string]*listener)
	}
	if q.listeners[topic] == nil {
		q.listeners[topic] = &listener{}
	}
	return q.listeners[topic].channel(&q.store.wakes, outboxWake(topic))
}

// claimable selects the ids of messages that head their key, are due and are
// not leased. The arguments are topic, now, now, limit.
const claimable = `SELECT o.id FROM outbox o
WHERE o.topic = ? AND o.buried_at IS NULL
  AND (o.not_before IS NULL OR o.not_before <= ?)
  AND (o.leased_until IS NULL OR o.leased_until <= ?)
  AND NOT EXISTS (SELECT 1 FROM outbox e
      WHERE e.topic = o.topic AND e.ordering_key = o.ordering_key AND e.id < o.id AND e.buried_at IS NULL)
ORDER BY o.id LIMIT ?`

// Claim leases messages that head their key and are due, oldest first. A
// message whose lease lapsed is claimed again: whoever held it was killed or
// was too slow.
func (q *queue) Claim(ctx context.Context, topic string, limit int, lease time.Duration) ([]outbox.Message, error) {
	var messages []outbox.Message
	err := q.store.InTx(ctx, func(tx *Tx) error {
		selection := claimable
		if !q.store.sqlite {
			selection += " FOR UPDATE OF o SKIP LOCKED"
		}
		var ids []int64
		now := at(tx.now)
		result := tx.db.Raw(selection, topic, now, now, bounded(limit, maxClaim)).Scan(&ids)
		if err := tx.check("find messages", result.Error); err != nil {
			return err
		}
		messages = nil
		if len(ids) == 0 {
			return nil
		}
		err := tx.exec("lease messages", "UPDATE outbox SET leased_until = ?, attempts = attempts + 1 WHERE id IN ?",
			at(tx.now.Add(lease)), ids)
		if err != nil {
			return err
		}
		messages, err = many(tx, "read messages", tx.db.Where("id IN ?", ids).Order("id"), outboxRow.message)
		return err
	})
	return messages, err
}

// Done removes a delivered message.
func (q *queue) Done(ctx context.Context, id int64) error {
	return q.store.InTx(ctx, func(tx *Tx) error {
		return tx.exec("remove a message", "DELETE FROM outbox WHERE id = ?", id)
	})
}

// Retry puts a message back until not before the given delay, with the reason.
// It stays the head of its key, so that the key waits.
func (q *queue) Retry(ctx context.Context, id int64, delay time.Duration, reason string) error {
	return q.store.InTx(ctx, func(tx *Tx) error {
		return tx.exec("put a message back",
			"UPDATE outbox SET leased_until = NULL, not_before = ?, last_error = ? WHERE id = ?",
			at(tx.now.Add(delay)), shorten(reason), id)
	})
}

// Bury sets a message aside, with the reason, so that its key goes on.
func (q *queue) Bury(ctx context.Context, id int64, reason string) error {
	return q.store.InTx(ctx, func(tx *Tx) error {
		return tx.exec("set a message aside",
			"UPDATE outbox SET leased_until = NULL, buried_at = ?, last_error = ? WHERE id = ?",
			at(tx.now), shorten(reason), id)
	})
}

func shorten(s string) string {
	if len(s) > maxErrorText {
		return s[:maxErrorText] + "…"
	}
	return s
}

// Pending counts undelivered messages and the age of the oldest.
func (q *queue) Pending(ctx context.Context, topic string) (count int, oldest time.Duration, err error) {
	err = q.store.View(ctx, func(tx *Tx) error {
		var row struct {
			N      int
			Oldest stamp
		}
		result := tx.db.Raw("SELECT count(*) AS n, min(created_at) AS oldest FROM outbox WHERE topic = ? AND buried_at IS NULL",
			topic).Scan(&row)
		count, oldest = row.N, 0
		if row.N > 0 {
			oldest = tx.now.Sub(row.Oldest.t)
		}
		return tx.check("count messages", result.Error)
	})
	return count, oldest, err
}
