package embedded_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/server/alert"
	"holdfast/server/internal/prom/embedded"
)

// A process that is killed is this test binary with these variables.
const (
	victimEnv  = "EMBEDDED_TEST_VICTIM"
	addressEnv = "EMBEDDED_TEST_ADDRESS"
)

const queueRule = "queue > 100"

func victimOptions(dir, address string, box *inbox) embedded.Options {
	return options(dir, box, alertRule("QueueGrowing", queueRule, "0s"),
		embedded.Job{Name: "engine", Addresses: []string{address}, Labels: map[string]string{"service": "llm", "environment": "prod"}})
}

// victim runs an engine until it is killed.
func victim(dir string) {
	e, err := embedded.New(victimOptions(dir, os.Getenv(addressEnv), &inbox{}))
	if err == nil {
		err = e.Start(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	select {}
}

// kill -9 loses neither samples nor the alerts that were sent.
func TestKilled(t *testing.T) {
	t.Parallel()
	x, dir := newExporter(t, "queue 120\n"), t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(cmd.Environ(), victimEnv+"="+dir, addressEnv+"="+x.address())
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	dead := make(chan error, 1)
	go func() { dead <- cmd.Wait() }()
	defer func() { _ = cmd.Process.Kill() }()

	// Sent, because the journal is written before that; a moment more for samples.
	var journal struct {
		Alerts []struct {
			StartsAt time.Time `json:"starts_at"`
		}
	}
	require.Eventually(t, func() bool {
		raw, err := os.ReadFile(filepath.Join(dir, "alerts.json"))
		return err == nil && json.Unmarshal(raw, &journal) == nil && len(journal.Alerts) == 1
	}, 2*patience, tick)
	alive := time.Now()
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, <-dead)
	require.FileExists(t, filepath.Join(dir, "tsdb", "lock"))

	x.says("queue 1\n") // it ends while nobody looks
	box := &inbox{}
	e := start(t, victimOptions(dir, x.address(), box))
	got, err := e.Query(t.Context(), "queue", alive)
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Equal(t, 120.0, got[0].Value)
	over := box.wait(t, "QueueGrowing", alert.StatusResolved)
	require.WithinDuration(t, journal.Alerts[0].StartsAt, over.StartsAt, time.Microsecond)
	comes(t, e, "queue", is(1))
}
