package store

import (
	"gorm.io/gorm"

	"holdfast/actions"
	"holdfast/runbooks"
)

// maxRunbookRuns is the largest page of runbook runs.
const maxRunbookRuns = 200

type runbookRunRow struct {
	ID        string `gorm:"primaryKey"`
	RunKey    string
	RunbookID string
	Runbook   runbooks.Runbook  `gorm:"serializer:json"`
	Params    map[string]string `gorm:"serializer:json"`
	// IncidentID is empty for a run of its own.
	IncidentID  string
	StartedBy   actions.Actor `gorm:"serializer:json"`
	Status      string
	CurrentStep int
	Steps       []runbooks.StepState `gorm:"serializer:json"`
	WaitsFor    string
	StartedAt   stamp
	EndedAt     stamp
	EndedBy     string
	NextAt      stamp
	Version     int64
}

// TableName is the table.
func (runbookRunRow) TableName() string { return "runbook_runs" }

func (r runbookRunRow) run() runbooks.Run {
	return runbooks.Run{
		ID: r.ID, Key: r.RunKey, Runbook: r.Runbook, Params: r.Params, IncidentID: r.IncidentID,
		StartedBy: r.StartedBy, Status: runbooks.Status(r.Status), Current: r.CurrentStep, Steps: r.Steps,
		StartedAt: r.StartedAt.t, EndedAt: r.EndedAt.t, EndedBy: r.EndedBy, NextAt: r.NextAt.t, Version: r.Version,
	}
}

func (tx *Tx) runbookRunRow(r runbooks.Run) runbookRunRow {
	return runbookRunRow{
		ID: r.ID, RunKey: r.Key, RunbookID: r.Runbook.ID, Runbook: r.Runbook, Params: r.Params,
		IncidentID: r.IncidentID, StartedBy: r.StartedBy, Status: string(r.Status), CurrentStep: r.Current,
		Steps: r.Steps, WaitsFor: waitsFor(r), StartedAt: tx.orNow(r.StartedAt), EndedAt: at(r.EndedAt),
		EndedBy: r.EndedBy, NextAt: at(r.NextAt), Version: r.Version,
	}
}

// waitsFor is the action run that the step in progress started; empty without one.
func waitsFor(r runbooks.Run) string {
	if !r.Live() || r.Current < 0 || r.Current >= len(r.Steps) {
		return ""
	}
	return r.Steps[r.Current].ActionRun
}

// liveRunbookRuns is runbooks.Run.Live in SQL, word for word the condition of its index.
const liveRunbookRuns = "status IN ('running', 'waiting')"

// InsertRunbookRun sets Version 1; ErrDuplicate when Key is known.
func (tx *Tx) InsertRunbookRun(r *runbooks.Run) error {
	row := tx.runbookRunRow(*r)
	row.Version = 1
	if err := tx.attempt(func() error { return tx.create("insert a runbook run", &row) }); err != nil {
		return err
	}
	*r = row.run()
	tx.Touch("runbook-runs", r.ID)
	tx.wake(wakeRunbooks)
	return nil
}

// RunbookRunByKey finds the first run of a key.
func (tx *Tx) RunbookRunByKey(key string) (runbooks.Run, error) {
	return tx.runbookRunWhere(tx.db.Where("run_key = ?", key))
}

// RunbookRun finds by id.
func (tx *Tx) RunbookRun(id string) (runbooks.Run, error) {
	return tx.runbookRunWhere(tx.db.Where("id = ?", id))
}

func (tx *Tx) runbookRunWhere(query *gorm.DB) (runbooks.Run, error) {
	row, err := one[runbookRunRow](tx, "read a runbook run", query, runbooks.ErrNotFound)
	if err != nil {
		return runbooks.Run{}, err
	}
	return row.run(), nil
}

// SaveRunbookRun compares and sets on Version and raises it; ErrStale when lost.
func (tx *Tx) SaveRunbookRun(r *runbooks.Run) error {
	row := tx.runbookRunRow(*r)
	row.Version++
	if err := tx.compareAndSet("save a runbook run", &row, r.ID, r.Version, runbooks.ErrStale, runbooks.ErrNotFound); err != nil {
		return err
	}
	r.Version = row.Version
	tx.Touch("runbook-runs", r.ID)
	if !r.NextAt.IsZero() && !r.NextAt.After(tx.now) {
		tx.wake(wakeRunbooks)
	}
	return nil
}

// DueRunbookRuns locks and returns runs whose NextAt has come, longest due
// first, skipping those locked by another server.
func (tx *Tx) DueRunbookRuns(limit int) ([]runbooks.Run, error) {
	query := tx.db.Clauses(skipLocked).Where("next_at <= ?", at(tx.now)).
		Order("next_at, id").Limit(bounded(limit, maxRunbookRuns))
	return many(tx, "find due runbook runs", query, runbookRunRow.run)
}

// RunbookRuns lists the runs that the filter selects, newest first.
func (tx *Tx) RunbookRuns(f runbooks.Filter) ([]runbooks.Run, error) {
	query := tx.db.Order("started_at DESC, id DESC").Limit(bounded(f.Limit, maxRunbookRuns))
	if f.IncidentID != "" {
		query = query.Where("incident_id = ?", f.IncidentID)
	}
	if f.Live {
		query = query.Where(liveRunbookRuns)
	}
	if !f.Before.IsZero() {
		query = query.Where("started_at < ?", at(f.Before))
	}
	return many(tx, "list runbook runs", query, runbookRunRow.run)
}

// actionMoved makes the runbook runs that wait for an action run due and wakes
// their engine, so that they see its new state at once. The version stays:
// nothing was decided.
func (tx *Tx) actionMoved(actionRunID string) error {
	n, err := tx.affected("wake what waits for an action run",
		"UPDATE runbook_runs SET next_at = ? WHERE waits_for = ? AND waits_for <> '' AND next_at IS NOT NULL", at(tx.now), actionRunID)
	if n > 0 {
		tx.wake(wakeRunbooks)
	}
	return err
}
