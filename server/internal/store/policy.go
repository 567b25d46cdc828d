package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"holdfast/actions"
	"holdfast/gpuguard/policy"
	"holdfast/server/fleet"
)

// maxRevisions is the largest page of the policy history.
const maxRevisions = 500

// headID is the id of the single row of policy_head.
const headID = 1

type headRow struct {
	ID               int `gorm:"primaryKey;autoIncrement:false"`
	Lineage          string
	LineageConfirmed bool
	Revision         int64
	Base             string
}

// TableName is the table.
func (headRow) TableName() string { return "policy_head" }

type revisionRow struct {
	Lineage   string `gorm:"primaryKey"`
	Revision  int64  `gorm:"primaryKey;autoIncrement:false"`
	At        stamp
	Cause     string
	Actor     string
	Effective string
}

// TableName is the table.
func (revisionRow) TableName() string { return "policy_revisions" }

func (r revisionRow) revision() fleet.Revision {
	return fleet.Revision{
		Lineage: r.Lineage, Revision: r.Revision, At: r.At.t, Cause: r.Cause, Actor: r.Actor,
		Effective: json.RawMessage(r.Effective),
	}
}

type overrideRow struct {
	ID        string `gorm:"primaryKey"`
	Path      string
	Value     string
	Owner     string
	Reason    string
	ExpiresAt stamp
	CreatedAt stamp
}

// TableName is the table.
func (overrideRow) TableName() string { return "policy_overrides" }

func (r overrideRow) override() policy.Override {
	return policy.Override{
		ID: r.ID, Path: r.Path, Value: json.RawMessage(r.Value), Owner: r.Owner,
		Reason: r.Reason, Expires: r.ExpiresAt.t,
	}
}

// PolicyHead returns the newest policy with the overrides whose lease runs now;
// ErrNotFound before the first.
func (tx *Tx) PolicyHead() (fleet.Head, error) {
	row, err := one[headRow](tx, "read the policy", tx.db, fleet.ErrNotFound)
	if err != nil {
		return fleet.Head{}, err
	}
	overrides, err := tx.overrides()
	if err != nil {
		return fleet.Head{}, err
	}
	return fleet.Head{
		Lineage: row.Lineage, LineageConfirmed: row.LineageConfirmed, Revision: row.Revision,
		Base: json.RawMessage(row.Base), Overrides: policy.StampRemaining(overrides, tx.now),
	}, nil
}

// overrides are all layers, those too whose lease ended a moment ago and whose
// run has not removed them yet.
func (tx *Tx) overrides() ([]policy.Override, error) {
	return many(tx, "read the overrides", tx.db.Order("path"), func(r overrideRow) policy.Override {
		o := r.override()
		o.RemainingSeconds = o.Remaining(tx.now).Seconds()
		return o
	})
}

// InitPolicy makes a lineage with revision 1. Live overrides stay.
func (tx *Tx) InitPolicy(lineage string, confirmed bool, base json.RawMessage) error {
	head, err := one[headRow](tx, "read the policy", tx.db.Clauses(forUpdate), fleet.ErrNotFound)
	switch {
	case err == nil && head.Lineage == lineage:
		return fmt.Errorf("%w: lineage %s exists already", fleet.ErrInvalid, lineage)
	case err != nil && !errors.Is(err, fleet.ErrNotFound):
		return err
	}
	row := headRow{ID: headID, Lineage: lineage, LineageConfirmed: confirmed, Base: string(base)}
	if err := tx.upsert("start a lineage", &row, "id"); err != nil {
		return err
	}
	_, err = tx.BumpRevision("lineage started", "system")
	return err
}

// ConfirmLineage notes that an admin accepted this lineage.
func (tx *Tx) ConfirmLineage() error {
	n, err := tx.affected("confirm the lineage", "UPDATE policy_head SET lineage_confirmed = ? WHERE id = ?", true, headID)
	if err == nil && n == 0 {
		return fleet.ErrNotFound
	}
	tx.wake(wakePolicy)
	return err
}

// SetBase replaces the base document; call BumpRevision after.
func (tx *Tx) SetBase(base json.RawMessage) error {
	n, err := tx.affected("set the base policy", "UPDATE policy_head SET base = ? WHERE id = ?", string(base), headID)
	if err == nil && n == 0 {
		return fleet.ErrNotFound
	}
	return err
}

// InsertOverride adds a live layer. A path that is held gives *actions.LeasedError
// with the holder, which matches actions.ErrPathLeased.
func (tx *Tx) InsertOverride(o policy.Override) error {
	row := overrideRow{
		ID: o.ID, Path: o.Path, Value: string(o.Value), Owner: o.Owner, Reason: o.Reason,
		ExpiresAt: at(o.Expires), CreatedAt: at(tx.now),
	}
	err := tx.attempt(func() error { return tx.create("insert an override", &row) })
	if !errors.Is(err, actions.ErrPathLeased) {
		return err
	}
	held, findErr := one[overrideRow](tx, "read the lease in the way", tx.db.Where("path = ?", o.Path), errRepeat)
	if findErr != nil {
		// Gone in the meantime: the next try will get the path.
		return tx.check("read the lease in the way", findErr)
	}
	return &actions.LeasedError{Lease: leaseRef(held.override())}
}

// leaseRef names the holder. The id of an override is that of its run, with
// "-<n>" behind it when the run has several layers.
func leaseRef(o policy.Override) actions.LeaseRef {
	runID, _, _ := strings.Cut(o.ID, "-")
	return actions.LeaseRef{RunID: runID, Path: o.Path, Owner: o.Owner, Reason: o.Reason, Expires: o.Expires}
}

// ExtendOverride moves the expiry of a layer; ErrNotFound of package actions when it is gone.
func (tx *Tx) ExtendOverride(id string, expires time.Time) error {
	n, err := tx.affected("extend an override", "UPDATE policy_overrides SET expires_at = ? WHERE id = ?", at(expires), id)
	if err == nil && n == 0 {
		return fmt.Errorf("override %s: %w", id, actions.ErrNotFound)
	}
	return err
}

// DeleteOverride removes a layer by id; false when it was gone already.
func (tx *Tx) DeleteOverride(id string) (bool, error) {
	n, err := tx.affected("delete an override", "DELETE FROM policy_overrides WHERE id = ?", id)
	return n > 0, err
}

// BumpRevision writes the next revision with its effective document and returns
// it. fleet.ErrInvalid when base and overrides do not fit together.
func (tx *Tx) BumpRevision(cause, actor string) (int64, error) {
	// The lock comes before the overrides are read: the revision that is written
	// last has seen every layer written before.
	head, err := one[headRow](tx, "read the policy", tx.db.Clauses(forUpdate), fleet.ErrNotFound)
	if err != nil {
		return 0, err
	}
	effective, err := tx.effective(head.Base)
	if err != nil {
		return 0, err
	}
	head.Revision++
	if err := tx.exec("raise the revision", "UPDATE policy_head SET revision = ? WHERE id = ?", head.Revision, headID); err != nil {
		return 0, err
	}
	row := revisionRow{
		Lineage: head.Lineage, Revision: head.Revision, At: at(tx.now), Cause: cause, Actor: actor,
		Effective: string(effective),
	}
	if err := tx.create("write the revision", &row); err != nil {
		return 0, err
	}
	tx.wake(wakePolicy)
	tx.wake(wakeRuns)
	tx.Touch("policy", fmt.Sprint(head.Revision))
	return head.Revision, tx.notify(head.Lineage, head.Revision)
}

// effective merges the live overrides into a base document.
func (tx *Tx) effective(base string) ([]byte, error) {
	document, err := policy.Decode([]byte(base))
	if err != nil {
		return nil, fmt.Errorf("%w: base document: %w", fleet.ErrInvalid, err)
	}
	overrides, err := tx.overrides()
	if err != nil {
		return nil, err
	}
	merged, err := policy.Merge(document, overrides, tx.now)
	if err != nil {
		return nil, fmt.Errorf("%w: with the overrides in force: %w", fleet.ErrInvalid, err)
	}
	encoded, err := policy.Encode(merged)
	if err != nil {
		return nil, fmt.Errorf("store: write the effective policy: %w", err)
	}
	return encoded, nil
}

// Revisions lists the history of the current lineage below before (0: from the newest), newest first.
func (tx *Tx) Revisions(before int64, limit int) ([]fleet.Revision, error) {
	query := tx.db.Where("lineage = (SELECT lineage FROM policy_head WHERE id = ?)", headID).
		Order("revision DESC").Limit(bounded(limit, maxRevisions))
	if before > 0 {
		query = query.Where("revision < ?", before)
	}
	return many(tx, "list policy revisions", query, revisionRow.revision)
}

// PolicySnapshot reads head, overrides and gateways as of now; fleet.ErrNotFound
// before the first policy. Overrides hold ended layers too, until they are
// deleted: the engine looks for those that nobody removes.
func (tx *Tx) PolicySnapshot() (actions.Snapshot, error) {
	head, err := one[headRow](tx, "read the policy", tx.db, fleet.ErrNotFound)
	if err != nil {
		return actions.Snapshot{}, err
	}
	snapshot := actions.Snapshot{Now: tx.now, Lineage: head.Lineage, Revision: head.Revision}
	if snapshot.Overrides, err = tx.overrides(); err != nil {
		return actions.Snapshot{}, err
	}
	if snapshot.Base, err = policy.Decode([]byte(head.Base)); err != nil {
		return actions.Snapshot{}, fmt.Errorf("%w: base document: %w", fleet.ErrInvalid, err)
	}
	if snapshot.Effective, err = policy.Merge(snapshot.Base, snapshot.Overrides, tx.now); err != nil {
		return actions.Snapshot{}, fmt.Errorf("%w: with the overrides in force: %w", fleet.ErrInvalid, err)
	}
	members, err := tx.Gateways()
	if err != nil {
		return actions.Snapshot{}, err
	}
	for _, g := range members {
		snapshot.Gateways = append(snapshot.Gateways, member(g, tx.now))
	}
	return snapshot, nil
}

// member is a gateway as the engine sees it.
func member(g fleet.Gateway, now time.Time) actions.Gateway {
	return actions.Gateway{
		Name: g.Name, Live: g.Live(now), Lineage: g.Lineage, Revision: g.Revision, Error: g.Error,
		RejectedRevision: g.RejectedRevision, ApplySeconds: g.ApplySeconds, State: g.State,
		StateAt: g.StateAt, Prior: g.Prior, PriorAt: g.PriorAt,
	}
}
