package actions

import (
	"encoding/json"
	"time"
)

// Request asks the engine to run an action.
type Request struct {
	Action string
	Params json.RawMessage
	// TTL is the lease; zero takes the action's default.
	TTL    time.Duration
	Reason string
	// IncidentID may be empty.
	IncidentID string
	Actor      Actor
	// Key makes the request idempotent; required, 8–300 bytes.
	Key string
	// PlanHash is the Hash of the plan that was looked at; when it is not empty
	// and differs from what would be done now, the request is refused.
	PlanHash string
}

// Suggestion is an action with filled-in parameters proposed for an alert.
type Suggestion struct {
	Action string          `json:"action"`
	Title  string          `json:"title"`
	Params json.RawMessage `json:"params"`
	// Why says what in the alert led to it.
	Why string `json:"why"`
}
