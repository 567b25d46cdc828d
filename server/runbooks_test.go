package server

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"holdfast/strict"
)

func runbookDir(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

const goodRunbook = `id: mine
title: Mine
summary: s
params:
  - {name: service, kind: service, required: true, help: h, from_labels: [service]}
steps:
  - {id: look, phase: locate, title: Look, kind: check, command: c, expect: e, criterion: {query: 'up{service="${service}"}', is: ">", value: 0}, timeout: 1m}
`

func TestRunbooksOfAFolderStandBesideTheShippedOnes(t *testing.T) {
	t.Parallel()
	shipped, err := LoadRunbooks("")
	require.NoError(t, err)
	_, err = shipped.Runbook("slow-model")
	require.NoError(t, err)
	all, err := LoadRunbooks(runbookDir(t, map[string]string{"mine.yaml": goodRunbook, "README.md": "not a runbook"}))
	require.NoError(t, err)
	require.Len(t, all.Runbooks(), len(shipped.Runbooks())+1)
	_, err = LoadRunbooks(filepath.Join(t.TempDir(), "nowhere"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestEveryProblemOfARunbookIsNamedWithItsLine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want map[string]int
	}{
		"an unknown key":              {goodRunbook + "ownr: me\n", map[string]int{"ownr": 8}},
		"the id of a shipped runbook": {"id: slow-model" + goodRunbook[len("id: mine"):], map[string]int{"id": 1}},
		"an unknown action": {
			goodRunbook + "  - {id: act, phase: restore, title: Act, kind: action, command: c, expect: e, action: trip_braker, params: {dependency: llm}}\n",
			map[string]int{"steps[1].action": 8},
		},
		"no PromQL": {
			goodRunbook + "  - {id: b, phase: restore, title: B, kind: check, command: c, expect: e, criterion: {query: 'rate(x[1m)', is: \"<\", value: 1}, timeout: 1m}\n",
			map[string]int{"steps[1].criterion.query": 8},
		},
	} {
		_, err := LoadRunbooks(runbookDir(t, map[string]string{"mine.yaml": c.text}))
		var errs strict.Errors
		require.ErrorAs(t, err, &errs, name)
		got := map[string]int{}
		for _, e := range errs {
			require.Contains(t, e.File, "mine.yaml", name)
			got[e.Path] = e.Line
		}
		require.Empty(t, cmp.Diff(c.want, got), name)
		require.Contains(t, err.Error(), "mine.yaml:", name)
	}
}

func TestAServerWithABrokenRunbookDoesNotStart(t *testing.T) {
	t.Parallel()
	_, err := New(Options{
		Addr: "127.0.0.1:0", DatabaseURL: filepath.Join(t.TempDir(), "h.db"), Config: Config{Environments: map[string]EnvironmentConfig{"prod": {}}},
		RunbookDir: runbookDir(t, map[string]string{"mine.yaml": "id: [\n"}),
	})
	require.ErrorContains(t, err, "mine.yaml:")
}
