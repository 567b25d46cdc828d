package change

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"holdfast/server/audit"
	"holdfast/server/identity"
)

const (
	verbFreeze   = "freeze.create"
	verbUnfreeze = "freeze.delete"
	maxReason    = 500
)

// CreateFreeze denies forward changes in a window (approver). Start zero means
// now, End zero means until it is deleted. It takes the same locks as claims, so
// no change is admitted after the freeze was; claims made before are denied when
// they start.
func (s *Calendar) CreateFreeze(ctx context.Context, f Freeze) (Freeze, error) {
	p, err := identity.RequirePerson(ctx, identity.RoleApprover)
	if err != nil {
		return Freeze{}, s.deny(ctx, p, verbFreeze, "freeze:new", err)
	}
	err = s.store.InTx(ctx, func(tx Tx) error {
		if err := s.checkFreeze(&f, tx.Now()); err != nil {
			return err
		}
		if err := s.lockAll(tx, f.Environments); err != nil {
			return err
		}
		f.ID, f.CreatedBy, f.CreatedAt = newID(), p.Name, tx.Now()
		if err := tx.InsertFreeze(&f); err != nil {
			return err
		}
		tx.Touch("freezes", f.ID)
		return tx.Audit(freezeEntry(p, verbFreeze, f))
	})
	if err != nil {
		return Freeze{}, fmt.Errorf("create freeze: %w", err)
	}
	return f, nil
}

func (s *Calendar) checkFreeze(f *Freeze, now time.Time) error {
	f.Reason = strings.TrimSpace(f.Reason)
	if f.Start.IsZero() {
		f.Start = now
	}
	f.Start = f.Start.UTC().Truncate(resolution)
	switch {
	case f.Reason == "" || utf8.RuneCountInString(f.Reason) > maxReason || !utf8.ValidString(f.Reason) || strings.ContainsFunc(f.Reason, isControl):
		return fmt.Errorf("%w: reason must have 1 to %d characters", ErrInvalid, maxReason)
	case !f.End.IsZero() && !f.End.After(f.Start):
		return fmt.Errorf("%w: end %s is not after start %s", ErrInvalid, stamp(f.End), stamp(f.Start))
	case !f.End.IsZero() && !f.End.After(now):
		return fmt.Errorf("%w: end %s is over", ErrInvalid, stamp(f.End))
	}
	if !f.End.IsZero() {
		f.End = f.End.UTC().Truncate(resolution)
	}
	for _, name := range f.Services {
		if err := known("service", name, s.cat.Services); err != nil {
			return err
		}
	}
	for _, name := range f.Environments {
		if err := known("environment", name, s.cat.Environments); err != nil {
			return err
		}
	}
	for _, k := range f.Kinds {
		if !slices.Contains(requestKinds, k) || alwaysFree(k) {
			return fmt.Errorf("%w: kind %q cannot be frozen", ErrInvalid, cut(string(k)))
		}
	}
	return nil
}

// lockAll takes the locks of some environments, or of all when none is named,
// in a fixed order.
func (s *Calendar) lockAll(tx Tx, environments []string) error {
	names := slices.Sorted(slices.Values(environments))
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(s.cat.Environments))
	}
	for _, name := range slices.Compact(names) {
		if err := tx.Lock(LockKey(name)); err != nil {
			return err
		}
	}
	return nil
}

// DeleteFreeze lifts a freeze (approver); ErrNotFound when it is gone.
func (s *Calendar) DeleteFreeze(ctx context.Context, id string) error {
	p, err := identity.RequirePerson(ctx, identity.RoleApprover)
	if err != nil {
		return s.deny(ctx, p, verbUnfreeze, "freeze:"+cut(id), err)
	}
	err = s.store.InTx(ctx, func(tx Tx) error {
		f, err := tx.Freeze(id)
		if err != nil {
			return err
		}
		if err := tx.DeleteFreeze(id); err != nil {
			return err
		}
		tx.Touch("freezes", id)
		return tx.Audit(freezeEntry(p, verbUnfreeze, f))
	})
	if err != nil {
		return fmt.Errorf("delete freeze %q: %w", cut(id), err)
	}
	return nil
}

// Freezes lists freezes that meet [from, to) (a ci token or a viewer); zero times are unbounded.
func (s *Calendar) Freezes(ctx context.Context, from, to time.Time) ([]Freeze, error) {
	if err := reader(ctx); err != nil {
		return nil, err
	}
	var out []Freeze
	err := s.store.View(ctx, func(tx Tx) (err error) {
		out, err = tx.Freezes(from, to)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list freezes: %w", err)
	}
	return out, nil
}

func freezeEntry(p identity.Principal, verb string, f Freeze) audit.Entry {
	e := p.AuditEntry(verb, "freeze:"+f.ID, audit.Allowed, f.Reason)
	if e.Details == nil {
		e.Details = map[string]string{}
	}
	e.Details["start"] = stamp(f.Start)
	if !f.End.IsZero() {
		e.Details["end"] = stamp(f.End)
	}
	for k, v := range map[string]string{
		"services": strings.Join(f.Services, " "), "environments": strings.Join(f.Environments, " "), "kinds": join(f.Kinds),
	} {
		if v != "" {
			e.Details[k] = v
		}
	}
	return e
}

const maxList = 200

// List gives changes, newest first (a ci token or a viewer). A Limit outside
// 1–200 becomes 200.
func (s *Calendar) List(ctx context.Context, f Filter) ([]Change, error) {
	if err := reader(ctx); err != nil {
		return nil, err
	}
	if f.Limit < 1 || f.Limit > maxList {
		f.Limit = maxList
	}
	var out []Change
	err := s.store.View(ctx, func(tx Tx) (err error) {
		out, err = tx.Changes(f)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list changes: %w", err)
	}
	return out, nil
}

// Get gives one change (a ci token or a viewer); ErrNotFound when absent.
func (s *Calendar) Get(ctx context.Context, id string) (Change, error) {
	if err := reader(ctx); err != nil {
		return Change{}, err
	}
	var out Change
	err := s.store.View(ctx, func(tx Tx) (err error) {
		out, err = tx.Change(id)
		return err
	})
	if err != nil {
		return Change{}, fmt.Errorf("change %q: %w", cut(id), err)
	}
	return out, nil
}

func reader(ctx context.Context) error {
	if _, err := identity.RequireToken(ctx, identity.TokenCI); err == nil {
		return nil
	} else if errors.Is(err, identity.ErrUnauthenticated) {
		return err
	}
	_, err := identity.Require(ctx, identity.RoleViewer)
	return err
}
