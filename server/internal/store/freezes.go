package store

import (
	"time"

	"holdfast/server/change"
)

type freezeRow struct {
	ID           string `gorm:"primaryKey"`
	Reason       string
	Services     []string      `gorm:"serializer:json"`
	Environments []string      `gorm:"serializer:json"`
	Kinds        []change.Kind `gorm:"serializer:json"`
	StartsAt     stamp
	EndsAt       stamp
	CreatedBy    string
	CreatedAt    stamp
}

// TableName is the table.
func (freezeRow) TableName() string { return "freezes" }

func (r freezeRow) freeze() change.Freeze {
	return change.Freeze{
		ID: r.ID, Reason: r.Reason, Services: r.Services, Environments: r.Environments,
		Kinds: r.Kinds, Start: r.StartsAt.t, End: r.EndsAt.t, CreatedBy: r.CreatedBy,
		CreatedAt: r.CreatedAt.t,
	}
}

// Freezes lists those that meet [from, to), earliest start first; a zero bound
// is none, and a question of no length is a point.
func (tx *Tx) Freezes(from, to time.Time) ([]change.Freeze, error) {
	query := tx.db.Order("starts_at, id")
	to = untilAfter(from, to)
	if !from.IsZero() {
		query = query.Where("ends_at IS NULL OR ends_at > ?", at(from))
	}
	if !to.IsZero() {
		query = query.Where("starts_at < ?", at(to))
	}
	return many(tx, "list freezes", query, freezeRow.freeze)
}

// Freeze finds by id.
func (tx *Tx) Freeze(id string) (change.Freeze, error) {
	row, err := one[freezeRow](tx, "read a freeze", tx.db.Where("id = ?", id), change.ErrNotFound)
	if err != nil {
		return change.Freeze{}, err
	}
	return row.freeze(), nil
}

// InsertFreeze stores a freeze.
func (tx *Tx) InsertFreeze(f *change.Freeze) error {
	row := freezeRow{
		ID: f.ID, Reason: f.Reason, Services: f.Services, Environments: f.Environments,
		Kinds: f.Kinds, StartsAt: at(f.Start), EndsAt: at(f.End), CreatedBy: f.CreatedBy,
		CreatedAt: tx.orNow(f.CreatedAt),
	}
	if err := tx.create("insert a freeze", &row); err != nil {
		return err
	}
	*f = row.freeze()
	return nil
}

// DeleteFreeze ends it; ErrNotFound when there is none.
func (tx *Tx) DeleteFreeze(id string) error {
	n, err := tx.affected("delete a freeze", "DELETE FROM freezes WHERE id = ?", id)
	if err == nil && n == 0 {
		return change.ErrNotFound
	}
	return err
}
