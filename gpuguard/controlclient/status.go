package controlclient

import "time"

// Status is what the client knows of its link to the server.
type Status struct {
	// Connected is true while a stream is open and was heard of in time.
	Connected bool `json:"connected"`
	// LastHeard is when the server last sent anything on the stream; zero when never.
	LastHeard time.Time `json:"last_heard,omitzero"`
	// LastError is why the stream is down; empty while it is open.
	LastError string `json:"last_error,omitempty"`
	// AckError is why the last acknowledgement was not taken; empty when it was.
	AckError string `json:"ack_error,omitempty"`
	// Lineage and Revision are those in force; Revision is 0 when none is.
	Lineage  string `json:"lineage,omitempty"`
	Revision int64  `json:"revision"`
	// RejectedRevision is the newest revision refused since the one in force
	// was applied, and RejectedReason says why; 0 when none was.
	RejectedRevision int64  `json:"rejected_revision,omitempty"`
	RejectedReason   string `json:"rejected_reason,omitempty"`
	// StorageError is why the last-known-good file could not be written; empty when it was.
	StorageError string `json:"storage_error,omitempty"`
}
