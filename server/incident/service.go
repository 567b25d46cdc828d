package incident

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"holdfast/server/audit"
	"holdfast/server/identity"
)

// Options configure the Service.
type Options struct {
	// Store is required.
	Store Store
}

// Service is what people do with incidents. Each method checks the caller in
// the context and leaves an audit row, refusals included.
type Service struct{ store Store }

// New makes a Service. It panics without a Store, a fault of the program.
func New(o Options) *Service {
	if o.Store == nil {
		panic("incident.New: Options.Store is nil")
	}
	return &Service{store: o.Store}
}

// Acknowledge says that the caller has the incident in hand (responder).
// Acknowledging again changes nothing; ErrResolved when it is over.
func (s *Service) Acknowledge(ctx context.Context, id string) error {
	return s.edit(ctx, "incident.acknowledge", id, func(tx Tx, p identity.Principal, in *Incident) error {
		switch in.Status {
		case StatusResolved:
			return fmt.Errorf("incident %d: %w", in.Number, ErrResolved)
		case StatusAcknowledged:
			return errNothingToDo
		case StatusOpen:
		}
		in.Status, in.AckedAt, in.AckedBy = StatusAcknowledged, tx.Now(), p.Name
		if err := record(tx, id, EntryAcknowledged, p.Name, "Acknowledged."); err != nil {
			return err
		}
		return Tell(tx, id, "Acknowledged by "+p.Name+".")
	})
}

// Resolution says how an incident is resolved by hand.
type Resolution struct {
	// Force resolves although alerts still fire, or although the source left some out; it needs a Reason.
	Force  bool
	Reason string
}

// Resolve ends an incident by hand (responder). ErrStillFiring unless forced
// while alerts fire; ErrResolved when it is over already. Alerts that go on
// firing after a forced end do not reopen it; a new one does.
func (s *Service) Resolve(ctx context.Context, id string, r Resolution) error {
	r.Reason = strings.TrimSpace(r.Reason)
	if r.Force && r.Reason == "" {
		return fmt.Errorf("%w: resolving by force needs a reason", ErrInvalid)
	}
	if utf8.RuneCountInString(r.Reason) > maxNote {
		return fmt.Errorf("%w: a reason has at most %d characters", ErrInvalid, maxNote)
	}
	return s.edit(ctx, "incident.resolve", id, func(tx Tx, p identity.Principal, in *Incident) error {
		if in.Status == StatusResolved {
			return fmt.Errorf("incident %d: %w", in.Number, ErrResolved)
		}
		if !r.Force && (in.Firing > 0 || in.Truncated > 0) {
			return fmt.Errorf("incident %d: %w: %s; wait, or resolve by force with a reason", in.Number, ErrStillFiring, stillFiring(*in))
		}
		in.Status, in.ResolvedAt = StatusResolved, tx.Now()
		text := "Resolved by hand."
		if r.Force {
			text = fmt.Sprintf("Resolved by force with %s.", stillFiring(*in))
		}
		if r.Reason != "" {
			text += " Reason: " + r.Reason
		}
		if err := record(tx, id, EntryResolved, p.Name, text); err != nil {
			return err
		}
		return Tell(tx, id, p.Name+": "+text)
	})
}

func stillFiring(in Incident) string {
	text := fmt.Sprintf("%d firing", in.Firing)
	if in.Truncated > 0 {
		text += fmt.Sprintf(" and %d not shown by the source", in.Truncated)
	}
	return text
}

// AddNote writes a note of 1–4000 characters into timeline and thread (responder).
func (s *Service) AddNote(ctx context.Context, id, text string) error {
	text = strings.TrimSpace(text)
	if text == "" || utf8.RuneCountInString(text) > maxNote || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return fmt.Errorf("%w: a note has 1 to %d characters", ErrInvalid, maxNote)
	}
	const verb = "incident.note"
	p, err := s.permit(ctx, verb, id)
	if err != nil {
		return err
	}
	err = s.store.InTx(ctx, func(tx Tx) error {
		if _, err := tx.Incident(id); err != nil {
			return err
		}
		if err := record(tx, id, EntryNote, p.Name, text); err != nil {
			return err
		}
		if err := Tell(tx, id, p.Name+" noted: "+text); err != nil {
			return err
		}
		return tx.Audit(p.AuditEntry(verb, Subject(id), audit.Allowed, ""))
	})
	if err != nil {
		return fmt.Errorf("note on incident %q: %w", id, err)
	}
	return nil
}

// Get gives one incident (viewer); ErrNotFound when absent.
func (s *Service) Get(ctx context.Context, id string) (Incident, error) {
	if _, err := identity.Require(ctx, identity.RoleViewer); err != nil {
		return Incident{}, err
	}
	var in Incident
	err := s.store.View(ctx, func(tx Tx) (err error) {
		in, err = tx.Incident(id)
		return err
	})
	if err != nil {
		return Incident{}, fmt.Errorf("incident %q: %w", id, err)
	}
	return in, nil
}

const (
	maxList     = 200
	maxTimeline = 500
)

// List gives incidents, newest first (viewer). A Limit outside 1–200 becomes 200.
func (s *Service) List(ctx context.Context, f Filter) ([]Incident, error) {
	if _, err := identity.Require(ctx, identity.RoleViewer); err != nil {
		return nil, err
	}
	if f.Limit < 1 || f.Limit > maxList {
		f.Limit = maxList
	}
	var out []Incident
	err := s.store.View(ctx, func(tx Tx) (err error) {
		out, err = tx.Incidents(f)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list incidents: %w", err)
	}
	return out, nil
}

// Timeline gives entries with an ID above after, oldest first (viewer). A limit
// outside 1–500 becomes 500.
func (s *Service) Timeline(ctx context.Context, id string, after int64, limit int) ([]Entry, error) {
	if _, err := identity.Require(ctx, identity.RoleViewer); err != nil {
		return nil, err
	}
	if limit < 1 || limit > maxTimeline {
		limit = maxTimeline
	}
	var out []Entry
	err := s.store.View(ctx, func(tx Tx) error {
		if _, err := tx.Incident(id); err != nil {
			return err
		}
		var err error
		out, err = tx.Timeline(id, after, limit)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("timeline of incident %q: %w", id, err)
	}
	return out, nil
}

// edit runs one change of an incident by a responder under the group's lock,
// saves it, asks for the card and audits; refusals are audited too.
func (s *Service) edit(ctx context.Context, verb, id string, fn func(Tx, identity.Principal, *Incident) error) error {
	p, err := s.permit(ctx, verb, id)
	if err != nil {
		return err
	}
	err = s.store.InTx(ctx, func(tx Tx) error {
		in, err := lockedIncident(tx, id)
		if err != nil {
			return fmt.Errorf("incident %q: %w", id, err)
		}
		if err := fn(tx, p, &in); err != nil {
			return err
		}
		if err := Save(tx, &in); err != nil {
			return err
		}
		return tx.Audit(p.AuditEntry(verb, Subject(id), audit.Allowed, ""))
	})
	if errors.Is(err, errNothingToDo) {
		return nil
	}
	if errors.Is(err, ErrStillFiring) || errors.Is(err, ErrResolved) {
		return s.deny(ctx, p, verb, id, err)
	}
	return err
}

// permit requires a responder and audits a refusal.
func (s *Service) permit(ctx context.Context, verb, id string) (identity.Principal, error) {
	p, err := identity.Require(ctx, identity.RoleResponder)
	if err != nil {
		return p, s.deny(ctx, p, verb, id, err)
	}
	return p, nil
}

func (s *Service) deny(ctx context.Context, p identity.Principal, verb, id string, cause error) error {
	err := s.store.InTx(ctx, func(tx Tx) error {
		return tx.Audit(p.AuditEntry(verb, Subject(id), audit.Denied, cause.Error()))
	})
	if err != nil {
		return errors.Join(cause, err)
	}
	return cause
}
