package controlclient

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/gpuguard/policy"
)

var savedAt = time.Date(2026, 3, 1, 14, 0, 0, 0, time.UTC)

func saveAt(t *testing.T, dir string, at time.Time, u policy.Update) {
	t.Helper()
	u.Overrides = policy.ArmExpiry(u.Overrides, at)
	s := store{dir: dir}
	require.NoError(t, s.save(u, at))
}

func TestLastKnownGoodRoundTrip(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	u := update(7, trip(time.Hour))
	u.LiveGateways = 3
	saveAt(t, dir, savedAt, u)

	got, err := LoadLastKnownGood(dir, savedAt.Add(15*time.Minute))
	require.NoError(t, err)
	require.Equal(t, "l1", got.Lineage)
	require.EqualValues(t, 7, got.Revision)
	require.Equal(t, 3, got.LiveGateways)
	require.JSONEq(t, baseJSON, string(got.Base))
	require.Len(t, got.Overrides, 1)
	require.Equal(t, savedAt.Add(time.Hour), got.Overrides[0].Expires)
	require.InDelta(t, 45*60, got.Overrides[0].RemainingSeconds, 0.001)
	require.Equal(t, "alice", got.Overrides[0].Owner)

	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "no temporary file is left")
}

func TestEndedOverridesStayEnded(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		clock time.Duration // the clock at start-up, from the time of saving
		want  time.Duration // what is left; 0 = ended
	}{
		"in time":                         {20 * time.Minute, 40 * time.Minute},
		"ended while the gateway was off": {time.Hour, 0},
		"long ended":                      {48 * time.Hour, 0},
		"clock went back a day":           {-24 * time.Hour, time.Hour}, // never more than was left when saved
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			saveAt(t, dir, savedAt, update(7, trip(time.Hour)))
			now := savedAt.Add(tc.clock)
			got, err := LoadLastKnownGood(dir, now)
			require.NoError(t, err)
			if tc.want == 0 {
				require.Empty(t, got.Overrides)
				return
			}
			require.Equal(t, now.Add(tc.want), got.Overrides[0].Expires)
		})
	}
}

// While leases run, the passing of time goes to disk with the heartbeat: a
// clock that goes back after a crash re-arms nothing that has ended.
func TestPassedTimeIsKeptOnDisk(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.deliver(r.connected(), update(7, trip(time.Minute)))
		start := time.Now()
		pass(30 * time.Second)
		got, err := LoadLastKnownGood(r.dir, start.Add(-time.Hour))
		require.NoError(t, err)
		require.Len(t, got.Overrides, 1)
		require.LessOrEqual(t, got.Overrides[0].RemainingSeconds, 35.0)

		pass(40 * time.Second)
		got, err = LoadLastKnownGood(r.dir, start.Add(-time.Hour))
		require.NoError(t, err)
		require.Empty(t, got.Overrides, "ended means ended, whatever the clock says")

		path := filepath.Join(r.dir, LastKnownGoodFile)
		before, err := os.ReadFile(path)
		require.NoError(t, err)
		pass(time.Minute)
		after, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(before), string(after), "without leases nothing is written")
	})
}

// A restarted gateway goes on keeping time for the leases it found on disk.
func TestPassedTimeIsKeptAfterARestart(t *testing.T) {
	held := update(7, trip(time.Minute))
	var dir string
	inBubble(t, func(o *Options) {
		dir = o.StateDir
		held.Overrides = policy.ArmExpiry(held.Overrides, time.Now())
		saveAt(t, dir, time.Now(), held)
		o.Held = &held
	}, func(r *rig) {
		r.connected()
		pass(30 * time.Second)
		got, err := LoadLastKnownGood(dir, time.Now().Add(-time.Hour))
		require.NoError(t, err)
		require.LessOrEqual(t, got.Overrides[0].RemainingSeconds, 35.0)
	})
}

func TestLastKnownGoodMissing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "never-made")
	_, err := LoadLastKnownGood(dir, savedAt)
	require.ErrorIs(t, err, ErrNoLastKnownGood)
	require.ErrorContains(t, err, dir)
}

func TestLastKnownGoodThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	saveAt(t, dir, savedAt, update(7, trip(time.Hour)))
	good, err := os.ReadFile(filepath.Join(dir, LastKnownGoodFile))
	require.NoError(t, err)
	cases := map[string]struct{ content, want string }{
		"empty":            {"", "document is empty"},
		"cut off":          {string(good[:len(good)/2]), "document is not JSON"},
		"zeros":            {strings.Repeat("\x00", 512), "document is not JSON"},
		"other format":     {strings.Replace(string(good), `"format":1`, `"format":2`, 1), "format 2: this program reads format 1"},
		"unknown key":      {strings.Replace(string(good), `"format":1`, `"format":1,"x":2`, 1), "x: unknown key"},
		"no lineage":       {strings.Replace(string(good), `"lineage":"l1"`, `"lineage":""`, 1), "lineage is empty"},
		"invalid base":     {strings.Replace(string(good), `"pool":"main"`, `"pool":"none"`, 1), `routes.chat.pool: no pool is named "none"`},
		"invalid override": {strings.Replace(string(good), `"open"`, `"ajar"`, 1), `dependencies.llm.breaker.forced: is "ajar"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, LastKnownGoodFile)
			require.NoError(t, os.WriteFile(path, []byte(tc.content), 0o600))
			u, err := LoadLastKnownGood(dir, savedAt)
			require.ErrorContains(t, err, tc.want)
			require.ErrorContains(t, err, path)
			require.NotErrorIs(t, err, ErrNoLastKnownGood)
			require.Zero(t, u.Revision)
		})
	}
}

func TestReplaceFileIsAtomic(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	require.NoError(t, replaceFile(path, []byte("old")))
	// What a crash left behind is in nobody's way, and never followed as a link.
	target := filepath.Join(dir, "target")
	require.NoError(t, os.WriteFile(target, []byte("untouched"), 0o600))
	require.NoError(t, os.Symlink(target, path+".tmp"))
	require.NoError(t, replaceFile(path, []byte("new")))
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "new", string(got))
	got, err = os.ReadFile(target)
	require.NoError(t, err)
	require.Equal(t, "untouched", string(got))
	require.Error(t, replaceFile(filepath.Join(dir, "none", "f"), nil))
}

func TestSavedFileHasNoSecretsBesidesDigests(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	saveAt(t, dir, savedAt, update(7))
	data, err := os.ReadFile(filepath.Join(dir, LastKnownGoodFile))
	require.NoError(t, err)
	var keys map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(data, &keys))
	require.NotContains(t, string(data), "token")
}
