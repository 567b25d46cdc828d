package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"holdfast/gpuguard/enginesim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// output is a buffer that several goroutines may use.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// execute runs the command with arguments and environment.
func execute(ctx context.Context, env map[string]string, out io.Writer, args ...string) error {
	root := newRoot(func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(io.Discard)
	return root.ExecuteContext(ctx)
}

// startRun runs an engine in the background and returns its URLs.
func startRun(t *testing.T, env map[string]string, args ...string) (api, admin string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var out output
	ended := make(chan error, 1)
	go func() {
		ended <- execute(ctx, env, &out, append([]string{"run", "--listen", "127.0.0.1:0"}, args...)...)
	}()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
		require.Contains(t, out.String(), "stopped")
	})
	found := regexp.MustCompile(`http://\S+?:\d+`)
	require.Eventually(t, func() bool { return len(found.FindAllString(out.String(), -1)) == 2 }, 10*time.Second, time.Millisecond)
	urls := found.FindAllString(out.String(), -1)
	return urls[0], urls[1]
}

func get(t *testing.T, url, key string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(b)
}

func TestRunReadsFlagsEnvironmentAndFiles(t *testing.T) {
	t.Parallel()
	key := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(key, []byte("secret\n"), 0o600))
	env := map[string]string{"ENGINESIM_MODEL": "from-env", "ENGINESIM_SLOTS": "7", "ENGINESIM_API_KEY_FILE": key}
	api, admin := startRun(t, env, "--slots", "9", "--admin-listen", "127.0.0.1:0", "--knobs", `{"fail_ratio":0.5}`)
	require.NotEqual(t, api, admin)

	status, _ := get(t, api+"/v1/models", "wrong")
	require.Equal(t, 401, status)
	status, body := get(t, api+"/v1/models", "secret")
	require.Equal(t, 200, status)
	require.Contains(t, body, `"id":"from-env"`)
	_, body = get(t, admin+"/admin/state", "")
	require.Contains(t, body, `"slots":9,`, "a flag wins over the environment")
	_, body = get(t, admin+"/admin/knobs", "")
	require.Contains(t, body, `"fail_ratio":0.5,`)
}

func TestKnobsCommands(t *testing.T) {
	t.Parallel()
	_, admin := startRun(t, nil)
	run := func(args ...string) (map[string]any, error) {
		var out bytes.Buffer
		if err := execute(t.Context(), nil, &out, append(args, "--url", admin)...); err != nil {
			return nil, err
		}
		var got map[string]any
		require.NoError(t, json.Unmarshal(out.Bytes(), &got))
		return got, nil
	}
	got, err := run("knobs", "set", "decode_multiplier=4", "empty_ratio=0.15")
	require.NoError(t, err)
	require.EqualValues(t, 4, got["decode_multiplier"])
	got, err = run("knobs", "set", "fail_status=503")
	require.NoError(t, err)
	require.InDelta(t, 0.15, got["empty_ratio"], 1e-9)

	_, err = run("knobs", "set", "speed=1")
	require.ErrorContains(t, err, `unknown field "speed"`)
	_, err = run("knobs", "set", "fail_ratio=2")
	require.ErrorContains(t, err, "fail_ratio is 2, want 0 to 1")
	_, err = run("knobs", "set", "fail_ratio")
	require.ErrorContains(t, err, "want NAME=VALUE")
	_, err = run("knobs", "set", "fail_ratio=lots")
	require.ErrorContains(t, err, `"lots" is not a number`)

	got, err = run("knobs", "reset")
	require.NoError(t, err)
	require.EqualValues(t, 1, got["decode_multiplier"])
	got, err = run("state")
	require.NoError(t, err)
	require.Equal(t, "ready", got["status"])
	var out bytes.Buffer
	require.NoError(t, execute(t.Context(), nil, &out, "health", "--url", admin))
	require.Equal(t, "healthy\n", out.String())
}

func TestErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	nobody := free.Addr().String()
	require.NoError(t, free.Close())

	tests := []struct {
		env  map[string]string
		args string
		want string
	}{
		{nil, "run --listen " + taken.Addr().String(), "is already in use; stop the other program or choose another address with --listen"},
		{nil, "run --listen 127.0.0.1:0 --admin-listen " + taken.Addr().String(), "with --admin-listen"},
		{nil, "run --listen 127.0.0.1", "Listen is \"127.0.0.1\", want host:port"},
		{nil, "run --slots 0", "Slots is 0"},
		{nil, "run --api-key-file /does/not/exist", "--api-key-file"},
		{nil, `run --knobs {"fail_ratio":9}`, "fail_ratio is 9"},
		{nil, `run --knobs {"speed":9}`, `--knobs: invalid knobs: unknown field "speed"`},
		{nil, "run --nonsense", "unknown flag"},
		{map[string]string{"ENGINESIM_SLOTS": "many"}, "run", "ENGINESIM_SLOTS (flag --slots)"},
		{nil, "state --url http://" + nobody, "start one with 'enginesim run' or set --url"},
		{nil, "health --url http://" + nobody, "no engine answers"},
	}
	for _, tt := range tests {
		err := execute(t.Context(), tt.env, io.Discard, strings.Fields(tt.args)...)
		require.ErrorContains(t, err, tt.want, tt.args)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, execute(t.Context(), nil, &out, "version"))
	require.Regexp(t, `^enginesim \S+`, out.String())
}

// Every command that does something shows how.
func TestHelpHasExamples(t *testing.T) {
	t.Parallel()
	root := newRoot(func(string) (string, bool) { return "", false })
	for _, cmd := range append(root.Commands(), newKnobs().Commands()...) {
		if cmd.Runnable() && cmd.Name() != "version" {
			require.NotEmpty(t, cmd.Example, cmd.CommandPath())
		}
	}
}

func TestKnobsHelpNamesEveryKnob(t *testing.T) {
	t.Parallel()
	for _, name := range enginesim.KnobNames() {
		require.Contains(t, newKnobs().Long, "\n  "+name+" ")
	}
}
