//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// caller speaks to the programs under test.
var caller = &http.Client{Timeout: 30 * time.Second}

// process is a running program with everything it said.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	out  *buffer
	done chan struct{}
	err  error
}

// start runs a program with these variables added to the environment. It is
// killed at the end of the test unless it has ended.
func start(t *testing.T, env []string, name string, args ...string) *process {
	t.Helper()
	p := &process{t: t, out: &buffer{}, done: make(chan struct{})}
	p.cmd = exec.Command(name, args...)
	p.cmd.Env = append(p.cmd.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	require.NoError(t, p.cmd.Start())
	go func() { p.err = p.cmd.Wait(); close(p.done) }()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			said := p.out.String()
			t.Logf("%s said:\n%s", name, said[max(0, len(said)-6000):])
		}
	})
	return p
}

// kill is kill -9; it returns when the process is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// interrupt is Ctrl-C; it returns the exit code.
func (p *process) interrupt() int {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(syscall.SIGINT))
	return p.wait()
}

// wait returns the exit code.
func (p *process) wait() int {
	p.t.Helper()
	return p.waitFor(patience)
}

// waitFor is wait for a program that takes longer.
func (p *process) waitFor(limit time.Duration) int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(limit):
		p.t.Fatalf("still running after %s:\n%s", limit, p.out)
	}
	return exitCode(p.err)
}

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

func exitCode(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	default:
		return -1
	}
}

// output runs a program to its end and returns its standard output.
func output(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(cmd.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s %s: %s", name, strings.Join(args, " "), stderr.String())
	return strings.TrimSpace(string(out))
}

// buffer can be read while it is written.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// String is what was written so far.
func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// freePorts finds ports that nobody listens on now.
func freePorts(t *testing.T, n int) []string {
	t.Helper()
	ports := make([]string, n)
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer func() { _ = l.Close() }()
		_, ports[i], err = net.SplitHostPort(l.Addr().String())
		require.NoError(t, err)
	}
	return ports
}

// eventually polls until ok, and fails the test with what it waited for.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("waited %s for %s", patience, what)
		}
		time.Sleep(2 * time.Millisecond) //nolint:forbidigo // another process is watched; there is no event to wait for
	}
}

// ready waits until an address answers 200.
func ready(t *testing.T, p *process, url string) {
	t.Helper()
	eventually(t, url, func() bool {
		require.True(t, p.running(), "it ended before it was ready:\n%s", p.out)
		resp, err := caller.Get(url)
		if err != nil {
			return false
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// writeFile writes a file of the test's own folder and returns its path.
func writeFile(t *testing.T, path, content string) string {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}
