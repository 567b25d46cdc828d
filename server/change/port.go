package change

import (
	"context"
	"time"

	"holdfast/server/audit"
	"holdfast/server/incident"
	"holdfast/server/outbox"
)

// Store is what this package needs of the database.
type Store interface {
	InTx(ctx context.Context, fn func(Tx) error) error
	View(ctx context.Context, fn func(Tx) error) error
}

// Resource is what a claim holds for its guarded window.
type Resource struct {
	// Key is "env/<environment>/svc/<service>" or "env/<environment>".
	Key string
	// Shared holds coexist with each other and exclude exclusive ones.
	Shared bool
}

// Hold is one guarded reservation, enforced by the database: an exclusion
// constraint on PostgreSQL, a trigger on SQLite. Two holds of different changes
// on one key may not overlap unless both are shared or one is exempt.
type Hold struct {
	ChangeID  string
	Resources []Resource
	// Start and End are the window padded by half the guard band on each side.
	Start time.Time
	End   time.Time
	// Exempt holds are visible and never conflict: confirmed changes and emergency actions.
	Exempt bool
}

// Tx is one transaction. Look-ups of absent rows give ErrNotFound.
type Tx interface {
	Now() time.Time
	// Lock serialises transactions that name the same key until they end.
	Lock(key string) error
	Audit(audit.Entry) error
	Enqueue(outbox.Message) error
	Touch(topic, id string)

	Change(id string) (Change, error)
	// ChangeByRun finds the newest live (held, claimed, running) change of a run for this service and environment.
	ChangeByRun(runID, service, environment string) (Change, error)
	Changes(Filter) ([]Change, error)
	// LiveChanges lists changes that count in decisions (claimed, running and ended ones whose guard may still matter) of an environment whose window meets [from, to), an emergency action without an environment included. A running change lasts until Now() at least, however long its window is over.
	LiveChanges(environment string, from, to time.Time) ([]Change, error)
	// InsertChange sets Version 1.
	InsertChange(*Change) error
	// SaveChange compares and sets on Version; ErrStale when lost.
	SaveChange(*Change) error
	// NextFencingToken is strictly increasing.
	NextFencingToken() (int64, error)
	// PutHold replaces the hold of a change; ErrConflict when it overlaps.
	PutHold(Hold) error
	// DropHold frees it at once.
	DropHold(changeID string) error
	// LapsedChanges lists held changes past ConfirmBy and claims past ClaimedUntil.
	LapsedChanges(limit int) ([]Change, error)

	Freezes(from, to time.Time) ([]Freeze, error)
	Freeze(id string) (Freeze, error)
	InsertFreeze(*Freeze) error
	DeleteFreeze(id string) error

	// OpenCriticalIncidents lists unresolved critical incidents.
	OpenCriticalIncidents() ([]incident.Incident, error)
}
