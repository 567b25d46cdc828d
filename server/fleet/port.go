package fleet

import (
	"context"
	"encoding/json"
	"time"

	"holdfast/gpuguard/policy"
	"holdfast/server/audit"
)

// Store is what this package needs of the database.
type Store interface {
	InTx(ctx context.Context, fn func(Tx) error) error
	View(ctx context.Context, fn func(Tx) error) error
	// Wake is signalled after a commit that made a new revision, on any server; a poll remains the fallback.
	Wake() <-chan struct{}
}

// Tx is one transaction.
type Tx interface {
	Now() time.Time
	Lock(key string) error
	Audit(audit.Entry) error
	Touch(topic, id string)

	// PolicyHead returns the newest policy; ErrNotFound before the first.
	PolicyHead() (Head, error)
	// InitPolicy makes a lineage with revision 1.
	InitPolicy(lineage string, confirmed bool, base json.RawMessage) error
	ConfirmLineage() error
	// SetBase replaces the base document; call BumpRevision after.
	SetBase(base json.RawMessage) error
	// InsertOverride adds a live layer; a path already leased gives policy-path conflict as ErrPathLeased of package actions.
	InsertOverride(policy.Override) error
	// DeleteOverride removes a layer by id; false when it was gone already.
	DeleteOverride(id string) (bool, error)
	// BumpRevision writes the next revision with its effective document and returns it.
	BumpRevision(cause, actor string) (int64, error)
	// Revisions lists history below before (0: newest first).
	Revisions(before int64, limit int) ([]Revision, error)

	Gateways() ([]Gateway, error)
	Gateway(name string) (Gateway, error)
	SaveGateway(Gateway) error
	// DeleteGatewaysUnheard forgets members not heard since the given time.
	DeleteGatewaysUnheard(since time.Time) (int, error)
}
