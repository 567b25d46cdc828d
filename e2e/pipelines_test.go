//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTwentyPipelines runs twenty real pipelines' checks for one slot at once.
func TestTwentyPipelines(t *testing.T) {
	databases(t, func(t *testing.T, database string) {
		w := newWorld(t, database)
		codes := make([]int, 20)
		var wg sync.WaitGroup
		begun := time.Now()
		for i := range codes {
			wg.Go(func() { codes[i] = w.check(fmt.Sprintf("run-%d", i)) })
		}
		wg.Wait()
		count := map[int]int{}
		for _, c := range codes {
			count[c]++
		}
		t.Logf("20 checks in parallel took %d ms: exit codes %v", time.Since(begun).Milliseconds(), count)
		require.Equal(t, map[int]int{0: 1, 10: 19}, count)

		// Asking again is the same run: nothing changes.
		winner, held := "", ""
		for i, c := range codes {
			if c == 0 {
				winner = fmt.Sprintf("run-%d", i)
			} else {
				held = fmt.Sprintf("run-%d", i)
			}
		}
		require.Equal(t, 0, w.check(winner))
		require.Equal(t, 10, w.check(held))

		// Another person confirms one of those that wait; it may go now, the others still may not.
		id := w.change(held)
		api{w.url, w.ciToken}.must(t, http.StatusForbidden, http.MethodPost, "/api/v1/changes/"+id+"/confirm", nil)
		w.bob.must(t, http.StatusOK, http.MethodPost, "/api/v1/changes/"+id+"/confirm", nil)
		require.Equal(t, 0, w.check(held))
		ci := []string{"HOLDFAST_URL=" + w.url, "HOLDFAST_TOKEN=" + w.ciToken}
		output(t, ci, program("changecheck"), "start", "--change", id, "--run-id", held)
		output(t, ci, program("changecheck"), "finish", "--change", id, "--run-id", held, "--result", "succeeded")

		// And one is rejected: its pipeline is told no.
		for i, c := range codes {
			run := fmt.Sprintf("run-%d", i)
			if c == 10 && run != held {
				w.bob.must(t, http.StatusOK, http.MethodPost, "/api/v1/changes/"+w.change(run)+"/reject", nil)
				require.Equal(t, 20, w.check(run))
				break
			}
		}
	})
}

// check runs changecheck for the slot and returns its exit code.
func (w *world) check(run string) int {
	p := start(w.t, []string{"HOLDFAST_URL=" + w.url, "HOLDFAST_TOKEN=" + w.ciToken}, program("changecheck"),
		"--service", "checkout", "--env", "prod", "--run-id", run)
	return p.wait()
}

// change finds the change of a run.
func (w *world) change(run string) string {
	w.t.Helper()
	var page struct {
		Items []struct {
			ID    string
			RunID string `json:"run_id"`
		}
	}
	w.alice.get(w.t, "/api/v1/changes?limit=200", &page)
	for _, c := range page.Items {
		if c.RunID == run {
			return c.ID
		}
	}
	w.t.Fatalf("no change of %s", run)
	return ""
}
