package identity

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"holdfast/server/audit"
)

// PrincipalKind says what kind of caller it is.
type PrincipalKind string

// Principal kinds.
const (
	PrincipalPerson PrincipalKind = "person"
	PrincipalToken  PrincipalKind = "token"
	// PrincipalSystem is holdfast itself: tickers, expiry, start-up.
	PrincipalSystem PrincipalKind = "system"
)

// Channel is the way a request came in.
type Channel string

// Channels.
const (
	ChannelConsole Channel = "console"
	ChannelSlack   Channel = "slack"
	ChannelAPI     Channel = "api"
	ChannelCLI     Channel = "cli"
	ChannelGateway Channel = "gateway"
	ChannelSystem  Channel = "system"
)

// Principal is an authenticated caller.
type Principal struct {
	Kind PrincipalKind
	// PersonID is the human who acts: the person, or the owner of an api token.
	// It is empty for other tokens and the system. Four-eyes compares it.
	PersonID string
	// Name is what timelines and audit show; Handle is the login name of a person.
	Name   string
	Handle string
	// Role is the person's role, or the owner's for an api token; empty for other tokens.
	Role Role
	// TokenID, TokenKind and Scopes are set for tokens.
	TokenID   string
	TokenKind TokenKind
	Scopes    []string
	// OwnerID is the person who answers for a token; may be empty.
	OwnerID string
	Channel Channel
	// IP is the client's address as far as it can be trusted; may be empty.
	IP string
}

// Of makes the principal of a person on a channel.
func Of(p Person, channel Channel) Principal {
	return Principal{
		Kind: PrincipalPerson, PersonID: p.ID, Name: p.Name, Handle: p.Handle,
		Role: p.Role, Channel: channel,
	}
}

// System is holdfast itself.
func System() Principal {
	return Principal{Kind: PrincipalSystem, Name: "system", Role: RoleAdmin, Channel: ChannelSystem}
}

// ActorID identifies the principal in the audit: a person's id, "token:<id>", "system" or "anonymous".
func (p Principal) ActorID() string {
	switch {
	case p.Kind == PrincipalPerson:
		return p.PersonID
	case p.Kind == PrincipalToken:
		return "token:" + p.TokenID
	case p.Kind == PrincipalSystem:
		return "system"
	default:
		return "anonymous"
	}
}

// HasScope says whether the token may touch the named thing: a token without
// scopes of that dimension may touch everything of its kind. A dimension is the
// part before the colon, such as "service" in "service:checkout".
func (p Principal) HasScope(dimension, name string) bool {
	narrowed := false
	for _, s := range p.Scopes {
		dim, value, ok := strings.Cut(s, ":")
		if !ok || dim != dimension {
			continue
		}
		narrowed = true
		if value == name {
			return true
		}
	}
	return !narrowed
}

// AuditEntry begins an audit row with who asked, from where.
func (p Principal) AuditEntry(verb, subject string, decision audit.Decision, reason string) audit.Entry {
	e := audit.Entry{
		ActorID: p.ActorID(), ActorName: p.Name, Channel: string(p.Channel),
		Verb: verb, Subject: subject, Decision: decision, Reason: reason,
	}
	if e.ActorName == "" {
		e.ActorName = e.ActorID
	}
	if p.IP != "" {
		e.Details = map[string]string{"ip": p.IP}
	}
	return e
}

type contextKey struct{}

// WithPrincipal puts the caller into the context.
func WithPrincipal(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, contextKey{}, p)
}

// From gives the caller; false when nobody was authenticated.
func From(ctx context.Context) (Principal, bool) {
	p, ok := ctx.Value(contextKey{}).(Principal)
	return p, ok && p.Kind != ""
}

// Require gives the caller when it has at least the role. It fails with
// ErrUnauthenticated without a caller and with ErrForbidden, naming both roles,
// otherwise.
func Require(ctx context.Context, least Role) (Principal, error) {
	p, ok := From(ctx)
	if !ok {
		return Principal{}, ErrUnauthenticated
	}
	if !p.Role.AtLeast(least) {
		return p, fmt.Errorf("%w: this needs the role %s and %s has %s", ErrForbidden, least, describe(p), orNone(p.Role))
	}
	return p, nil
}

// RequireToken gives the caller when it is a token of one of the kinds.
func RequireToken(ctx context.Context, kinds ...TokenKind) (Principal, error) {
	p, ok := From(ctx)
	if !ok {
		return Principal{}, ErrUnauthenticated
	}
	if p.Kind != PrincipalToken || !slices.Contains(kinds, p.TokenKind) {
		return p, fmt.Errorf("%w: this needs a token of kind %s", ErrForbidden, joinKinds(kinds))
	}
	return p, nil
}

// RequirePerson gives the caller when a human acts with at least the role,
// directly or through an api token of theirs.
func RequirePerson(ctx context.Context, least Role) (Principal, error) {
	p, err := Require(ctx, least)
	if err != nil {
		return p, err
	}
	if p.PersonID == "" {
		return p, fmt.Errorf("%w: this needs a person, not %s", ErrForbidden, describe(p))
	}
	return p, nil
}

func describe(p Principal) string {
	if p.Kind == PrincipalToken {
		return fmt.Sprintf("the %s token %q", p.TokenKind, p.Name)
	}
	return fmt.Sprintf("%q", p.Name)
}

func orNone(r Role) string {
	if r == RoleNone {
		return "none"
	}
	return string(r)
}

func joinKinds(kinds []TokenKind) string {
	words := make([]string, len(kinds))
	for i, k := range kinds {
		words[i] = string(k)
	}
	return strings.Join(words, " or ")
}
