package actions

import (
	"context"
	"time"

	"holdfast/gpuguard/policy"
	"holdfast/gpuguard/signals"
)

// Metrics answers the PromQL of criteria.
type Metrics interface {
	// Query evaluates at one time; the zero time means now.
	Query(ctx context.Context, query string, at time.Time) ([]signals.Sample, error)
}

// Store is what the engine needs of the database.
type Store interface {
	InTx(ctx context.Context, fn func(Tx) error) error
	View(ctx context.Context, fn func(Tx) error) error
	// Wake is signalled after a commit that could let a run move on (a new run,
	// an acknowledgement, a lost member); a poll remains the fallback.
	Wake() <-chan struct{}
}

// EventKind is a kind of thing that happened to a run.
type EventKind string

// Event kinds; the audit verb is "action.<kind>".
const (
	EventAccepted EventKind = "accepted"
	EventDenied   EventKind = "denied"
	EventExecuted EventKind = "executed"
	// EventWaiting: gateways named in Run.Missing let it wait for long.
	EventWaiting   EventKind = "waiting"
	EventEnforced  EventKind = "enforced"
	EventVerified  EventKind = "verified"
	EventWarned    EventKind = "warned"
	EventRenewed   EventKind = "renewed"
	EventReverting EventKind = "reverting"
	EventEnded     EventKind = "ended"
	EventFailed    EventKind = "failed"
)

// Event is recorded in one place and lands in audit, timeline, card and thread.
type Event struct {
	Run   Run
	Kind  EventKind
	Actor Actor
	// Text is one line for people; Reason is for the audit of denials.
	Text   string
	Reason string
}

// Tx is one transaction.
type Tx interface {
	Now() time.Time
	Lock(key string) error
	// Allowed says whether the actor, as known now, has at least the role.
	Allowed(actor Actor, role string) (bool, error)

	// InsertRun gives ErrDuplicate when Key is known; RunByKey finds the first.
	InsertRun(*Run) error
	RunByKey(key string) (Run, error)
	Run(id string) (Run, error)
	// SaveRun compares and sets on Version and raises it; ErrStale when lost.
	SaveRun(*Run) error
	// DueRuns locks and returns runs whose NextAt has come, skipping those locked by another server.
	DueRuns(limit int) ([]Run, error)
	// LiveRuns lists runs with Live() true, newest first; of one incident when named.
	LiveRuns(incidentID string) ([]Run, error)
	// Runs lists all with AcceptedAt before the cursor (zero: from the newest), newest first.
	Runs(before time.Time, limit int) ([]Run, error)
	// IncidentRuns lists all runs of an incident, newest first.
	IncidentRuns(incidentID string) ([]Run, error)

	// PolicySnapshot reads head, overrides and gateways as of now.
	PolicySnapshot() (Snapshot, error)
	// InsertOverride adds a layer; LeasedError when the path is held.
	InsertOverride(policy.Override) error
	// ExtendOverride moves the expiry of a layer.
	ExtendOverride(id string, expires time.Time) error
	DeleteOverride(id string) (bool, error)
	// BumpRevision writes the next revision and returns it.
	BumpRevision(cause, actor string) (int64, error)

	// OpenEmergencyChange enters the run in the calendar as a change that never conflicts and that CI sees (mechanism 5).
	OpenEmergencyChange(run Run) error
	// CloseEmergencyChange ends it.
	CloseEmergencyChange(run Run) error

	// RecordEvent writes audit row, timeline entry, card refresh and thread line.
	RecordEvent(Event) error
}
