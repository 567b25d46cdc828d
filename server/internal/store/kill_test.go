package store_test

import (
	"bufio"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/server/internal/store"
	"holdfast/server/internal/store/storetest"
	"holdfast/server/outbox"
)

// victimEnv makes this test binary a process that writes until it is killed.
const victimEnv = "HOLDFAST_STORE_VICTIM"

// victim commits a decision with its message, claims the message, and says so,
// again and again. It never returns.
func victim(url string) {
	err := func() error {
		s, err := store.Open(context.Background(), store.Options{URL: url})
		if err != nil {
			return err
		}
		for i := 0; ; i++ {
			err := s.InTx(context.Background(), func(tx *store.Tx) error {
				if err := tx.Audit(decision(i)); err != nil {
					return err
				}
				return tx.Enqueue(line("k", fmt.Sprint(i)))
			})
			if err != nil {
				return err
			}
			fmt.Println(i) //nolint:forbidigo // the parent process reads it: answered, and from here on promised
			if _, err := s.Outbox().Claim(context.Background(), outbox.TopicChat, 1, time.Minute); err != nil {
				return err
			}
			if _, err := s.ChainPending(context.Background(), 2); err != nil {
				return err
			}
		}
	}()
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// Whatever was answered before a kill -9 is there afterwards: decision, message
// and a chain that verifies. What the victim had claimed is delivered later.
func TestKilledProcessKeepsEveryPromise(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), victimEnv+"="+victimURL(t, db))
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		answered := 0
		for scan := bufio.NewScanner(out); scan.Scan(); {
			answered++
			if answered == 25 {
				require.NoError(t, cmd.Process.Kill())
			}
		}
		require.Error(t, cmd.Wait(), "it was killed")
		require.GreaterOrEqual(t, answered, 25)
		if db.Kind == storetest.Postgres {
			// The server may be at work on its last statement for a moment more.
			require.Eventually(t, func() bool {
				return len(lines(t, db, "SELECT 'there' FROM pg_stat_activity WHERE application_name = 'victim'")) == 0
			}, 20*time.Second, 10*time.Millisecond)
		}

		chainAll(t, db)
		_, err = db.VerifyAudit(t.Context())
		require.NoError(t, err)
		decisions := len(export(t, db, 1))
		require.GreaterOrEqual(t, decisions, answered)
		count, _, err := db.Outbox().Pending(t.Context(), outbox.TopicChat)
		require.NoError(t, err)
		require.Equal(t, decisions, count, "decision and message are one")

		db.Advance(t, 2*time.Minute)
		delivered := deliverAll(t, db.Outbox())
		require.Len(t, delivered, decisions)
		for i, got := range delivered {
			require.Equal(t, fmt.Sprintf("thread k %d", i), got)
		}
	})
}

// victimURL names the victim's connections on PostgreSQL.
func victimURL(t *testing.T, db *storetest.DB) string {
	t.Helper()
	if db.Kind == storetest.SQLite {
		return db.URL
	}
	u, err := url.Parse(db.URL)
	require.NoError(t, err)
	query := u.Query()
	query.Set("application_name", "victim")
	u.RawQuery = query.Encode()
	return u.String()
}
