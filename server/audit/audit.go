// Package audit is the hash-chained record of every decision, denied ones too
// (DESIGN mechanism 10). Rows are written unchained in the decision's own
// transaction; one chainer links committed rows, and Verify checks the chain
// without the server.
package audit

import "time"

// Decision says whether what was asked was allowed.
type Decision string

// Decisions.
const (
	Allowed Decision = "allowed"
	Denied  Decision = "denied"
)

// Entry is one decision. It never holds secrets, prompts or signatures.
type Entry struct {
	// ID orders rows of one database; 0 until stored.
	ID int64
	// At is database time, truncated to microseconds because that is what is stored and hashed.
	At time.Time
	// ActorID and ActorName say who asked: a person, a token or "system".
	ActorID   string
	ActorName string
	// Channel is where it was asked: console, slack, api, cli, gateway or system.
	Channel string
	// Verb is what was asked, such as "action.run" or "change.confirm".
	Verb string
	// Subject is what it was asked of, such as "incident:…" or "run:…".
	Subject  string
	Decision Decision
	// Reason says why, in a few words.
	Reason string
	// Details are further facts, small and free of secrets.
	Details map[string]string
}

// Link is an entry's place in the chain.
type Link struct {
	// Seq counts from 1 without gaps.
	Seq int64
	// PrevHash and Hash are lower-case hex SHA-256; PrevHash of Seq 1 is 64 zeros.
	PrevHash string
	Hash     string
}

// Linked is an entry together with its link.
type Linked struct {
	Entry
	Link
}
