package runbooks

import (
	"context"
	"encoding/json"
	"time"

	"holdfast/actions"
	"holdfast/gpuguard/signals"
)

// Actions is what action steps need of the action engine; *actions.Engine has it.
type Actions interface {
	Specs() []actions.Spec
	Plan(ctx context.Context, action string, params json.RawMessage, ttl time.Duration) (actions.Plan, error)
	// Run is idempotent by Request.Key: ErrDuplicate comes with the first run.
	Run(ctx context.Context, r actions.Request) (actions.Run, error)
	Find(ctx context.Context, id string) (actions.Run, error)
}

// Metrics answers the questions of checks.
type Metrics interface {
	Query(ctx context.Context, query string, at time.Time) ([]signals.Sample, error)
}

// Store is what the engine needs of the database.
type Store interface {
	InTx(ctx context.Context, fn func(Tx) error) error
	View(ctx context.Context, fn func(Tx) error) error
	// Wake is signalled after a commit that could let a run move on (a new run, an
	// answer, an action run that moved); a poll remains the fallback.
	Wake() <-chan struct{}
}

// EventKind is a kind of thing that happened to a run; the audit verb is "runbook.<kind>".
type EventKind string

// Event kinds.
const (
	EventStarted   EventKind = "started"
	EventDenied    EventKind = "denied"
	EventStep      EventKind = "step"
	EventAsked     EventKind = "asked"
	EventAnswered  EventKind = "answered"
	EventFinished  EventKind = "finished"
	EventFailed    EventKind = "failed"
	EventCancelled EventKind = "cancelled"
)

// Event is recorded in one place and lands in audit, timeline and thread.
type Event struct {
	Run   Run
	Kind  EventKind
	Actor actions.Actor
	// Step is the id of the step it is about; may be empty.
	Step string
	// Text is one line for people; Reason is for the audit of denials.
	Text   string
	Reason string
	// Thread says whether the incident's thread is told.
	Thread bool
}

// Tx is one transaction.
type Tx interface {
	Now() time.Time
	Lock(key string) error
	// Allowed says whether the actor, as known now, has at least the role.
	Allowed(actor actions.Actor, role string) (bool, error)

	// InsertRunbookRun gives ErrDuplicate when Key is known; RunbookRunByKey finds the first.
	InsertRunbookRun(*Run) error
	RunbookRunByKey(key string) (Run, error)
	// RunbookRun finds by id; ErrNotFound.
	RunbookRun(id string) (Run, error)
	// SaveRunbookRun compares and sets on Version and raises it; ErrStale when lost.
	SaveRunbookRun(*Run) error
	// DueRunbookRuns locks and returns runs whose NextAt has come, skipping those locked by another server.
	DueRunbookRuns(limit int) ([]Run, error)
	// RunbookRuns lists newest first: started before the cursor (zero: from the
	// newest), of one incident when named, live ones only when asked.
	RunbookRuns(f Filter) ([]Run, error)

	// RecordRunbookEvent writes audit row, timeline entry and thread line.
	RecordRunbookEvent(Event) error
}

// Filter selects runs.
type Filter struct {
	IncidentID string
	Live       bool
	Before     time.Time
	// Limit is 1–200.
	Limit int
}
