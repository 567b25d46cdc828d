package controlclient

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"holdfast/gpuguard/policy"
	"holdfast/strict"
)

// LastKnownGoodFile is the name of the file within the state folder.
const LastKnownGoodFile = "last-known-good.json"

// ErrNoLastKnownGood says that the folder holds no last-known-good file: a first start.
var ErrNoLastKnownGood = errors.New("no last-known-good policy")

// fileFormat is the version of the file written and read.
const fileFormat = 1

// savedPolicy is the file. Leases are kept by wall clock, the only one that
// survives a restart.
type savedPolicy struct {
	Format       int             `json:"format"`
	SavedAt      time.Time       `json:"saved_at"`
	Lineage      string          `json:"lineage"`
	Revision     int64           `json:"revision"`
	LiveGateways int             `json:"live_gateways"`
	Base         json.RawMessage `json:"base"`
	Overrides    []savedOverride `json:"overrides"`
}

type savedOverride struct {
	ID      string          `json:"id"`
	Path    string          `json:"path"`
	Value   json.RawMessage `json:"value"`
	Owner   string          `json:"owner"`
	Reason  string          `json:"reason"`
	Expires time.Time       `json:"expires"`
}

// LoadLastKnownGood reads the policy that was last applied, so that a gateway
// serves before, and without, its server. Overrides carry Expires by the given
// clock reading; those that ended meanwhile are left out, and a clock that went
// back never gives a lease more time than it had left when the file was last
// written. It returns ErrNoLastKnownGood when there is no file, and an error
// naming the file when it cannot be used; the gateway then starts without it.
func LoadLastKnownGood(dir string, now time.Time) (policy.Update, error) {
	path := filepath.Join(dir, LastKnownGoodFile)
	u, err := load(path, now)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return policy.Update{}, fmt.Errorf("%w in %s", ErrNoLastKnownGood, dir)
	case err != nil:
		return policy.Update{}, fmt.Errorf("last-known-good policy %s cannot be used (the next policy from the server replaces it): %w", path, err)
	}
	return u, nil
}

func load(path string, now time.Time) (policy.Update, error) {
	f, err := os.Open(path)
	if err != nil {
		return policy.Update{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, strict.MaxBytes+1))
	if err != nil {
		return policy.Update{}, err
	}
	var saved savedPolicy
	if err := strict.DecodeJSON(data, &saved); err != nil {
		return policy.Update{}, err
	}
	if saved.Format != fileFormat {
		return policy.Update{}, fmt.Errorf("format %d: this program reads format %d", saved.Format, fileFormat)
	}
	u := saved.update(now)
	if err := fence(nil, u); err != nil {
		return policy.Update{}, err
	}
	return u, check(u, now)
}

// update rebuilds the update. Time that had passed when the file was written
// stays passed: a clock behind saved_at went back, and counts as saved_at.
func (s savedPolicy) update(now time.Time) policy.Update {
	reading := now
	if s.SavedAt.After(reading) {
		reading = s.SavedAt
	}
	u := policy.Update{
		Lineage: s.Lineage, Revision: s.Revision, Base: s.Base,
		LiveGateways: s.LiveGateways,
		// It was in force, so whatever had to be confirmed was.
		LineageConfirmed: true,
		Overrides:        []policy.Override{},
	}
	for _, o := range s.Overrides {
		left := o.Expires.Sub(reading)
		if left <= 0 {
			continue
		}
		u.Overrides = append(u.Overrides, policy.Override{
			ID: o.ID, Path: o.Path, Value: o.Value, Owner: o.Owner, Reason: o.Reason,
			Expires: now.Add(left), RemainingSeconds: left.Seconds(),
		})
	}
	return u
}

// store writes the last-known-good file.
type store struct {
	dir string

	mu sync.Mutex
	// leases is how many overrides the file holds.
	leases int
}

// holdsLeases says whether the file holds leases, whose time moves on.
func (s *store) holdsLeases() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leases > 0
}

// save replaces the file in one step: a crash leaves the old or the new one.
func (s *store) save(u policy.Update, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	saved := savedPolicy{
		Format:  fileFormat,
		SavedAt: now.Round(0).UTC(),
		Lineage: u.Lineage, Revision: u.Revision, LiveGateways: u.LiveGateways,
		Base:      u.Base,
		Overrides: []savedOverride{},
	}
	for _, o := range policy.Live(u.Overrides, now) {
		saved.Overrides = append(saved.Overrides, savedOverride{
			ID: o.ID, Path: o.Path, Value: o.Value, Owner: o.Owner, Reason: o.Reason,
			// Counted from the reading: the wall clock may have been set since the lease began.
			Expires: saved.SavedAt.Add(o.Remaining(now)),
		})
	}
	data, err := json.Marshal(saved)
	if err != nil {
		return err
	}
	if err := replaceFile(filepath.Join(s.dir, LastKnownGoodFile), data); err != nil {
		return err
	}
	s.leases = len(saved.Overrides)
	return nil
}

// replaceFile writes data beside path, flushes it and renames it over path. The
// file holds key digests and is readable by its owner alone.
func replaceFile(path string, data []byte) error {
	tmp := path + ".tmp"
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes the rename itself survive a power cut.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
