package policy

import (
	"encoding/json"
	"strings"
	"time"

	"holdfast/strict"
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

// Bounds of an override's texts (bytes).
const (
	maxOverrideID     = 128
	maxOverrideOwner  = 200
	maxOverrideReason = 1000
)

// Validate checks an override by itself, as its writer must before it is
// stored: id, owner and reason are there, the path is overridable. The value is
// checked by Merge, against the document it is laid over. Errors are strict.Errors.
func (o Override) Validate() error {
	var errs strict.Errors
	text := func(path, value string, most int) {
		switch {
		case strings.TrimSpace(value) == "":
			errs.Addf(path, "is missing")
		case len(value) > most:
			errs.Addf(path, "is %d bytes long: at most %d are allowed", len(value), most)
		}
	}
	text("id", o.ID, maxOverrideID)
	text("owner", o.Owner, maxOverrideOwner)
	text("reason", o.Reason, maxOverrideReason)
	if err := CheckPath(o.Path); err != nil {
		errs.Addf("path", "%s", err)
	}
	return errs.Err()
}
