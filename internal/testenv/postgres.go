package testenv

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// adminTimeout bounds one CREATE or DROP DATABASE.
const adminTimeout = 30 * time.Second

// shared is the cluster of this test process, started by the first test that
// asks for a database.
var shared struct {
	mu      sync.Mutex
	cluster *cluster
	err     error
}

// Postgres returns the URL of a fresh, empty PostgreSQL database that belongs to
// this test alone and is dropped when the test ends. The server is the one named
// by HOLDFAST_TEST_POSTGRES or else a throw-away cluster, started once per test
// process and stopped with it. Under -short the test is skipped; where
// PostgreSQL is not installed Require decides between skip and failure.
func Postgres(t testing.TB) string {
	t.Helper()
	if testing.Short() {
		t.Skip("testenv: PostgreSQL is not started under -short")
	}
	admin := os.Getenv("HOLDFAST_TEST_POSTGRES")
	if admin == "" {
		binDir := Require(t, "postgres")
		c, err := sharedCluster(binDir)
		if err != nil {
			t.Fatalf("testenv: start a throw-away PostgreSQL: %v", err)
		}
		admin = c.adminURL()
	}
	return freshDatabase(t, admin)
}

// Main runs the tests, stops the throw-away cluster and exits. Use it as the
// body of TestMain in a package that calls Postgres. With goleak use
//
//	goleak.VerifyTestMain(m, goleak.Cleanup(testenv.Exit))
//
// A package with neither leaks nothing: the supervisor stops the cluster when
// the process is gone, only a moment later.
func Main(m *testing.M) {
	Exit(m.Run())
}

// Exit stops the throw-away cluster, if one was started, waits until its folder
// is removed, and ends the process with the given code.
func Exit(code int) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.cluster != nil {
		if err := shared.cluster.stop(); err != nil {
			fmt.Fprintf(os.Stderr, "testenv: stop the throw-away PostgreSQL: %v\n", err)
			if code == 0 {
				code = 1
			}
		}
	}
	os.Exit(code)
}

// sharedCluster starts the cluster of this process on the first call. A failed
// start is not tried again: every test reports the same cause.
func sharedCluster(binDir string) (*cluster, error) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.cluster == nil && shared.err == nil {
		reapStale(os.TempDir())
		shared.cluster, shared.err = startCluster(binDir)
	}
	return shared.cluster, shared.err
}

// freshDatabase creates a database through the admin URL and drops it with the
// test.
func freshDatabase(t testing.TB, admin string) string {
	t.Helper()
	base, err := url.Parse(admin)
	if err != nil || !strings.HasPrefix(base.Scheme, "postgres") {
		// The value may hold a password: it is not printed.
		t.Fatal("testenv: HOLDFAST_TEST_POSTGRES must be a URL like postgres://user:password@host:5432/postgres")
	}
	name := "test_" + strings.ToLower(rand.Text()[:16])
	if err := adminExec(admin, "CREATE DATABASE "+name+" TEMPLATE template0 ENCODING 'UTF8'"); err != nil {
		t.Fatalf("testenv: create database %s: %v", name, err)
	}
	t.Cleanup(func() {
		// FORCE ends connections that a failed test left behind.
		if err := adminExec(admin, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
			t.Errorf("testenv: drop database %s: %v", name, err)
		}
	})
	base.Path = "/" + name
	return base.String()
}

// adminExec runs one statement on a connection of its own, so that no pool and
// no goroutine outlives the call.
func adminExec(admin, statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statement)
	if closeErr := conn.Close(ctx); err == nil {
		err = closeErr
	}
	return err
}
