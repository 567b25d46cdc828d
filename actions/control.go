package actions

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Revert takes a run back: its layers are removed in this transaction, and it
// has ended when the gateways say so. ErrWrongState, with the run, when that was
// done before; it says by whom and when. ErrForbidden is audited.
func (e *Engine) Revert(ctx context.Context, runID string, actor Actor) (Run, error) {
	return e.control(ctx, runID, actor, "revert", func(run Run, _ Spec, now time.Time) (transition, error) {
		switch run.Status {
		case StatusAccepted:
			return withdraw(run, actor.Name, now), nil
		case StatusExecuting, StatusActive:
			return takeBack(run, EndReverted, actor.Name, now), nil
		default:
			return transition{}, overAlready(run)
		}
	})
}

// Renew holds the lease until extend from now, at most the action's longest
// lease and never shorter than it was. Asking for what is there already changes
// nothing. ErrWrongState, with the run, when the lease is over.
func (e *Engine) Renew(ctx context.Context, runID string, actor Actor, extend time.Duration) (Run, error) {
	if extend < leastLease {
		return Run{}, InvalidParam("ttl", "is %s: want %s or more", extend, leastLease)
	}
	return e.control(ctx, runID, actor, "renew", func(run Run, spec Spec, now time.Time) (transition, error) {
		switch run.Status {
		case StatusAccepted:
			return transition{}, fmt.Errorf("%w: it is not in force yet", ErrWrongState)
		case StatusExecuting, StatusActive:
			if !now.Before(run.ExpiresAt) {
				return transition{}, fmt.Errorf("%w: the lease ended at %s", ErrWrongState, clock(run.ExpiresAt))
			}
			tr, longer := renewed(run, spec, extend, actor.Name, now, e.timing)
			if !longer {
				return transition{}, errNothingToDo
			}
			return tr, nil
		default:
			return transition{}, overAlready(run)
		}
	})
}

// errNothingToDo says that the run is as asked for already.
var errNothingToDo = errors.New("nothing to do")

// overAlready says how and when a run that is over came to its end.
func overAlready(run Run) error {
	switch {
	case run.Status == StatusFailed:
		return fmt.Errorf("%w: it failed at %s: %s", ErrWrongState, clock(run.EndedAt), run.EndDetail)
	case run.EndReason == EndExpired:
		return fmt.Errorf("%w: its lease expired at %s", ErrWrongState, clock(run.EndedAt))
	default:
		return fmt.Errorf("%w: it was taken back by %s at %s", ErrWrongState, run.EndedBy, clock(run.EndedAt))
	}
}

// control does what a person asks of a run in one transaction.
func (e *Engine) control(ctx context.Context, runID string, actor Actor, verb string, decide func(Run, Spec, time.Time) (transition, error)) (Run, error) {
	for range tries {
		run, kind, err := e.controlOnce(ctx, runID, actor, decide)
		switch {
		case errors.Is(err, ErrStale):
			continue
		case errors.Is(err, errNothingToDo):
			return run, nil
		case errors.Is(err, ErrForbidden):
			return Run{}, e.deny(ctx, run, actor, forbidden(actor, verb, e.specOf(run.Action)))
		case errors.Is(err, ErrWrongState):
			return run, fmt.Errorf("%s run %s: %w", verb, runID, err)
		case err != nil:
			return Run{}, fmt.Errorf("%s run %s: %w", verb, runID, err)
		}
		e.metrics.saw(run, kind)
		e.kick()
		return run, nil
	}
	return Run{}, fmt.Errorf("%s run %s: %w", verb, runID, ErrStale)
}

func (e *Engine) controlOnce(ctx context.Context, runID string, actor Actor, decide func(Run, Spec, time.Time) (transition, error)) (run Run, kind EventKind, err error) {
	err = e.store.InTx(ctx, func(tx Tx) error {
		if err := lock(tx, runID); err != nil {
			return err
		}
		if run, err = tx.Run(runID); err != nil {
			return err
		}
		spec := e.specOf(run.Action)
		allowed, err := tx.Allowed(actor, spec.Role)
		if err != nil {
			return err
		}
		if !allowed {
			return ErrForbidden
		}
		snap, err := tx.PolicySnapshot()
		if err != nil {
			return err
		}
		tr, err := decide(run, spec, snap.Now)
		if err != nil {
			return err
		}
		if err := apply(tx, &tr, snap, actor); err != nil {
			return err
		}
		run, kind = tr.run, tr.kind
		return nil
	})
	return run, kind, err
}

// specOf describes the action of a run; one that is no longer registered can
// still be taken back, by whoever has the highest role.
func (e *Engine) specOf(action string) Spec {
	a, err := e.registry.Get(action)
	if err != nil {
		return Spec{Name: action, Role: "admin", MaxTTL: time.Hour}
	}
	return a.Spec()
}
