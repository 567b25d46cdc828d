package policy

import (
	"encoding/json"
	"time"
)

// Override is one leased layer above the base document: it sets the value at
// one path until it expires, and is removed by deleting the layer, so that base
// edits made meanwhile survive.
type Override struct {
	// ID is unique and stable; the action run that made it.
	ID string `json:"id"`
	// Path is one of the overridable paths, see CheckPath.
	Path string `json:"path"`
	// Value is the JSON value set at Path.
	Value json.RawMessage `json:"value"`
	// Owner and Reason are shown wherever the effective policy is shown.
	Owner  string `json:"owner"`
	Reason string `json:"reason"`
	// Expires is the end of the lease by the holder's own clock. It is not
	// sent: the wire carries RemainingSeconds so that clocks need not agree.
	Expires time.Time `json:"-"`
	// RemainingSeconds is the lease time left when the message was written.
	RemainingSeconds float64 `json:"remaining_seconds"`
}

// Effective is a merged policy together with the layers that made it.
type Effective struct {
	Lineage   string     `json:"lineage"`
	Revision  int64      `json:"revision"`
	Document  Document   `json:"document"`
	Overrides []Override `json:"overrides"`
}

// Change is one difference between two documents.
type Change struct {
	// Path is the dotted path; Before and After are JSON, null when absent.
	Path   string          `json:"path"`
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
}
