package alert

import (
	"context"
	"time"

	"holdfast/server/incident"
)

// Store is what this package needs of the database.
type Store interface {
	InTx(ctx context.Context, fn func(Tx) error) error
	View(ctx context.Context, fn func(Tx) error) error
}

// Tx is one transaction over alerts and incidents.
type Tx interface {
	incident.Tx
	// SaveRaw keeps the body as received, compressed, for the retention time.
	SaveRaw(source string, body []byte) error
	// Occurrence finds by fingerprint and start; ErrNotFound when absent.
	Occurrence(fingerprint string, startsAt time.Time) (Occurrence, error)
	// LatestOccurrence finds the newest start of a fingerprint; ErrNotFound when absent.
	LatestOccurrence(fingerprint string) (Occurrence, error)
	// SaveOccurrence upserts on (Fingerprint, StartsAt).
	SaveOccurrence(*Occurrence) error
	// IncidentOccurrences lists the members of an incident, firing first, newest first, at most limit.
	IncidentOccurrences(incidentID string, limit int) ([]Occurrence, error)
	// CountOccurrences counts members by status.
	CountOccurrences(incidentID string) (firing, resolved int, err error)
	// Alerts lists occurrences with ID < before (0: from the newest), newest first.
	Alerts(before int64, limit int) ([]Occurrence, error)
}
