package testenv

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// clusterPrefix starts the name of every cluster folder.
	clusterPrefix = "holdfast-pg-"
	// startTimeout covers the start of postgres on a busy two-core machine.
	startTimeout = 60 * time.Second
	// stopTimeout covers an immediate shutdown and the removal of the folder.
	stopTimeout = 20 * time.Second
	// portTries is how often another port is tried when somebody took the one
	// chosen between choosing and binding it.
	portTries = 5
)

// errPortTaken says that the chosen port was bound by another process first.
var errPortTaken = errors.New("port already in use")

// supervisor runs "$@" until its standard input ends, then stops it and removes
// the folder $0. SIGQUIT is PostgreSQL's immediate shutdown: the data is thrown
// away, so no checkpoint is wanted.
const supervisor = `
"$@" >"$0/log" 2>&1 &
pid=$!
cat >/dev/null
kill -QUIT "$pid" 2>/dev/null
wait "$pid"
rm -rf "$0"
`

// cluster is one running throw-away PostgreSQL.
type cluster struct {
	dir      string
	binDir   string
	port     int
	password string
	owner    *syscall.Credential // nil: the user of this process
	lock     *os.File            // held while this process lives
	leash    *os.File            // the supervisor ends when this closes
	cmd      *exec.Cmd
}

// startCluster creates a cluster folder, runs initdb and starts postgres on
// 127.0.0.1 with a random port and password.
func startCluster(binDir string) (*cluster, error) {
	c := &cluster{binDir: binDir, password: rand.Text()}
	if err := c.prepare(); err != nil {
		return nil, errors.Join(err, c.discard())
	}
	if err := c.initdb(); err != nil {
		return nil, errors.Join(err, c.discard())
	}
	var err error
	for range portTries {
		if err = c.start(); !errors.Is(err, errPortTaken) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(err, c.discard())
	}
	return c, nil
}

// adminURL is the URL of the maintenance database with the superuser.
func (c *cluster) adminURL() string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword("holdfast", c.password),
		Host:     net.JoinHostPort("127.0.0.1", strconv.Itoa(c.port)),
		Path:     "/postgres",
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// prepare makes the folder, takes its lock and hands it to the user that will
// run postgres.
func (c *cluster) prepare() error {
	owner, err := clusterOwner()
	if err != nil {
		return err
	}
	c.owner = owner
	if c.dir, err = os.MkdirTemp("", clusterPrefix); err != nil {
		return err
	}
	if c.lock, err = os.OpenFile(filepath.Join(c.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return err
	}
	if err := syscall.Flock(int(c.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("lock %s: %w", c.dir, err)
	}
	if err := os.WriteFile(filepath.Join(c.dir, "password"), []byte(c.password), 0o600); err != nil {
		return err
	}
	return c.chown()
}

// chown gives the folder and what is in it to the owner of the cluster.
func (c *cluster) chown() error {
	if c.owner == nil {
		return nil
	}
	return filepath.WalkDir(c.dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chown(path, int(c.owner.Uid), int(c.owner.Gid))
	})
}

// clusterOwner returns whom to run PostgreSQL as: initdb and postgres refuse
// root, so root steps down to postgres or, where that user is missing, nobody.
func clusterOwner() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // no step down is a result, not a failure
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if uidErr != nil || gidErr != nil {
			return nil, fmt.Errorf("user %s has ids %s:%s", name, u.Uid, u.Gid)
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("running as root, PostgreSQL refuses root, and neither user postgres nor nobody exists")
}

// initdb creates the data folder.
func (c *cluster) initdb() error {
	cmd := c.command("initdb",
		"--pgdata", filepath.Join(c.dir, "data"),
		"--username", "holdfast",
		"--pwfile", filepath.Join(c.dir, "password"),
		"--auth", "scram-sha-256",
		"--encoding", "UTF8",
		"--locale", "C",
		"--no-sync",
	)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("initdb in %s: %w\n%s", c.dir, err, bytes.TrimSpace(out))
	}
	return nil
}

// start runs postgres on a free port.
func (c *cluster) start() error {
	port, err := freePort()
	if err != nil {
		return err
	}
	return c.startOn(port)
}

// startOn runs postgres under the supervisor and waits until it accepts
// connections.
func (c *cluster) startOn(port int) error {
	c.port = port
	// A log of an earlier try would be taken for this one's.
	if err := os.RemoveAll(filepath.Join(c.dir, "log")); err != nil {
		return err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close() // the supervisor holds its own copy
	c.leash = write
	c.cmd = c.command("sh", append([]string{"-c", supervisor, c.dir}, c.serverArgs()...)...)
	c.cmd.Stdin = read
	if err := c.cmd.Start(); err != nil {
		return fmt.Errorf("start the supervisor: %w", err)
	}
	return c.awaitReady()
}

// serverArgs is the command line of postgres.
func (c *cluster) serverArgs() []string {
	fsync := "off"
	if os.Getenv("HOLDFAST_TEST_POSTGRES_FSYNC") == "on" {
		fsync = "on"
	}
	settings := []string{
		"listen_addresses=127.0.0.1",
		"port=" + strconv.Itoa(c.port),
		"unix_socket_directories=",
		"max_connections=300",
		"shared_buffers=32MB",
		"fsync=" + fsync,
		"synchronous_commit=" + fsync,
		"full_page_writes=" + fsync,
		"autovacuum=off",
		"timezone=UTC",
	}
	args := []string{filepath.Join(c.binDir, "postgres"), "-D", filepath.Join(c.dir, "data")}
	for _, s := range settings {
		args = append(args, "-c", s)
	}
	return args
}

// command prepares a program of this cluster: PostgreSQL's own from its folder,
// others from PATH; as the cluster's owner, in the cluster's folder, in a
// session of its own so that Ctrl-C reaches the test process alone.
func (c *cluster) command(name string, args ...string) *exec.Cmd {
	if own := filepath.Join(c.binDir, name); isExecutable(own) {
		name = own
	}
	cmd := exec.Command(name, args...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "HOME="+c.dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: c.owner}
	return cmd
}

// awaitReady follows postgres' log: its messages are in English because the
// locale is C, and nobody connects before the ready line, so every FATAL is the
// server's own.
func (c *cluster) awaitReady() error {
	for deadline := time.Now().Add(startTimeout); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		log, err := os.ReadFile(filepath.Join(c.dir, "log"))
		if err != nil {
			continue // the supervisor has not opened it yet
		}
		switch {
		case bytes.Contains(log, []byte("database system is ready to accept connections")):
			return nil
		case bytes.Contains(log, []byte("Address already in use")) && bytes.Contains(log, []byte("FATAL")):
			return c.failedStart(errPortTaken, log)
		case bytes.Contains(log, []byte("FATAL")):
			return c.failedStart(errors.New("postgres refused to start"), log)
		}
	}
	return fmt.Errorf("postgres was not ready after %s, see %s", startTimeout, filepath.Join(c.dir, "log"))
}

// failedStart ends a supervisor whose postgres is ending by itself, without the
// folder being lost to a next try, and returns the cause with the log.
func (c *cluster) failedStart(cause error, log []byte) error {
	for deadline := time.Now().Add(stopTimeout); postmasterPID(c.dir) != 0 && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	killErr := c.cmd.Process.Kill()
	_, waitErr := c.cmd.Process.Wait()
	closeErr := c.leash.Close()
	c.cmd, c.leash = nil, nil
	return errors.Join(fmt.Errorf("%w\n%s", cause, bytes.TrimSpace(log)), killErr, waitErr, closeErr)
}

// stop ends postgres and waits until the supervisor has removed the folder.
func (c *cluster) stop() error {
	if c.cmd == nil {
		return nil
	}
	if err := c.leash.Close(); err != nil {
		return err
	}
	for deadline := time.Now().Add(stopTimeout); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		pid, err := syscall.Wait4(c.cmd.Process.Pid, nil, syscall.WNOHANG, nil)
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return fmt.Errorf("wait for the supervisor: %w", err)
		}
		if pid == c.cmd.Process.Pid {
			c.cmd = nil
			return c.discard()
		}
	}
	return fmt.Errorf("postgres in %s still runs %s after it was told to stop", c.dir, stopTimeout)
}

// discard releases what a cluster that does not run still holds.
func (c *cluster) discard() error {
	var errs []error
	if c.cmd != nil {
		errs = append(errs, c.stop())
	}
	if c.lock != nil {
		errs = append(errs, c.lock.Close())
		c.lock = nil
	}
	if c.dir != "" {
		errs = append(errs, os.RemoveAll(c.dir))
	}
	return errors.Join(errs...)
}

// freePort asks the kernel for a free TCP port on 127.0.0.1.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}

// postmasterPID reads the process id from a cluster folder, 0 when there is none.
func postmasterPID(dir string) int {
	content, err := os.ReadFile(filepath.Join(dir, "data", "postmaster.pid"))
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(content), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil {
		return 0
	}
	return pid
}
