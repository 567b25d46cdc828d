package controlclient

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"holdfast/gpuguard/policy"
	"holdfast/strict"
)

// receive judges one policy event, applies it or rejects it, and has either
// acknowledged.
func (c *Client) receive(ctx context.Context, e event) {
	start := time.Now()
	var u policy.Update
	err := strict.DecodeJSON(e.data, &u)
	if err != nil {
		c.reject(eventRevision(e.id), fmt.Errorf("the message cannot be read: %w", err))
		return
	}
	u.Overrides = policy.ArmExpiry(u.Overrides, c.opts.Clock())
	if err := fence(c.current(), u); err != nil {
		c.reject(u.Revision, err)
		return
	}
	if err := check(u, c.opts.Clock()); err != nil {
		c.reject(u.Revision, err)
		return
	}
	if err := c.opts.Apply(ctx, u); err != nil {
		c.reject(u.Revision, err)
		return
	}
	c.accept(u, time.Since(start))
}

// fence refuses what may not follow the update in force: a lower revision of
// its lineage, and another lineage that no admin confirmed (a restored or
// foreign database).
func fence(held *policy.Update, u policy.Update) error {
	switch {
	case u.Lineage == "":
		return errors.New("lineage is empty")
	case u.Revision < 1:
		return fmt.Errorf("revision %d: want 1 or more", u.Revision)
	case u.LiveGateways < 1:
		return fmt.Errorf("live_gateways %d: want 1 or more", u.LiveGateways)
	case held == nil:
		return nil
	case u.Lineage != held.Lineage && !u.LineageConfirmed:
		return fmt.Errorf("lineage %q is not the one in force (%q): an admin must confirm it on the server first", u.Lineage, held.Lineage)
	case u.Lineage == held.Lineage && u.Revision < held.Revision:
		return fmt.Errorf("revision %d is lower than %d, which is in force", u.Revision, held.Revision)
	}
	return nil
}

// check proves that the update gives an effective policy.
func check(u policy.Update, now time.Time) error {
	base, err := policy.Decode(u.Base)
	if err != nil {
		return err
	}
	_, err = policy.Merge(base, u.Overrides, now)
	return err
}

// reject keeps the policy in force and reports why the revision was refused.
func (c *Client) reject(revision int64, reason error) {
	c.mu.Lock()
	c.result = policy.AckRejected
	c.rejected = rejection{revision, shorten(reason.Error())}
	c.mu.Unlock()
	c.metrics.update(policy.AckRejected)
	c.opts.Logger.Error("policy revision rejected: the one in force stays", "revision", revision, "error", reason)
	c.kickAck()
}

// shorten bounds a reason that lists a hundred problems; the first ones tell.
func shorten(reason string) string {
	const most = 4 << 10
	if len(reason) <= most {
		return reason
	}
	return strings.ToValidUTF8(reason[:most], "") + "…"
}

// accept records the update that is now in force.
func (c *Client) accept(u policy.Update, took time.Duration) {
	c.mu.Lock()
	c.held, c.result, c.rejected, c.applied = &u, policy.AckApplied, rejection{}, took
	c.mu.Unlock()
	c.metrics.update(policy.AckApplied)
	c.opts.Logger.Info("policy applied", "lineage", u.Lineage, "revision", u.Revision,
		"overrides", len(u.Overrides), "live_gateways", u.LiveGateways, "apply_seconds", took.Seconds())
	c.kickAck()
	c.save()
}

// members applies the update in force anew when the fleet grew or shrank:
// limits are divided by the live gateways.
func (c *Client) members(ctx context.Context, live int) {
	held := c.current()
	if held == nil || held.LiveGateways == live {
		return
	}
	start := time.Now()
	u := *held
	u.LiveGateways = live
	if err := c.opts.Apply(ctx, u); err != nil {
		c.opts.Logger.Error("the new number of gateways could not be applied", "live_gateways", live, "error", err)
		return
	}
	c.mu.Lock()
	c.held = &u
	c.mu.Unlock()
	c.opts.Logger.Info("fleet changed", "live_gateways", live, "apply_seconds", time.Since(start).Seconds())
	c.kickAck()
	c.save()
}

// save keeps the update in force on disk. A failure never touches the data
// path: it is reported, and the next save tries again.
func (c *Client) save() {
	held := c.current()
	if c.opts.StateDir == "" || held == nil {
		return
	}
	text := ""
	if err := c.store.save(*held, c.opts.Clock()); err != nil {
		text = err.Error()
		c.opts.Logger.Error("the last-known-good policy could not be saved: a restart without the server would lack it", "error", err)
	}
	c.setStatus(func(s *Status) { s.StorageError = text })
}
