package actions

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// dueAtOnce is how many runs one Tick looks at; live ones are few, because each holds a policy path.
	dueAtOnce = 256
	// tries is how often a step is decided anew when something moved under it.
	tries = 4
	// policyLock serialises everything that writes policy revisions.
	policyLock = "policy"
)

// errMoved says that what a step was decided on has changed meanwhile.
var errMoved = errors.New("it moved meanwhile")

// Tick moves every due run on, one short transaction for each step, and gives
// the number of steps done. A run that fails is set aside and stops no other;
// the error joins what went wrong.
func (e *Engine) Tick(ctx context.Context) (int, error) {
	var due []Run
	var now time.Time
	err := e.store.InTx(ctx, func(tx Tx) (err error) {
		now = tx.Now()
		due, err = tx.DueRuns(dueAtOnce)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("find due runs: %w", err)
	}
	steps := 0
	var errs []error
	for _, run := range due {
		n, err := e.advance(ctx, run.ID)
		steps += n
		if err != nil {
			errs = append(errs, fmt.Errorf("run %s: %w", run.ID, err), e.setAside(ctx, run))
		}
	}
	n, err := e.sweep(ctx, now)
	return steps + n, errors.Join(append(errs, err)...)
}

// advance does steps of one run until there is nothing more to do now.
func (e *Engine) advance(ctx context.Context, id string) (int, error) {
	steps := 0
	// The longest way without waiting has five steps; the bound is against a fault of next.
	for range 10 {
		moved, err := e.step(ctx, id)
		if err != nil || !moved {
			return steps, err
		}
		steps++
	}
	return steps, nil
}

// step decides the next step outside any transaction, because planning and
// verifying may take time, and then does it in one, deciding again on what is
// true then.
func (e *Engine) step(ctx context.Context, id string) (bool, error) {
	for range tries {
		seen, v, due, err := e.look(ctx, id)
		if err != nil || !due {
			return false, err
		}
		moved, err := e.commit(ctx, seen, v)
		if errors.Is(err, errMoved) || errors.Is(err, ErrStale) {
			continue
		}
		return moved, err
	}
	return false, nil // busy elsewhere; the next tick looks again
}

// look reads a run and gathers what its next step is decided on.
func (e *Engine) look(ctx context.Context, id string) (run Run, v view, due bool, err error) {
	err = e.store.View(ctx, func(tx Tx) error {
		if run, err = tx.Run(id); err != nil {
			return err
		}
		if v.snap, err = tx.PolicySnapshot(); err != nil {
			return err
		}
		return e.authorise(tx, run, &v)
	})
	if err != nil {
		return Run{}, view{}, false, err
	}
	now := v.snap.Now
	if run.NextAt.IsZero() || run.NextAt.After(now) {
		return run, v, false, nil
	}
	if run.Status == StatusAccepted {
		v.plan, v.planErr = e.replan(ctx, run, v.snap)
	}
	if at, judge := verifyTime(run, e.timing); run.Status == StatusActive && judge && !now.Before(at) {
		v.verification = e.verify(ctx, run, v.snap)
	}
	if err := ctx.Err(); err != nil {
		return Run{}, view{}, false, err // a cancelled plan is not an invalid one
	}
	_, due = next(run, v, now, e.timing)
	return run, v, due, nil
}

// authorise looks up whether the requester of an accepted run may still run it.
func (e *Engine) authorise(tx Tx, run Run, v *view) (err error) {
	if run.Status != StatusAccepted {
		return nil
	}
	v.role = e.specOf(run.Action).Role
	v.allowed, err = tx.Allowed(run.Requester, v.role)
	return err
}

func (e *Engine) replan(ctx context.Context, run Run, snap Snapshot) (Plan, error) {
	a, err := e.registry.Get(run.Action)
	if err != nil {
		return Plan{}, err
	}
	return planOn(ctx, a, run.Params, run.TTL, snap)
}

// verify judges; whatever stands in the way of a judgement is inconclusive, never a success.
func (e *Engine) verify(ctx context.Context, run Run, snap Snapshot) *Verification {
	a, err := e.registry.Get(run.Action)
	if err != nil {
		return &Verification{Verdict: Inconclusive, Detail: err.Error()}
	}
	found, err := a.Verify(ctx, run, snap)
	switch {
	case err != nil:
		return &Verification{Verdict: Inconclusive, Detail: clip("could not be judged: "+err.Error(), 300)}
	case found.Verdict != Verified && found.Verdict != NotVerified:
		found.Verdict = Inconclusive
	case found.Verdict == Verified:
		found = e.judgeEffect(ctx, run, found, snap.Now)
	}
	return &found
}

// commit does the step in one transaction.
func (e *Engine) commit(ctx context.Context, seen Run, v view) (bool, error) {
	var tr transition
	moved := false
	err := e.store.InTx(ctx, func(tx Tx) error {
		moved = false
		if err := lock(tx, seen.ID); err != nil {
			return err
		}
		run, err := tx.Run(seen.ID)
		if err != nil {
			return err
		}
		snap, err := tx.PolicySnapshot()
		if err != nil {
			return err
		}
		if run.Version != seen.Version || (run.Status == StatusAccepted && snap.Revision != v.snap.Revision) {
			return errMoved
		}
		now := v
		now.snap = snap
		if err := e.authorise(tx, run, &now); err != nil {
			return err
		}
		if tr, moved = next(run, now, snap.Now, e.timing); !moved {
			return nil
		}
		return apply(tx, &tr, snap, systemActor)
	})
	if err != nil {
		return false, err
	}
	if moved {
		e.metrics.saw(tr.run, tr.kind)
	}
	return moved, nil
}

// lock takes the locks of a run's step, always in this order.
func lock(tx Tx, runID string) error {
	if err := tx.Lock("run:" + runID); err != nil {
		return err
	}
	return tx.Lock(policyLock)
}

// systemActor is holdfast itself.
var systemActor = Actor{Name: systemName, Channel: systemName}

// apply does a transition inside a transaction and completes tr.run.
func apply(tx Tx, tr *transition, snap Snapshot, actor Actor) error {
	if err := applyLayers(tx, tr, snap, actor); err != nil {
		return err
	}
	tr.run.Epoch++
	if tr.openChange {
		if err := tx.OpenEmergencyChange(tr.run); err != nil {
			return fmt.Errorf("enter it in the calendar: %w", err)
		}
	}
	if tr.closeChange {
		if err := tx.CloseEmergencyChange(tr.run); err != nil {
			return fmt.Errorf("close it in the calendar: %w", err)
		}
	}
	if err := tx.SaveRun(&tr.run); err != nil {
		return err
	}
	if tr.kind == "" {
		return nil
	}
	return tx.RecordEvent(Event{Run: tr.run, Kind: tr.kind, Actor: actor, Text: tr.text, Reason: tr.reason})
}

func applyLayers(tx Tx, tr *transition, snap Snapshot, actor Actor) error {
	changed := tr.extend
	switch {
	case tr.insert:
		for _, o := range layersOf(tr.run) {
			if err := tx.InsertOverride(o); err != nil {
				return insertFailed(err)
			}
		}
		changed = true
	case tr.extend:
		for _, id := range tr.run.LayerIDs() {
			if err := tx.ExtendOverride(id, tr.run.ExpiresAt); err != nil {
				return fmt.Errorf("extend layer %s: %w", id, err)
			}
		}
	case tr.remove:
		for _, id := range tr.run.LayerIDs() {
			gone, err := tx.DeleteOverride(id)
			if err != nil {
				return fmt.Errorf("remove layer %s: %w", id, err)
			}
			changed = changed || gone
		}
	default:
		return nil
	}
	revision := snap.Revision
	if changed {
		var err error
		if revision, err = tx.BumpRevision(tr.cause, actor.Name); err != nil {
			return fmt.Errorf("write the new policy revision: %w", err)
		}
	}
	switch {
	case tr.insert:
		tr.run.Revision = revision
	case tr.remove:
		tr.run.RevertRevision = revision
	}
	return nil
}

// insertFailed turns a lease taken in this very moment into a fresh look: the
// transaction may be unusable after the refusal, and the next look names the holder.
func insertFailed(err error) error {
	if errors.Is(err, ErrPathLeased) {
		return errMoved
	}
	return fmt.Errorf("insert layer: %w", err)
}

// setAside puts a run whose step failed off for a while.
func (e *Engine) setAside(ctx context.Context, seen Run) error {
	err := e.store.InTx(ctx, func(tx Tx) error {
		run, err := tx.Run(seen.ID)
		if err != nil || run.Version != seen.Version || run.NextAt.IsZero() {
			return err
		}
		run.NextAt = tx.Now().Add(e.retryAfter)
		return tx.SaveRun(&run)
	})
	if err != nil && !errors.Is(err, ErrStale) {
		return fmt.Errorf("set run %s aside: %w", seen.ID, err)
	}
	return nil
}
