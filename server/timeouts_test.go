package server

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/server/change"
)

func TestAServerLetsGoOfPeersThatStall(t *testing.T) {
	t.Parallel()
	s, err := New(Options{
		Addr: "127.0.0.1:0", DatabaseURL: filepath.Join(t.TempDir(), "holdfast.db"),
		Config: Config{Environments: map[string]EnvironmentConfig{"prod": {Scope: change.ScopeNeighbourhood}}},
	})
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, s.Stop(context.WithoutCancel(t.Context()))) })
	require.Positive(t, s.http.ReadHeaderTimeout)
	require.Positive(t, s.http.WriteTimeout)
	require.Positive(t, s.http.IdleTimeout)
}
