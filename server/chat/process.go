package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"holdfast/actions"
	"holdfast/server/audit"
	"holdfast/server/change"
	"holdfast/server/identity"
	"holdfast/server/incident"
)

// atOnce bounds how many clicks one Process works off.
const atOnce = 100

// job is one claimed click with what it needs.
type job struct {
	click  Click
	button Button
	person identity.Person
	at     place
}

// Process works due clicks off, one after the other, and gives their number. A
// click is claimed for a while, done outside any transaction with the button's
// id as key, and then marked: a crash in between repeats what has no second effect.
func (s *Service) Process(ctx context.Context) (int, error) {
	var errs []error
	for n := range atOnce {
		j, found, err := s.claim(ctx)
		if err != nil {
			return n, errors.Join(append(errs, err)...)
		}
		if !found {
			return n, errors.Join(errs...)
		}
		if err := s.work(ctx, j); err != nil {
			errs = append(errs, fmt.Errorf("click %s: %w", j.click.ID, err))
		}
	}
	return atOnce, errors.Join(errs...)
}

// claim takes the longest due click for the time of its lease.
func (s *Service) claim(ctx context.Context) (j job, found bool, err error) {
	err = s.store.InTx(ctx, func(tx Tx) error {
		j, found = job{}, false
		due, err := tx.DueClicks(1)
		if err != nil || len(due) == 0 {
			return err
		}
		j.click, found = due[0], true
		j.click.NextAt = tx.Now().Add(s.clickLease)
		j.click.Attempts++
		if err := tx.SaveClick(j.click); err != nil {
			return err
		}
		if j.button, err = tx.Button(j.click.ButtonID); err != nil {
			return err
		}
		if j.at, err = placeOf(tx, j.button.Subject); err != nil {
			return err
		}
		j.person, err = tx.Person(j.click.PersonID)
		if errors.Is(err, identity.ErrNotFound) {
			return nil // refused below: nobody is nobody's role
		}
		return err
	})
	if err != nil {
		return job{}, false, fmt.Errorf("claim a click: %w", err)
	}
	return j, found, nil
}

// work does one click and marks it.
func (s *Service) work(ctx context.Context, j job) error {
	doing, cancel := context.WithTimeout(ctx, s.clickLease)
	defer cancel()
	detail, err := s.do(identity.WithPrincipal(doing, identity.Of(j.person, identity.ChannelSlack)), j)
	switch {
	case err == nil:
		return s.mark(ctx, j, ClickDone, detail)
	case final(err):
		return s.mark(ctx, j, ClickRefused, err.Error())
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		return s.later(ctx, j, err)
	}
}

// do calls whoever does what the button says. The person's role is checked there again.
func (s *Service) do(ctx context.Context, j job) (string, error) {
	if j.person.ID == "" || j.person.Disabled {
		return "", fmt.Errorf("%w: %s has no active account", identity.ErrForbidden, j.click.PersonName)
	}
	_, id, _ := strings.Cut(j.button.Subject, ":")
	switch j.button.Kind {
	case ButtonAck:
		return "acknowledged", s.incidents.Acknowledge(ctx, id)
	case ButtonAction:
		return s.run(ctx, j, id)
	case ButtonRevert:
		run, err := s.runner.Revert(ctx, id, actorOf(j.person))
		if j.click.Attempts > 1 && errors.Is(err, actions.ErrWrongState) && run.EndReason == actions.EndReverted && run.EndedBy == j.person.Name {
			err = nil // done by the try that was cut off
		}
		return "run " + id + " taken back", err
	case ButtonRenew:
		_, err := s.runner.Renew(ctx, id, actorOf(j.person), s.renewFor(actions.Run{Action: j.button.Action, TTL: time.Minute}))
		return "run " + id + " renewed", err
	case ButtonConfirm:
		_, err := s.changes.Confirm(ctx, id, j.button.Hash)
		return "confirmed", err
	case ButtonReject:
		_, err := s.changes.Reject(ctx, id)
		return "rejected", err
	default:
		return "", fmt.Errorf("%w: a button of kind %q does nothing", ErrNotFound, j.button.Kind)
	}
}

func (s *Service) run(ctx context.Context, j job, incidentID string) (string, error) {
	reason := j.click.Detail
	if reason == "" {
		reason = fmt.Sprintf("button on incident #%d: %s", j.at.incident.Number, clip(j.at.incident.Title, 200))
	}
	run, err := s.runner.Run(ctx, actions.Request{
		Action: j.button.Action, Params: j.button.Params, Reason: reason, IncidentID: incidentID,
		Actor: actorOf(j.person), Key: j.button.ID,
	})
	if errors.Is(err, actions.ErrDuplicate) {
		err = nil // the try that was cut off has asked already
	}
	return "run " + run.ID, err
}

// final says whether repeating cannot help: the answer is no.
func final(err error) bool {
	for _, no := range []error{
		actions.ErrForbidden, actions.ErrInvalidParams, actions.ErrUnknownAction, actions.ErrPathLeased,
		actions.ErrWrongState, actions.ErrNotFound, actions.ErrOutdated,
		identity.ErrForbidden, identity.ErrUnauthenticated, identity.ErrNotFound,
		incident.ErrNotFound, incident.ErrResolved, incident.ErrStillFiring, incident.ErrInvalid,
		change.ErrNotFound, change.ErrSelfConfirm, change.ErrWrongState, change.ErrOutdated,
		change.ErrDenied, change.ErrInvalid, change.ErrConflict, change.ErrRunMismatch,
		ErrNotFound,
	} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}

// mark notes what became of a click and shows it; a refusal is said in the
// thread and to the presser, and audited.
func (s *Service) mark(ctx context.Context, j job, status ClickStatus, detail string) error {
	err := s.store.InTx(ctx, func(tx Tx) error {
		if err := tx.Lock("button:" + j.button.ID); err != nil {
			return err
		}
		c, err := tx.ClickByButton(j.button.ID)
		if err != nil || c.Status != ClickAccepted {
			return err // marked by another server
		}
		c.Status, c.Detail, c.DoneAt, c.NextAt = status, clip(detail, 500), tx.Now(), time.Time{}
		if err := tx.SaveClick(c); err != nil {
			return err
		}
		if err := refreshCard(tx, j.at.card); err != nil || status == ClickDone {
			return err
		}
		if err := tell(tx, j.at.card, fmt.Sprintf("%q asked by %s was refused: %s", j.button.Label, c.PersonName, c.Detail)); err != nil {
			return err
		}
		if err := whisper(tx, c, j.at.card, fmt.Sprintf("%q was refused: %s", j.button.Label, c.Detail)); err != nil {
			return err
		}
		e := identity.Of(j.person, identity.ChannelSlack).AuditEntry(verbClick+".done", j.button.Subject, audit.Denied, clip(detail, 300))
		e.ActorID, e.ActorName = c.PersonID, c.PersonName
		return tx.Audit(e)
	})
	if err != nil {
		return fmt.Errorf("mark it %s: %w", status, err)
	}
	s.clicks.WithLabelValues(string(status)).Inc()
	return nil
}

// later puts a click off after a fault, longer each time, and gives up in the end.
func (s *Service) later(ctx context.Context, j job, cause error) error {
	var now time.Time
	err := s.store.InTx(ctx, func(tx Tx) error {
		now = tx.Now()
		c, err := tx.ClickByButton(j.button.ID)
		if err != nil || c.Status != ClickAccepted {
			return err
		}
		c.NextAt = now.Add(min(time.Minute, time.Second<<min(j.click.Attempts, 6)))
		return tx.SaveClick(c)
	})
	if err != nil {
		return errors.Join(cause, err)
	}
	if now.Sub(j.click.ReceivedAt) < s.giveUpAfter {
		return cause
	}
	s.log.ErrorContext(ctx, "gave up on a click", "click", j.click.ID, "button", string(j.button.Kind), "error", cause)
	return errors.Join(cause, s.mark(ctx, j, ClickRefused, fmt.Sprintf(
		"it could not be done within %s because of a fault of holdfast; look at the card and ask again if it is still wanted", s.giveUpAfter)))
}
