package server

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/server/observe"
)

// A folder that cannot be used, as on a full disk, costs the metrics and nothing else.
func TestServesWithoutItsMetrics(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "metrics")
	require.NoError(t, os.WriteFile(file, []byte("no folder"), 0o600))
	s, err := New(Options{
		Addr: "127.0.0.1:0", DatabaseURL: filepath.Join(dir, "holdfast.db"),
		Config:     Config{Environments: map[string]EnvironmentConfig{"prod": {}}},
		Prometheus: &PrometheusOptions{Dir: file},
	})
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context()))
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		require.NoError(t, s.Stop(ctx))
	}()
	_, err = s.metrics.Query(t.Context(), "up", time.Time{})
	require.ErrorIs(t, err, observe.ErrUnavailable)

	require.NoError(t, os.Remove(file))
	require.NoError(t, s.prometheus.Start(t.Context()), "once the folder is there it can be started")
	_, err = s.metrics.Query(t.Context(), "up", time.Time{})
	require.NoError(t, err)
}
