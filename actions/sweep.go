package actions

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// sweepGrace is how long the run of an expired layer has to remove it itself.
const sweepGrace = 3 * time.Second

// sweep removes layers that outlived their lease because no live run looks
// after them. Gateways have ended them by themselves by then; here they would
// stay in the document for ever.
func (e *Engine) sweep(ctx context.Context, now time.Time) (int, error) {
	if !e.sweepDue(now) {
		return 0, nil
	}
	snap, err := e.snapshot(ctx)
	if err != nil {
		return 0, fmt.Errorf("look for expired layers: %w", err)
	}
	if len(outlived(snap.Overrides, snap.Now, sweepGrace)) == 0 {
		return 0, nil
	}
	removed := 0
	err = e.store.InTx(ctx, func(tx Tx) error {
		removed = 0
		return removeOutlived(tx, &removed)
	})
	if err != nil {
		return 0, fmt.Errorf("remove expired layers: %w", err)
	}
	return removed, nil
}

func (e *Engine) sweepDue(now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if since := now.Sub(e.sweptAt); since >= 0 && since < e.sweepEvery {
		return false
	}
	e.sweptAt = now
	return true
}

func removeOutlived(tx Tx, removed *int) error {
	if err := tx.Lock(policyLock); err != nil {
		return err
	}
	snap, err := tx.PolicySnapshot()
	if err != nil {
		return err
	}
	for _, o := range outlived(snap.Overrides, snap.Now, sweepGrace) {
		run, err := tx.Run(runOfLayer(o.ID))
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		if err == nil && run.Live() && snap.Now.Sub(o.Expires) < 10*sweepGrace {
			continue // its own run ends it and says so
		}
		gone, err := tx.DeleteOverride(o.ID)
		if err != nil {
			return err
		}
		if gone {
			*removed++
		}
	}
	if *removed == 0 {
		return nil
	}
	_, err = tx.BumpRevision(fmt.Sprintf("%d expired layers without a live run removed", *removed), systemName)
	return err
}
