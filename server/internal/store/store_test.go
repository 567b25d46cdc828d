package store_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/server/identity"
	"holdfast/server/internal/store"
	"holdfast/server/internal/store/storetest"
)

func TestOpenRefusesWithAReason(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"":                         "no database given",
		"mysql://u:secret@h/db":    `scheme "mysql" is not known`,
		":memory:":                 "plain path",
		"sqlite:":                  "plain path",
		"sqlite:file:x.db?mode=ro": "plain path",
		filepath.Join(t.TempDir(), "no", "folder", "x.db"): "does its folder exist",
		"postgres://u:secret@127.0.0.1:1/db":               "connect to PostgreSQL",
		"postgres://u:secret@host:port:x/db":               "PostgreSQL URL",
	} {
		_, err := store.Open(t.Context(), store.Options{URL: url})
		require.ErrorContains(t, err, want, url)
		require.NotContains(t, err.Error(), "secret")
	}
}

func TestSQLiteFileIsPrivateAndItsPathMayHoldAnything(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a b?c%41#ü.db")
	s, err := store.Open(t.Context(), store.Options{URL: path})
	require.NoError(t, err)
	require.Equal(t, "sqlite", s.Database())
	require.NoError(t, s.Migrate(t.Context()))
	require.NoError(t, s.Ping(t.Context()))
	require.NoError(t, s.Close())
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.Positive(t, info.Size())
}

func TestUnmigratedDatabaseSaysSo(t *testing.T) {
	t.Parallel()
	for _, kind := range []storetest.Kind{storetest.SQLite, storetest.Postgres} {
		db := storetest.Unmigrated(t, kind)
		err := db.InTx(t.Context(), func(*store.Tx) error { return nil })
		require.ErrorContains(t, err, "is the schema up to date?")
		current, target, err := db.Version(t.Context())
		require.NoError(t, err)
		require.Zero(t, current)
		require.Positive(t, target)
	}
}

// Servers that start at once on an empty database all find it migrated.
func TestParallelMigrations(t *testing.T) {
	t.Parallel()
	for _, kind := range []storetest.Kind{storetest.SQLite, storetest.Postgres} {
		db := storetest.Unmigrated(t, kind)
		servers := []*storetest.DB{db, db.Second(t), db.Second(t), db.Second(t)}
		for _, err := range parallel(len(servers), func(i int) error { return servers[i].Migrate(t.Context()) }) {
			require.NoError(t, err, kind)
		}
		inTx(t, db, func(*store.Tx) {})
	}
}

func TestTimeNeverStepsBack(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		now := func(s *storetest.DB) (at time.Time) {
			inTx(t, s, func(tx *store.Tx) { at = tx.Now() })
			return at
		}
		require.Equal(t, t0, now(db))
		// Less than the mark moves by: only this process knows.
		db.Advance(t, 500*time.Millisecond)
		require.Equal(t, t0.Add(500*time.Millisecond), now(db))
		db.Advance(t, -500*time.Millisecond)
		require.Equal(t, t0.Add(500*time.Millisecond), now(db))
		db.Advance(t, time.Hour)
		require.Equal(t, t0.Add(time.Hour), now(db))
		db.Advance(t, -30*time.Minute)
		require.Equal(t, t0.Add(time.Hour), now(db), "within one process")
		require.Equal(t, t0.Add(time.Hour), now(db.Second(t)), "over a restart")
		view(t, db.Second(t), func(tx *store.Tx) {
			require.Equal(t, t0.Add(time.Hour), tx.Now(), "for readers too")
		})
		db.Advance(t, 31*time.Minute)
		require.Equal(t, t0.Add(61*time.Minute), now(db))
	})
}

// Who waited for a lock does not act on the time before the wait.
func TestLockMovesNow(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.Postgres)
	db.Freeze(t, t0)
	inTx(t, db, func(tx *store.Tx) {
		require.Equal(t, t0, tx.Now())
		db.Advance(t, time.Second)
		require.Equal(t, t0, tx.Now(), "one time for a transaction")
		require.NoError(t, tx.Lock("calendar:prod"))
		require.Equal(t, t0.Add(time.Second), tx.Now())
	})
}

func TestNowIsUTCInMicroseconds(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		inTx(t, db, func(tx *store.Tx) {
			require.Equal(t, time.UTC, tx.Now().Location())
			require.Equal(t, tx.Now(), tx.Now().Truncate(time.Microsecond))
			require.WithinDuration(t, time.Now(), tx.Now(), time.Minute)
		})
	})
}

// Two processes on one SQLite file: the second writer waits instead of failing.
func TestTwoProcessesShareOneFile(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.SQLite)
	second := db.Second(t)
	errs := parallel(20, func(i int) error {
		s := []*storetest.DB{db, second}[i%2]
		return s.InTx(t.Context(), func(tx *store.Tx) error {
			if _, err := tx.People(); err != nil {
				return err
			}
			return tx.SavePerson(identity.Person{ID: name("p", i), Handle: name("h", i)})
		})
	})
	for _, err := range errs {
		require.NoError(t, err)
	}
	view(t, second, func(tx *store.Tx) {
		people, err := tx.People()
		require.NoError(t, err)
		require.Len(t, people, 20)
	})
}

// A deadlock is resolved by running the loser again; fn may see it as any error.
func TestDeadlockIsTriedAgain(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.Postgres)
	inTx(t, db, func(tx *store.Tx) {
		for _, id := range []string{"i1", "i2"} {
			in := newIncident(id, id)
			require.NoError(t, tx.InsertIncident(&in))
		}
	})
	var meet [2]chan struct{}
	meet[0], meet[1] = make(chan struct{}), make(chan struct{})
	tries := make([]int, 2)
	errs := parallel(2, func(i int) error {
		first, second := []string{"i1", "i2"}[i], []string{"i2", "i1"}[i]
		return db.InTx(t.Context(), func(tx *store.Tx) error {
			tries[i]++
			if err := raise(tx, first); err != nil {
				return err
			}
			if tries[i] == 1 { // both hold their first row
				close(meet[i])
				<-meet[1-i]
			}
			if err := raise(tx, second); err != nil {
				return errors.New("a fault that hides its cause")
			}
			return nil
		})
	})
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.Equal(t, 3, tries[0]+tries[1], "one of the two ran twice")
	view(t, db, func(tx *store.Tx) {
		for _, id := range []string{"i1", "i2"} {
			in, err := tx.Incident(id)
			require.NoError(t, err)
			require.Equal(t, 4, in.Firing, "both counted")
		}
	})
}

func raise(tx *store.Tx, id string) error {
	in, err := tx.Incident(id)
	if err != nil {
		return err
	}
	in.Firing++
	return tx.SaveIncident(&in)
}

func TestRevisionWakesOtherServers(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.Postgres)
	other := db.Second(t)
	other.Start(t.Context())
	wake := other.Fleet().Wake()
	// The listener signals once when it is there.
	require.Eventually(t, func() bool { return woken(wake) }, 20*time.Second, 5*time.Millisecond)
	initPolicy(t, db)
	require.Eventually(t, func() bool { return woken(wake) }, 20*time.Second, 5*time.Millisecond)

	// After a lost connection it comes back by itself.
	db.Exec(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()")
	require.Eventually(t, func() bool { return woken(wake) }, 20*time.Second, 5*time.Millisecond, "reconnected")
	inTx(t, db, func(tx *store.Tx) {
		_, err := tx.BumpRevision("x", "y")
		require.NoError(t, err)
	})
	require.Eventually(t, func() bool { return woken(wake) }, 20*time.Second, 5*time.Millisecond)
}

func TestEventsResumeAndDropSlowSubscribers(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.SQLite)
	broadcast := db.Events()
	touch := func(n int) {
		inTx(t, db, func(tx *store.Tx) {
			for i := range n {
				tx.Touch("incidents", name("i", i))
			}
		})
	}
	events, cancel := broadcast.Subscribe()
	touch(3)
	first := <-events
	require.Equal(t, "i-00", first.Subject)
	require.Equal(t, first.ID+1, (<-events).ID)
	missed, complete := broadcast.Since(first.ID)
	require.True(t, complete)
	require.Len(t, missed, 2)
	missed, complete = broadcast.Since(first.ID - 1)
	require.True(t, complete)
	require.Len(t, missed, 3)
	_, complete = broadcast.Since(first.ID - 2)
	require.False(t, complete, "of an earlier process")
	_, complete = broadcast.Since(first.ID + 1000)
	require.False(t, complete, "never given out")
	cancel()
	cancel()

	slow, cancel := broadcast.Subscribe()
	defer cancel()
	touch(300)
	n := 0
	for range slow { // ends because it was closed
		n++
	}
	require.Equal(t, 256, n)
	touch(1100)
	_, complete = broadcast.Since(first.ID)
	require.False(t, complete, "the ring has moved on")

	last, cancelLast := broadcast.Subscribe()
	defer cancelLast()
	require.NoError(t, db.Close())
	_, open := <-last
	require.False(t, open, "closed with the store")
	closed, _ := broadcast.Subscribe()
	_, open = <-closed
	require.False(t, open)
}

// Statements reach the log without the values of their parameters.
func TestLogHoldsNoValues(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		var log bytes.Buffer
		s, err := store.Open(t.Context(), store.Options{
			URL: db.URL, Clock: func() time.Time { return t0 },
			Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		})
		require.NoError(t, err)
		err = s.InTx(t.Context(), func(tx *store.Tx) error {
			token := identity.Token{ID: "id-canary", Name: "name-canary", Hash: "hash-canary", Scopes: []string{"scope-canary"}}
			if err := tx.InsertToken(token); err != nil {
				return err
			}
			return tx.InsertToken(token)
		})
		require.ErrorIs(t, err, identity.ErrDuplicate)
		require.NotContains(t, err.Error(), "canary")
		require.NoError(t, s.Close())
		require.Contains(t, log.String(), "tokens", "the failed statement is logged")
		require.NotContains(t, log.String(), "canary")
	})
}

func TestPruneRemovesOldRowsOnly(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		inTx(t, db, func(tx *store.Tx) {
			require.NoError(t, tx.SavePerson(identity.Person{ID: "p1", Handle: "alice"}))
			require.NoError(t, tx.InsertSession(identity.Session{Hash: "s", PersonID: "p1", ExpiresAt: t0.Add(time.Hour)}))
			require.NoError(t, tx.InsertLink(identity.Link{Hash: "l", Purpose: identity.LinkLogin, ExpiresAt: t0.Add(time.Hour)}))
		})
		enqueue(t, db, line("a", "1"))
		messages, _ := claimed(t, db.Outbox(), 1)
		require.NoError(t, db.Outbox().Bury(t.Context(), messages[0].ID, "x"))
		rows := func() string {
			return strings.Join(lines(t, db, "SELECT 'sessions ' || count(*) FROM sessions UNION ALL SELECT 'links ' || count(*) FROM links UNION ALL SELECT 'outbox ' || count(*) FROM outbox"), ", ")
		}
		db.Advance(t, 25*time.Hour)
		require.NoError(t, db.Prune(t.Context(), store.Retention{}))
		require.Equal(t, "sessions 1, links 1, outbox 1", rows())
		db.Advance(t, time.Hour)
		require.NoError(t, db.Prune(t.Context(), store.Retention{}))
		require.Equal(t, "sessions 0, links 0, outbox 1", rows())
		db.Advance(t, 30*24*time.Hour)
		require.NoError(t, db.Prune(t.Context(), store.Retention{}))
		require.Equal(t, "sessions 0, links 0, outbox 0", rows())
	})
}

// A lost connection is told from a fault of the program, so that callers are
// asked to come again (R06). The database may be back before anybody looks.
func TestR06_ALostConnectionIsUnavailable(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.Postgres)
	cut := "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()"
	err := db.InTx(t.Context(), func(tx *store.Tx) error {
		db.Exec(t, cut)
		_, err := tx.People()
		return err
	})
	require.ErrorIs(t, err, store.ErrUnavailable)
	err = db.InTx(t.Context(), func(tx *store.Tx) error {
		db.Exec(t, cut)
		return nil
	})
	require.ErrorIs(t, err, store.ErrUnavailable, "at the commit")
	require.NoError(t, db.View(t.Context(), func(*store.Tx) error { return nil }), "the pool heals itself")
	err = db.View(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Person("nobody")
		return err
	})
	require.NotErrorIs(t, err, store.ErrUnavailable)
	require.ErrorIs(t, store.ErrBusy, store.ErrUnavailable)
}
