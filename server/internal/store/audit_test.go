package store_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"holdfast/server/audit"
	"holdfast/server/internal/store"
	"holdfast/server/internal/store/storetest"
)

func decision(i int) audit.Entry {
	return audit.Entry{
		ActorID: "p1", ActorName: "Alice", Channel: "slack", Verb: "action.run", Subject: name("run", i),
		Decision: audit.Denied, Reason: "no \x00 role", Details: map[string]string{"n": fmt.Sprint(i), "naïve": "✓"},
	}
}

func writeAudit(t *testing.T, db *storetest.DB, n int) {
	t.Helper()
	inTx(t, db, func(tx *store.Tx) {
		for i := range n {
			require.NoError(t, tx.Audit(decision(i)))
		}
	})
}

func chainAll(t *testing.T, db *storetest.DB) {
	t.Helper()
	for {
		n, err := db.ChainPending(t.Context(), 500)
		require.NoError(t, err)
		if n == 0 {
			return
		}
	}
}

func export(t *testing.T, db *storetest.DB, from int64) (out []audit.Linked) {
	t.Helper()
	require.NoError(t, db.Export(t.Context(), from, func(l audit.Linked) error {
		out = append(out, l)
		return nil
	}))
	return out
}

func TestAuditIsLinkedInBatchesAndVerifies(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		head, err := db.Head(t.Context())
		require.NoError(t, err)
		require.Equal(t, audit.Head{Hash: audit.Genesis}, head)
		writeAudit(t, db, 5)
		require.Empty(t, export(t, db, 0), "not linked yet")
		n, err := db.ChainPending(t.Context(), 3)
		require.NoError(t, err)
		require.Equal(t, 3, n)
		chainAll(t, db)
		linked := export(t, db, 1)
		require.Len(t, linked, 5)
		require.Equal(t, t0, linked[0].At)
		require.Equal(t, "no \uFFFD role", linked[0].Reason, "hashed as stored")
		require.Equal(t, map[string]string{"n": "0", "naïve": "✓"}, linked[0].Details)
		require.Empty(t, cmp.Diff(linked[3:], export(t, db, 4)))

		head, err = db.VerifyAudit(t.Context())
		require.NoError(t, err)
		require.Equal(t, audit.Head{Seq: 5, Hash: linked[4].Hash}, head)

		newest, err := db.AuditEntries(t.Context(), 0, 2)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff([]audit.Linked{linked[4], linked[3]}, newest))
		older, err := db.AuditEntries(t.Context(), linked[1].ID, 2)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff([]audit.Linked{linked[0]}, older))
	})
}

// An entry whose transaction commits late gets a later place, not a gap.
func TestLateCommitIsLinkedLater(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t, storetest.Postgres)
	inTx(t, db, func(tx *store.Tx) {
		require.NoError(t, tx.Audit(decision(1)))
		writeAudit(t, db, 1) // a later id, committed first
		chainAll(t, db)
		require.Len(t, export(t, db, 1), 1)
	})
	chainAll(t, db)
	linked := export(t, db, 1)
	require.Len(t, linked, 2)
	require.Greater(t, linked[0].ID, linked[1].ID)
	_, err := db.VerifyAudit(t.Context())
	require.NoError(t, err)
}

// Fifty writers and two chainers at once: the chain neither forks nor loses an entry.
func TestChainHoldsUnderFiftyWriters(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		const writers, perWriter = 50, 4
		var writing atomic.Int64
		writing.Store(writers)
		second := db.Second(t)
		errs := parallel(writers+2, func(i int) error {
			if i >= writers {
				chainer := []*storetest.DB{db, second}[i-writers]
				for writing.Load() > 0 {
					if _, err := chainer.ChainPending(t.Context(), 7); err != nil {
						return err
					}
				}
				return nil
			}
			defer writing.Add(-1)
			for n := range perWriter {
				err := db.InTx(t.Context(), func(tx *store.Tx) error { return tx.Audit(decision(i*perWriter + n)) })
				if err != nil {
					return err
				}
			}
			return nil
		})
		for _, err := range errs {
			require.NoError(t, err)
		}
		chainAll(t, db)
		head, err := db.VerifyAudit(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, writers*perWriter, head.Seq)
		subjects := make(map[string]bool)
		for _, l := range export(t, db, 1) {
			subjects[l.Subject] = true
		}
		require.Len(t, subjects, writers*perWriter)
	})
}

func TestAuditRowsCannotBeChanged(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		writeAudit(t, db, 2)
		chainAll(t, db)
		conn := rawDB(t, db)
		for _, statement := range []string{
			"UPDATE audit_entries SET reason = 'x'", "DELETE FROM audit_entries",
			"UPDATE audit_chain SET hash = 'x'", "DELETE FROM audit_chain WHERE seq = 2",
		} {
			_, err := conn.ExecContext(t.Context(), statement)
			require.ErrorContains(t, err, "audit_append_only", statement)
		}
		_, err := db.VerifyAudit(t.Context())
		require.NoError(t, err)
	})
}

// Who has the database and removes the triggers is still found out.
func TestTamperingIsFoundAtItsPlace(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		writeAudit(t, db, 6)
		chainAll(t, db)
		published, err := db.Head(t.Context())
		require.NoError(t, err)
		conn := rawDB(t, db)
		exec := func(statements ...string) {
			for _, s := range statements {
				_, err := conn.ExecContext(t.Context(), s)
				require.NoError(t, err, s)
			}
		}
		if db.Kind == storetest.Postgres {
			exec("ALTER TABLE audit_entries DISABLE TRIGGER USER", "ALTER TABLE audit_chain DISABLE TRIGGER USER")
		} else {
			exec("DROP TRIGGER audit_entries_no_update", "DROP TRIGGER audit_chain_no_update", "DROP TRIGGER audit_chain_no_delete")
		}
		verify := func() (int64, error) {
			_, err := audit.Verify(func(yield func(audit.Linked, error) bool) {
				_ = db.Export(t.Context(), 1, func(l audit.Linked) error {
					if !yield(l, nil) {
						return errUndo
					}
					return nil
				})
			}, &published)
			var broken *audit.BrokenError
			if err != nil {
				require.ErrorAs(t, err, &broken)
				return broken.Seq, err
			}
			return 0, nil
		}
		seq, err := verify()
		require.NoError(t, err)
		require.Zero(t, seq)

		exec("UPDATE audit_entries SET reason = 'allowed after all' WHERE id = (SELECT entry_id FROM audit_chain WHERE seq = 4)")
		seq, _ = verify()
		require.EqualValues(t, 4, seq)
		exec("DELETE FROM audit_chain WHERE seq = 3")
		seq, _ = verify()
		require.EqualValues(t, 3, seq)
		exec("DELETE FROM audit_chain WHERE seq > 1", "UPDATE audit_head SET seq = 1, hash = (SELECT hash FROM audit_chain WHERE seq = 1)")
		seq, err = verify()
		require.EqualValues(t, 2, seq)
		require.ErrorContains(t, err, "cut off")
		_, err = db.VerifyAudit(t.Context())
		require.NoError(t, err, "without the published head a cut chain looks whole")
	})
}

func TestStartChainsWithinASecondOrSo(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		db.Start(t.Context())
		writeAudit(t, db, 3)
		require.Eventually(t, func() bool {
			head, err := db.Head(t.Context())
			return err == nil && head.Seq == 3
		}, 20*time.Second, 20*time.Millisecond)
		require.NoError(t, db.Close())
		require.NoError(t, db.Close(), "closing twice is harmless")
	})
}

func TestHashesAreOfFullLength(t *testing.T) {
	t.Parallel()
	require.Equal(t, strings.Repeat("0", 64), audit.Genesis)
}
