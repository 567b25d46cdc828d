package actions

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Status of a run.
type Status string

// Statuses.
const (
	// StatusAccepted: durable, not yet in force.
	StatusAccepted Status = "accepted"
	// StatusExecuting: the revision is written, gateways are being waited for.
	StatusExecuting Status = "executing"
	// StatusActive: every live gateway acknowledged; the lease runs.
	StatusActive Status = "active"
	// StatusReverting: the layer is removed, gateways are being waited for.
	StatusReverting Status = "reverting"
	StatusEnded     Status = "ended"
	// StatusFailed: it never came into force, or was taken back because gateways rejected it; EndReason says why.
	StatusFailed Status = "failed"
)

// EndReason says why a run ended.
type EndReason string

// End reasons.
const (
	EndReverted EndReason = "reverted"
	EndExpired  EndReason = "expired"
	// EndRefused: not allowed any more when it was to be done.
	EndRefused EndReason = "refused"
	// EndLeased: somebody else holds the path.
	EndLeased EndReason = "path_leased"
	// EndRejected: a gateway rejected the revision.
	EndRejected EndReason = "rejected"
	// EndInvalid: the parameters no longer fit the policy.
	EndInvalid EndReason = "invalid"
)

// Verdict of a verification.
type Verdict string

// Verdicts; the empty string means not judged yet.
const (
	Verified     Verdict = "verified"
	NotVerified  Verdict = "not_verified"
	Inconclusive Verdict = "inconclusive"
)

// Verification is a judgement with data. At without a verdict means: looked at,
// in force, and its effect is still to show in the metrics.
type Verification struct {
	Verdict Verdict   `json:"verdict,omitempty"`
	Detail  string    `json:"detail,omitempty"`
	At      time.Time `json:"at,omitzero"`
}

// Actor is who asks.
type Actor struct {
	PersonID string `json:"person_id"`
	Name     string `json:"name"`
	// Channel is console, slack, api, cli or system.
	Channel string `json:"channel"`
}

// Run is one execution of an action, a lease with owner, reason, before-state and expiry.
type Run struct {
	ID string
	// Key makes it idempotent: one run per key (a button's id, or the caller's Idempotency-Key).
	Key        string
	Action     string
	Params     json.RawMessage
	ParamsHash string
	Plan       Plan
	IncidentID string
	Requester  Actor
	Reason     string
	Status     Status
	TTL        time.Duration
	// Lineage and Revision are what brought it into force; RevertRevision what took it back.
	Lineage        string
	Revision       int64
	RevertRevision int64
	AcceptedAt     time.Time
	ExecutedAt     time.Time
	// EnforcedAt is when the last live gateway acknowledged.
	EnforcedAt time.Time
	ExpiresAt  time.Time
	// EndedAt is when its layers were taken away, or it failed; while reverting
	// gateways are still to confirm it.
	EndedAt   time.Time
	EndReason EndReason
	EndDetail string
	EndedBy   string
	// Missing names live gateways that have not acknowledged.
	Missing      []string
	Verification Verification
	// Warned says the thread was told that the lease ends soon.
	Warned bool
	// NextAt is when the ticker looks again; zero means never.
	NextAt time.Time
	// Epoch fences stale tickers; Version is for compare-and-set.
	Epoch   int64
	Version int64
}

// Live says whether the run holds or will hold a lease.
func (r Run) Live() bool {
	switch r.Status {
	case StatusAccepted, StatusExecuting, StatusActive, StatusReverting:
		return true
	default:
		return false
	}
}

// Sentinels.
var (
	ErrUnknownAction = errors.New("unknown action")
	ErrInvalidParams = errors.New("invalid parameters")
	ErrNotFound      = errors.New("action run not found")
	ErrForbidden     = errors.New("not allowed")
	ErrDuplicate     = errors.New("already asked")
	ErrStale         = errors.New("somebody else changed it at the same moment")
	ErrWrongState    = errors.New("not possible in this state")
	// ErrOutdated: what would be done now is not what the plan showed.
	ErrOutdated = errors.New("the plan is out of date")
)

// LeasedError says who holds a policy path. It matches ErrPathLeased.
type LeasedError struct{ Lease LeaseRef }

// ErrPathLeased is matched by LeasedError.
var ErrPathLeased = errors.New("policy path is leased")

// Error names the holder and the end of the lease.
func (e *LeasedError) Error() string {
	return fmt.Sprintf("%s is leased by %s until %s (%s)", e.Lease.Path, e.Lease.Owner, e.Lease.Expires.UTC().Format(time.RFC3339), e.Lease.Reason)
}

// Is makes errors.Is(err, ErrPathLeased) true.
func (e *LeasedError) Is(target error) bool { return target == ErrPathLeased }
