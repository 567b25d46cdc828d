package store

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"

	"holdfast/server/change"
)

const (
	// maxChanges is the largest page of the ledger.
	maxChanges = 500
	// maxLiveChanges is more than any environment holds within a few hours. Above
	// it a decision would be made on half the facts, so it is an error.
	maxLiveChanges = 10_000
)

type changeRow struct {
	ID            string `gorm:"primaryKey"`
	Service       string
	Environment   string
	Kind          string
	Status        string
	StartsAt      stamp
	EndsAt        stamp
	RunID         string
	Summary       string
	URL           string
	RequesterID   string
	RequesterName string
	ActionRunID   string
	Blockers      []string `gorm:"serializer:json"`
	ParamsHash    string
	ConfirmBy     stamp
	DecidedByID   string
	DecidedBy     string
	DecidedAt     stamp
	FencingToken  int64
	ClaimedUntil  stamp
	CreatedAt     stamp
	FinishedAt    stamp
	Version       int64
}

// TableName is the table.
func (changeRow) TableName() string { return "changes" }

func (r changeRow) change() change.Change {
	return change.Change{
		ID: r.ID, Service: r.Service, Environment: r.Environment, Kind: change.Kind(r.Kind),
		Status: change.Status(r.Status), Start: r.StartsAt.t, End: r.EndsAt.t, RunID: r.RunID,
		Summary: r.Summary, URL: r.URL, RequesterID: r.RequesterID, RequesterName: r.RequesterName,
		ActionRunID: r.ActionRunID, Blockers: r.Blockers, ParamsHash: r.ParamsHash,
		ConfirmBy: r.ConfirmBy.t, DecidedByID: r.DecidedByID, DecidedBy: r.DecidedBy,
		DecidedAt: r.DecidedAt.t, FencingToken: r.FencingToken, ClaimedUntil: r.ClaimedUntil.t,
		CreatedAt: r.CreatedAt.t, FinishedAt: r.FinishedAt.t, Version: r.Version,
	}
}

func (tx *Tx) changeRow(c change.Change) changeRow {
	return changeRow{
		ID: c.ID, Service: c.Service, Environment: c.Environment, Kind: string(c.Kind),
		Status: string(c.Status), StartsAt: at(c.Start), EndsAt: at(c.End), RunID: c.RunID,
		Summary: c.Summary, URL: c.URL, RequesterID: c.RequesterID, RequesterName: c.RequesterName,
		ActionRunID: c.ActionRunID, Blockers: c.Blockers, ParamsHash: c.ParamsHash,
		ConfirmBy: at(c.ConfirmBy), DecidedByID: c.DecidedByID, DecidedBy: c.DecidedBy,
		DecidedAt: at(c.DecidedAt), FencingToken: c.FencingToken, ClaimedUntil: at(c.ClaimedUntil),
		CreatedAt: tx.orNow(c.CreatedAt), FinishedAt: at(c.FinishedAt), Version: c.Version,
	}
}

// Statuses that have not ended, and those that count in decisions.
var (
	activeChanges  = []string{string(change.StatusHeld), string(change.StatusClaimed), string(change.StatusRunning)}
	countedChanges = []string{
		string(change.StatusClaimed), string(change.StatusRunning), string(change.StatusSucceeded),
		string(change.StatusFailed), string(change.StatusRolledBack), string(change.StatusOverrun),
	}
)

// Change finds by id.
func (tx *Tx) Change(id string) (change.Change, error) {
	return tx.changeWhere(tx.db.Where("id = ?", id))
}

// ChangeByRun finds the newest live (held, claimed, running) change of a run for
// this service and environment.
func (tx *Tx) ChangeByRun(runID, service, environment string) (change.Change, error) {
	return tx.changeWhere(tx.db.
		Where("run_id = ? AND service = ? AND environment = ?", runID, service, environment).
		Where("status IN ?", activeChanges).Order("created_at DESC, id DESC"))
}

func (tx *Tx) changeWhere(query *gorm.DB) (change.Change, error) {
	row, err := one[changeRow](tx, "read a change", query, change.ErrNotFound)
	if err != nil {
		return change.Change{}, err
	}
	return row.change(), nil
}

// Changes lists the ledger, newest first, after the Cursor of the last change seen.
func (tx *Tx) Changes(f change.Filter) ([]change.Change, error) {
	query := meets(tx.db, f.From, f.To).Order("created_at DESC, id DESC").Limit(bounded(f.Limit, maxChanges))
	if f.Environment != "" {
		query = query.Where("environment = ?", f.Environment)
	}
	if f.Service != "" {
		query = query.Where("service = ?", f.Service)
	}
	if f.Active {
		query = query.Where("status IN ?", activeChanges)
	}
	if f.Before != "" {
		created, id, err := change.ParseCursor(f.Before)
		if err != nil {
			return nil, err
		}
		query = query.Where("created_at < ? OR (created_at = ? AND id < ?)", at(created), at(created), id)
	}
	return many(tx, "list changes", query, changeRow.change)
}

// meets narrows to windows that meet [from, to); a zero bound is none. A window
// of no length is a point, and so is a question of no length.
func meets(query *gorm.DB, from, to time.Time) *gorm.DB {
	to = untilAfter(from, to)
	if !from.IsZero() {
		query = query.Where("ends_at >= ? AND (ends_at > ? OR starts_at = ends_at)", at(from), at(from))
	}
	if !to.IsZero() {
		query = query.Where("starts_at < ?", at(to))
	}
	return query
}

// LiveChanges lists what counts in decisions (claimed, running, and ended with
// its guard) of an environment whose window meets [from, to), by start. What
// still runs is not over, whatever its window says. Emergency actions whose
// environment is unknown count everywhere.
func (tx *Tx) LiveChanges(environment string, from, to time.Time) ([]change.Change, error) {
	here := tx.db.Where("environment IN ?", []string{environment, ""}).Limit(maxLiveChanges + 1).
		Session(&gorm.Session{})
	// Two questions, because each has an index and the two together have none.
	// Literals, because an index over a part is used for literals alone.
	over, err := many(tx, "list live changes", meets(here, from, to).
		Where("status IN ? AND status <> 'running'", countedChanges), changeRow.change)
	if err != nil {
		return nil, err
	}
	running, err := many(tx, "list running changes", meets(here, time.Time{}, untilAfter(from, to)).
		Where("status = 'running'"), changeRow.change)
	if err != nil {
		return nil, err
	}
	found := append(over, running...)
	if len(found) > maxLiveChanges {
		return nil, fmt.Errorf("store: more than %d changes of %s meet one window: refusing to decide on a part of them",
			maxLiveChanges, environment)
	}
	slices.SortFunc(found, func(a, b change.Change) int {
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.ID, b.ID))
	})
	return found, nil
}

// untilAfter is to, or just after from for a question of no length.
func untilAfter(from, to time.Time) time.Time {
	if !from.IsZero() && !to.IsZero() && !from.Before(to) {
		return from.Add(time.Microsecond)
	}
	return to
}

// LapsedChanges lists held changes past ConfirmBy and claims past ClaimedUntil,
// oldest first. It locks them and skips those locked by another server, so it
// belongs in InTx.
func (tx *Tx) LapsedChanges(limit int) ([]change.Change, error) {
	query := tx.db.Clauses(skipLocked).
		Where("(status = 'held' AND confirm_by <= ?) OR (status = 'claimed' AND claimed_until <= ?)", at(tx.now), at(tx.now)).
		Order("created_at, id").Limit(bounded(limit, maxChanges))
	return many(tx, "list lapsed changes", query, changeRow.change)
}

// InsertChange sets Version 1.
func (tx *Tx) InsertChange(c *change.Change) error {
	row := tx.changeRow(*c)
	row.Version = 1
	if err := tx.create("insert a change", &row); err != nil {
		return err
	}
	*c = row.change()
	return nil
}

// SaveChange compares and sets on Version; ErrStale when lost.
func (tx *Tx) SaveChange(c *change.Change) error {
	row := tx.changeRow(*c)
	row.Version++
	if err := tx.compareAndSet("save a change", &row, c.ID, c.Version, change.ErrStale, change.ErrNotFound); err != nil {
		return err
	}
	c.Version = row.Version
	return nil
}

// NextFencingToken is strictly increasing over all claims.
func (tx *Tx) NextFencingToken() (int64, error) { return tx.count("fencing_token") }
