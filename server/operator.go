package server

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/url"
	"time"

	"holdfast/server/audit"
	"holdfast/server/identity"
	"holdfast/server/internal/store"
)

// Operator is what a person with access to the database may do from the command
// line, with the server running or not. Everything it does is audited.
type Operator struct {
	store  *store.Store
	people *identity.Service
}

// OpenOperator opens the database. Unless migrating is the purpose, the schema
// must be this program's.
func OpenOperator(ctx context.Context, databaseURL string, logger *slog.Logger) (*Operator, error) {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	st, err := store.Open(ctx, store.Options{URL: databaseURL, Logger: logger})
	if err != nil {
		return nil, err
	}
	return &Operator{store: st, people: identity.New(identity.Options{Store: st.Identity(), Logger: logger})}, nil
}

// Close lets the database go.
func (o *Operator) Close() error { return o.store.Close() }

func asOperator(ctx context.Context) context.Context {
	p := identity.System()
	p.Name, p.Channel = "operator", identity.ChannelCLI
	return identity.WithPrincipal(ctx, p)
}

// ErrSchema says that the database's schema is not this program's.
var ErrSchema = errors.New("the database schema is not this program's; run: holdfast migrate up")

// CheckSchema fails with ErrSchema when the schema is not this program's.
func (o *Operator) CheckSchema(ctx context.Context) error {
	current, target, err := o.store.Version(ctx)
	if err != nil {
		return err
	}
	if current != target {
		return fmt.Errorf("%w (database %d, program %d)", ErrSchema, current, target)
	}
	return nil
}

// SchemaVersion gives the database's schema version and the program's.
func (o *Operator) SchemaVersion(ctx context.Context) (current, target int64, err error) {
	return o.store.Version(ctx)
}

// MigrateUp brings the schema up to date; MigrateDown takes it back to a version (0 removes all data).
func (o *Operator) MigrateUp(ctx context.Context) error { return o.store.Migrate(ctx) }

// MigrateDown takes the schema back to the given version; 0 removes it with all data.
func (o *Operator) MigrateDown(ctx context.Context, version int64) error {
	return o.store.MigrateDown(ctx, version)
}

// CreateToken makes a service token and returns its plain text, shown this once.
// owner is a handle and may be empty.
func (o *Operator) CreateToken(ctx context.Context, kind identity.TokenKind, name, owner string, scopes []string, ttl time.Duration) (string, identity.Token, error) {
	ctx = asOperator(ctx)
	req := identity.TokenRequest{Kind: kind, Name: name, Scopes: scopes, TTL: ttl}
	if owner != "" {
		p, err := o.people.PersonByHandle(ctx, owner)
		if err != nil {
			return "", identity.Token{}, fmt.Errorf("owner %q: %w", owner, err)
		}
		req.OwnerID = p.ID
	}
	return o.people.CreateToken(ctx, req)
}

// Tokens lists service tokens without secrets.
func (o *Operator) Tokens(ctx context.Context) ([]identity.Token, error) {
	return o.people.Tokens(asOperator(ctx))
}

// RevokeToken ends a token at once.
func (o *Operator) RevokeToken(ctx context.Context, id string) error {
	return o.people.RevokeToken(asOperator(ctx), id)
}

// AddPerson enters a person.
func (o *Operator) AddPerson(ctx context.Context, handle, name string, role identity.Role) (identity.Person, error) {
	return o.people.CreatePerson(asOperator(ctx), handle, name, role)
}

// LoginLink makes a one-time console login for a person.
func (o *Operator) LoginLink(ctx context.Context, handle, publicURL string, ttl time.Duration) (string, error) {
	ctx = asOperator(ctx)
	public, err := url.Parse(publicURL)
	if err != nil || public.Host == "" {
		return "", errors.New("public URL: want http or https with a host, such as https://holdfast.example.com")
	}
	p, err := o.people.PersonByHandle(ctx, handle)
	if err != nil {
		return "", fmt.Errorf("person %q: %w", handle, err)
	}
	code, err := o.people.IssueLoginLink(ctx, p.ID, ttl)
	if err != nil {
		return "", err
	}
	return loginURL(public, code), nil
}

// AuditChain reads the chain in order.
func (o *Operator) AuditChain(ctx context.Context) iter.Seq2[audit.Linked, error] {
	return func(yield func(audit.Linked, error) bool) {
		stop := errors.New("stop")
		err := o.store.Export(ctx, 1, func(l audit.Linked) error {
			if !yield(l, nil) {
				return stop
			}
			return nil
		})
		if err != nil && !errors.Is(err, stop) {
			yield(audit.Linked{}, err)
		}
	}
}

// AuditHead is the newest link, to be kept outside of the database.
func (o *Operator) AuditHead(ctx context.Context) (audit.Head, error) { return o.store.Head(ctx) }
