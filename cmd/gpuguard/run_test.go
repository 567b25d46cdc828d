package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience bounds waiting for another process; it is never waited out in a good run.
const patience = 20 * time.Second

var client = &http.Client{Timeout: patience}

// process is a running gpuguard.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	data  string // address for callers
	admin string
	lines chan string // what it prints after the first line

	mu  sync.Mutex
	log strings.Builder
}

// start runs gpuguard on free ports and waits for its first line.
func start(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	args = append([]string{"run", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--name", "gw-1"}, args...)
	p := &process{t: t, cmd: exec.Command("gpuguard", args...), lines: make(chan string, 16)} // on PATH by testscript.Main
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, env...)
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	p.cmd.Stderr = p
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	go func() {
		defer close(p.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
	}()
	first := p.line()
	m := regexp.MustCompile(`^gateway gw-1 on http://(\S+), admin on http://([^ ,]+)`).FindStringSubmatch(first)
	require.NotNil(t, m, "first line %q, log:\n%s", first, p.logged())
	p.data, p.admin = m[1], m[2]
	return p
}

// Write takes the process's log.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

func (p *process) logged() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

func (p *process) line() string {
	p.t.Helper()
	select {
	case l := <-p.lines:
		return l
	case <-time.After(patience):
		require.Fail(p.t, "no line came", p.logged())
		return ""
	}
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(s))
}

// ended waits for the end and returns the exit code.
func (p *process) ended() int {
	p.t.Helper()
	done := make(chan error, 1)
	go func() { done <- p.cmd.Wait() }()
	select {
	case <-done:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		require.Fail(p.t, "the process did not end", p.logged())
		return -1
	}
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	require.NoError(t, err)
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

// policyFile writes a policy with one open route to url, limited by rate.
func policyFile(t *testing.T, path, url string, rate int) string {
	t.Helper()
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, `version: 1
dependencies: {llm: {}}
pools: {main: {dependency: llm, endpoints: {one: {url: %q}}, credential: {env: UPSTREAM_KEY}}}
routes:
  all: {match: {path_prefix: /}, auth: optional, pool: main}
limits: {global: {requests_per_second: %d}}
`, url, rate), 0o600))
	return path
}

// SIGTERM refuses new connections, lets the running request finish and exits 0
// (R12 for plain requests); the upstream secret is added by the gateway.
func TestRunServesAndDrains(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan string, 1), make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived <- r.Header.Get("Authorization")
		<-release
		_, _ = io.WriteString(w, "late but whole")
	}))
	t.Cleanup(upstream.Close)
	path := policyFile(t, filepath.Join(t.TempDir(), "p.yaml"), upstream.URL, 100)
	p := start(t, []string{"UPSTREAM_KEY=canary-secret"}, "--policy", path)

	status, _ := get(t, "http://"+p.admin+"/readyz")
	require.Equal(t, http.StatusOK, status)
	_, metrics := get(t, "http://"+p.admin+"/metrics")
	require.Contains(t, metrics, "gpuguard_")
	require.Contains(t, metrics, "go_goroutines")

	answer := make(chan string, 1)
	go func() {
		resp, err := client.Get("http://" + p.data + "/x")
		if err != nil {
			answer <- err.Error()
			return
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		answer <- resp.Status + " " + string(body)
	}()
	require.Equal(t, "Bearer canary-secret", <-arrived)
	p.signal(syscall.SIGTERM)
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", p.data)
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	}, patience, 5*time.Millisecond, "new connections are refused")
	close(release)
	require.Equal(t, "200 OK late but whole", <-answer)
	require.Equal(t, "stopped", p.line())
	require.Equal(t, 0, p.ended())
	require.NotContains(t, p.logged(), "canary")
}

func TestRunCutsWhatOutlivesTheDrain(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}), make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(arrived)
		<-release
	}))
	t.Cleanup(upstream.Close)
	defer close(release)
	path := policyFile(t, filepath.Join(t.TempDir(), "p.yaml"), upstream.URL, 100)
	p := start(t, []string{"UPSTREAM_KEY=k", "GPUGUARD_DRAIN=50ms"}, "--policy", path)
	go func() {
		resp, err := client.Get("http://" + p.data + "/x")
		if err == nil {
			_ = resp.Body.Close()
		}
	}()
	<-arrived
	p.signal(syscall.SIGTERM)
	require.Equal(t, 1, p.ended())
	require.Contains(t, p.logged(), "1 requests cut")
}

func TestHangupReadsThePolicyAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "p.yaml")
	policyFile(t, path, "http://127.0.0.1:1", 100)
	p := start(t, []string{"UPSTREAM_KEY=k"}, "--policy", path, "--access-log=false", "--log-format", "json")
	rate := func() float64 {
		_, body := get(t, "http://"+p.admin+"/policy")
		var page struct {
			Revision int64
			Document struct {
				Limits struct {
					Global struct {
						Rate float64 `json:"requests_per_second"`
					}
				}
			}
		}
		require.NoError(t, json.Unmarshal([]byte(body), &page))
		return page.Document.Limits.Global.Rate
	}
	require.Equal(t, 100.0, rate())

	policyFile(t, path, "http://127.0.0.1:1", 7)
	p.signal(syscall.SIGHUP)
	require.Eventually(t, func() bool { return rate() == 7 }, patience, 5*time.Millisecond)

	require.NoError(t, os.WriteFile(path, []byte("version: 1\nroute: {}\n"), 0o600))
	p.signal(syscall.SIGHUP)
	require.Eventually(t, func() bool { return strings.Contains(p.logged(), "p.yaml:2: route: unknown key") }, patience, 5*time.Millisecond)
	require.Equal(t, 7.0, rate(), "a file with problems changes nothing")

	p.signal(syscall.SIGINT)
	require.Equal(t, 0, p.ended())
}

// A gateway follows its server, keeps the policy in the default state folder,
// and a restart without the server serves from there.
func TestRunFollowsAServerAndOutlivesIt(t *testing.T) {
	t.Parallel()
	acked := make(chan struct{}, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer hf_gateway_canary" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.Method == http.MethodPost {
			acked <- struct{}{}
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "id: l1:4\nevent: policy\ndata: {\"lineage\":\"l1\",\"revision\":4,\"base\":{\"version\":1},\"overrides\":[],\"live_gateways\":1,\"lineage_confirmed\":true}\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("hf_gateway_canary\n"), 0o600))
	home := t.TempDir()
	env := []string{"HOME=" + home, "GPUGUARD_CONTROL_URL=" + server.URL, "GPUGUARD_TOKEN_FILE=" + token, "GPUGUARD_ADMIN_TOKEN=admin-canary"}
	p := start(t, env)
	select {
	case <-acked:
	case <-time.After(patience):
		require.Fail(t, "no acknowledgement", p.logged())
	}
	status, _ := get(t, "http://"+p.admin+"/policy")
	require.Equal(t, http.StatusUnauthorized, status, "the admin token is asked for")
	file := filepath.Join(home, ".local/state/gpuguard/gw-1/last-known-good.json")
	require.Eventually(t, func() bool { _, err := os.Stat(file); return err == nil }, patience, 5*time.Millisecond)
	p.signal(syscall.SIGKILL)
	require.Equal(t, -1, p.ended())
	server.CloseClientConnections()
	server.Close()

	again := start(t, env)
	status, _ = get(t, "http://"+again.admin+"/readyz")
	require.Equal(t, http.StatusOK, status, "ready without the server")
	again.signal(syscall.SIGTERM)
	require.Equal(t, 0, again.ended())
	require.NotContains(t, p.logged()+again.logged(), "canary")
}
