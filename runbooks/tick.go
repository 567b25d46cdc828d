package runbooks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"holdfast/actions"
	"holdfast/gpuguard/signals"
)

const (
	// dueAtOnce is how many runs one Tick looks at.
	dueAtOnce = 256
	// atOnce is how many runs are moved on at the same time, so that a slow answer
	// of the metrics holds up no other run.
	atOnce = 8
)

// errMoved says that what a transition was decided on has changed meanwhile.
var errMoved = errors.New("it moved meanwhile")

// Tick moves every due run on, one short transaction for each transition, and
// gives the number of transitions done. A run that fails is set aside and stops
// no other; the error joins what went wrong.
func (e *Engine) Tick(ctx context.Context) (int, error) {
	var due []Run
	err := e.store.InTx(ctx, func(tx Tx) (err error) {
		due, err = tx.DueRunbookRuns(dueAtOnce)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("find due runbook runs: %w", err)
	}
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		total int
		errs  []error
		slots = make(chan struct{}, atOnce)
	)
	for _, run := range due {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			n, err := e.advance(ctx, run)
			if err != nil {
				err = errors.Join(fmt.Errorf("runbook run %s: %w", run.ID, err), e.setAside(ctx, run))
			}
			mu.Lock()
			defer mu.Unlock()
			total += n
			errs = append(errs, err)
		})
	}
	wg.Wait()
	return total, errors.Join(errs...)
}

// advance does transitions of one run until there is nothing more to do now.
func (e *Engine) advance(ctx context.Context, run Run) (int, error) {
	done := 0
	// A step takes at most three transitions without waiting; the bound is against a fault of next.
	for range 3*len(run.Steps) + 3 {
		moved, err := e.transit(ctx, run.ID)
		if err != nil || !moved {
			return done, err
		}
		done++
	}
	return done, nil
}

// transit decides the next transition outside any transaction, because actions
// and metrics take time, and then does it in one, deciding again on what is true then.
func (e *Engine) transit(ctx context.Context, id string) (bool, error) {
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

// look reads a run and gathers what its next transition is decided on.
func (e *Engine) look(ctx context.Context, id string) (run Run, v view, due bool, err error) {
	var now time.Time
	err = e.store.View(ctx, func(tx Tx) error {
		now = tx.Now()
		run, err = tx.RunbookRun(id)
		return err
	})
	if err != nil {
		return Run{}, view{}, false, err
	}
	if !dueAt(run, now) {
		return run, view{}, false, nil
	}
	if run.Live() && run.Current < len(run.Steps) && run.Steps[run.Current].Status == StepRunning {
		if v, err = e.gather(ctx, run, now); err != nil {
			return Run{}, view{}, false, err
		}
	}
	if err := ctx.Err(); err != nil {
		return Run{}, view{}, false, err // what a cancelled call answered is not known
	}
	_, due = next(run, v, now, e.waits)
	return run, v, due, nil
}

func dueAt(run Run, now time.Time) bool { return !run.NextAt.IsZero() && !run.NextAt.After(now) }

// gather asks the action engine and the metrics about a running step.
func (e *Engine) gather(ctx context.Context, run Run, now time.Time) (v view, err error) {
	step := run.Runbook.Steps[run.Current]
	judge := step.Kind == StepCheck
	if step.Kind == StepAction {
		if v.action, v.refused, err = e.actionOf(ctx, run, now); err != nil || v.action == nil {
			return v, err
		}
		found, _ := progressOf(*v.action)
		judge = found == verified && step.Criterion != nil
	}
	if judge {
		v.judged = e.judge(ctx, run)
	}
	return v, nil
}

// judge asks the criterion of the current step; whatever stands in the way of
// an answer is no data.
func (e *Engine) judge(ctx context.Context, run Run) *judgement {
	c := run.Filled(run.Current).Criterion
	blind := func(why string) *judgement {
		return &judgement{Judgement: signals.Judgement{Verdict: signals.NoData}, problem: why}
	}
	switch {
	case e.metrics == nil:
		return blind("no metrics are configured")
	case c.Query == "":
		return blind("the query could not be filled in")
	}
	ctx, cancel := context.WithTimeout(ctx, e.queryTimeout)
	defer cancel()
	answer, err := e.metrics.Query(ctx, c.Query, time.Time{})
	if err != nil {
		return blind(err.Error())
	}
	return &judgement{Judgement: c.Judge(answer)}
}

// actionOf finds the action run of the current step, and starts it when there is
// none: a request with the same key never starts a second one. Neither a run nor
// a refusal means that it is too late to start.
func (e *Engine) actionOf(ctx context.Context, run Run, now time.Time) (found *actions.Run, refused, err error) {
	step, state := run.Filled(run.Current), run.Steps[run.Current]
	key := actionKey(run)
	if state.ActionRun != "" {
		a, err := e.actions.Find(ctx, state.ActionRun)
		switch past, _ := progressOf(a); {
		case errors.Is(err, actions.ErrNotFound):
			return nil, err, nil
		case err != nil:
			return nil, nil, fmt.Errorf("find action run: %w", err)
		case a.Key == key || past != gone:
			return &a, nil, nil
		}
		// It belongs to an earlier attempt, and is over.
	}
	spec, known := e.specs[step.Action]
	if !known {
		return nil, fmt.Errorf("%w: %s", actions.ErrUnknownAction, step.Action), nil
	}
	lease := step.TTL
	if lease == 0 {
		lease = spec.DefaultTTL
	}
	if now.Sub(askedAt(state)) > lease {
		return nil, nil, nil
	}
	params, err := actionParams(spec, step.Params)
	if err != nil {
		return nil, err, nil
	}
	by := run.StartedBy
	if state.PressedBy != nil {
		by = *state.PressedBy
	}
	a, err := e.actions.Run(ctx, actions.Request{
		Action: step.Action, Params: params, TTL: step.TTL, IncidentID: run.IncidentID, Actor: by, Key: key,
		Reason: clip(fmt.Sprintf("runbook %s, step %d/%d: %s", run.Runbook.Title, run.Current+1, len(run.Steps), step.Title), maxReason),
	})
	switch {
	case err == nil || errors.Is(err, actions.ErrDuplicate) && a.ID != "":
		return &a, nil, nil
	case final(err):
		return nil, err, nil
	default:
		return nil, nil, fmt.Errorf("start action %s: %w", step.Action, err)
	}
}

// actionKey makes one action run for each attempt of a step.
func actionKey(run Run) string {
	return fmt.Sprintf("runbook:%s:%s:%d", run.ID, run.Runbook.Steps[run.Current].ID, run.Steps[run.Current].Attempt)
}

// final says whether the action engine's refusal will not change by itself.
func final(err error) bool {
	for _, sentinel := range []error{
		actions.ErrUnknownAction, actions.ErrInvalidParams, actions.ErrForbidden, actions.ErrPathLeased, actions.ErrOutdated, actions.ErrDuplicate,
	} {
		if errors.Is(err, sentinel) {
			return true
		}
	}
	return false
}

// commit does the transition in one transaction.
func (e *Engine) commit(ctx context.Context, seen Run, v view) (bool, error) {
	var tr transition
	moved := false
	err := e.store.InTx(ctx, func(tx Tx) error {
		moved = false
		if err := lock(tx, seen.ID); err != nil {
			return err
		}
		run, err := tx.RunbookRun(seen.ID)
		if err != nil {
			return err
		}
		now := tx.Now()
		if run.Version == seen.Version {
			tr, moved = next(run, v, now, e.waits)
		} else if tr, moved = late(run, seen, v, now); !moved {
			return errMoved
		}
		if !moved {
			return nil
		}
		return apply(tx, &tr)
	})
	if err != nil {
		return false, err
	}
	if moved {
		e.counts.saw(tr)
	}
	return moved, nil
}

// late keeps the action run of a step in a run that a person ended in the very
// moment in which it was started.
func late(run, seen Run, v view, now time.Time) (transition, bool) {
	i := seen.Current
	if run.Live() || v.action == nil || run.Steps[i].Attempt != seen.Steps[i].Attempt || run.Steps[i].ActionRun == v.action.ID {
		return transition{}, false
	}
	m := move(run, now)
	m.run.Steps[i].ActionRun = v.action.ID
	m.tell(EventStep, "its action was accepted in the moment in which the run ended, and stays: %s (run %s)", v.action.Plan.Summary, v.action.ID)
	return m.transition, true
}

// lock takes the lock of a run's transition.
func lock(tx Tx, runID string) error { return tx.Lock("runbook:" + runID) }

// apply does a transition inside a transaction and completes tr.run.
func apply(tx Tx, tr *transition) error {
	if err := tx.SaveRunbookRun(&tr.run); err != nil {
		return err
	}
	for i := range tr.events {
		tr.events[i].Run = tr.run
		if err := tx.RecordRunbookEvent(tr.events[i]); err != nil {
			return err
		}
	}
	return nil
}

// setAside puts a run whose transition failed off for a while.
func (e *Engine) setAside(ctx context.Context, seen Run) error {
	err := e.store.InTx(ctx, func(tx Tx) error {
		run, err := tx.RunbookRun(seen.ID)
		if err != nil || !dueAt(run, tx.Now()) {
			return err
		}
		run.NextAt = tx.Now().Add(e.retryAfter)
		return tx.SaveRunbookRun(&run)
	})
	if err != nil && !errors.Is(err, ErrStale) {
		return fmt.Errorf("set runbook run %s aside: %w", seen.ID, err)
	}
	return nil
}
