package main

import (
	"bytes"
	"context"
	"flag"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "rewrite golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type result struct {
	code        int
	out, errout string
}

// execute runs one command line with an environment of its own.
func execute(t *testing.T, env map[string]string, args ...string) result {
	t.Helper()
	var out, errw bytes.Buffer
	code := run(t.Context(), args, func(k string) (string, bool) { v, ok := env[k]; return v, ok }, &out, &errw)
	return result{code, out.String(), errw.String()}
}

func TestHelpIsGolden(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{},
		{"serve"},
		{"demo"},
		{"demo", "alert"},
		{"migrate"},
		{"migrate", "down"},
		{"token"},
		{"token", "create"},
		{"person", "add"},
		{"login-link"},
		{"audit"},
		{"audit", "verify"},
		{"config", "check"},
	} {
		name := strings.Join(append([]string{"help"}, args...), "_")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res := execute(t, map[string]string{"HOLDFAST_STATE_DIR": "/var/lib/holdfast"}, append(args, "--help")...)
			require.Equal(t, exitOK, res.code, res.errout)
			file := filepath.Join("testdata", name+".txt")
			if *update {
				require.NoError(t, os.MkdirAll("testdata", 0o755))
				require.NoError(t, os.WriteFile(file, []byte(res.out), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(want), res.out)
		})
	}
}

func TestWrongUsageExitsWithTwo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	badConfig := write("holdfast.yaml", "environments:\n  prod: {guard_bend: 2h}\nservices:\n  a: {depends_on: [b]}\n")
	badPolicy := write("policy.yaml", "version: 1\ndependencies:\n  llm:\n    breaker: {failure_rate: 30}\npools: {}\nroutes: {}\n")
	forced := write("forced.yaml", "version: 1\ndependencies:\n  llm:\n    breaker: {forced: open}\npools: {}\nroutes: {}\n")
	books := filepath.Join(dir, "books")
	require.NoError(t, os.Mkdir(books, 0o700))
	write(filepath.Join("books", "runbook.yaml"), "id: x\ntitle: X\nsummary: s\nsteps:\n  - {id: a, phase: isolate, title: A, kind: note, command: c, expect: e, text: t, txt: t}\n")
	tests := []struct {
		name string
		args []string
		env  map[string]string
		want string
	}{
		{"unknown key of a runbook", []string{"config", "check", "--runbooks", books}, nil, "runbook.yaml:5: steps[0].txt"},
		{"unknown key of a runbook at start", []string{"serve", "--state", dir}, map[string]string{"HOLDFAST_RUNBOOKS": books}, "runbook.yaml:5: steps[0].txt"},
		{"no such folder of runbooks", []string{"serve", "--state", dir, "--runbooks", "nowhere"}, nil, "nowhere"},
		{"unknown command", []string{"fly"}, nil, `unknown command "fly"`},
		{"unknown flag", []string{"serve", "--prot", "1"}, nil, "unknown flag: --prot"},
		{"unknown configuration key", []string{"config", "check", badConfig}, nil, "holdfast.yaml:2: environments.prod.guard_bend"},
		{"policy value out of range", []string{"config", "check", "--policy", badPolicy}, nil, "policy.yaml:4: dependencies.llm.breaker.failure_rate"},
		{"forced breaker in a base policy", []string{"serve", "--policy", forced}, nil, "forced.yaml:4: dependencies.llm.breaker.forced"},
		{"no such policy", []string{"serve", "--policy", "nowhere.yaml"}, nil, "nowhere.yaml"},
		{"no such database", []string{"token", "list", "--database", filepath.Join(dir, "none.db")}, nil, "no database at"},
		{"Slack without a signing secret", []string{"serve", "--state", dir}, map[string]string{"SLACK_BOT_TOKEN": "xoxb-1"}, "anybody could press buttons"},
		{"Slack without a channel", []string{"serve", "--state", dir}, map[string]string{"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_SIGNING_SECRET": "s"}, "no channel"},
		{"listen address", []string{"serve", "--state", dir, "--listen", "8080"}, nil, "want host:port"},
		{"log level", []string{"serve", "--state", dir, "--log-level", "loud"}, nil, "want debug, info, warn or error"},
		{"token kind", []string{"token", "create", "--kind", "root", "--name", "x", "--database", dir}, nil, "want ci, hook, gateway or api"},
		{"demo without a demo", []string{"demo", "alert", "--state", dir}, nil, "no demo has run"},
		{"demo traffic", []string{"demo", "--traffic", "1e9"}, nil, "want 0 to 500"},
		{"audit head", []string{"audit", "verify", "--head", "12"}, nil, "want seq:hash"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			res := execute(t, tt.env, tt.args...)
			require.Equal(t, exitUsage, res.code, res.errout)
			require.Contains(t, res.errout, tt.want)
			require.NotContains(t, res.errout, "xoxb-1")
		})
	}
}

func TestPortInUseNamesTheFlag(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	res := execute(t, nil, "serve", "--state", t.TempDir(), "--listen", l.Addr().String())
	require.Equal(t, exitUsage, res.code)
	require.Contains(t, res.errout, "address already in use")
	require.Contains(t, res.errout, "--listen")
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	res = execute(t, nil, "demo", "--state", t.TempDir(), "--slack-port", port)
	require.Equal(t, exitUsage, res.code)
	require.Contains(t, res.errout, "--slack-port")
}

// An operator's life: schema, person, login, tokens, audit.
func TestOperatorCommands(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := filepath.Join(dir, "holdfast.db")
	do := func(args ...string) string {
		t.Helper()
		res := execute(t, nil, append(args, "--database", db)...)
		require.Equal(t, exitOK, res.code, res.errout)
		return res.out
	}
	require.Contains(t, do("migrate", "up"), "this program needs")
	require.Contains(t, do("person", "add", "--handle", "alice", "--name", "Alice", "--role", "admin"), "holdfast login-link --person alice")
	require.Regexp(t, `^https://h\.example/login\?code=\S{20,}\n$`, do("login-link", "--person", "alice", "--public-url", "https://h.example"))

	require.Contains(t, do("token", "list"), "no tokens yet")
	token := strings.TrimSpace(do("token", "create", "--kind", "ci", "--name", "github", "--owner", "alice", "--scope", "service:checkout"))
	require.Regexp(t, `^hf_ci_[a-z0-9]+_[A-Za-z0-9]+$`, token)
	id := strings.Split(token, "_")[2]
	require.Contains(t, do("token", "list"), id)
	require.NotContains(t, do("token", "list", "--json"), token)
	require.Contains(t, do("token", "revoke", id), "revoked")
	require.Contains(t, do("token", "list"), "revoked")
	res := execute(t, nil, "token", "revoke", "nosuchtoken", "--database", db)
	require.Equal(t, exitFault, res.code)

	head := chainedHead(t, db)
	require.Contains(t, do("audit", "verify", "--head", head), "whole")
	export := do("audit", "export")
	file := filepath.Join(dir, "audit.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(export), 0o600))
	require.Contains(t, execute(t, nil, "audit", "verify", "--file", file, "--head", head).out, "whole")

	lines := strings.SplitAfter(export, "\n")
	for name, broken := range map[string]string{
		"edited":  strings.Replace(export, "alice", "malory", 1),
		"deleted": strings.Join(lines[1:], ""),
		"cut off": strings.Join(lines[:len(lines)-2], ""),
	} {
		require.NoError(t, os.WriteFile(file, []byte(broken), 0o600))
		res := execute(t, nil, "audit", "verify", "--file", file, "--head", head)
		require.Equal(t, exitFault, res.code, name)
		require.Contains(t, res.errout, "audit chain broken at seq", name)
	}
}

// chainedHead starts a server on the database until the audit is chained, as
// the operator's commands leave linking to it.
func chainedHead(t *testing.T, db string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan int, 1)
	var said bytes.Buffer // read after done
	state := t.TempDir()
	go func() {
		done <- run(ctx, []string{"serve", "--listen", "127.0.0.1:0", "--database", db, "--state", state}, func(string) (string, bool) { return "", false }, &said, &said)
	}()
	defer func() {
		cancel()
		require.Equal(t, exitOK, <-done, said.String())
	}()
	var head string
	require.Eventually(t, func() bool {
		res := execute(t, nil, "audit", "head", "--database", db)
		head = strings.TrimSpace(res.out)
		seq, err := strconv.Atoi(strings.Split(head, ":")[0])
		return res.code == exitOK && err == nil && seq >= 4
	}, 20*time.Second, 50*time.Millisecond)
	return head
}

func TestAnEmbeddedGatewayKeepsItsToken(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	first, err := embeddedToken(dir)
	require.NoError(t, err)
	again, err := embeddedToken(dir)
	require.NoError(t, err)
	require.Equal(t, first, again, "a restart makes no second token")
	info, err := os.Stat(filepath.Join(dir, "gateway-embedded.token"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}
