// Package incident holds incidents and their timelines: what is wrong, since
// when, who has it in hand, and everything that was done about it.
package incident

import (
	"errors"
	"time"
)

// Status of an incident.
type Status string

// Statuses.
const (
	StatusOpen         Status = "open"
	StatusAcknowledged Status = "acknowledged"
	StatusResolved     Status = "resolved"
)

// Severity of alerts and incidents (DESIGN "Words").
type Severity string

// Severities, worst first.
const (
	SeverityCritical Severity = "critical"
	SeverityError    Severity = "error"
	SeverityWarning  Severity = "warning"
	SeverityInfo     Severity = "info"
)

// Incident is one thing that is wrong.
type Incident struct {
	ID string
	// Number is the short number people say aloud; from 1.
	Number   int64
	Title    string
	Severity Severity
	Status   Status
	// GroupKey is the alert source's own grouping key; at most one incident per key is not resolved.
	GroupKey string
	// Service and Environment come from the alerts' labels; may be empty.
	Service     string
	Environment string
	// RunbookURL and SourceURL lead to the full text (annotations runbook_url, externalURL).
	RunbookURL string
	SourceURL  string
	// Summary is the first alert's summary or description; untrusted text.
	Summary string
	// Firing and Resolved count the member occurrences.
	Firing   int
	Resolved int
	// Truncated is how many alerts the source left out of its last delivery; while > 0 the incident is never resolved automatically (C20).
	Truncated  int
	OpenedAt   time.Time
	AckedAt    time.Time
	AckedBy    string
	ResolvedAt time.Time
	// Version is for compare-and-set.
	Version int64
}

// EntryKind is a kind of timeline entry.
type EntryKind string

// Kinds of timeline entries.
const (
	EntryOpened       EntryKind = "opened"
	EntryAlert        EntryKind = "alert"
	EntryAcknowledged EntryKind = "acknowledged"
	EntryAction       EntryKind = "action"
	EntryRunbook      EntryKind = "runbook"
	EntryChange       EntryKind = "change"
	EntryNote         EntryKind = "note"
	EntryResolved     EntryKind = "resolved"
	EntryReopened     EntryKind = "reopened"
)

// Entry is one line of a timeline.
type Entry struct {
	ID         int64
	IncidentID string
	At         time.Time
	Kind       EntryKind
	// Actor is who did it: a person's name, a token's name or "system".
	Actor string
	Text  string
	// Ref points to what it is about, such as "run:…"; may be empty.
	Ref string
}

// Filter selects incidents.
type Filter struct {
	// Open leaves resolved ones out.
	Open bool
	// Before is the cursor: only numbers below it; 0 starts at the newest.
	Before int64
	// Limit is 1–200.
	Limit int
}

// Sentinels.
var (
	ErrNotFound = errors.New("incident not found")
	ErrStale    = errors.New("somebody else changed it at the same moment")
	// ErrStillFiring refuses to resolve what still fires.
	ErrStillFiring = errors.New("alerts of this incident still fire")
	// ErrResolved: the incident is resolved already.
	ErrResolved = errors.New("incident is resolved")
	// ErrInvalid wraps what is wrong with a request of this package.
	ErrInvalid = errors.New("invalid request")
)
