package gpuguard

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"holdfast/gpuguard/internal/gateway"
	"holdfast/gpuguard/policy"
)

// Reasons an update is refused beside faults of the document itself.
var (
	// ErrStaleRevision: a newer revision of the same lineage is in force.
	ErrStaleRevision = errors.New("a newer revision of this lineage is in force")
	// ErrLineageNotConfirmed: the update belongs to another database history
	// than the policy in force, and no admin has accepted that.
	ErrLineageNotConfirmed = errors.New("another lineage is in force and this one is not confirmed")
)

// holder keeps base and leases of the policy in force, and ends leases by its
// own clock: with the server gone an override still ends in time.
type holder struct {
	gateway *gateway.Gateway
	clock   func() time.Time
	log     *slog.Logger

	mu        sync.Mutex
	loaded    bool
	stopped   bool
	lineage   string
	revision  int64
	base      policy.Document
	overrides []policy.Override // each with Expires
	live      int
	timer     *time.Timer
}

// apply takes an update, or refuses it and changes nothing.
func (h *holder) apply(u policy.Update) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	began := time.Now()
	err := h.swap(u)
	result := policy.AckApplied
	if err != nil {
		result = policy.AckRejected
	}
	h.gateway.Metrics().PolicyUpdate(result, time.Since(began))
	return err
}

func (h *holder) swap(u policy.Update) error {
	if err := h.fence(u); err != nil {
		return err
	}
	base, err := policy.Decode(u.Base)
	if err != nil {
		return err
	}
	now := h.clock()
	overrides := policy.Live(armed(u.Overrides, now), now)
	if err := h.install(base, overrides, u.Lineage, u.Revision, u.LiveGateways, now); err != nil {
		return err
	}
	h.gateway.Confirm()
	return nil
}

// fence refuses what is older than, or strange to, the policy in force.
func (h *holder) fence(u policy.Update) error {
	switch {
	case !h.loaded:
		return nil
	case u.Lineage != h.lineage && !u.LineageConfirmed:
		return fmt.Errorf("%w: have %q, got %q", ErrLineageNotConfirmed, h.lineage, u.Lineage)
	case u.Lineage == h.lineage && u.Revision < h.revision:
		return fmt.Errorf("%w: have %d, got %d", ErrStaleRevision, h.revision, u.Revision)
	}
	return nil
}

// armed gives an end by our clock to overrides that carry the remaining time only.
func armed(overrides []policy.Override, now time.Time) []policy.Override {
	ends := policy.ArmExpiry(overrides, now)
	for i, o := range overrides {
		if !o.Expires.IsZero() {
			ends[i].Expires = o.Expires
		}
	}
	return ends
}

// install merges and swaps; on an error nothing changes.
func (h *holder) install(base policy.Document, overrides []policy.Override, lineage string, revision int64, live int, now time.Time) error {
	doc, err := policy.Merge(base, overrides, now)
	if err != nil {
		return err
	}
	eff := policy.Effective{Lineage: lineage, Revision: revision, Document: doc, Overrides: overrides}
	if err := h.gateway.Apply(eff, live); err != nil {
		return err
	}
	h.loaded = true
	h.base, h.overrides, h.lineage, h.revision, h.live = base, overrides, lineage, revision, live
	h.wake(now)
	return nil
}

// wake sets the timer to the end of the next lease.
func (h *holder) wake(now time.Time) {
	if h.timer != nil {
		h.timer.Stop()
	}
	next, ok := policy.NextExpiry(h.overrides, now)
	if ok && !h.stopped {
		h.timer = time.AfterFunc(next.Sub(now), h.endLeases)
	}
}

// endLeases takes out overrides whose time is over. It may be called at any time.
func (h *holder) endLeases() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.endOver()
}

// tryEndLeases is endLeases for requests: it never waits for an update.
func (h *holder) tryEndLeases() {
	if h.mu.TryLock() {
		defer h.mu.Unlock()
		h.endOver()
	}
}

func (h *holder) endOver() {
	now := h.clock()
	left := policy.Live(h.overrides, now)
	ended := len(h.overrides) - len(left)
	if ended == 0 {
		h.wake(now) // the timer was early by this clock
		return
	}
	was := h.overrides
	if err := h.install(h.base, left, h.lineage, h.revision, h.live, now); err != nil {
		h.log.Error("lease could not be ended; trying again", "error", err)
		h.timer = time.AfterFunc(time.Second, h.endLeases)
		return
	}
	h.gateway.Metrics().LeasesEnded(ended)
	for _, o := range was {
		if !o.LiveAt(now) {
			h.log.Info("lease ended", "override", o.ID, "path", o.Path, "owner", o.Owner)
		}
	}
}

// stop ends the timer.
func (h *holder) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopped = true
	if h.timer != nil {
		h.timer.Stop()
	}
}
