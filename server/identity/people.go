package identity

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"holdfast/server/audit"
)

const (
	maxHandle     = 40
	maxPersonName = 100
	// lockPeople serialises edits, so that two admins cannot demote each other at once.
	lockPeople = "people"
)

// People lists everybody.
func (s *Service) People(ctx context.Context) ([]Person, error) {
	if _, err := Require(ctx, RoleViewer); err != nil {
		return nil, err
	}
	var out []Person
	err := s.store.View(ctx, func(tx Tx) (err error) {
		out, err = tx.People()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list people: %w", err)
	}
	return out, nil
}

// Person gives one person; ErrNotFound when absent.
func (s *Service) Person(ctx context.Context, id string) (Person, error) {
	if _, err := Require(ctx, RoleViewer); err != nil {
		return Person{}, err
	}
	var out Person
	err := s.store.View(ctx, func(tx Tx) (err error) {
		out, err = tx.Person(id)
		return err
	})
	if err != nil {
		return Person{}, fmt.Errorf("person %q: %w", id, err)
	}
	return out, nil
}

// PersonByHandle gives the person with a login name, for callers inside
// holdfast that resolve a name they were given; ErrNotFound when absent.
func (s *Service) PersonByHandle(ctx context.Context, handle string) (Person, error) {
	var out Person
	err := s.store.View(ctx, func(tx Tx) (err error) {
		out, err = tx.PersonByHandle(strings.ToLower(strings.TrimSpace(handle)))
		return err
	})
	if err != nil {
		return Person{}, fmt.Errorf("person with handle %q: %w", handle, err)
	}
	return out, nil
}

// CreatePerson adds a person (admin). ErrDuplicate when the handle is taken.
func (s *Service) CreatePerson(ctx context.Context, handle, name string, role Role) (Person, error) {
	const verb = "person.create"
	p, err := s.permit(ctx, RoleAdmin, verb, "person:new")
	if err != nil {
		return Person{}, err
	}
	person, err := newPerson(handle, name, role)
	if err != nil {
		return Person{}, err
	}
	err = s.store.InTx(ctx, func(tx Tx) error {
		if err := tx.Lock(lockPeople); err != nil {
			return err
		}
		if _, err := tx.PersonByHandle(person.Handle); err == nil {
			return fmt.Errorf("handle %q: %w", person.Handle, ErrDuplicate)
		} else if !errors.Is(err, ErrNotFound) {
			return err
		}
		person.CreatedAt = tx.Now()
		if err := tx.SavePerson(person); err != nil {
			return err
		}
		return tx.Audit(personEntry(p, verb, person))
	})
	if err != nil {
		return Person{}, fmt.Errorf("create person: %w", err)
	}
	return person, nil
}

// PersonEdit changes some fields of a person; nil leaves a field as it is.
type PersonEdit struct {
	Name     *string
	Role     *Role
	Disabled *bool
	// UnlinkSlack takes the Slack user off.
	UnlinkSlack bool
}

// UpdatePerson edits a person (admin). Disabling takes effect with the next
// request of any session or token. ErrLastAdmin when nobody could administer
// holdfast afterwards.
func (s *Service) UpdatePerson(ctx context.Context, id string, edit PersonEdit) (Person, error) {
	const verb = "person.update"
	p, err := s.permit(ctx, RoleAdmin, verb, "person:"+id)
	if err != nil {
		return Person{}, err
	}
	var person Person
	err = s.store.InTx(ctx, func(tx Tx) error {
		if err := tx.Lock(lockPeople); err != nil {
			return err
		}
		before, err := tx.Person(id)
		if err != nil {
			return err
		}
		if person, err = edit.apply(before); err != nil {
			return err
		}
		if isAdmin(before) && !isAdmin(person) {
			if err := anotherAdmin(tx, id); err != nil {
				return err
			}
		}
		if err := tx.SavePerson(person); err != nil {
			return err
		}
		return tx.Audit(personEntry(p, verb, person))
	})
	if errors.Is(err, ErrLastAdmin) {
		return Person{}, s.deny(ctx, p, verb, "person:"+id, err)
	}
	if err != nil {
		return Person{}, fmt.Errorf("update person %q: %w", id, err)
	}
	return person, nil
}

func (e PersonEdit) apply(p Person) (Person, error) {
	if e.Name != nil {
		if err := checkName(*e.Name); err != nil {
			return p, err
		}
		p.Name = *e.Name
	}
	if e.Role != nil {
		role, err := ParseRole(string(*e.Role))
		if err != nil {
			return p, err
		}
		p.Role = role
	}
	if e.Disabled != nil {
		p.Disabled = *e.Disabled
	}
	if e.UnlinkSlack {
		p.SlackTeam, p.SlackUser = "", ""
	}
	return p, nil
}

func isAdmin(p Person) bool { return p.Role == RoleAdmin && !p.Disabled }

func anotherAdmin(tx Tx, id string) error {
	all, err := tx.People()
	if err != nil {
		return err
	}
	for _, other := range all {
		if other.ID != id && isAdmin(other) {
			return nil
		}
	}
	return fmt.Errorf("%w: make somebody else an admin first", ErrLastAdmin)
}

// SeedPerson makes sure that a person with the handle exists, such as the
// people of a bootstrap file. A known person is returned as they are: what an
// admin changed since is not undone.
func (s *Service) SeedPerson(ctx context.Context, handle, name string, role Role) (Person, error) {
	person, err := newPerson(handle, name, role)
	if err != nil {
		return Person{}, fmt.Errorf("seed person: %w", err)
	}
	err = s.store.InTx(ctx, func(tx Tx) error {
		if err := tx.Lock(lockPeople); err != nil {
			return err
		}
		known, err := tx.PersonByHandle(person.Handle)
		if err == nil {
			person = known
			return nil
		}
		if !errors.Is(err, ErrNotFound) {
			return err
		}
		person.CreatedAt = tx.Now()
		if err := tx.SavePerson(person); err != nil {
			return err
		}
		return tx.Audit(personEntry(System(), "person.seed", person))
	})
	if err != nil {
		return Person{}, fmt.Errorf("seed person %q: %w", handle, err)
	}
	return person, nil
}

func newPerson(handle, name string, role Role) (Person, error) {
	handle = strings.ToLower(strings.TrimSpace(handle))
	if handle == "" || len(handle) > maxHandle || !only(handle, isHandle) {
		return Person{}, fmt.Errorf("%w: a handle has 1 to %d characters of a-z, 0-9, '.', '_' and '-'", ErrInvalid, maxHandle)
	}
	if err := checkName(name); err != nil {
		return Person{}, err
	}
	if _, err := ParseRole(string(role)); err != nil {
		return Person{}, err
	}
	return Person{ID: strings.ToLower(rand.Text()), Handle: handle, Name: name, Role: role}, nil
}

func isHandle(c byte) bool { return isLowerAlnum(c) || c == '.' || c == '_' || c == '-' }

func checkName(name string) error {
	if strings.TrimSpace(name) == "" || utf8.RuneCountInString(name) > maxPersonName || !utf8.ValidString(name) {
		return fmt.Errorf("%w: a name has 1 to %d characters", ErrInvalid, maxPersonName)
	}
	return nil
}

func personEntry(p Principal, verb string, person Person) audit.Entry {
	e := p.AuditEntry(verb, "person:"+person.ID, audit.Allowed, "")
	if e.Details == nil {
		e.Details = map[string]string{}
	}
	e.Details["handle"], e.Details["role"] = person.Handle, string(person.Role)
	if person.Disabled {
		e.Details["disabled"] = "true"
	}
	return e
}
