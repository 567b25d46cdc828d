// Package identity knows people, roles, service tokens, sessions and one-time
// links, and carries the caller's identity in the context. Roles are looked up
// when something is asked and again when it is done (DESIGN mechanism 9).
package identity

import (
	"errors"
	"time"
)

// Role is what a person may do; each includes the ones below it.
type Role string

// Roles, from least to most.
const (
	RoleNone      Role = ""
	RoleViewer    Role = "viewer"
	RoleResponder Role = "responder"
	RoleApprover  Role = "approver"
	RoleAdmin     Role = "admin"
)

// Person is a human known to holdfast.
type Person struct {
	ID string
	// Handle is the short unique login name, lower case.
	Handle string
	Name   string
	Role   Role
	// SlackTeam and SlackUser are set by a one-time link, never by matching names.
	SlackTeam string
	SlackUser string
	Disabled  bool
	CreatedAt time.Time
}

// TokenKind says what a service token may do.
type TokenKind string

// Token kinds. The kind stands in the token itself: hf_<kind>_<id>_<secret>.
const (
	// TokenCI asks, claims and finishes changes.
	TokenCI TokenKind = "ci"
	// TokenHook delivers webhooks of one source.
	TokenHook TokenKind = "hook"
	// TokenGateway reads the policy stream and acknowledges.
	TokenGateway TokenKind = "gateway"
	// TokenAPI acts for its owner with the owner's role.
	TokenAPI TokenKind = "api"
)

// Token is a service token without its secret; only the SHA-256 is stored.
type Token struct {
	// ID is the public part, looked up first.
	ID   string
	Kind TokenKind
	Name string
	// Scopes narrow the token, such as "service:checkout" for ci or "source:alertmanager" for hook; empty means all of its kind.
	Scopes []string
	// OwnerID is the person who answers for it; may be empty for tokens seeded at start-up.
	OwnerID string
	// Hash is the SHA-256 of the whole token, lower-case hex.
	Hash      string
	CreatedAt time.Time
	// ExpiresAt, LastUsedAt and RevokedAt are zero when not set.
	ExpiresAt  time.Time
	LastUsedAt time.Time
	RevokedAt  time.Time
}

// Session is a console login.
type Session struct {
	// Hash is the SHA-256 of the cookie value, lower-case hex.
	Hash      string
	PersonID  string
	CreatedAt time.Time
	ExpiresAt time.Time
}

// LinkPurpose says what a one-time link does.
type LinkPurpose string

// Purposes.
const (
	// LinkLogin opens a console session.
	LinkLogin LinkPurpose = "login"
	// LinkSlack binds a Slack user to the person who opens it.
	LinkSlack LinkPurpose = "slack"
)

// Link is a one-time link; only the SHA-256 of its code is stored.
type Link struct {
	Hash    string
	Purpose LinkPurpose
	// PersonID is who logs in (LinkLogin).
	PersonID string
	// SlackTeam and SlackUser are what is bound (LinkSlack).
	SlackTeam string
	SlackUser string
	ExpiresAt time.Time
	UsedAt    time.Time
}

// Sentinels.
var (
	ErrUnauthenticated = errors.New("not authenticated")
	ErrForbidden       = errors.New("not allowed")
	ErrNotFound        = errors.New("not found")
	ErrLinkUsed        = errors.New("this one-time link was used or has expired")
	ErrDuplicate       = errors.New("already exists")
	// ErrInvalid wraps what is wrong with a request of this package.
	ErrInvalid = errors.New("invalid request")
	// ErrLastAdmin refuses to leave holdfast without an admin who can log in.
	ErrLastAdmin = errors.New("this is the last admin")
)
