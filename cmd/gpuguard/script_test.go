package main

import (
	"net"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"gpuguard": main})
}

// Each file of testdata/script is one story of the command line.
func TestScripts(t *testing.T) {
	t.Parallel()
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = busy.Close() })
	example, err := os.ReadFile("../../gpuguard/policy/testdata/example.json")
	require.NoError(t, err)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("UPDATE_GOLDEN") != "",
		Setup: func(e *testscript.Env) error {
			e.Setenv("BUSY", busy.Addr().String())
			e.Setenv("HOME", e.WorkDir)
			return os.WriteFile(e.WorkDir+"/example.json", example, 0o600)
		},
	})
}
