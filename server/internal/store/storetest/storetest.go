// Package storetest opens stores for tests, on SQLite and on PostgreSQL, with a
// clock that the test can move.
package storetest

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"holdfast/internal/testenv"
	"holdfast/server/internal/store"
)

// Kind is a kind of database.
type Kind string

// Kinds.
const (
	SQLite   Kind = "sqlite"
	Postgres Kind = "postgres"
)

// DB is an open store on a fresh, migrated database of its own.
type DB struct {
	*store.Store
	Kind Kind
	// URL opens the same database again, as a second server would.
	URL   string
	clock *clock
}

// Each runs fn on both databases, in parallel subtests named after them.
func Each(t *testing.T, fn func(t *testing.T, db *DB)) {
	t.Helper()
	for _, kind := range []Kind{SQLite, Postgres} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			fn(t, Open(t, kind))
		})
	}
}

// Open returns a store that is closed with the test. The PostgreSQL kind needs
// testenv.Main, or goleak with testenv.Exit, as the test's TestMain.
func Open(t testing.TB, kind Kind) *DB {
	t.Helper()
	db := Unmigrated(t, kind)
	require.NoError(t, db.Migrate(t.Context()))
	return db
}

// Unmigrated is Open on an empty database.
func Unmigrated(t testing.TB, kind Kind) *DB {
	t.Helper()
	db := &DB{Kind: kind, clock: &clock{}}
	if kind == Postgres {
		db.URL = testenv.Postgres(t)
	} else {
		db.URL = "sqlite:" + filepath.Join(t.TempDir(), "holdfast.db")
	}
	db.Store = db.reopen(t)
	return db
}

// Second opens the same database once more, with the same clock: another server,
// or this one after a restart.
func (db *DB) Second(t testing.TB) *DB {
	t.Helper()
	return &DB{Store: db.reopen(t), Kind: db.Kind, URL: db.URL, clock: db.clock}
}

func (db *DB) reopen(t testing.TB) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{URL: db.URL, Clock: db.clock.now, MaxConns: 8})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// Advance moves the clock of the database. Before Freeze it goes on running.
func (db *DB) Advance(t testing.TB, d time.Duration) {
	t.Helper()
	db.setClock(t, func(c *clock) {
		if c.frozen.IsZero() {
			c.offset += d
		} else {
			c.frozen = c.frozen.Add(d)
		}
	})
}

// Freeze stops the clock of the database at the given time. A store never goes
// back, so freeze at a time after what it has handed out, or first of all.
func (db *DB) Freeze(t testing.TB, at time.Time) {
	t.Helper()
	db.setClock(t, func(c *clock) { c.frozen = at })
}

func (db *DB) setClock(t testing.TB, change func(*clock)) {
	t.Helper()
	db.clock.mu.Lock()
	defer db.clock.mu.Unlock()
	change(db.clock)
	if db.Kind == Postgres {
		db.Exec(t, "CREATE OR REPLACE FUNCTION holdfast_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$ SELECT "+
			db.clock.expression()+" $$")
	}
}

// Exec runs statements on a PostgreSQL database beside the store.
func (db *DB) Exec(t testing.TB, statement string) {
	t.Helper()
	require.Equal(t, Postgres, db.Kind, "Exec is for PostgreSQL")
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, db.URL)
	require.NoError(t, err)
	_, err = conn.Exec(ctx, statement)
	require.NoError(t, err)
	require.NoError(t, conn.Close(ctx))
}

// Path is the file of a SQLite database.
func (db *DB) Path(t testing.TB) string {
	t.Helper()
	require.Equal(t, SQLite, db.Kind, "only SQLite has a file")
	u, err := url.Parse(db.URL)
	require.NoError(t, err)
	return u.Opaque + u.Path
}

// clock runs with an offset, or stands still once frozen.
type clock struct {
	mu     sync.Mutex
	offset time.Duration
	frozen time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.frozen.IsZero() {
		return c.frozen
	}
	return time.Now().Add(c.offset)
}

// expression is the same clock in SQL; the caller holds the lock.
func (c *clock) expression() string {
	if !c.frozen.IsZero() {
		return fmt.Sprintf("timestamptz '%s'", c.frozen.UTC().Format("2006-01-02 15:04:05.000000Z07:00"))
	}
	return fmt.Sprintf("clock_timestamp() + interval '%d microseconds'", c.offset.Microseconds())
}
