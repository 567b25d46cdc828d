package testenv

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// requirement is a program that some tests need on the machine.
type requirement struct {
	// find returns the path of the program (for postgres: the folder that
	// holds its programs).
	find func() (string, error)
	// pkg is the Debian package that brings it.
	pkg string
}

// requirements names everything Require accepts.
var requirements = map[string]requirement{
	"postgres":     {find: postgresBinDir, pkg: "postgresql"},
	"redis":        {find: executable("redis-server"), pkg: "redis-server"},
	"chromium":     {find: executable("chromium", "chromium-browser", "google-chrome"), pkg: "chromium"},
	"node":         {find: executable("node"), pkg: "nodejs"},
	"prometheus":   {find: executable("prometheus"), pkg: "prometheus"},
	"promtool":     {find: executable("promtool"), pkg: "prometheus"},
	"alertmanager": {find: executable("prometheus-alertmanager", "alertmanager"), pkg: "prometheus-alertmanager"},
}

// Require returns the path of an installed program that the test needs: one of
// postgres, redis, chromium, node, prometheus, promtool, alertmanager. For
// postgres it is the folder that holds initdb and postgres. When the program is
// missing the test is skipped with the name of the package to install; it fails
// instead when HOLDFAST_REQUIRE lists the name or CI is set.
func Require(t testing.TB, name string) string {
	t.Helper()
	req, known := requirements[name]
	if !known {
		t.Fatalf("testenv: unknown requirement %q; known: %s", name,
			strings.Join(slices.Sorted(maps.Keys(requirements)), ", "))
	}
	path, err := req.find()
	if err == nil {
		return path
	}
	msg := fmt.Sprintf("testenv: %s is missing (%v); install the Debian package %s, or run: make deps", name, err, req.pkg)
	if mustHave(name, os.Getenv) {
		t.Fatal(msg)
	}
	t.Skip("SKIPPED, NOT TESTED: " + msg)
	return ""
}

// mustHave reports whether a missing requirement fails the test.
func mustHave(name string, getenv func(string) string) bool {
	if ci := getenv("CI"); ci != "" && ci != "false" && ci != "0" {
		return true
	}
	for listed := range strings.SplitSeq(getenv("HOLDFAST_REQUIRE"), ",") {
		if strings.TrimSpace(listed) == name {
			return true
		}
	}
	return false
}

// executable finds the first of several program names on PATH.
func executable(names ...string) func() (string, error) {
	return func() (string, error) {
		var errs []error
		for _, name := range names {
			path, err := exec.LookPath(name)
			if err == nil {
				return path, nil
			}
			errs = append(errs, err)
		}
		return "", errors.Join(errs...)
	}
}

// debianPostgres is where Debian keeps initdb and postgres, one folder per
// major version and none of them on PATH.
const debianPostgres = "/usr/lib/postgresql/*/bin"

// postgresBinDir returns the folder of the newest installed PostgreSQL.
func postgresBinDir() (string, error) {
	dirs, err := filepath.Glob(debianPostgres)
	if err != nil {
		return "", err
	}
	slices.SortFunc(dirs, func(a, b string) int { return majorVersion(b) - majorVersion(a) })
	if onPath, err := exec.LookPath("initdb"); err == nil {
		dirs = append(dirs, filepath.Dir(onPath))
	}
	for _, dir := range dirs {
		if isExecutable(filepath.Join(dir, "initdb")) && isExecutable(filepath.Join(dir, "postgres")) {
			return dir, nil
		}
	}
	return "", fmt.Errorf("no initdb and postgres in %s or on PATH", debianPostgres)
}

// majorVersion reads 15 from /usr/lib/postgresql/15/bin, 0 when it is no number.
func majorVersion(binDir string) int {
	n, err := strconv.Atoi(filepath.Base(filepath.Dir(binDir)))
	if err != nil {
		return 0
	}
	return n
}

// isExecutable reports whether path is a file that may be run.
func isExecutable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}
