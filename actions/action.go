// Package actions is the engine behind every button: a registry of actions, the
// plan (dry run), and runs that execute, are verified with data, hold a lease
// and are taken back (DESIGN mechanisms 2–4).
//
//	accepted → executing → active → reverting → ended
//	    └──────────┴─→ failed            (nothing in force)
//
// Every transition is one short transaction with compare-and-set; nothing runs
// between ticks, so a killed server goes on where it stopped.
package actions

import (
	"context"
	"encoding/json"
	"time"

	"holdfast/gpuguard/policy"
	"holdfast/gpuguard/signals"
)

// Action is one operation that can be planned, executed, verified and reverted.
type Action interface {
	Spec() Spec
	// Plan validates the parameters against the snapshot and says what would
	// change. It has no effect. ErrInvalidParams wraps what is wrong.
	Plan(ctx context.Context, params json.RawMessage, snap Snapshot) (Plan, error)
	// Verify judges with data whether the run has the effect it should. No data is Inconclusive.
	Verify(ctx context.Context, run Run, snap Snapshot) (Verification, error)
}

// Spec describes an action for people and forms.
type Spec struct {
	// Name is the API name, such as "trip_breaker".
	Name string `json:"name"`
	// Title is the button text, at most 40 characters.
	Title   string `json:"title"`
	Summary string `json:"summary"`
	// Role is the least role that may run it: responder, approver or admin.
	Role string `json:"role"`
	// Dangerous actions ask for confirmation in every surface.
	Dangerous bool    `json:"dangerous"`
	Params    []Param `json:"params"`
	// DefaultTTL and MaxTTL bound the lease.
	DefaultTTL time.Duration `json:"-"`
	MaxTTL     time.Duration `json:"-"`
}

// Param is one parameter of an action.
type Param struct {
	Name string `json:"name"`
	// Kind is "text", "number", "integer", "dependency", "route", "tenant" or "limit_target".
	Kind     string          `json:"kind"`
	Required bool            `json:"required"`
	Default  json.RawMessage `json:"default,omitempty"`
	Help     string          `json:"help"`
	// Unit is what a number counts, such as "requests/s".
	Unit string `json:"unit,omitempty"`
}

// Snapshot is what plans and verifications look at.
type Snapshot struct {
	Now       time.Time
	Lineage   string
	Revision  int64
	Base      policy.Document
	Overrides []policy.Override
	// Effective is Base merged with Overrides.
	Effective policy.Document
	Gateways  []Gateway
}

// Gateway is a member of the fleet as the engine sees it.
type Gateway struct {
	Name     string
	Live     bool
	Lineage  string
	Revision int64
	// Error is why it rejected RejectedRevision.
	Error            string
	RejectedRevision int64
	ApplySeconds     float64
	State            policy.State
	StateAt          time.Time
	// Prior is the state about a minute earlier, for rates; PriorAt zero when unknown.
	Prior   policy.State
	PriorAt time.Time
}

// Layer is one override an action wants.
type Layer struct {
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value"`
}

// Plan is a dry run.
type Plan struct {
	Action string `json:"action"`
	// Params are canonical: defaults filled in, keys sorted. Hash is their SHA-256 with the action's name, hex; approvals bind to it.
	Params json.RawMessage `json:"params"`
	Hash   string          `json:"hash"`
	// Summary is one sentence, such as "Force the breaker of llm open for 15m0s".
	Summary string          `json:"summary"`
	Layers  []Layer         `json:"layers"`
	Diff    []policy.Change `json:"diff"`
	Blast   Blast           `json:"blast"`
	// Warnings are things to know before running it.
	Warnings []string `json:"warnings,omitempty"`
	// Service is the catalogue service it touches; Environment may be empty.
	Service string `json:"service"`
	// TTLSeconds is the lease that would be taken.
	TTLSeconds float64 `json:"ttl_seconds"`
	// Criterion is the effect that should be seen in the metrics once it is in
	// force; nil when only the gateways' own reports are judged.
	Criterion *signals.Criterion `json:"criterion,omitempty"`
	// Leased names live leases in the way; the plan can not run while there is one.
	Leased []LeaseRef `json:"leased,omitempty"`
}

// Blast is how much a plan touches.
type Blast struct {
	// Share of the last minute's requests that go through what is touched (ratio 0–1); nil when there is no data.
	Share *float64 `json:"share"`
	// Requests is the sample size behind Share.
	Requests int64    `json:"requests"`
	Routes   []string `json:"routes"`
	Gateways []string `json:"gateways"`
}

// LeaseRef names a live lease.
type LeaseRef struct {
	RunID   string    `json:"run_id"`
	Path    string    `json:"path"`
	Owner   string    `json:"owner"`
	Reason  string    `json:"reason"`
	Expires time.Time `json:"expires"`
}
