package incident

import (
	"context"
	"time"

	"holdfast/server/audit"
	"holdfast/server/outbox"
)

// Store is what this package needs of the database.
type Store interface {
	InTx(ctx context.Context, fn func(Tx) error) error
	View(ctx context.Context, fn func(Tx) error) error
}

// Tx is one transaction. Look-ups of absent rows give ErrNotFound.
type Tx interface {
	Now() time.Time
	// Lock serialises transactions that name the same key until they end.
	Lock(key string) error
	Audit(audit.Entry) error
	Enqueue(outbox.Message) error
	// Touch tells the console, after commit, that something changed.
	Touch(topic, id string)

	Incident(id string) (Incident, error)
	// UnresolvedIncident returns the one of the group that is not resolved.
	UnresolvedIncident(groupKey string) (Incident, error)
	Incidents(Filter) ([]Incident, error)
	// InsertIncident gives it its Number and Version 1.
	InsertIncident(*Incident) error
	// SaveIncident compares and sets on Version and raises it; ErrStale when lost.
	SaveIncident(*Incident) error
	// LatestIncident returns the newest of the group, resolved or not.
	LatestIncident(groupKey string) (Incident, error)
	// AddEntry appends to the timeline; At is set to Now when zero.
	AddEntry(Entry) error
	// Timeline lists entries with ID > after, oldest first, at most limit (1–500).
	Timeline(incidentID string, after int64, limit int) ([]Entry, error)
}
