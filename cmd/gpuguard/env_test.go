package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/gpuguard/policy"
)

func lookup(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}
}

func TestFlagsFromEnvironment(t *testing.T) {
	t.Parallel()
	env := environment{lookup: lookup(map[string]string{
		"GPUGUARD_LISTEN": "127.0.0.1:1", "GPUGUARD_ACCESS_LOG": "false", "GPUGUARD_NAME": "from-env", "GPUGUARD_DRAIN": "",
	}), errout: &bytes.Buffer{}}
	cmd := newRun(env)
	require.NoError(t, cmd.ParseFlags([]string{"--name", "from-flag"}))
	require.NoError(t, flagsFromEnv(cmd, env.lookup))
	for flag, want := range map[string]string{
		"listen": "127.0.0.1:1", "access-log": "false", "name": "from-flag", "drain": "30s", "admin-listen": "127.0.0.1:9081",
	} {
		require.Equal(t, want, cmd.Flags().Lookup(flag).Value.String(), flag)
	}
}

// No flag takes a secret itself: command lines are seen by everybody.
func TestNoFlagTakesASecret(t *testing.T) {
	t.Parallel()
	require.Nil(t, newRun(environment{}).Flags().Lookup("token"))
	require.Nil(t, newRun(environment{}).Flags().Lookup("admin-token"))
}

func TestResolveSecret(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, empty, big := filepath.Join(dir, "s"), filepath.Join(dir, "e"), filepath.Join(dir, "b")
	require.NoError(t, os.WriteFile(file, []byte(" secret\n"), 0o600))
	require.NoError(t, os.WriteFile(empty, []byte("\n"), 0o600))
	require.NoError(t, os.WriteFile(big, []byte(strings.Repeat("canary", 20000)), 0o600))
	resolve := resolveSecret(lookup(map[string]string{"KEY": "value", "EMPTY": ""}))
	for want, c := range map[string]policy.Credential{"value": {Env: "KEY"}, "secret": {File: file}} {
		got, err := resolve(c)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for want, c := range map[string]policy.Credential{
		"EMPTY is not set": {Env: "EMPTY"}, "NONE is not set": {Env: "NONE"}, "is not there": {File: filepath.Join(dir, "none")},
		"is empty": {File: empty}, "is larger than": {File: big},
	} {
		_, err := resolve(c)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "canary")
	}
}

func TestDefaultStateDir(t *testing.T) {
	t.Parallel()
	require.Equal(t, "/x/gpuguard/gw", defaultStateDir(lookup(map[string]string{"XDG_STATE_HOME": "/x", "HOME": "/h"}), "gw"))
	require.Equal(t, "/h/.local/state/gpuguard/gw", defaultStateDir(lookup(map[string]string{"XDG_STATE_HOME": "relative", "HOME": "/h"}), "gw"))
	require.Empty(t, defaultStateDir(lookup(nil), "gw"))
}

func TestIsLoopback(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]bool{
		"127.0.0.1:1": true, "[::1]:1": true, "localhost:1": true, "0.0.0.0:1": false, ":1": false, "10.0.0.1:1": false, "host:1": false, "x": false,
	} {
		require.Equal(t, want, isLoopback(addr), addr)
	}
}
