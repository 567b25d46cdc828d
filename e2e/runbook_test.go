//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// runbookRun is a run as the API gives it.
type runbookRun struct {
	ID      string
	Status  string
	Current int
	Steps   []struct {
		Step      struct{ ID, Kind string }
		Status    string
		Attempt   int
		Detail    string
		ActionRun string `json:"action_run"`
		Answers   []string
	}
}

// decisions are what a person answers in a slow-model run that a rollback ends.
var decisions = map[string]string{
	"limit": "run", "enough": "holds", "change": "undo", "undone": "done", "replicas": "unchanged", "release": "reverted", "open": "reverted",
}

// TestKillAtEachRunbookStep walks the slow-model runbook through and kills the
// server with SIGKILL whenever a step begins, asks or was answered. It goes on
// each time, and no action is done twice.
func TestKillAtEachRunbookStep(t *testing.T) {
	w := newWorld(t, filepath.Join(t.TempDir(), "holdfast.db"))
	w.scraped()
	w.startGateway()
	w.callers(t)
	var run runbookRun
	status, err := w.alice.tryKeyed(http.MethodPost, "/api/v1/runbook-runs", "kill-each-step", map[string]any{
		"runbook": "slow-model",
		"params":  map[string]string{"service": "llm", "environment": "prod", "dependency": "llm", "target": "route:chat", "surviving_rps": "50", "half_rps": "80"},
	}, &run)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, status)

	kills, begun := 0, time.Now()
	seen := map[string]bool{}
	killOnce := func(when string) {
		if seen[when] {
			return
		}
		seen[when] = true
		w.server.kill()
		w.startServer()
		kills++
	}
	for {
		require.Less(t, time.Since(begun), 8*time.Minute, "it does not end: %+v", run)
		w.alice.get(t, "/api/v1/runbook-runs/"+run.ID, &run)
		if run.Status != "running" && run.Status != "waiting" {
			break
		}
		step := run.Steps[run.Current]
		killOnce(step.Step.ID + " " + step.Status)
		if len(step.Answers) == 0 {
			<-time.After(200 * time.Millisecond)
			continue
		}
		answer, known := decisions[step.Step.ID]
		require.True(t, known && step.Status == "asking", "step %s asks for %v: %s", step.Step.ID, step.Answers, step.Detail)
		if answer == "reverted" {
			w.revertAll(t)
		}
		status, err := w.alice.try(http.MethodPost, "/api/v1/runbook-runs/"+run.ID+"/answer",
			map[string]any{"step": step.Step.ID, "attempt": step.Attempt, "answer": answer}, nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, status)
		killOnce(step.Step.ID + " answered")
	}
	require.Equal(t, "succeeded", run.Status, "%+v", run)
	runs := w.alice.runs(t)
	require.Len(t, runs, 2, "one for each action step")
	require.Equal(t, 2, w.alice.audited(t, "action.executed"))
	require.Equal(t, 1, w.alice.audited(t, "runbook.started"))
	require.Zero(t, w.alice.overrides(t))
	require.Contains(t, output(t, nil, program("holdfast"), "audit", "verify", "--database", w.database), "whole")
	t.Logf("%d steps, the server killed %d times, %s", len(run.Steps), kills, time.Since(begun).Round(time.Second))
}

// scraped lets the server scrape gateway and engine each second.
func (w *world) scraped() {
	w.t.Helper()
	w.admin = "127.0.0.1:" + freePorts(w.t, 1)[0]
	w.configure(configuration + fmt.Sprintf(`
metrics:
  scrape_interval: 1s
  evaluation_interval: 1s
  jobs:
    - {job: gateway, targets: [%q], labels: {environment: prod}}
    - {job: engine, targets: [%q], labels: {environment: prod, service: llm}}
`, w.admin, w.engine[len("http://"):]))
	w.server.kill()
	w.startServer()
}

// callers send a little traffic until the test ends.
func (w *world) callers(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				wg.Go(func() { ask(ctx, w.gatewayURL()) })
			}
		}
	})
	t.Cleanup(func() { cancel(); wg.Wait() })
}

// revertAll takes every live run back and waits until none is in force.
func (w *world) revertAll(t *testing.T) {
	t.Helper()
	for _, run := range w.alice.runs(t) {
		if run.Status == "active" || run.Status == "executing" {
			w.alice.must(t, http.StatusOK, http.MethodPost, "/api/v1/action-runs/"+run.ID+"/revert", nil)
		}
	}
	eventually(t, "no override", func() bool { return w.alice.overrides(t) == 0 })
}

// ask sends one chat request and does not look at the answer.
func ask(ctx context.Context, gateway string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, gateway+"/v1/chat/completions",
		strings.NewReader(`{"model":"demo-model","max_tokens":8,"messages":[{"role":"user","content":"hello"}]}`))
	if err != nil {
		return
	}
	req.Header.Set("Authorization", "Bearer "+tenantKey)
	req.Header.Set("Content-Type", "application/json")
	if resp, err := caller.Do(req); err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
}
