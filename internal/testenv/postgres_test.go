package testenv

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// query runs one statement on its own connection and returns its only value.
func query(t *testing.T, dsn, statement string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), adminTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(ctx)) }()
	var got string
	require.NoError(t, conn.QueryRow(ctx, statement).Scan(&got))
	return got
}

func TestEachTestGetsADatabaseOfItsOwn(t *testing.T) {
	t.Parallel()
	first, second := Postgres(t), Postgres(t)
	require.NotEqual(t, first, second)

	require.NoError(t, adminExec(first, "CREATE TABLE only_here (id int)"))
	const count = "SELECT count(*)::text FROM pg_tables WHERE tablename = 'only_here'"
	require.Equal(t, "1", query(t, first, count))
	require.Equal(t, "0", query(t, second, count))
	require.Equal(t, "UTF8", query(t, first, "SHOW server_encoding"))
}

func TestDatabaseIsDroppedWithTheTestEvenWhileConnected(t *testing.T) {
	watch := Postgres(t) // not parallel: its subtest must end before it looks
	var dsn string
	t.Run("inner", func(t *testing.T) {
		dsn = Postgres(t)
		// Never closed: the connection that a failed test leaves behind.
		_, err := pgx.Connect(context.Background(), dsn)
		require.NoError(t, err)
	})
	cfg, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	require.Equal(t, "0", query(t, watch, "SELECT count(*)::text FROM pg_database WHERE datname = '"+cfg.Database+"'"))
}

func TestDatabaseOnAGivenServer(t *testing.T) {
	// Not parallel: sets the environment. The given server is the shared cluster.
	_ = Postgres(t)
	given := shared.cluster.adminURL()
	t.Setenv("HOLDFAST_TEST_POSTGRES", given)
	require.NotEqual(t, "postgres", query(t, Postgres(t), "SELECT current_database()"))
}

func TestClusterNeedsItsPassword(t *testing.T) {
	t.Parallel()
	dsn := Postgres(t)
	cfg, err := pgx.ParseConfig(dsn)
	require.NoError(t, err)
	cfg.Password = "wrong"
	_, err = pgx.ConnectConfig(t.Context(), cfg)
	require.ErrorContains(t, err, "password authentication failed")
}

func TestStopRemovesProcessAndFolder(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	pid := postmasterPID(c.dir)
	require.NotZero(t, pid)
	require.NoError(t, c.stop())
	require.NoDirExists(t, c.dir)
	require.False(t, alive(pid))
}

func TestTakenPortIsReportedAndTheFolderStaysUsable(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	other := newCluster(t)
	pid := postmasterPID(c.dir)
	require.NoError(t, syscall.Kill(pid, syscall.SIGINT))
	require.Eventually(t, func() bool { return !alive(pid) }, stopTimeout, 10*time.Millisecond)
	c.abandon(t)

	require.ErrorIs(t, c.startOn(other.port), errPortTaken)
	require.NoError(t, c.start())
	require.NoError(t, c.stop())
}

// TestClusterDiesWithItsProcess kills a test process that had no chance to clean
// up and expects its postgres and its folder to vanish all the same.
func TestClusterDiesWithItsProcess(t *testing.T) {
	t.Parallel()
	Require(t, "postgres")
	tmp := worldTempDir(t)
	cmd := exec.Command(os.Args[0], "-test.run=^TestHelperThatHangs$")
	cmd.Env = append(os.Environ(), "TESTENV_HANG=1", "TMPDIR="+tmp, "HOLDFAST_TEST_POSTGRES=")
	require.NoError(t, cmd.Start())

	var pid int
	require.Eventually(t, func() bool {
		dirs, err := filepath.Glob(filepath.Join(tmp, clusterPrefix+"*"))
		if err != nil || len(dirs) != 1 {
			return false
		}
		pid = postmasterPID(dirs[0])
		return pid != 0 && runsIn(pid, dirs[0])
	}, startTimeout, 20*time.Millisecond, "the helper never started its cluster")

	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // killed on purpose

	require.Eventually(t, func() bool {
		dirs, err := filepath.Glob(filepath.Join(tmp, clusterPrefix+"*"))
		return err == nil && len(dirs) == 0 && !alive(pid)
	}, stopTimeout, 20*time.Millisecond, "postgres %d or its folder outlived the killed process", pid)
}

// TestHelperThatHangs is the process that TestClusterDiesWithItsProcess kills.
func TestHelperThatHangs(t *testing.T) {
	if os.Getenv("TESTENV_HANG") == "" {
		return // only a helper
	}
	_ = Postgres(t)
	select {}
}

func TestReapRemovesAClusterWhoseKeepersAreGone(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	pid := postmasterPID(c.dir)

	reap(c.dir)
	require.DirExists(t, c.dir, "a locked cluster is in use")

	// Kill the supervisor first, then drop the lock, as a machine under memory
	// pressure may do to both keepers.
	c.abandon(t)
	require.NoError(t, c.lock.Close())
	c.lock = nil

	reapStale(filepath.Dir(c.dir))
	require.DirExists(t, c.dir, "a young folder may not be locked yet")

	old := time.Now().Add(-2 * reapAge)
	require.NoError(t, os.Chtimes(c.dir, old, old))
	reapStale(filepath.Dir(c.dir))
	require.NoDirExists(t, c.dir)
	require.Eventually(t, func() bool { return !alive(pid) }, stopTimeout, 10*time.Millisecond)
}

func TestRunsInDoesNotTakeAStrangerForPostgres(t *testing.T) {
	t.Parallel()
	require.False(t, runsIn(os.Getpid(), "/tmp/"+clusterPrefix+"none"))
}

// alive reports whether a process runs; one that ended but was not waited for
// by its new parent does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// abandon kills the supervisor before it can stop postgres or remove anything.
func (c *cluster) abandon(t *testing.T) {
	t.Helper()
	require.NoError(t, c.cmd.Process.Kill())
	_, err := c.cmd.Process.Wait()
	require.NoError(t, err)
	require.NoError(t, c.leash.Close())
	c.cmd, c.leash = nil, nil
}

// newCluster starts a cluster of the test's own.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("PostgreSQL is not started under -short")
	}
	c, err := startCluster(Require(t, "postgres"))
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := c.discard(); err != nil {
			t.Errorf("discard the cluster: %v", err)
		}
	})
	return c
}

// worldTempDir is a temporary folder with the rights of /tmp, so that the
// postgres user can work in it: t.TempDir is for the tests' user alone.
func worldTempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "testenv-") //nolint:usetesting // see above
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o777|os.ModeSticky))
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}
