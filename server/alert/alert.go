// Package alert takes alerts in: each alert of a notification is one occurrence
// (fingerprint + startsAt) with its own state machine, and occurrences group
// into incidents. Nothing is trusted that speaks of the group as a whole.
package alert

import (
	"errors"
	"time"

	"holdfast/server/incident"
)

// Status of one occurrence.
type Status string

// Statuses.
const (
	StatusFiring   Status = "firing"
	StatusResolved Status = "resolved"
)

// Occurrence is one alert from its start to its end.
type Occurrence struct {
	ID          int64
	Fingerprint string
	StartsAt    time.Time
	// EndsAt is zero while there is no end.
	EndsAt       time.Time
	Status       Status
	Severity     incident.Severity
	Labels       map[string]string
	Annotations  map[string]string
	GeneratorURL string
	GroupKey     string
	// IncidentID is empty for an occurrence that was over before it was seen, unless its group had an open incident.
	IncidentID string
	// Source is the name of the token that delivered it.
	Source         string
	FirstSeenAt    time.Time
	LastReceivedAt time.Time
	// Repeats counts deliveries after the first.
	Repeats int
}

// Notification is one delivery of a source, such as an Alertmanager webhook.
type Notification struct {
	// Source names the token that delivered it.
	Source      string
	GroupKey    string
	Receiver    string
	ExternalURL string
	// GroupLabels and CommonLabels give the incident its title.
	GroupLabels       map[string]string
	CommonLabels      map[string]string
	CommonAnnotations map[string]string
	// Truncated is how many alerts the source left out.
	Truncated int
	Alerts    []Incoming
	// Raw is the request body as received, kept for a while.
	Raw []byte
}

// Incoming is one alert of a notification.
type Incoming struct {
	Fingerprint  string
	Status       Status
	StartsAt     time.Time
	EndsAt       time.Time
	Labels       map[string]string
	Annotations  map[string]string
	GeneratorURL string
}

// Receipt says what became of a notification.
type Receipt struct {
	Incident  string `json:"incident,omitempty"`
	Number    int64  `json:"number,omitempty"`
	New       int    `json:"new"`
	Updated   int    `json:"updated"`
	Resolved  int    `json:"resolved"`
	Duplicate int    `json:"duplicate"`
	// Stale counts firings of an episode already known to be over (C23).
	Stale int `json:"stale"`
}

// Sentinels.
var (
	// ErrInvalid wraps what is wrong with a notification.
	ErrInvalid  = errors.New("invalid notification")
	ErrNotFound = errors.New("alert not found")
	// ErrOverloaded: too many deliveries wait already; the source should try again (503).
	ErrOverloaded = errors.New("too many alert deliveries at once")
)
