package identity

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/server/audit"
)

const (
	verbLogin     = "login"
	verbSlackLink = "slack.link"
	maxCode       = 128
	maxLoginLink  = 7 * 24 * time.Hour
)

// IssueLoginLink makes a one-time login code for a person (admin, or holdfast
// itself at start-up). TTL is at most 7 days. The code is stored as a hash.
func (s *Service) IssueLoginLink(ctx context.Context, personID string, ttl time.Duration) (code string, err error) {
	const verb = "login.issue"
	p, err := s.permit(ctx, RoleAdmin, verb, "person:"+personID)
	if err != nil {
		return "", err
	}
	if ttl <= 0 || ttl > maxLoginLink {
		return "", fmt.Errorf("%w: a login link lives more than 0 and at most 168 h", ErrInvalid)
	}
	code, hash := NewCode()
	err = s.store.InTx(ctx, func(tx Tx) error {
		person, err := tx.Person(personID)
		if err != nil {
			return err
		}
		if person.Disabled {
			return fmt.Errorf("%w: %s is disabled", ErrInvalid, person.Handle)
		}
		link := Link{Hash: hash, Purpose: LinkLogin, PersonID: personID, ExpiresAt: tx.Now().Add(ttl)}
		if err := tx.InsertLink(link); err != nil {
			return err
		}
		return tx.Audit(personEntry(p, verb, person))
	})
	if err != nil {
		return "", fmt.Errorf("issue login link for %q: %w", personID, err)
	}
	return code, nil
}

// ConsumeLogin turns a login code into a session and gives the value of its
// cookie, which is stored as a hash only. ErrLinkUsed when the code was used,
// expired or never existed; ErrUnauthenticated when the person is disabled.
func (s *Service) ConsumeLogin(ctx context.Context, code string) (cookie string, person Person, err error) {
	if code == "" || len(code) > maxCode {
		return "", Person{}, ErrLinkUsed
	}
	cookie, hash := NewCode()
	var refused error
	err = s.store.InTx(ctx, func(tx Tx) error {
		refused = nil
		link, err := tx.UseLink(HashCode(code), LinkLogin)
		if err != nil {
			return err
		}
		if person, err = tx.Person(link.PersonID); err != nil {
			return err
		}
		caller := Of(person, ChannelConsole)
		if from, ok := From(ctx); ok {
			caller.IP = from.IP
		}
		if person.Disabled {
			refused = ErrUnauthenticated
			return tx.Audit(caller.AuditEntry(verbLogin, "person:"+person.ID, audit.Denied, "disabled"))
		}
		now := tx.Now()
		session := Session{Hash: hash, PersonID: person.ID, CreatedAt: now, ExpiresAt: now.Add(s.sessionTTL)}
		if err := tx.InsertSession(session); err != nil {
			return err
		}
		return tx.Audit(personEntry(caller, verbLogin, person))
	})
	if err == nil && refused == nil {
		return cookie, person, nil
	}
	if refused != nil {
		return "", Person{}, refused
	}
	if errors.Is(err, ErrLinkUsed) {
		s.recordLinkFailure(ctx, verbLogin)
	}
	return "", Person{}, fmt.Errorf("log in: %w", err)
}

// recordLinkFailure audits a used or guessed code, once a minute.
func (s *Service) recordLinkFailure(ctx context.Context, verb string) {
	caller, ok := From(ctx)
	if !ok {
		caller = Principal{Kind: PrincipalPerson, PersonID: "anonymous", Name: "anonymous", Channel: ChannelConsole}
	}
	err := s.store.InTx(ctx, func(tx Tx) error {
		if !s.failures.due("link:"+verb, tx.Now()) {
			return nil
		}
		return tx.Audit(caller.AuditEntry(verb, "link", audit.Denied, ErrLinkUsed.Error()))
	})
	if err != nil {
		s.log.WarnContext(ctx, "cannot record a refused link", "verb", verb, "error", err)
	}
}

// AuthenticateSession gives the caller of a session cookie, with the role the
// person has now. ErrUnauthenticated when the session is unknown, over, or the
// person disabled.
func (s *Service) AuthenticateSession(ctx context.Context, cookie string) (Principal, error) {
	if cookie == "" || len(cookie) > maxCode {
		return Principal{}, ErrUnauthenticated
	}
	var person Person
	err := s.store.View(ctx, func(tx Tx) error {
		session, err := tx.Session(HashCode(cookie))
		if err != nil {
			return err
		}
		if !tx.Now().Before(session.ExpiresAt) {
			return ErrNotFound
		}
		person, err = tx.Person(session.PersonID)
		return err
	})
	if errors.Is(err, ErrNotFound) || (err == nil && person.Disabled) {
		return Principal{}, ErrUnauthenticated
	}
	if err != nil {
		return Principal{}, fmt.Errorf("authenticate session: %w", err)
	}
	return Of(person, ChannelConsole), nil
}

// Logout ends the session of a cookie; an unknown one is no error.
func (s *Service) Logout(ctx context.Context, cookie string) error {
	if cookie == "" || len(cookie) > maxCode {
		return nil
	}
	err := s.store.InTx(ctx, func(tx Tx) error {
		session, err := tx.Session(HashCode(cookie))
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		person, err := tx.Person(session.PersonID)
		if err != nil {
			return err
		}
		if err := tx.DeleteSession(session.Hash); err != nil {
			return err
		}
		return tx.Audit(personEntry(Of(person, ChannelConsole), "logout", person))
	})
	if err != nil {
		return fmt.Errorf("log out: %w", err)
	}
	return nil
}

// ConsumeSlackLink binds the Slack user of a one-time code to the person who is
// logged in. ErrDuplicate when that Slack user belongs to somebody else, or the
// person is linked to another one.
func (s *Service) ConsumeSlackLink(ctx context.Context, code string) (Person, error) {
	p, err := RequirePerson(ctx, RoleNone)
	if err != nil {
		return Person{}, s.deny(ctx, p, verbSlackLink, "link", err)
	}
	if code == "" || len(code) > maxCode {
		return Person{}, ErrLinkUsed
	}
	var person Person
	err = s.store.InTx(ctx, func(tx Tx) error {
		link, err := tx.UseLink(HashCode(code), LinkSlack)
		if err != nil {
			return err
		}
		if person, err = bindSlack(tx, p.PersonID, link); err != nil {
			return err
		}
		e := personEntry(p, verbSlackLink, person)
		e.Details["slack_user"] = link.SlackTeam + "/" + link.SlackUser
		return tx.Audit(e)
	})
	if errors.Is(err, ErrLinkUsed) {
		s.recordLinkFailure(ctx, verbSlackLink)
	}
	if errors.Is(err, ErrDuplicate) || errors.Is(err, ErrForbidden) {
		return Person{}, s.deny(ctx, p, verbSlackLink, "person:"+p.PersonID, err)
	}
	if err != nil {
		return Person{}, fmt.Errorf("link Slack user: %w", err)
	}
	return person, nil
}

func bindSlack(tx Tx, personID string, link Link) (Person, error) {
	person, err := tx.Person(personID)
	if err != nil {
		return Person{}, err
	}
	if person.Disabled {
		return Person{}, fmt.Errorf("%w: %s is disabled", ErrForbidden, person.Handle)
	}
	holder, err := tx.PersonBySlack(link.SlackTeam, link.SlackUser)
	switch {
	case err == nil && holder.ID != personID:
		return Person{}, fmt.Errorf("this Slack user is linked to %s: %w", holder.Handle, ErrDuplicate)
	case err != nil && !errors.Is(err, ErrNotFound):
		return Person{}, err
	}
	// Whoever is bound already may have been sent somebody else's link: a second
	// binding would let its sender press buttons in their name.
	if person.SlackUser != "" && (person.SlackTeam != link.SlackTeam || person.SlackUser != link.SlackUser) {
		return Person{}, fmt.Errorf("%w: %s is linked to another Slack user; an admin has to unlink that one first", ErrDuplicate, person.Handle)
	}
	person.SlackTeam, person.SlackUser = link.SlackTeam, link.SlackUser
	return person, tx.SavePerson(person)
}

// PersonForSlack gives the person a Slack user is linked to, with the role they
// have now. ErrNotFound when nobody is; ErrForbidden when the person is disabled.
func (s *Service) PersonForSlack(ctx context.Context, team, user string) (Person, error) {
	if team == "" || user == "" {
		return Person{}, fmt.Errorf("person of a Slack user: %w", ErrNotFound)
	}
	var person Person
	err := s.store.View(ctx, func(tx Tx) (err error) {
		person, err = tx.PersonBySlack(team, user)
		return err
	})
	if err != nil {
		return Person{}, fmt.Errorf("person of a Slack user: %w", err)
	}
	if person.Disabled {
		return Person{}, fmt.Errorf("%w: %s is disabled", ErrForbidden, person.Handle)
	}
	return person, nil
}
