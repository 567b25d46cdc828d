package runbooks

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"holdfast/actions"
	"holdfast/strict"
)

// Role is the least role that may start, answer and cancel runs. An action step
// also needs the role of its action.
const Role = "responder"

// Bounds of a StartRequest's key, in bytes.
const (
	minKey = 8
	maxKey = 300
)

// StartRequest asks for a run.
type StartRequest struct {
	// Runbook is the id of the runbook; the version of the moment is frozen in the run.
	Runbook string
	Params  map[string]string
	// IncidentID may be empty.
	IncidentID string
	Actor      actions.Actor
	// Key makes the request idempotent; required, 8–300 bytes.
	Key string
}

// Launch starts a run: when it returns one, the run is committed, and its first
// step begins with the next tick.
//
// A second request with the same Key gives the first run together with
// ErrDuplicate; when it asks for something else, ErrDuplicate without a run.
// ErrUnknownRunbook, ErrInvalid (with strict.Errors by path "params.x") and
// ErrForbidden start nothing; the last is recorded.
func (e *Engine) Launch(ctx context.Context, req StartRequest) (Run, error) {
	book, err := e.library.Runbook(req.Runbook)
	if err != nil {
		return Run{}, err
	}
	params, err := e.checkStart(book, req)
	if err != nil {
		return Run{}, err
	}
	run := Run{
		ID: strings.ToLower(rand.Text()), Key: req.Key, Runbook: book, Params: params,
		IncidentID: req.IncidentID, StartedBy: req.Actor, Status: StatusRunning, Steps: make([]StepState, len(book.Steps)),
	}
	for i := range run.Steps {
		run.Steps[i] = StepState{Status: StepPending, Attempt: 1}
	}
	return e.insert(ctx, run)
}

// checkStart checks a request and completes its parameters.
func (e *Engine) checkStart(book Runbook, req StartRequest) (map[string]string, error) {
	var errs strict.Errors
	if n := len(req.Key); n < minKey || n > maxKey {
		errs.Addf("key", "is %d bytes long: want %d to %d", n, minKey, maxKey)
	}
	if req.Actor.Name == "" {
		errs.Addf("actor", "is missing: somebody must answer for it")
	}
	values := map[string]string{}
	names := make([]string, 0, len(book.Params))
	for _, p := range book.Params {
		names = append(names, p.Name)
		given := req.Params[p.Name]
		if strings.TrimSpace(given) == "" {
			given = p.Default
		}
		value, problem := p.checked(given)
		if problem != "" {
			errs.Addf(strict.Join("params", p.Name), "%s", problem)
		}
		values[p.Name] = value
	}
	for _, name := range slices.Sorted(maps.Keys(req.Params)) {
		if !slices.Contains(names, name) {
			errs.Addf(strict.Join("params", clip(name, 80)), "%s", actions.NoSuch("parameter", name, names))
		}
	}
	if len(errs) == 0 {
		e.checkFilled(&errs, book, values)
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, errs)
	}
	return values, nil
}

// checkFilled checks what the values make of queries and parameters of actions.
func (e *Engine) checkFilled(errs *strict.Errors, book Runbook, values map[string]string) {
	for i := range book.Steps {
		s := book.filled(i, values)
		if s.Criterion != nil {
			query, err := fillQuery(book.Steps[i].Criterion.Query, book.kindsOf(), values)
			if err == nil && e.checkQuery != nil {
				err = e.checkQuery(query)
			}
			if err != nil {
				errs.Addf("params", "make the query of step %s impossible: %s", s.ID, clip(err.Error(), 300))
			}
		}
		if s.Kind == StepAction {
			if _, err := actionParams(e.specs[s.Action], s.Params); err != nil {
				errs.Addf("params", "do not fit step %s: %s", s.ID, err)
			}
		}
	}
}

// insert commits the run. The key is locked before it is looked up, because a
// refused insert makes some databases give up the transaction.
func (e *Engine) insert(ctx context.Context, run Run) (Run, error) {
	var first *Run
	allowed := false
	err := e.store.InTx(ctx, func(tx Tx) (err error) {
		if err := tx.Lock("runbook-key:" + run.Key); err != nil {
			return err
		}
		if first, err = byKey(tx, run.Key); err != nil || first != nil {
			return err
		}
		if allowed, err = tx.Allowed(run.StartedBy, Role); err != nil || !allowed {
			return err
		}
		run.StartedAt, run.NextAt = tx.Now(), tx.Now()
		if err := tx.InsertRunbookRun(&run); err != nil {
			return err
		}
		return tx.RecordRunbookEvent(Event{
			Run: run, Kind: EventStarted, Actor: run.StartedBy, Thread: true,
			Text: fmt.Sprintf("Runbook %s: started by %s, %s", run.Runbook.Title, run.StartedBy.Name, count(len(run.Steps), "step")),
		})
	})
	switch {
	case errors.Is(err, ErrDuplicate):
		err = e.store.View(ctx, func(tx Tx) (err error) {
			first, err = byKey(tx, run.Key)
			return err
		})
		return duplicate(first, run, err)
	case err != nil:
		return Run{}, fmt.Errorf("start runbook %s: %w", run.Runbook.ID, err)
	case first != nil:
		return duplicate(first, run, nil)
	case !allowed:
		return Run{}, e.deny(ctx, run, "", run.StartedBy, forbidden(run.StartedBy, "start", run.Runbook))
	}
	e.counts.event(run.Runbook.ID, EventStarted)
	e.kick()
	return run, nil
}

// byKey finds the first run of a key; nil when there is none.
func byKey(tx Tx, key string) (first *Run, err error) {
	run, err := tx.RunbookRunByKey(key)
	switch {
	case err == nil:
		first = &run
	case errors.Is(err, ErrNotFound):
		err = nil
	}
	return first, err
}

// duplicate gives the first run of a key, unless the second asks for something else.
func duplicate(first *Run, second Run, err error) (Run, error) {
	switch {
	case err != nil:
		return Run{}, err
	case first == nil:
		return Run{}, fmt.Errorf("%w, and the first run is gone", ErrDuplicate)
	case first.Runbook.ID != second.Runbook.ID || first.IncidentID != second.IncidentID || !maps.Equal(first.Params, second.Params):
		return Run{}, fmt.Errorf("%w for something else: the key belongs to run %s of %s; use a new key", ErrDuplicate, first.ID, first.Runbook.ID)
	default:
		return *first, fmt.Errorf("%w by %s at %s", ErrDuplicate, first.StartedBy.Name, clock(first.StartedAt))
	}
}

func forbidden(actor actions.Actor, verb string, book Runbook) error {
	return fmt.Errorf("%w: %s may not %s the runbook %s, which needs the role %s", ErrForbidden, actor.Name, verb, book.ID, Role)
}

// maxReason bounds what is recorded of a refusal, in characters.
const maxReason = 500

// deny records a refusal in a transaction of its own and returns its cause.
func (e *Engine) deny(ctx context.Context, run Run, step string, actor actions.Actor, cause error) error {
	if run.Version == 0 {
		run.ID, run.Status = "", "" // it never came to be
	}
	err := e.store.InTx(ctx, func(tx Tx) error {
		return tx.RecordRunbookEvent(Event{
			Run: run, Kind: EventDenied, Actor: actor, Step: step, Reason: clip(cause.Error(), maxReason),
			Text: fmt.Sprintf("Runbook %s: refused: %s", run.Runbook.Title, clip(cause.Error(), maxReason)),
		})
	})
	if err != nil {
		return errors.Join(cause, fmt.Errorf("record the refusal: %w", err))
	}
	e.counts.event(run.Runbook.ID, EventDenied)
	return cause
}
