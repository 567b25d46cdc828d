package change

import (
	"context"
	"errors"
	"fmt"

	"holdfast/server/audit"
	"holdfast/server/identity"
)

const (
	verbConfirm = "change.confirm"
	verbReject  = "change.reject"
)

// Confirm lets a held change through although others are near (an approver who
// is not its requester). hash is the ParamsHash the person saw. The calendar is
// asked again under the lock: ErrOutdated when something else came in the way
// since, ErrDenied when it is frozen now; both are a RefusedError that names
// what is in the way. The change then waits for a new confirmation.
func (s *Calendar) Confirm(ctx context.Context, id, hash string) (Change, error) {
	return s.edit(ctx, edit{verb: verbConfirm, id: id, permit: approver}, func(tx Tx, p identity.Principal, c *Change) error {
		if c.DecidedByID == p.PersonID && (c.Status == StatusClaimed || c.Status == StatusRunning) {
			return errUnchanged
		}
		if err := decidable(*c, p, tx); err != nil {
			return err
		}
		if hash != c.ParamsHash {
			return fmt.Errorf("change %s: %w; look at it again", c.ID, ErrOutdated)
		}
		d, err := s.decideHeld(tx, c)
		if err != nil {
			return err
		}
		if d.Verdict == Deny {
			return &RefusedError{Cause: ErrDenied, Decision: d}
		}
		if fresh := idsOf(d.Blockers); !subset(fresh, c.Blockers) {
			return s.outdated(tx, c, fresh, d)
		}
		c.DecidedByID, c.DecidedBy, c.DecidedAt = p.PersonID, p.Name, tx.Now()
		if err := s.claimed(tx, c); err != nil {
			return err
		}
		return tx.PutHold(s.holdOf(*c))
	})
}

// decideHeld decides about a held change as of now. A window that began in the
// past begins now, with its length kept.
func (s *Calendar) decideHeld(tx Tx, c *Change) (Decision, error) {
	length := c.End.Sub(c.Start)
	c.Start = later(c.Start, tx.Now().UTC().Truncate(resolution))
	c.End = c.Start.Add(length)
	return s.decide(tx, c.request(), c, s.cat)
}

// request is what a change asks for.
func (c Change) request() Request {
	return Request{
		Service: c.Service, Environment: c.Environment, Kind: c.Kind, Start: c.Start,
		Duration: c.End.Sub(c.Start), RunID: c.RunID, Summary: c.Summary, URL: c.URL,
	}
}

// outdated refuses, and asks for a confirmation of what is in the way now.
func (s *Calendar) outdated(tx Tx, c *Change, blockers []string, d Decision) error {
	s.askConfirmation(c, c.request(), blockers, tx.Now())
	if err := saved(tx, c); err != nil {
		return err
	}
	return &refusedButSaved{RefusedError{Cause: ErrOutdated, Decision: d}}
}

// refusedButSaved is a refusal whose transaction is kept.
type refusedButSaved struct{ RefusedError }

// decidable says why a change cannot be confirmed or rejected by the caller.
func decidable(c Change, p identity.Principal, tx Tx) error {
	if c.Status != StatusHeld {
		by := ""
		if c.DecidedBy != "" {
			by = fmt.Sprintf(" (by %s at %s)", c.DecidedBy, stamp(c.DecidedAt))
		}
		return fmt.Errorf("change %s is %s%s: %w", c.ID, c.Status, by, ErrWrongState)
	}
	if c.RequesterID != "" && c.RequesterID == p.PersonID {
		return fmt.Errorf("change %s: %w", c.ID, ErrSelfConfirm)
	}
	if c.lapsed(tx.Now()) {
		return fmt.Errorf("change %s waited for a confirmation until %s: %w", c.ID, stamp(c.ConfirmBy), ErrWrongState)
	}
	return nil
}

// Reject refuses a held change for good (an approver who is not its requester);
// the run that asked is denied from then on.
func (s *Calendar) Reject(ctx context.Context, id string) (Change, error) {
	return s.edit(ctx, edit{verb: verbReject, id: id, permit: approver}, func(tx Tx, p identity.Principal, c *Change) error {
		if c.Status == StatusRejected && c.DecidedByID == p.PersonID {
			return errUnchanged
		}
		if err := decidable(*c, p, tx); err != nil {
			return err
		}
		c.Status = StatusRejected
		c.DecidedByID, c.DecidedBy, c.DecidedAt = p.PersonID, p.Name, tx.Now()
		return nil
	})
}

func approver(ctx context.Context) (identity.Principal, error) {
	return identity.RequirePerson(ctx, identity.RoleApprover)
}

// edit is one change of one row of the ledger.
type edit struct {
	verb, id string
	permit   func(context.Context) (identity.Principal, error)
}

// errUnchanged ends an edit that has nothing to do.
var errUnchanged = errors.New("unchanged")

// edit runs fn on a change under the lock of its environment, saves it, tells
// console and card, and audits. A refusal is audited too and writes nothing else.
func (s *Calendar) edit(ctx context.Context, e edit, fn func(Tx, identity.Principal, *Change) error) (Change, error) {
	p, err := e.permit(ctx)
	if err != nil {
		return Change{}, s.deny(ctx, p, e.verb, Subject(cut(e.id)), err)
	}
	var (
		c    Change
		kept *refusedButSaved
	)
	err = s.store.InTx(ctx, func(tx Tx) error {
		kept = nil
		var err error
		if c, err = locked(tx, e.id); err != nil {
			return err
		}
		before := c
		err = fn(tx, p, &c)
		switch {
		case errors.As(err, &kept):
			return tx.Audit(entry(p, e.verb, c, audit.Denied, kept.Error()))
		case err != nil:
			c = before
			return err
		}
		if err := saved(tx, &c); err != nil {
			return err
		}
		return tx.Audit(entry(p, e.verb, c, audit.Allowed, ""))
	})
	switch {
	case errors.Is(err, errUnchanged):
		return c, nil
	case err == nil && kept != nil:
		return c, &kept.RefusedError
	case err == nil:
		return c, nil
	case isRefusal(err) || errors.Is(err, identity.ErrForbidden):
		return c, s.deny(ctx, p, e.verb, Subject(e.id), err)
	}
	return Change{}, err
}
