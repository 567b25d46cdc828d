package policy

import "encoding/json"

// Update is one event of the policy stream. Its SSE id is "lineage:revision".
// Base and overrides travel apart: the gateway merges, and ends leases by
// itself when the server is gone.
type Update struct {
	Lineage  string `json:"lineage"`
	Revision int64  `json:"revision"`
	// Base is the base document, kept raw so that an unknown field is refused by name and not lost.
	Base      json.RawMessage `json:"base"`
	Overrides []Override      `json:"overrides"`
	// LiveGateways is the number of live members, ≥ 1: each enforces limit ÷ this (mechanism 12).
	LiveGateways int `json:"live_gateways"`
	// LineageConfirmed says that an admin accepted this lineage; a gateway that
	// holds another lineage switches only then.
	LineageConfirmed bool `json:"lineage_confirmed"`
}

// AckResult is what a gateway did with a revision.
type AckResult string

// Ack results.
const (
	AckApplied  AckResult = "applied"
	AckRejected AckResult = "rejected"
)

// Ack is posted by a gateway after each update and, as heartbeat, every
// HeartbeatEvery. A member is live while it was heard within MembershipLease.
type Ack struct {
	Gateway string `json:"gateway"`
	// Instance changes with each process start.
	Instance string    `json:"instance"`
	Version  string    `json:"version"`
	Lineage  string    `json:"lineage"`
	Revision int64     `json:"revision"`
	Result   AckResult `json:"result"`
	// Error says why a revision was rejected, naming the field.
	Error string `json:"error,omitempty"`
	// RejectedRevision is the revision Error speaks of; Revision stays the one in force.
	RejectedRevision int64 `json:"rejected_revision,omitempty"`
	// ApplySeconds is the time from receipt to swap of this revision.
	ApplySeconds float64 `json:"apply_seconds"`
	State        State   `json:"state"`
}

// State is what a gateway reports of itself.
type State struct {
	// Breakers by dependency name.
	Breakers map[string]BreakerState `json:"breakers"`
	// Limits in force on this gateway by path, after division.
	Limits map[string]Limit `json:"limits"`
	// Outcomes counts finished requests since process start by dependency ("" when none was chosen) and outcome.
	Outcomes map[string]map[Outcome]int64 `json:"outcomes"`
	// InFlight is the number of requests inside the gateway now.
	InFlight int64 `json:"in_flight"`
	// ActiveOverrides are the ids of the overrides in force.
	ActiveOverrides []string `json:"active_overrides"`
}

// BreakerState is one breaker as reported.
type BreakerState struct {
	// State is "closed", "open", "half_open", "forced_open" or "forced_closed".
	State string `json:"state"`
	// FailureRate of the window (ratio 0–1) and Calls judged in it.
	FailureRate float64 `json:"failure_rate"`
	Calls       int     `json:"calls"`
}

// Membership timing (DESIGN mechanism 1), in seconds.
const (
	HeartbeatEverySeconds  = 5
	MembershipLeaseSeconds = 15
)
