package identity

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast/server/audit"
)

// TokenRequest asks for a new token.
type TokenRequest struct {
	Kind TokenKind
	// Name says what it is for, 1–100 characters.
	Name string
	// Scopes narrow it, each "dimension:value"; empty means all of its kind.
	Scopes []string
	// OwnerID is the person who answers for it; empty means the caller.
	OwnerID string
	// TTL is its life; zero means until revoked.
	TTL time.Duration
}

// CreateToken makes a token and gives its plain text, the only time it can be
// seen. Admins make any token; everybody makes api tokens for themselves.
func (s *Service) CreateToken(ctx context.Context, r TokenRequest) (plain string, t Token, err error) {
	const verb = "token.create"
	p, err := s.permit(ctx, RoleViewer, verb, "token:new")
	if err != nil {
		return "", Token{}, err
	}
	if r.OwnerID == "" {
		r.OwnerID = p.PersonID
	}
	own := r.Kind == TokenAPI && p.PersonID != "" && r.OwnerID == p.PersonID
	if !own && !p.Role.AtLeast(RoleAdmin) {
		cause := fmt.Errorf("%w: only an admin makes tokens other than api tokens of their own", ErrForbidden)
		return "", Token{}, s.deny(ctx, p, verb, "token:new", cause)
	}
	if err := r.check(); err != nil {
		return "", Token{}, err
	}
	plain, t = NewToken(r.Kind, r.Name, r.Scopes, r.OwnerID)
	err = s.store.InTx(ctx, func(tx Tx) error {
		if r.OwnerID != "" {
			if _, err := tx.Person(r.OwnerID); err != nil {
				return fmt.Errorf("owner %q: %w", r.OwnerID, err)
			}
		}
		t.CreatedAt = tx.Now()
		if r.TTL > 0 {
			t.ExpiresAt = t.CreatedAt.Add(r.TTL)
		}
		if err := tx.InsertToken(t); err != nil {
			return err
		}
		return tx.Audit(tokenEntry(p, verb, t))
	})
	if err != nil {
		return "", Token{}, fmt.Errorf("create token: %w", err)
	}
	return plain, t, nil
}

func (r TokenRequest) check() error {
	switch {
	case !r.Kind.Valid():
		return fmt.Errorf("%w: kind %q is not one of ci, hook, gateway, api", ErrInvalid, r.Kind)
	case strings.TrimSpace(r.Name) == "" || len(r.Name) > maxTokenName:
		return fmt.Errorf("%w: name must have 1 to %d characters", ErrInvalid, maxTokenName)
	case r.Kind == TokenAPI && r.OwnerID == "":
		return fmt.Errorf("%w: an api token acts for a person; owner is missing", ErrInvalid)
	case r.TTL < 0:
		return fmt.Errorf("%w: the life of a token cannot be negative", ErrInvalid)
	}
	return checkScopes(r.Kind, r.Scopes)
}

// dimensions are what tokens of each kind can be narrowed by. A word that nobody
// looks at, such as a misspelt one, would narrow nothing.
var dimensions = map[TokenKind][]string{
	TokenCI:      {"service", "environment"},
	TokenHook:    {"source"},
	TokenGateway: {"gateway"},
	TokenAPI:     nil,
}

func checkScopes(kind TokenKind, scopes []string) error {
	if len(scopes) > maxScopes {
		return fmt.Errorf("%w: at most %d scopes", ErrInvalid, maxScopes)
	}
	for i, sc := range scopes {
		dim, value, ok := strings.Cut(sc, ":")
		if !ok || dim == "" || value == "" || len(sc) > maxScopeLength {
			return fmt.Errorf("%w: scopes[%d] must read dimension:value, such as service:checkout", ErrInvalid, i)
		}
		switch known := dimensions[kind]; {
		case len(known) == 0:
			return fmt.Errorf("%w: scopes[%d]: %s tokens act with their owner's role and take no scopes", ErrInvalid, i, kind)
		case !slices.Contains(known, dim):
			return fmt.Errorf("%w: scopes[%d]: %s tokens are narrowed by %s, not by %q", ErrInvalid, i, kind, strings.Join(known, " or "), dim)
		}
	}
	return nil
}

// RevokeToken ends a token at once. Admins revoke any, owners their own.
// Revoking twice is no error.
func (s *Service) RevokeToken(ctx context.Context, id string) error {
	const verb = "token.revoke"
	p, err := s.permit(ctx, RoleViewer, verb, "token:"+id)
	if err != nil {
		return err
	}
	var refused error
	err = s.store.InTx(ctx, func(tx Tx) error {
		refused = nil
		t, err := tx.Token(id)
		if err != nil {
			return err
		}
		if !p.Role.AtLeast(RoleAdmin) && (p.PersonID == "" || t.OwnerID != p.PersonID) {
			refused = fmt.Errorf("%w: only an admin or its owner revokes a token", ErrForbidden)
			return tx.Audit(p.AuditEntry(verb, "token:"+id, audit.Denied, refused.Error()))
		}
		if !t.RevokedAt.IsZero() {
			return nil
		}
		if err := tx.RevokeToken(id); err != nil {
			return err
		}
		return tx.Audit(tokenEntry(p, verb, t))
	})
	if err != nil {
		return fmt.Errorf("revoke token: %w", err)
	}
	return refused
}

// Tokens lists tokens without their hashes: all for admins, their own for others.
func (s *Service) Tokens(ctx context.Context) ([]Token, error) {
	p, err := Require(ctx, RoleViewer)
	if err != nil {
		return nil, err
	}
	var out []Token
	err = s.store.View(ctx, func(tx Tx) error {
		all, err := tx.Tokens()
		if err != nil {
			return err
		}
		for _, t := range all {
			if p.Role.AtLeast(RoleAdmin) || (p.PersonID != "" && t.OwnerID == p.PersonID) {
				t.Hash = ""
				out = append(out, t)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list tokens: %w", err)
	}
	return out, nil
}

// SeedToken enters a token that was made outside, such as one of a bootstrap
// file. Seeding the same token again changes nothing, and a revoked one stays
// revoked; another token under a known id is refused with ErrDuplicate.
func (s *Service) SeedToken(ctx context.Context, kind TokenKind, name, plain string, scopes []string) error {
	parsed, err := ParseToken(plain)
	if err != nil {
		return fmt.Errorf("seed token %q: %w", name, err)
	}
	if parsed.Kind != kind {
		return fmt.Errorf("seed token %q: %w: it says it is of kind %s, wanted %s", name, ErrInvalid, parsed.Kind, kind)
	}
	if kind == TokenAPI {
		return fmt.Errorf("seed token %q: %w: api tokens act for a person and cannot be seeded", name, ErrInvalid)
	}
	if err := (TokenRequest{Kind: kind, Name: name, Scopes: scopes}).check(); err != nil {
		return fmt.Errorf("seed token %q: %w", name, err)
	}
	err = s.store.InTx(ctx, func(tx Tx) error {
		known, err := tx.Token(parsed.ID)
		if err == nil {
			return s.seedAgain(ctx, known, plain)
		}
		if !errors.Is(err, ErrNotFound) {
			return err
		}
		t := Token{ID: parsed.ID, Kind: kind, Name: name, Scopes: scopes, Hash: hashSecret(plain), CreatedAt: tx.Now()}
		if err := tx.InsertToken(t); err != nil {
			return err
		}
		return tx.Audit(tokenEntry(System(), "token.seed", t))
	})
	if err != nil {
		return fmt.Errorf("seed token %q: %w", name, err)
	}
	return nil
}

func (s *Service) seedAgain(ctx context.Context, known Token, plain string) error {
	if !known.matches(plain) {
		return fmt.Errorf("%w: id %s belongs to another token", ErrDuplicate, known.ID)
	}
	if !known.RevokedAt.IsZero() {
		s.log.WarnContext(ctx, "a seeded token was revoked and stays revoked", "token", known.ID, "name", known.Name)
	}
	return nil
}

func tokenEntry(p Principal, verb string, t Token) audit.Entry {
	e := p.AuditEntry(verb, "token:"+t.ID, audit.Allowed, "")
	if e.Details == nil {
		e.Details = map[string]string{}
	}
	e.Details["kind"], e.Details["name"] = string(t.Kind), t.Name
	if len(t.Scopes) > 0 {
		e.Details["scopes"] = strings.Join(t.Scopes, " ")
	}
	if t.OwnerID != "" {
		e.Details["owner"] = t.OwnerID
	}
	return e
}
