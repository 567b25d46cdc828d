//go:build e2e

package e2e

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// storyEvent is a line of the story's event file.
type storyEvent struct {
	At         time.Time `json:"at"`
	SinceFault float64   `json:"since_fault_seconds"`
	Kind       string    `json:"event"`
	Text       string    `json:"text"`
	Callers    struct {
		Good     float64 `json:"good_per_second"`
		Refused  float64 `json:"refused_per_second"`
		Failed   float64 `json:"failed_ratio"`
		Attempts float64 `json:"attempts_per_call"`
	} `json:"callers"`
}

// events reads what the story has told so far; nothing before it began.
func (d *demo) events() map[string]storyEvent {
	file, err := os.Open(filepath.Join(d.state, "story.jsonl"))
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }()
	found := map[string]storyEvent{}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var e storyEvent
		if json.Unmarshal(lines.Bytes(), &e) == nil { // the last line may be half written
			found[e.Kind] = e
		}
	}
	return found
}

// waitEvent waits until the story has told of something.
func (d *demo) waitEvent(t *testing.T, kind string, limit time.Duration) (e storyEvent) {
	t.Helper()
	told := false
	require.Eventually(t, func() bool {
		e, told = d.events()[kind]
		return told || !d.running()
	}, limit, 100*time.Millisecond, "no event %q within %s:\n%s", kind, limit, d.out)
	require.True(t, told, "the demo ended:\n%s", d.out)
	return e
}

// TestSlowModelStory plays outage A headless: nobody posts an alert, one click
// stops the bleeding. Debian's Prometheus and Alertmanager watch the same targets
// with the same rules and must say the same.
func TestSlowModelStory(t *testing.T) {
	d := startDemo(t, "--story", "slow-model", "--story-warmup", "30s", "--story-hold", "20s")
	peer := d.startPrometheus(t)
	begin := time.Now()

	before := d.waitEvent(t, "before", time.Minute)
	require.Less(t, before.Callers.Failed, 0.01, before.Text)
	require.Greater(t, before.Callers.Good, 15.0, before.Text)
	alert := d.waitEvent(t, "alert", 3*time.Minute)
	card := d.waitEvent(t, "card", time.Minute)
	require.Greater(t, card.Callers.Failed, 0.2, "the fault hurts: %s", card.Text)

	d.waitPage(t, "Set rate limit")
	clicked := time.Now()
	d.press(t, "Set rate limit")
	enforced := d.waitEvent(t, "enforced", 30*time.Second)
	during := d.waitEvent(t, "during", time.Second)
	calm := d.waitEvent(t, "calm", 3*time.Minute)
	d.waitPage(t, "verified:")
	verified := time.Now()
	require.Greater(t, calm.Callers.Good, 2*during.Callers.Good, "the measure brings answers back, it does not only refuse")

	d.waitEvent(t, "rollback", time.Minute)
	d.waitEvent(t, "resolved", 3*time.Minute)
	peer.agrees(t)
	// The incident is over, and with it the buttons of its card: the lease is taken back in the console.
	for _, run := range d.admin.runs(t) {
		d.admin.must(t, http.StatusOK, http.MethodPost, "/api/v1/action-runs/"+run.ID+"/revert", nil)
	}
	after := d.waitEvent(t, "after", time.Minute)
	require.Less(t, after.Callers.Failed, 0.05, after.Text)
	require.Greater(t, after.Callers.Good, 0.8*before.Callers.Good, after.Text)
	d.waitEvent(t, "end", time.Minute)

	t.Logf("fault → alert %.1f s, → card %.1f s", alert.SinceFault, card.SinceFault)
	t.Logf("click → enforced on every gateway %d ms, → fewer than 5 %% of calls fail %.1f s, → verified by PromQL %.1f s",
		enforced.At.Sub(clicked).Milliseconds(), calm.At.Sub(clicked).Seconds(), verified.Sub(clicked).Seconds())
	t.Logf("goodput before %.1f/s, during %.1f/s (%.0f %% of calls fail, %.1f attempts per call), with the measure %.1f/s (%.1f/s refused), after %.1f/s",
		before.Callers.Good, during.Callers.Good, during.Callers.Failed*100, during.Callers.Attempts, calm.Callers.Good, calm.Callers.Refused, after.Callers.Good)
	t.Logf("the story took %s", time.Since(begin).Round(time.Second))
	require.Equal(t, 0, d.interrupt(), d.out)
	require.NotContains(t, d.out.String(), "panic")
}
