package identity

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/server/audit"
)

const (
	// touchEvery bounds how often a token's last use is written.
	touchEvery = time.Minute
	verbToken  = "token.authenticate"
)

// AuthenticateToken gives the caller of a plain token. Every refusal is
// ErrUnauthenticated and nothing more: a caller must not learn whether the token
// was unknown, wrong, revoked, expired or owned by a disabled person. The
// reason is in the audit, once a minute per token.
func (s *Service) AuthenticateToken(ctx context.Context, plain string) (Principal, error) {
	parsed, err := ParseToken(plain)
	if err != nil {
		return Principal{}, s.unauthenticated(ctx, "token:unknown", "malformed token")
	}
	var (
		token  Token
		owner  Person
		reason string
		now    time.Time
	)
	err = s.store.View(ctx, func(tx Tx) error {
		var err error
		now = tx.Now()
		token, owner, reason, err = judgeToken(tx, parsed, plain)
		return err
	})
	if err != nil {
		return Principal{}, fmt.Errorf("authenticate token: %w", err)
	}
	if reason != "" {
		subject := "token:unknown"
		if token.ID != "" {
			subject = "token:" + token.ID
		}
		return Principal{}, s.unauthenticated(ctx, subject, reason)
	}
	if now.Sub(token.LastUsedAt) >= touchEvery {
		s.touch(ctx, token.ID)
	}
	return principalOf(token, owner), nil
}

// judgeToken finds the token and says why it is no good; an empty reason means it is.
func judgeToken(tx Tx, parsed ParsedToken, plain string) (Token, Person, string, error) {
	token, err := tx.Token(parsed.ID)
	if errors.Is(err, ErrNotFound) {
		return Token{}, Person{}, "unknown token", nil
	}
	if err != nil {
		return Token{}, Person{}, "", err
	}
	now := tx.Now()
	switch {
	case !token.matches(plain):
		return token, Person{}, "wrong secret", nil
	case token.Kind != parsed.Kind:
		return token, Person{}, "wrong kind", nil
	case !token.RevokedAt.IsZero():
		return token, Person{}, "revoked", nil
	case !token.ExpiresAt.IsZero() && !now.Before(token.ExpiresAt):
		return token, Person{}, "expired", nil
	case token.OwnerID == "" && token.Kind == TokenAPI:
		return token, Person{}, "api token without an owner", nil
	case token.OwnerID == "":
		return token, Person{}, "", nil
	}
	owner, err := tx.Person(token.OwnerID)
	if errors.Is(err, ErrNotFound) {
		return token, Person{}, "owner is gone", nil
	}
	if err != nil {
		return token, Person{}, "", err
	}
	if owner.Disabled {
		return token, owner, "owner is disabled", nil
	}
	return token, owner, "", nil
}

func principalOf(t Token, owner Person) Principal {
	p := Principal{
		Kind: PrincipalToken, Name: t.Name, TokenID: t.ID, TokenKind: t.Kind,
		Scopes: t.Scopes, OwnerID: t.OwnerID, Channel: ChannelAPI,
	}
	switch t.Kind {
	case TokenAPI:
		p.PersonID, p.Name, p.Handle, p.Role = owner.ID, owner.Name, owner.Handle, owner.Role
	case TokenGateway:
		p.Channel = ChannelGateway
	case TokenCI, TokenHook:
	}
	return p
}

// touch is a convenience for people who clean up tokens; its failure must not
// turn a valid caller away.
func (s *Service) touch(ctx context.Context, id string) {
	if err := s.store.InTx(ctx, func(tx Tx) error { return tx.TouchToken(id) }); err != nil {
		s.log.WarnContext(ctx, "cannot note the use of a token", "token", id, "error", err)
	}
}

// unauthenticated records a failed authentication and gives ErrUnauthenticated.
// Failing to record it must not hide the refusal.
func (s *Service) unauthenticated(ctx context.Context, subject, reason string) error {
	err := s.store.InTx(ctx, func(tx Tx) error {
		if !s.failures.due(subject, tx.Now()) {
			return nil
		}
		e := audit.Entry{
			ActorID: "anonymous", ActorName: "anonymous", Channel: string(ChannelAPI),
			Verb: verbToken, Subject: subject, Decision: audit.Denied, Reason: reason,
		}
		if p, ok := From(ctx); ok && p.IP != "" {
			e.Details = map[string]string{"ip": p.IP}
		}
		return tx.Audit(e)
	})
	if err != nil {
		s.log.WarnContext(ctx, "cannot record a failed authentication", "subject", subject, "error", err)
	}
	return ErrUnauthenticated
}
