package actions

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"holdfast/strict"
)

// Bounds of a Request.
const (
	minKey    = 8
	maxKey    = 300
	maxReason = 500
)

// Run accepts a request: when it returns a run, the run is committed and takes
// effect exactly once, whatever is killed afterwards; nothing has been done yet.
//
// A second request with the same Key gives the first run together with
// ErrDuplicate; when it asks for something else, ErrDuplicate without a run. ErrUnknownAction, ErrInvalidParams (naming the fields),
// ErrForbidden, ErrPathLeased (naming the holder) and ErrOutdated accept
// nothing; refusals are audited.
func (e *Engine) Run(ctx context.Context, req Request) (Run, error) {
	if err := checkRequest(req); err != nil {
		return Run{}, err
	}
	a, err := e.registry.Get(req.Action)
	if err != nil {
		return Run{}, err
	}
	seen, err := e.before(ctx, a, req)
	if err != nil {
		return Run{}, err
	}
	if seen.first != nil {
		return duplicate(seen.first, asked(ctx, a, req, seen.snap), nil)
	}
	if !seen.allowed {
		return Run{}, e.deny(ctx, Run{Action: req.Action, IncidentID: req.IncidentID, Requester: req.Actor, Reason: req.Reason}, req.Actor, forbidden(req.Actor, "run", a.Spec()))
	}
	plan, err := planOn(ctx, a, req.Params, req.TTL, seen.snap)
	if err != nil {
		return Run{}, err
	}
	run, err := newRun(req, a.Spec(), plan)
	if err != nil {
		return Run{}, err
	}
	if req.PlanHash != "" && req.PlanHash != plan.Hash {
		return Run{}, e.deny(ctx, run, req.Actor, fmt.Errorf("%w: what was looked at is not what would be done; plan again", ErrOutdated))
	}
	if len(plan.Leased) > 0 {
		return Run{}, e.deny(ctx, run, req.Actor, &LeasedError{Lease: plan.Leased[0]})
	}
	return e.insert(ctx, run, a.Spec())
}

// before reads what a request is judged on.
func (e *Engine) before(ctx context.Context, a Action, req Request) (seen judgedRequest, err error) {
	err = e.store.View(ctx, func(tx Tx) error {
		if seen.first, err = runByKey(tx, req.Key); err != nil {
			return err
		}
		if seen.allowed, err = tx.Allowed(req.Actor, a.Spec().Role); err != nil {
			return err
		}
		seen.snap, err = tx.PolicySnapshot()
		return err
	})
	if err != nil {
		return judgedRequest{}, fmt.Errorf("run %s: %w", req.Action, err)
	}
	return seen, nil
}

type judgedRequest struct {
	first   *Run
	allowed bool
	snap    Snapshot
}

// runByKey finds the first run of a key; nil when there is none.
func runByKey(tx Tx, key string) (first *Run, err error) {
	run, err := tx.RunByKey(key)
	switch {
	case err == nil:
		first = &run
	case errors.Is(err, ErrNotFound):
		err = nil
	}
	return first, err
}

// insert commits the run. The key is locked before it is looked up, because a
// refused insert makes some databases give up the transaction.
func (e *Engine) insert(ctx context.Context, run Run, spec Spec) (Run, error) {
	var first *Run
	allowed := false
	err := e.store.InTx(ctx, func(tx Tx) (err error) {
		if err := tx.Lock("action-key:" + run.Key); err != nil {
			return err
		}
		if first, err = runByKey(tx, run.Key); err != nil || first != nil {
			return err
		}
		if allowed, err = tx.Allowed(run.Requester, spec.Role); err != nil || !allowed {
			return err
		}
		run.AcceptedAt, run.NextAt = tx.Now(), tx.Now()
		if err := tx.InsertRun(&run); err != nil {
			return err
		}
		return tx.RecordEvent(Event{
			Run: run, Kind: EventAccepted, Actor: run.Requester,
			Text: fmt.Sprintf("%s: accepted from %s (%s)", run.Plan.Summary, run.Requester.Name, run.Reason),
		})
	})
	switch {
	case errors.Is(err, ErrDuplicate):
		first, err = e.byKey(ctx, run.Key)
		return duplicate(first, run, err)
	case err != nil:
		return Run{}, fmt.Errorf("run %s: %w", run.Action, err)
	case first != nil:
		return duplicate(first, run, nil)
	case !allowed:
		return Run{}, e.deny(ctx, run, run.Requester, forbidden(run.Requester, "run", spec))
	}
	e.metrics.saw(run, EventAccepted)
	e.kick()
	return run, nil
}

func (e *Engine) byKey(ctx context.Context, key string) (run *Run, err error) {
	err = e.store.View(ctx, func(tx Tx) error {
		run, err = runByKey(tx, key)
		return err
	})
	return run, err
}

// asked is the part of a repeated request that duplicate compares. What can no
// longer be planned is compared as it was sent.
func asked(ctx context.Context, a Action, req Request, snap Snapshot) Run {
	run := Run{Action: req.Action, IncidentID: req.IncidentID}
	if plan, err := planOn(ctx, a, req.Params, req.TTL, snap); err == nil {
		run.ParamsHash = plan.Hash
	} else if params, err := canonical(req.Params); err == nil {
		run.ParamsHash = paramsHash(req.Action, params)
	}
	return run
}

// duplicate gives the first run of a key, unless the second asks for something
// else: its caller must not take the first for the answer.
func duplicate(first *Run, second Run, err error) (Run, error) {
	switch {
	case err != nil:
		return Run{}, err
	case first == nil:
		return Run{}, fmt.Errorf("%w, and the first run is gone", ErrDuplicate)
	case first.Action != second.Action || first.ParamsHash != second.ParamsHash || first.IncidentID != second.IncidentID:
		return Run{}, fmt.Errorf("%w for something else: the key belongs to run %s of %s; use a new key", ErrDuplicate, first.ID, first.Action)
	default:
		return *first, fmt.Errorf("%w by %s at %s", ErrDuplicate, first.Requester.Name, clock(first.AcceptedAt))
	}
}

// deny audits a refusal in a transaction of its own and returns its cause.
func (e *Engine) deny(ctx context.Context, run Run, actor Actor, cause error) error {
	if run.Version == 0 {
		run.ID, run.Status = "", "" // it never came to be
	}
	err := e.store.InTx(ctx, func(tx Tx) error {
		return tx.RecordEvent(Event{
			Run: run, Kind: EventDenied, Actor: actor, Reason: clip(cause.Error(), maxReason),
			Text: fmt.Sprintf("%s was refused: %s", run.Action, clip(cause.Error(), maxReason)),
		})
	})
	if err != nil {
		return errors.Join(cause, fmt.Errorf("audit the refusal: %w", err))
	}
	e.metrics.saw(run, EventDenied)
	return cause
}

func forbidden(actor Actor, verb string, spec Spec) error {
	return fmt.Errorf("%w: %s may not %s %s, which needs the role %s", ErrForbidden, actor.Name, verb, spec.Name, spec.Role)
}

func checkRequest(req Request) error {
	var errs strict.Errors
	if n := len(req.Key); n < minKey || n > maxKey {
		errs.Addf("key", "is %d bytes long: want %d to %d", n, minKey, maxKey)
	}
	switch n := utf8.RuneCountInString(strings.TrimSpace(req.Reason)); {
	case n == 0:
		errs.Addf("reason", "is missing: say why in a few words")
	case n > maxReason:
		errs.Addf("reason", "is %d characters long: at most %d are allowed", n, maxReason)
	}
	if req.Actor.Name == "" {
		errs.Addf("actor", "is missing: somebody must answer for it")
	}
	return InvalidParams(errs)
}

// newRun is the run a request would make. Its Params are the canonical ones.
func newRun(req Request, spec Spec, plan Plan) (Run, error) {
	ttl, err := leaseOf(spec, req.TTL)
	if err != nil {
		return Run{}, err
	}
	return Run{
		// Lower case and without hyphens: the ids of layers are made from it.
		ID:  strings.ToLower(rand.Text()),
		Key: req.Key, Action: req.Action, Params: plan.Params, ParamsHash: plan.Hash, Plan: plan,
		IncidentID: req.IncidentID, Requester: req.Actor, Reason: strings.TrimSpace(req.Reason),
		Status: StatusAccepted, TTL: ttl,
	}, nil
}
