// Package fleet is the server's side of the policy contract: base document,
// overrides, revisions and lineage, and the gateways that hold them (DESIGN
// mechanism 1).
package fleet

import (
	"encoding/json"
	"errors"
	"time"

	"holdfast/gpuguard/policy"
)

// Head is the newest policy.
type Head struct {
	// Lineage is made once per database; a restored or fresh one starts a new lineage.
	Lineage string
	// LineageConfirmed says an admin accepted this lineage for gateways that hold another.
	LineageConfirmed bool
	Revision         int64
	// Base is the base document as JSON.
	Base json.RawMessage
	// Overrides are the live layers, with Expires set.
	Overrides []policy.Override
}

// Revision is one row of the policy history.
type Revision struct {
	Lineage  string
	Revision int64
	At       time.Time
	// Cause says what made it: "base edit by …", "run … executed", "lease … expired".
	Cause string
	Actor string
	// Effective is the merged document, JSON.
	Effective json.RawMessage
}

// Gateway is one member of the fleet.
type Gateway struct {
	Name     string
	Instance string
	Version  string
	Lineage  string
	Revision int64
	Result   policy.AckResult
	// Error is why RejectedRevision was rejected; empty when none was.
	Error            string
	RejectedRevision int64
	// ApplySeconds is the time the gateway took to apply Revision.
	ApplySeconds float64
	// AckedAt is when Revision was first acknowledged; LastHeardAt when it was last heard.
	AckedAt     time.Time
	LastHeardAt time.Time
	State       policy.State
	// Prior is the state about a minute before State, for rates.
	Prior   policy.State
	PriorAt time.Time
	StateAt time.Time
}

// Live says whether the gateway was heard within the membership lease.
func (g Gateway) Live(now time.Time) bool {
	return now.Sub(g.LastHeardAt) < policy.MembershipLeaseSeconds*time.Second
}

// Sentinels.
var (
	ErrNotFound = errors.New("not found")
	// ErrInvalid wraps what is wrong with a policy.
	ErrInvalid = errors.New("invalid policy")
	// ErrStale: the revision the editor saw is not the newest.
	ErrStale = errors.New("the policy changed since you read it")
)
