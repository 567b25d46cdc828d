package store

import (
	"context"
	"database/sql/driver"
	"fmt"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// markEvery is how far time may run ahead of the persisted high-water mark, and
// so the most it can seem to step back over a restart.
const markEvery = time.Second

// Now is database time, read at the start of the transaction and again when a
// Lock was waited for, UTC and truncated to microseconds because that is what is stored. It never steps
// back: not within this process, and not behind the persisted mark.
func (tx *Tx) Now() time.Time { return tx.now }

// readClock sets tx.now and, when it may write, moves the mark.
func (tx *Tx) readClock(mayWrite bool) error {
	var row struct{ Now, HighWater stamp }
	query := "SELECT holdfast_now() AS now, high_water FROM clock WHERE id = 1"
	var args []any
	if tx.store.sqlite {
		query, args = "SELECT ? AS now, high_water FROM clock WHERE id = 1", []any{at(tx.store.clock())}
	}
	found := tx.db.Raw(query, args...).Scan(&row)
	if found.Error != nil {
		return tx.check("read the clock (is the schema up to date?)", found.Error)
	}
	if found.RowsAffected != 1 {
		return fmt.Errorf("store: the clock row is missing: the schema is damaged")
	}
	now := row.Now.t
	if row.HighWater.t.After(now) {
		now = row.HighWater.t
	}
	tx.now = tx.store.notBefore(now)
	if !mayWrite || tx.now.Sub(row.HighWater.t) < markEvery {
		return nil
	}
	return tx.moveMark()
}

// moveMark leaves the mark alone while another transaction moves it: nobody
// waits for the clock.
func (tx *Tx) moveMark() error {
	query := "UPDATE clock SET high_water = ? WHERE id IN (SELECT id FROM clock WHERE high_water < ? FOR UPDATE SKIP LOCKED)"
	if tx.store.sqlite {
		query = "UPDATE clock SET high_water = ? WHERE high_water < ?"
	}
	return tx.exec("move the clock's mark", query, at(tx.now), at(tx.now))
}

// notBefore returns t, or the latest time handed out when that is later.
func (s *Store) notBefore(t time.Time) time.Time {
	micros := t.UnixMicro()
	for {
		last := s.last.Load()
		if last >= micros {
			return time.UnixMicro(last).UTC()
		}
		if s.last.CompareAndSwap(last, micros) {
			return time.UnixMicro(micros).UTC()
		}
	}
}

// stamp is a time as stored: timestamptz on PostgreSQL, unix microseconds on
// SQLite, NULL when zero.
type stamp struct{ t time.Time }

// at makes a stamp.
func at(t time.Time) stamp {
	if t.IsZero() {
		return stamp{}
	}
	return stamp{t.UTC().Truncate(time.Microsecond)}
}

// GormDataType names the column type, so that gorm takes it for no relation.
func (stamp) GormDataType() string { return "timestamptz" }

// GormValue writes the form of the database at hand.
func (s stamp) GormValue(_ context.Context, db *gorm.DB) clause.Expr {
	var v driver.Value
	switch {
	case s.t.IsZero():
	case db.Name() == kindSQLite:
		v = s.t.UnixMicro()
	default:
		v = s.t
	}
	return clause.Expr{SQL: "?", Vars: []any{v}}
}

// Scan reads either form.
func (s *stamp) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		s.t = time.Time{}
	case int64:
		s.t = time.UnixMicro(v).UTC()
	case time.Time:
		s.t = v.UTC()
	default:
		return fmt.Errorf("store: a time is stored as %T", src)
	}
	return nil
}
