package change

import (
	"context"
	"fmt"
	"time"

	"holdfast/server/identity"
)

const (
	verbStart  = "change.start"
	verbFinish = "change.finish"
	verbExtend = "change.extend"
	verbCancel = "change.cancel"
)

// maxExtension bounds one extension.
const maxExtension = 24 * time.Hour

// Holder is who holds a claim.
type Holder struct {
	// RunID must be the run that claimed.
	RunID string
	// FencingToken must be the claim's when it is not 0, so that a run which was
	// overtaken cannot touch the newer claim.
	FencingToken int64
}

// Start says that the claimed change begins (its run). The calendar's denials
// are asked again: ErrDenied when a freeze or a critical incident came up since
// the claim. ErrWrongState before the window opens and after the lease ended.
// Starting again changes nothing.
func (s *Calendar) Start(ctx context.Context, id string, h Holder) (Change, error) {
	return s.edit(ctx, edit{verb: verbStart, id: id, permit: runner}, func(tx Tx, p identity.Principal, c *Change) error {
		if err := holds(p, *c, h); err != nil {
			return err
		}
		now := tx.Now()
		switch {
		case c.Status == StatusRunning:
			return errUnchanged
		case c.Status != StatusClaimed:
			return wrongState(*c, "only a claimed change starts")
		case c.lapsed(now):
			return wrongState(*c, "its claim lapsed at "+stamp(c.ClaimedUntil)+"; claim again")
		case now.Before(c.Start):
			return wrongState(*c, "its window opens at "+stamp(c.Start))
		}
		if err := s.stillAllowed(tx, *c); err != nil {
			return err
		}
		c.Status = StatusRunning
		return nil
	})
}

// stillAllowed refuses what is denied now; other changes were settled by the claim.
func (s *Calendar) stillAllowed(tx Tx, c Change) error {
	d, err := s.decide(tx, c.request(), &c, s.cat)
	if err != nil {
		return err
	}
	if d.Verdict == Deny {
		return &RefusedError{Cause: ErrDenied, Decision: d}
	}
	return nil
}

// Finish ends a running change with succeeded, failed or rolled_back (its run,
// or an approver for one that was left behind). The window ends now and its
// guard stays. A success after the window is recorded as overrun.
func (s *Calendar) Finish(ctx context.Context, id string, h Holder, result Status) (Change, error) {
	switch result {
	case StatusSucceeded, StatusFailed, StatusRolledBack:
	default:
		return Change{}, fmt.Errorf("%w: result %q is not one of %s, %s, %s", ErrInvalid, cut(string(result)), StatusSucceeded, StatusFailed, StatusRolledBack)
	}
	return s.edit(ctx, edit{verb: verbFinish, id: id, permit: runner}, func(tx Tx, p identity.Principal, c *Change) error {
		if err := holdsOrApproves(p, *c, h); err != nil {
			return err
		}
		now := tx.Now().UTC().Truncate(resolution)
		switch {
		case c.Status == result || c.Status == StatusOverrun && result == StatusSucceeded:
			return errUnchanged
		case c.Status != StatusRunning:
			return wrongState(*c, "only a running change finishes; start it first, or cancel it")
		}
		c.Status = result
		late := now.After(c.End)
		if late && result == StatusSucceeded {
			c.Status = StatusOverrun
		}
		c.End, c.FinishedAt = later(c.Start, now), now
		return s.putEnd(tx, *c, late)
	})
}

// putEnd moves the hold to the window's end. An overrun is a fact that the
// database must not refuse: where it runs into others it no longer conflicts,
// and Decide goes on seeing it.
func (s *Calendar) putEnd(tx Tx, c Change, late bool) error {
	hold := s.holdOf(c)
	if late {
		in, err := s.input(tx, c.request(), &c, s.cat)
		if err != nil {
			return err
		}
		if len(in.blockersAt(c.Start, c.End)) > 0 {
			hold.Exempt = true
		}
	}
	return tx.PutHold(hold)
}

// Extend asks for so much time from now on, or from the start of a window that has
// not opened (its run); it never brings the end nearer.
// A RefusedError with ErrConflict names changes that would come in the way, with
// ErrDenied the freeze; the change then keeps its window. Asking again after a
// lost answer does no harm.
func (s *Calendar) Extend(ctx context.Context, id string, h Holder, by time.Duration) (Change, error) {
	by = by.Truncate(resolution)
	if by <= 0 || by > maxExtension {
		return Change{}, fmt.Errorf("%w: an extension is more than 0 and at most %s", ErrInvalid, maxExtension)
	}
	return s.edit(ctx, edit{verb: verbExtend, id: id, permit: runner}, func(tx Tx, p identity.Principal, c *Change) error {
		if err := holds(p, *c, h); err != nil {
			return err
		}
		now := tx.Now().UTC().Truncate(resolution)
		if c.Status != StatusRunning && (c.Status != StatusClaimed || c.lapsed(now)) {
			return wrongState(*c, "only a claimed or running change is extended")
		}
		before := *c
		c.End = later(c.End, later(now, c.Start).Add(by))
		if c.End.Equal(before.End) {
			return errUnchanged
		}
		if c.End.Sub(c.Start) > MaxDuration {
			return fmt.Errorf("%w: the window would be longer than %s", ErrInvalid, MaxDuration)
		}
		if err := s.extendable(tx, before, *c); err != nil {
			return err
		}
		if c.Status == StatusClaimed {
			c.ClaimedUntil = later(now, c.Start).Add(s.claimLease)
		}
		return tx.PutHold(s.holdOf(*c))
	})
}

// extendable refuses an extension into others or into a freeze. What was near
// before stays settled.
func (s *Calendar) extendable(tx Tx, before, after Change) error {
	if alwaysFree(after.Kind) {
		return nil
	}
	in, err := s.input(tx, after.request(), &after, s.cat)
	if err != nil {
		return err
	}
	d := Decision{Verdict: Deny}
	for _, f := range in.freezesAt(before.End, after.End) {
		d.Freezes = append(d.Freezes, f)
		d.add(ReasonFreeze, freezeText(f))
	}
	if len(d.Freezes) > 0 {
		return &RefusedError{Cause: ErrDenied, Decision: d}
	}
	settled := append(idsOf(in.blockersAt(before.Start, before.End)), before.Blockers...)
	for _, b := range in.blockersAt(after.Start, after.End) {
		if !subset([]string{b.ID}, settled) {
			d.Verdict = Confirm
			d.Blockers = append(d.Blockers, b)
			d.add(ReasonGuardBand, in.blockerText(b, after.Start, after.End))
		}
	}
	if len(d.Blockers) > 0 {
		return &RefusedError{Cause: ErrConflict, Decision: d}
	}
	return nil
}

// Cancel gives a held or claimed change up and frees its window at once (its
// run, its requester, or an approver). What runs already has altered production:
// its run finishes it as failed or rolled_back and the guard stays; only an
// approver may cancel it.
func (s *Calendar) Cancel(ctx context.Context, id string, h Holder) (Change, error) {
	return s.edit(ctx, edit{verb: verbCancel, id: id, permit: runner}, func(tx Tx, p identity.Principal, c *Change) error {
		if err := holdsOrApproves(p, *c, h); err != nil {
			return err
		}
		switch c.Status {
		case StatusCancelled:
			return errUnchanged
		case StatusHeld, StatusClaimed:
		case StatusRunning:
			if !approves(p) {
				return wrongState(*c, "a running change is finished as failed or rolled_back, not cancelled")
			}
		default:
			return wrongState(*c, "it is over")
		}
		c.Status, c.FinishedAt = StatusCancelled, tx.Now()
		return tx.DropHold(c.ID)
	})
}

// runner lets pipelines and responders in; whether they hold the claim is seen later.
func runner(ctx context.Context) (identity.Principal, error) {
	if p, err := identity.RequireToken(ctx, identity.TokenCI); err == nil {
		return p, nil
	}
	return identity.Require(ctx, identity.RoleResponder)
}

// holds says why the caller is not the one who holds the claim.
func holds(p identity.Principal, c Change, h Holder) error {
	if err := inScope(p, c.Service, c.Environment); err != nil {
		return err
	}
	if c.Kind == KindEmergency {
		return wrongState(c, "an emergency action is ended where it was started")
	}
	if h.RunID == "" || h.RunID != c.RunID {
		return fmt.Errorf("change %s: %w", c.ID, ErrRunMismatch)
	}
	if h.FencingToken != 0 && h.FencingToken != c.FencingToken {
		return fmt.Errorf("change %s: %w: fencing token %d was overtaken by %d", c.ID, ErrRunMismatch, h.FencingToken, c.FencingToken)
	}
	return nil
}

// holdsOrApproves also lets the requester and approvers end what was left behind.
func holdsOrApproves(p identity.Principal, c Change, h Holder) error {
	if c.Kind != KindEmergency && h.RunID == "" && (approves(p) || p.PersonID != "" && p.PersonID == c.RequesterID) {
		return nil
	}
	return holds(p, c, h)
}

func approves(p identity.Principal) bool {
	return p.PersonID != "" && p.Role.AtLeast(identity.RoleApprover)
}

func wrongState(c Change, why string) error {
	return fmt.Errorf("change %s is %s: %w: %s", c.ID, c.Status, ErrWrongState, why)
}
