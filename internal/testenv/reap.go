package testenv

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// reapAge protects a folder that its owner has created but not locked yet.
const reapAge = time.Minute

// reapStale removes clusters under tmp whose test process and supervisor were
// both killed. Ownership is a file lock and not a process id, so that ids that
// were reused or belong to another container mislead nobody. Folders of other
// users cannot be opened and are left alone.
func reapStale(tmp string) {
	dirs, err := filepath.Glob(filepath.Join(tmp, clusterPrefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err != nil || time.Since(info.ModTime()) < reapAge {
			continue
		}
		reap(dir)
	}
}

// reap stops and removes one cluster if nobody holds its lock.
func reap(dir string) {
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return // its test process is alive
	}
	if pid := postmasterPID(dir); pid > 1 && runsIn(pid, dir) {
		if err := syscall.Kill(pid, syscall.SIGQUIT); err != nil {
			fmt.Fprintf(os.Stderr, "testenv: stop the stale PostgreSQL %d in %s: %v\n", pid, dir, err)
			return
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintf(os.Stderr, "testenv: remove the stale cluster: %v\n", err)
	}
}

// runsIn reports whether the process is one that was started on dir.
func runsIn(pid int, dir string) bool {
	cmdline, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	return err == nil && bytes.Contains(cmdline, []byte(dir+"/"))
}
