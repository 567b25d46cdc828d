package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// maxAttempts bounds how often a transaction is tried when the database asks
// for a repeat; with doubling pauses that is well under a second of waiting.
const maxAttempts = 8

// Tx is one transaction. It satisfies the Tx port of every domain package. It
// is used by one goroutine and not after its function returned.
type Tx struct {
	store *Store
	ctx   context.Context
	db    *gorm.DB
	now   time.Time
	// repeat is set when the database asked for a repeat, whatever fn makes of it.
	repeat error
	// wakes and touched are published after the commit.
	wakes   map[string]bool
	touched []Event
}

// InTx runs fn in one read-write transaction and commits when it returns nil.
// fn may run more than once.
func (s *Store) InTx(ctx context.Context, fn func(*Tx) error) error {
	for attempt := 1; ; attempt++ {
		err := s.writeOnce(ctx, fn)
		if err == nil || !repeatable(err) || attempt == maxAttempts {
			return err
		}
		if waitErr := pause(ctx, time.Millisecond<<attempt); waitErr != nil {
			return errors.Join(waitErr, err)
		}
	}
}

// ErrBusy says that the turn to write on SQLite did not come within writerWait.
var ErrBusy = fmt.Errorf("%w: it is busy, no turn to write came in time", ErrUnavailable)

// writerWait bounds the queue of SQLite writers: far more than any transaction
// takes, so that a forgotten one is an error and not a standstill.
const writerWait = 20 * time.Second

func (s *Store) writeOnce(ctx context.Context, fn func(*Tx) error) error {
	if s.writer != nil {
		timer := time.NewTimer(writerWait)
		defer timer.Stop()
		select {
		case s.writer <- struct{}{}:
			defer func() { <-s.writer }()
		case <-ctx.Done():
			return fmt.Errorf("store: wait for a turn to write: %w", ctx.Err())
		case <-timer.C:
			return fmt.Errorf("store: %w", ErrBusy)
		}
	}
	return s.once(ctx, s.write, s.gormWrite, nil, fn)
}

// View runs fn in one read-only transaction that sees a single moment.
func (s *Store) View(ctx context.Context, fn func(*Tx) error) error {
	opts := &sql.TxOptions{ReadOnly: true}
	if !s.sqlite {
		// SQLite readers see one moment anyway, and its driver knows no levels.
		opts.Isolation = sql.LevelRepeatableRead
	}
	return s.once(ctx, s.read, s.gormRead, opts, fn)
}

func (s *Store) once(ctx context.Context, pool *sql.DB, base *gorm.DB, opts *sql.TxOptions, fn func(*Tx) error) error {
	sqlTx, err := pool.BeginTx(ctx, opts)
	if err != nil {
		return fmt.Errorf("store: begin a transaction: %w", unavailable(err))
	}
	// After a commit this does nothing; before one it also covers a panic in fn.
	defer func() { _ = sqlTx.Rollback() }()

	session := base.Session(&gorm.Session{NewDB: true, Context: ctx})
	session.Statement.ConnPool = textPool{sqlTx}
	tx := &Tx{store: s, ctx: ctx, db: session}
	if err := tx.readClock(opts == nil); err != nil {
		return err
	}
	err = fn(tx)
	if tx.repeat != nil {
		return tx.repeat
	}
	if err != nil {
		return err
	}
	if err := sqlTx.Commit(); err != nil {
		return fmt.Errorf("store: commit: %w", unavailable(err))
	}
	tx.publish()
	return nil
}

// pause waits between one and three times d, at random.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d + rand.N(2*d))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// publish tells listeners of this process what was committed.
func (tx *Tx) publish() {
	for name := range tx.wakes {
		tx.store.wakes.signal(name)
	}
	for _, e := range tx.touched {
		tx.store.events.publish(e.Topic, e.Subject)
	}
}

// wake signals the named channel after the commit.
func (tx *Tx) wake(name string) {
	if tx.wakes == nil {
		tx.wakes = make(map[string]bool)
	}
	tx.wakes[name] = true
}

// Touch tells the console, after the commit, that something changed.
func (tx *Tx) Touch(topic, id string) {
	for _, e := range tx.touched {
		if e.Topic == topic && e.Subject == id {
			return
		}
	}
	tx.touched = append(tx.touched, Event{Topic: topic, Subject: id})
}

// Lock serialises transactions that name the same key until they end, and moves
// Now to the time at which the lock was got, so that times under one lock rise
// in the order of the transactions. SQLite has one writer at a time and needs nothing.
func (tx *Tx) Lock(key string) error {
	if tx.store.sqlite {
		return nil
	}
	var row struct{ Now stamp }
	result := tx.db.Raw("WITH got AS MATERIALIZED (SELECT pg_advisory_xact_lock(hashtextextended(?, 0)))"+
		" SELECT holdfast_now() AS now FROM got", key).Scan(&row)
	if err := tx.check("lock "+key, result.Error); err != nil {
		return err
	}
	tx.now = tx.store.notBefore(row.Now.t)
	return nil
}

// exec runs one statement.
func (tx *Tx) exec(what, statement string, args ...any) error {
	return tx.check(what, tx.db.Exec(statement, args...).Error)
}

// affected runs one statement and returns how many rows it changed.
func (tx *Tx) affected(what, statement string, args ...any) (int64, error) {
	result := tx.db.Exec(statement, args...)
	return result.RowsAffected, tx.check(what, result.Error)
}

// attempt runs fn in a savepoint: when it fails, only its own effects are taken
// back and the transaction goes on. PostgreSQL would refuse every statement
// after a violated constraint without it.
func (tx *Tx) attempt(fn func() error) error {
	if err := tx.exec("savepoint", "SAVEPOINT attempt"); err != nil {
		return err
	}
	err := fn()
	if tx.repeat != nil {
		return tx.repeat
	}
	if err != nil {
		if undo := tx.exec("savepoint", "ROLLBACK TO SAVEPOINT attempt"); undo != nil {
			return errors.Join(err, undo)
		}
	}
	if release := tx.exec("savepoint", "RELEASE SAVEPOINT attempt"); release != nil {
		return errors.Join(err, release)
	}
	return err
}

// create inserts rows.
func (tx *Tx) create(what string, rows any) error {
	return tx.check(what, tx.db.Create(rows).Error)
}

// upsert inserts or replaces by the named key columns and fills in generated ids.
func (tx *Tx) upsert(what string, row any, key ...string) error {
	columns := make([]clause.Column, len(key))
	for i, name := range key {
		columns[i].Name = name
	}
	onConflict := clause.OnConflict{Columns: columns, UpdateAll: true}
	return tx.check(what, tx.db.Clauses(onConflict).Create(row).Error)
}

// compareAndSet writes the whole row when the stored version is still the given
// one; the row itself carries the next. stale is returned when somebody was
// faster, absent when there is no such row.
func (tx *Tx) compareAndSet(what string, row any, id string, version int64, stale, absent error) error {
	result := tx.db.Model(row).Where("version = ?", version).Select("*").Updates(row)
	if err := tx.check(what, result.Error); err != nil {
		return err
	}
	if result.RowsAffected == 1 {
		return nil
	}
	var count int64
	if err := tx.check(what, tx.db.Model(row).Where("id = ?", id).Count(&count).Error); err != nil {
		return err
	}
	if count == 0 {
		return absent
	}
	return stale
}

// one returns the first row of a query, or absent.
func one[R any](tx *Tx, what string, query *gorm.DB, absent error) (R, error) {
	var rows []R
	if err := tx.check(what, query.Limit(1).Find(&rows).Error); err != nil {
		var none R
		return none, err
	}
	if len(rows) == 0 {
		var none R
		return none, absent
	}
	return rows[0], nil
}

// many returns all rows of a query, converted.
func many[R, D any](tx *Tx, what string, query *gorm.DB, convert func(R) D) ([]D, error) {
	var rows []R
	if err := tx.check(what, query.Find(&rows).Error); err != nil {
		return nil, err
	}
	out := make([]D, len(rows))
	for i, r := range rows {
		out[i] = convert(r)
	}
	return out, nil
}

// bounded keeps a page size within 1 and most; anything below 1 means most.
func bounded(limit, most int) int {
	if limit < 1 || limit > most {
		return most
	}
	return limit
}

// skipLocked locks what is read and leaves out what others have locked. SQLite
// has one writer at a time and needs nothing.
var skipLocked = clause.Locking{Strength: "UPDATE", Options: "SKIP LOCKED"}

// forUpdate locks what is read and waits for others.
var forUpdate = clause.Locking{Strength: "UPDATE"}

// textPool makes every text parameter valid for both databases: PostgreSQL
// refuses NUL and invalid UTF-8, and alerts and chat bring both.
type textPool struct{ *sql.Tx }

// ExecContext runs a statement.
func (p textPool) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return p.Tx.ExecContext(ctx, query, cleanArgs(args)...)
}

// QueryContext runs a query.
func (p textPool) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return p.Tx.QueryContext(ctx, query, cleanArgs(args)...)
}

// QueryRowContext runs a query for one row.
func (p textPool) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return p.Tx.QueryRowContext(ctx, query, cleanArgs(args)...)
}

func cleanArgs(args []any) []any {
	out := make([]any, len(args))
	for i, arg := range args {
		if text, ok := arg.(string); ok {
			arg = cleanText(text)
		}
		out[i] = arg
	}
	return out
}

func cleanText(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
