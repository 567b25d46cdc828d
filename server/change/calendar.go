package change

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast/server/audit"
	"holdfast/server/identity"
	"holdfast/server/outbox"
)

// Defaults of Options.
const (
	// DefaultConfirmTTL is how long a held change waits for a confirmation.
	DefaultConfirmTTL = time.Hour
	// DefaultClaimLease is how long a claim waits for its start.
	DefaultClaimLease = 15 * time.Minute
	// DefaultHorizon is how far ahead the next open slot is looked for.
	DefaultHorizon = 7 * 24 * time.Hour
)

// People finds who is behind a run.
type People interface {
	// PersonByHandle gives identity.ErrNotFound for an unknown handle.
	PersonByHandle(ctx context.Context, handle string) (identity.Person, error)
}

// Options configure the Calendar.
type Options struct {
	// Store and Catalogue are required.
	Store     Store
	Catalogue Catalogue
	// People turns the actor a pipeline states into a person; nil means actors stay names.
	People People
	// Logger and Registerer may be nil.
	Logger     *slog.Logger
	Registerer prometheus.Registerer
	// ConfirmTTL and ClaimLease are DefaultConfirmTTL and DefaultClaimLease when zero.
	ConfirmTTL time.Duration
	ClaimLease time.Duration
}

// Calendar is the service of this package. Each method checks the caller in the context; each
// decision leaves an audit row, refusals included. What decides runs under the
// lock of its environment, and the database refuses overlapping holds besides.
type Calendar struct {
	store      Store
	cat        Catalogue
	people     People
	log        *slog.Logger
	confirmTTL time.Duration
	claimLease time.Duration
	decisions  *prometheus.CounterVec
}

// New makes a Calendar. It panics without a Store, a fault of the program.
func New(o Options) *Calendar {
	if o.Store == nil {
		panic("change.New: Options.Store is nil")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.ConfirmTTL <= 0 {
		o.ConfirmTTL = DefaultConfirmTTL
	}
	if o.ClaimLease <= 0 {
		o.ClaimLease = DefaultClaimLease
	}
	return &Calendar{
		store: o.Store, cat: o.Catalogue, people: o.People, log: o.Logger,
		confirmTTL: o.ConfirmTTL, claimLease: o.ClaimLease,
		decisions: newDecisions(o.Registerer),
	}
}

// Catalogue is what can be changed and where.
func (s *Calendar) Catalogue() Catalogue { return s.cat }

// Subject names a change in outbox, audit and buttons.
func Subject(id string) string { return "change:" + id }

// LockKey is the key under which everything that decides about an environment is serialised.
func LockKey(environment string) string { return "calendar:" + environment }

const touchTopic = "changes"

// asker requires a pipeline's token, or a person with at least the role, and the
// scopes of a token.
func (s *Calendar) asker(ctx context.Context, least identity.Role, verb string, r Request) (identity.Principal, error) {
	p, err := identity.RequireToken(ctx, identity.TokenCI)
	if err != nil {
		p, err = identity.Require(ctx, least)
	}
	if err == nil {
		err = inScope(p, r.Service, r.Environment)
	}
	if err != nil {
		return p, s.deny(ctx, p, verb, "service:"+cut(r.Service), err)
	}
	return p, nil
}

func inScope(p identity.Principal, service, environment string) error {
	if !p.HasScope("service", service) {
		return fmt.Errorf("%w: the token %q is not for service %q", identity.ErrForbidden, p.Name, cut(service))
	}
	if !p.HasScope("environment", environment) {
		return fmt.Errorf("%w: the token %q is not for environment %q", identity.ErrForbidden, p.Name, cut(environment))
	}
	return nil
}

// requester is who is behind a request, and so may not confirm it. A person is
// taken at their session, never at what they state.
func (s *Calendar) requester(ctx context.Context, p identity.Principal, actor string) (id, name string, err error) {
	if p.PersonID != "" || p.Kind != identity.PrincipalToken {
		return p.PersonID, p.Name, nil
	}
	if actor == "" {
		return p.OwnerID, p.Name, nil
	}
	if s.people != nil {
		person, err := s.people.PersonByHandle(ctx, actor)
		if err == nil {
			return person.ID, person.Name, nil
		}
		if !errors.Is(err, identity.ErrNotFound) {
			return "", "", fmt.Errorf("who is behind the run: %w", err)
		}
	}
	return p.OwnerID, actor, nil
}

// deny audits a refusal in a transaction of its own and returns cause.
func (s *Calendar) deny(ctx context.Context, p identity.Principal, verb, subject string, cause error) error {
	err := s.store.InTx(ctx, func(tx Tx) error {
		return tx.Audit(p.AuditEntry(verb, subject, audit.Denied, cause.Error()))
	})
	if err != nil {
		return errors.Join(cause, err)
	}
	return cause
}

// locked reads a change under the lock of its environment.
func locked(tx Tx, id string) (Change, error) {
	c, err := tx.Change(id)
	if err != nil {
		return c, fmt.Errorf("change %q: %w", cut(id), err)
	}
	if err := tx.Lock(LockKey(c.Environment)); err != nil {
		return c, err
	}
	return tx.Change(id)
}

// saved stores a change and tells console and card.
func saved(tx Tx, c *Change) error {
	if err := tx.SaveChange(c); err != nil {
		return fmt.Errorf("save change %s: %w", c.ID, err)
	}
	return announce(tx, *c)
}

// announce tells the console, and the card where there is one: changes that were
// once held have a card.
func announce(tx Tx, c Change) error {
	tx.Touch(touchTopic, c.ID)
	if c.ConfirmBy.IsZero() {
		return nil
	}
	return tx.Enqueue(outbox.Card(Subject(c.ID)))
}

// entry is the audit row of a change.
func entry(p identity.Principal, verb string, c Change, d audit.Decision, reason string) audit.Entry {
	subject := Subject(c.ID)
	if c.ID == "" {
		subject = "service:" + c.Service
	}
	e := p.AuditEntry(verb, subject, d, reason)
	if e.Details == nil {
		e.Details = map[string]string{}
	}
	for k, v := range map[string]string{
		"service": c.Service, "environment": c.Environment, "kind": string(c.Kind),
		"window": window(c.Start, c.End), "run_id": c.RunID, "status": string(c.Status),
	} {
		if v != "" {
			e.Details[k] = v
		}
	}
	return e
}
