package identity

import (
	"context"
	"time"

	"holdfast/server/audit"
)

// Store is what this package needs of the database.
type Store interface {
	// InTx runs fn in one read-write transaction; View in a read-only one.
	InTx(ctx context.Context, fn func(Tx) error) error
	View(ctx context.Context, fn func(Tx) error) error
}

// Tx is one transaction. Look-ups of absent rows give ErrNotFound.
type Tx interface {
	// Now is database time (DESIGN mechanism 6).
	Now() time.Time
	// Lock serialises transactions that name the same key until they end.
	Lock(key string) error
	Audit(audit.Entry) error

	Person(id string) (Person, error)
	PersonByHandle(handle string) (Person, error)
	PersonBySlack(team, user string) (Person, error)
	People() ([]Person, error)
	// SavePerson inserts or replaces; a taken handle or Slack user gives ErrDuplicate.
	SavePerson(Person) error

	Token(id string) (Token, error)
	Tokens() ([]Token, error)
	// InsertToken gives ErrDuplicate for a taken id.
	InsertToken(Token) error
	RevokeToken(id string) error
	// TouchToken notes use, at most once a minute.
	TouchToken(id string) error

	InsertLink(Link) error
	// UseLink marks the link used and returns it; ErrLinkUsed when used, expired or unknown.
	UseLink(hash string, purpose LinkPurpose) (Link, error)
	InsertSession(Session) error
	Session(hash string) (Session, error)
	DeleteSession(hash string) error
}
