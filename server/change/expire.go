package change

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/server/audit"
	"holdfast/server/identity"
)

const (
	verbExpire  = "change.expire"
	expireBatch = 100
)

// lapsed says whether a held change was not confirmed, or a claim not started, in time.
func (c Change) lapsed(now time.Time) bool {
	switch c.Status {
	case StatusHeld:
		return !now.Before(c.ConfirmBy)
	case StatusClaimed:
		return !c.ClaimedUntil.IsZero() && !now.Before(c.ClaimedUntil)
	default:
		return false
	}
}

// expire frees a lapsed change.
func expire(tx Tx, c *Change) error {
	reason := "nobody confirmed it until " + stamp(c.ConfirmBy)
	if c.Status == StatusClaimed {
		reason = "it was not started until " + stamp(c.ClaimedUntil)
	}
	c.Status, c.FinishedAt = StatusExpired, tx.Now()
	if err := tx.DropHold(c.ID); err != nil {
		return fmt.Errorf("expire change %s: %w", c.ID, err)
	}
	if err := saved(tx, c); err != nil {
		return err
	}
	return tx.Audit(entry(identity.System(), verbExpire, *c, audit.Allowed, reason))
}

// ExpireLapsed ends held changes nobody confirmed and claims nobody started, and
// says how many. It is called by a ticker; one change that fails does not keep
// the others.
func (s *Calendar) ExpireLapsed(ctx context.Context) (int, error) {
	var due []Change
	// Listing locks rows, and the lock of an environment comes before rows: so
	// each is ended in a transaction of its own.
	err := s.store.InTx(ctx, func(tx Tx) (err error) {
		due, err = tx.LapsedChanges(expireBatch)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("lapsed changes: %w", err)
	}
	count := 0
	var failed []error
	for _, c := range due {
		done, err := s.expireOne(ctx, c.ID)
		if err != nil {
			failed = append(failed, err)
		}
		if done {
			count++
		}
	}
	return count, errors.Join(failed...)
}

func (s *Calendar) expireOne(ctx context.Context, id string) (done bool, err error) {
	err = s.store.InTx(ctx, func(tx Tx) error {
		done = false
		c, err := locked(tx, id)
		if err != nil || !c.lapsed(tx.Now()) {
			return err
		}
		done = true
		return expire(tx, &c)
	})
	return done && err == nil, err
}
