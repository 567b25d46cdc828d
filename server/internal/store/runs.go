package store

import (
	"encoding/json"
	"errors"
	"time"

	"gorm.io/gorm"

	"holdfast/actions"
	"holdfast/server/identity"
)

// maxRuns is the largest page of runs.
const maxRuns = 500

type runRow struct {
	ID             string `gorm:"primaryKey"`
	RunKey         string
	Action         string
	Params         string
	ParamsHash     string
	Plan           actions.Plan `gorm:"serializer:json"`
	IncidentID     string
	Requester      actions.Actor `gorm:"serializer:json"`
	Reason         string
	Status         string
	TTLUs          int64 `gorm:"column:ttl_us"`
	Lineage        string
	Revision       int64
	RevertRevision int64
	AcceptedAt     stamp
	ExecutedAt     stamp
	EnforcedAt     stamp
	ExpiresAt      stamp
	EndedAt        stamp
	EndReason      string
	EndDetail      string
	EndedBy        string
	Missing        []string             `gorm:"serializer:json"`
	Verification   actions.Verification `gorm:"serializer:json"`
	Warned         bool
	NextAt         stamp
	Epoch          int64
	Version        int64
}

// TableName is the table.
func (runRow) TableName() string { return "action_runs" }

func (r runRow) run() actions.Run {
	return actions.Run{
		ID: r.ID, Key: r.RunKey, Action: r.Action, Params: json.RawMessage(r.Params),
		ParamsHash: r.ParamsHash, Plan: r.Plan, IncidentID: r.IncidentID, Requester: r.Requester,
		Reason: r.Reason, Status: actions.Status(r.Status),
		TTL: time.Duration(r.TTLUs) * time.Microsecond, Lineage: r.Lineage, Revision: r.Revision,
		RevertRevision: r.RevertRevision, AcceptedAt: r.AcceptedAt.t, ExecutedAt: r.ExecutedAt.t,
		EnforcedAt: r.EnforcedAt.t, ExpiresAt: r.ExpiresAt.t, EndedAt: r.EndedAt.t,
		EndReason: actions.EndReason(r.EndReason), EndDetail: r.EndDetail, EndedBy: r.EndedBy,
		Missing: r.Missing, Verification: r.Verification, Warned: r.Warned, NextAt: r.NextAt.t,
		Epoch: r.Epoch, Version: r.Version,
	}
}

func (tx *Tx) runRow(r actions.Run) runRow {
	return runRow{
		ID: r.ID, RunKey: r.Key, Action: r.Action, Params: string(r.Params),
		ParamsHash: r.ParamsHash, Plan: r.Plan, IncidentID: r.IncidentID, Requester: r.Requester,
		Reason: r.Reason, Status: string(r.Status), TTLUs: r.TTL.Microseconds(),
		Lineage: r.Lineage, Revision: r.Revision, RevertRevision: r.RevertRevision,
		AcceptedAt: tx.orNow(r.AcceptedAt), ExecutedAt: at(r.ExecutedAt), EnforcedAt: at(r.EnforcedAt),
		ExpiresAt: at(r.ExpiresAt), EndedAt: at(r.EndedAt), EndReason: string(r.EndReason),
		EndDetail: r.EndDetail, EndedBy: r.EndedBy, Missing: r.Missing, Verification: r.Verification,
		Warned: r.Warned, NextAt: at(r.NextAt), Epoch: r.Epoch, Version: r.Version,
	}
}

// liveRuns is actions.Run.Live in SQL, word for word the condition of its index.
const liveRuns = "status IN ('accepted', 'executing', 'active', 'reverting')"

// Allowed says whether the actor, as known now, has at least the role. Only the
// system itself may act without a person.
func (tx *Tx) Allowed(actor actions.Actor, role string) (bool, error) {
	if actor.PersonID == "" {
		return actor.Channel == "system", nil
	}
	person, err := tx.Person(actor.PersonID)
	if errors.Is(err, identity.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	// An action that names no role is open to nobody, not to everybody.
	return !person.Disabled && role != "" && person.Role.AtLeast(identity.Role(role)), nil
}

// InsertRun sets Version 1; ErrDuplicate when Key is known.
func (tx *Tx) InsertRun(r *actions.Run) error {
	row := tx.runRow(*r)
	row.Version = 1
	if err := tx.attempt(func() error { return tx.create("insert a run", &row) }); err != nil {
		return err
	}
	*r = row.run()
	tx.wake(wakeRuns)
	return nil
}

// RunByKey finds the first run of a key.
func (tx *Tx) RunByKey(key string) (actions.Run, error) {
	return tx.runWhere(tx.db.Where("run_key = ?", key))
}

// Run finds by id.
func (tx *Tx) Run(id string) (actions.Run, error) {
	return tx.runWhere(tx.db.Where("id = ?", id))
}

func (tx *Tx) runWhere(query *gorm.DB) (actions.Run, error) {
	row, err := one[runRow](tx, "read a run", query, actions.ErrNotFound)
	if err != nil {
		return actions.Run{}, err
	}
	return row.run(), nil
}

// SaveRun compares and sets on Version and raises it; ErrStale when lost.
func (tx *Tx) SaveRun(r *actions.Run) error {
	row := tx.runRow(*r)
	row.Version++
	if err := tx.compareAndSet("save a run", &row, r.ID, r.Version, actions.ErrStale, actions.ErrNotFound); err != nil {
		return err
	}
	r.Version = row.Version
	if !r.NextAt.IsZero() && !r.NextAt.After(tx.now) {
		tx.wake(wakeRuns)
	}
	return tx.actionMoved(r.ID)
}

// DueRuns locks and returns runs whose NextAt has come, longest due first,
// skipping those locked by another server.
func (tx *Tx) DueRuns(limit int) ([]actions.Run, error) {
	query := tx.db.Clauses(skipLocked).Where("next_at <= ?", at(tx.now)).
		Order("next_at, id").Limit(bounded(limit, maxRuns))
	return many(tx, "find due runs", query, runRow.run)
}

// LiveRuns lists runs with Live() true, newest first; of one incident when named.
func (tx *Tx) LiveRuns(incidentID string) ([]actions.Run, error) {
	query := tx.db.Where(liveRuns).Order("accepted_at DESC, id DESC")
	if incidentID != "" {
		query = query.Where("incident_id = ?", incidentID)
	}
	return many(tx, "list live runs", query, runRow.run)
}

// Runs lists all with AcceptedAt before the cursor (zero: from the newest), newest first.
func (tx *Tx) Runs(before time.Time, limit int) ([]actions.Run, error) {
	query := tx.db.Order("accepted_at DESC, id DESC").Limit(bounded(limit, maxRuns))
	if !before.IsZero() {
		query = query.Where("accepted_at < ?", at(before))
	}
	return many(tx, "list runs", query, runRow.run)
}

// IncidentRuns lists the runs of an incident, the newest 500 first; none for an empty id.
func (tx *Tx) IncidentRuns(incidentID string) ([]actions.Run, error) {
	if incidentID == "" {
		return nil, nil
	}
	query := tx.db.Where("incident_id = ?", incidentID).Order("accepted_at DESC, id DESC").Limit(maxRuns)
	return many(tx, "list the runs of an incident", query, runRow.run)
}
