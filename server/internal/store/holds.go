package store

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"holdfast/server/change"
)

type holdRow struct {
	ChangeID string `gorm:"primaryKey"`
	Resource string `gorm:"primaryKey"`
	Shared   bool
	Exempt   bool
	StartsAt stamp
	EndsAt   stamp
}

// TableName is the table.
func (holdRow) TableName() string { return "change_holds" }

// PutHold replaces the hold of a change. ErrConflict when it overlaps another:
// then the hold it had before stands.
func (tx *Tx) PutHold(h change.Hold) error {
	rows, err := holdRows(h)
	if err != nil {
		return err
	}
	err = tx.attempt(func() error {
		if err := tx.DropHold(h.ChangeID); err != nil {
			return err
		}
		return tx.create("put a hold", &rows)
	})
	return ofParent(err, change.ErrNotFound)
}

// holdRows are sorted by resource, so that two claims take their resources in
// one order and do not deadlock.
func holdRows(h change.Hold) ([]holdRow, error) {
	start, end := at(h.Start), at(h.End)
	switch {
	case len(h.Resources) == 0:
		return nil, fmt.Errorf("%w: a hold without resources would hold nothing", change.ErrInvalid)
	case end.t.Before(start.t):
		return nil, fmt.Errorf("%w: the hold ends before it starts", change.ErrInvalid)
	case end.t.Equal(start.t):
		// An empty range would conflict with nothing.
		end = at(start.t.Add(time.Microsecond))
	}
	rows := make([]holdRow, len(h.Resources))
	for i, r := range h.Resources {
		rows[i] = holdRow{
			ChangeID: h.ChangeID, Resource: r.Key, Shared: r.Shared, Exempt: h.Exempt,
			StartsAt: start, EndsAt: end,
		}
	}
	slices.SortFunc(rows, func(a, b holdRow) int { return cmp.Compare(a.Resource, b.Resource) })
	return rows, nil
}

// DropHold frees it at once.
func (tx *Tx) DropHold(changeID string) error {
	return tx.exec("drop a hold", "DELETE FROM change_holds WHERE change_id = ?", changeID)
}
