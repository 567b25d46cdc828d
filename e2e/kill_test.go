//go:build e2e

package e2e

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	_ "holdfast/server" // brings the drivers of both databases
	"holdfast/server/slacksim"
)

// held is a place where the database refuses to go on, so that the server can be
// killed between two steps: no sleep and no switch in the server decides it.
type held struct {
	name, table, event string
	// says is what the card says meanwhile.
	says string
}

var holds = []held{
	// The click is committed, the run is not.
	{"after the click", "action_runs", "INSERT", "accepted from Alice Andersson"},
	// The run is committed, the policy is not changed.
	{"before the effect", "policy_revisions", "INSERT", "accepted, not yet in force"},
}

// TestKillAfterAccepted kills the server with SIGKILL while the card says
// accepted and nothing is in force, and shows that after a restart the click
// takes effect, once.
func TestKillAfterAccepted(t *testing.T) {
	for _, h := range holds {
		t.Run(h.name, func(t *testing.T) {
			databases(t, func(t *testing.T, database string) { killHeld(t, database, h) })
		})
	}
}

func killHeld(t *testing.T, database string, h held) {
	t.Helper()
	w := newWorld(t, database)
	w.startGateway()
	w.alert()
	w.card("the card", func(m slacksim.Message) bool { _, ok := m.Button("Trip breaker"); return ok })
	release := h.set(t, database)
	w.press("Trip breaker")
	w.card("accepted", func(m slacksim.Message) bool { return strings.Contains(m.Visible(), h.says) })
	w.server.kill()
	release()
	degraded, _ := chat(t, w.gatewayURL(), tenantKey)
	require.Empty(t, degraded, "nothing is in force yet")
	w.startServer()
	requireOneEffect(t, w)
}

// TestKillWhileExecuting kills the server while it waits for a gateway.
func TestKillWhileExecuting(t *testing.T) {
	databases(t, func(t *testing.T, database string) {
		w := newWorld(t, database)
		w.startGateway()
		w.alert()
		w.card("the card", func(m slacksim.Message) bool { _, ok := m.Button("Trip breaker"); return ok })
		// The gateway goes away without a word: it is waited for until its membership ends.
		stop(t, w.gateway.Stop)
		w.press("Trip breaker")
		eventually(t, "the run executing", func() bool {
			runs := w.alice.runs(t)
			return len(runs) == 1 && runs[0].Status == "executing"
		})
		w.server.kill()
		w.startServer()
		w.startGateway()
		requireOneEffect(t, w)
	})
}

// requireOneEffect waits until the click is in force, and wants one run, one
// layer, one row that says executed, and the revert to end all of it.
func requireOneEffect(t *testing.T, w *world) {
	t.Helper()
	begun := time.Now()
	eventually(t, "the gateway to answer with the fallback", func() bool {
		degraded, _ := chat(t, w.gatewayURL(), tenantKey)
		return degraded == "static"
	})
	t.Logf("restart → enforced %d ms", time.Since(begun).Milliseconds())
	w.card("in force since", func(m slacksim.Message) bool { return strings.Contains(m.Visible(), "in force since") })
	t.Logf("restart → card says in force %d ms", time.Since(begun).Milliseconds())
	runs := w.alice.runs(t)
	require.Len(t, runs, 1)
	require.Equal(t, "active", runs[0].Status)
	require.Equal(t, 1, w.alice.overrides(t))
	require.Equal(t, 1, w.alice.audited(t, "action.executed"))
	require.Equal(t, 1, w.alice.audited(t, "chat.click"))
	cards := 0
	for _, m := range w.sim.Messages("C0INCIDENTS") {
		if m.ThreadTS == "" || m.ThreadTS == m.TS {
			cards++
		}
	}
	require.Equal(t, 1, cards, "one card")
	w.press("Revert")
	eventually(t, "the gateway to serve again", func() bool {
		degraded, status := chat(t, w.gatewayURL(), tenantKey)
		return degraded == "" && status == 200
	})
	require.Contains(t, output(t, nil, program("holdfast"), "audit", "verify", "--database", w.database), "whole")
}

// set makes the database refuse the step until release.
func (h held) set(t *testing.T, database string) (release func()) {
	t.Helper()
	driver, dsn := "sqlite", database
	create := []string{"CREATE TRIGGER held BEFORE " + h.event + " ON " + h.table + " BEGIN SELECT RAISE(ABORT, 'held by a test'); END"}
	drop := "DROP TRIGGER held"
	if strings.HasPrefix(database, "postgres") {
		driver = "pgx"
		create = []string{
			"CREATE OR REPLACE FUNCTION held() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'held by a test'; END $$",
			"CREATE TRIGGER held BEFORE " + h.event + " ON " + h.table + " FOR EACH ROW EXECUTE FUNCTION held()",
		}
		drop += " ON " + h.table
	} else {
		dsn += "?_pragma=busy_timeout(10000)"
	}
	db, err := sql.Open(driver, dsn)
	require.NoError(t, err)
	for _, statement := range create {
		_, err := db.ExecContext(t.Context(), statement)
		require.NoError(t, err, statement)
	}
	return func() {
		_, err := db.ExecContext(t.Context(), drop)
		require.NoError(t, err)
		require.NoError(t, db.Close())
	}
}
