// Package change is the calendar: what alters production, when, and whether it
// may. Decide is one pure function used by every surface; the claim that
// follows an allow is atomic (DESIGN "Calendar rule").
package change

import (
	"errors"
	"time"
)

// Kind of change.
type Kind string

// Kinds of change (DESIGN "Words").
const (
	KindDeploy       Kind = "deploy"
	KindScale        Kind = "scale"
	KindFlag         Kind = "flag"
	KindConfig       Kind = "config"
	KindMigration    Kind = "migration"
	KindRebalance    Kind = "rebalance"
	KindTrafficEvent Kind = "traffic_event"
	// KindEmergency is an emergency action; it is never held back, and everybody sees it.
	KindEmergency Kind = "emergency_action"
	// KindRollback is always free.
	KindRollback Kind = "rollback"
)

// Status of a change.
type Status string

// Statuses.
const (
	// StatusHeld waits for a confirmation.
	StatusHeld       Status = "held"
	StatusClaimed    Status = "claimed"
	StatusRunning    Status = "running"
	StatusSucceeded  Status = "succeeded"
	StatusFailed     Status = "failed"
	StatusRolledBack Status = "rolled_back"
	StatusOverrun    Status = "overrun"
	StatusCancelled  Status = "cancelled"
	StatusRejected   Status = "rejected"
	// StatusExpired: held or claimed and never used in time.
	StatusExpired Status = "expired"
)

// Verdict is the answer to "may I": these literals everywhere.
type Verdict string

// Verdicts.
const (
	Allow   Verdict = "allow"
	Confirm Verdict = "confirm"
	Deny    Verdict = "deny"
)

// ReasonCode is a machine-readable reason.
type ReasonCode string

// Reason codes.
const (
	ReasonFree         ReasonCode = "free"
	ReasonGuardBand    ReasonCode = "guard_band"
	ReasonFreeze       ReasonCode = "freeze"
	ReasonIncident     ReasonCode = "critical_incident"
	ReasonAlwaysFree   ReasonCode = "always_free"
	ReasonOwnClaim     ReasonCode = "own_claim"
	ReasonConfirmed    ReasonCode = "confirmed"
	ReasonRejected     ReasonCode = "rejected"
	ReasonClaimExpired ReasonCode = "claim_expired"
)

// Scope says which changes meet.
type Scope string

// Scopes.
const (
	// ScopeNeighbourhood: same environment, own service exclusive, direct neighbours shared (default).
	ScopeNeighbourhood Scope = "neighbourhood"
	// ScopeEnvironment: any other change of the environment, the literal rule of outage B.
	ScopeEnvironment Scope = "environment"
)

// Service is a catalogue entry.
type Service struct {
	Name string `json:"name"`
	// DependsOn are names of services; the neighbourhood is one hop in both directions.
	DependsOn []string `json:"depends_on,omitempty"`
	Owner     string   `json:"owner,omitempty"`
}

// Environment is where changes happen.
type Environment struct {
	Name string `json:"name"`
	// GuardBand is the distance kept between windows, end to start; default 2 h (INCIDENTS B).
	GuardBand time.Duration `json:"guard_band"`
	Scope     Scope         `json:"scope"`
}

// Catalogue is what can be changed and where. Unknown services and environments are refused by name.
type Catalogue struct {
	Services     map[string]Service
	Environments map[string]Environment
}

// Request asks for a change.
type Request struct {
	Service     string
	Environment string
	Kind        Kind
	// Start zero means now. Duration ≥ 0, at most 7 days.
	Start    time.Time
	Duration time.Duration
	// RunID identifies the run; re-entrant by run only, never by actor.
	RunID   string
	Summary string
	// URL leads to the run; may be empty.
	URL string
	// Actor is the handle of the person behind the run, as the pipeline states it; may be empty.
	Actor string
}

// Change is one row of the ledger.
type Change struct {
	ID          string
	Service     string
	Environment string
	Kind        Kind
	Status      Status
	// Start and End are the half-open window; End moves when it finishes or is extended.
	Start   time.Time
	End     time.Time
	RunID   string
	Summary string
	URL     string
	// RequesterID is the person behind it when known (actor's person, else the token's owner): who may not confirm it.
	RequesterID   string
	RequesterName string
	// ActionRunID is set for emergency actions.
	ActionRunID string
	// Blockers are the ids it was held for; a confirmation covers exactly these.
	Blockers []string
	// ParamsHash binds a confirmation to the exact request.
	ParamsHash string
	// ConfirmBy is when a held change expires.
	ConfirmBy   time.Time
	DecidedByID string
	DecidedBy   string
	DecidedAt   time.Time
	// FencingToken rises with every claim; actuators refuse a lower one.
	FencingToken int64
	// ClaimedUntil is the lease end of a claim that has not started.
	ClaimedUntil time.Time
	CreatedAt    time.Time
	FinishedAt   time.Time
	Version      int64
}

// Freeze is a window in which forward changes are denied. AND across fields, OR inside one (C17).
type Freeze struct {
	ID     string
	Reason string
	// Services, Environments and Kinds narrow it; empty means all.
	Services     []string
	Environments []string
	Kinds        []Kind
	// Start and End are half-open; zero End means open-ended.
	Start     time.Time
	End       time.Time
	CreatedBy string
	CreatedAt time.Time
}

// Reason is one reason of a decision.
type Reason struct {
	Code ReasonCode `json:"code"`
	Text string     `json:"text"`
}

// Decision is the answer of Decide.
type Decision struct {
	Verdict Verdict
	Reasons []Reason
	// Blockers are the changes in the way, winner first.
	Blockers []Change
	Freezes  []Freeze
	// NextOpen is the next start at which the same request would be allowed, as far as is known now; zero when unknown.
	NextOpen time.Time
	// ExpiresAt: ask again after this (default 5 min).
	ExpiresAt time.Time
}

// Filter selects changes.
type Filter struct {
	Environment string
	Service     string
	// From and To bound the windows (half-open overlap); zero means unbounded.
	From time.Time
	To   time.Time
	// Active leaves ended ones out.
	Active bool
	// Before is the cursor (CreatedAt, ID); empty starts at the newest.
	Before string
	Limit  int
}

// Sentinels.
var (
	ErrNotFound = errors.New("change not found")
	ErrStale    = errors.New("somebody else changed it at the same moment")
	// ErrConflict is the database's own refusal of overlapping claims.
	ErrConflict = errors.New("overlaps another claim")
	ErrInvalid  = errors.New("invalid change request")
	// ErrSelfConfirm: the requester may not confirm their own change.
	ErrSelfConfirm = errors.New("the requester cannot confirm their own change")
	// ErrWrongState: the change is not in a state that allows it.
	ErrWrongState = errors.New("not possible in this state")
	// ErrOutdated: what was confirmed is no longer what would happen.
	ErrOutdated = errors.New("the calendar changed since this was asked")
	// ErrDenied: a freeze or a critical incident forbids it; a RefusedError says which.
	ErrDenied = errors.New("denied")
	// ErrRunMismatch: the run id is not the one that holds the claim.
	ErrRunMismatch = errors.New("another run holds this claim")
)
