package actions

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"holdfast/gpuguard/policy"
)

// maxParams bounds the parameters of one request (bytes).
const maxParams = 64 << 10

// Plan says what an action would do now, and does nothing. A zero ttl takes the
// action's default. ErrUnknownAction, or ErrInvalidParams naming the fields.
func (e *Engine) Plan(ctx context.Context, name string, params json.RawMessage, ttl time.Duration) (Plan, error) {
	a, err := e.registry.Get(name)
	if err != nil {
		return Plan{}, err
	}
	snap, err := e.snapshot(ctx)
	if err != nil {
		return Plan{}, fmt.Errorf("plan %s: %w", name, err)
	}
	return planOn(ctx, a, params, ttl, snap)
}

// snapshot reads the policy as of now.
func (e *Engine) snapshot(ctx context.Context) (snap Snapshot, err error) {
	err = e.store.View(ctx, func(tx Tx) error {
		snap, err = tx.PolicySnapshot()
		return err
	})
	return snap, err
}

// planOn completes what the action plans with what is the same for all actions.
func planOn(ctx context.Context, a Action, params json.RawMessage, ttl time.Duration, snap Snapshot) (Plan, error) {
	spec := a.Spec()
	ttl, err := leaseOf(spec, ttl)
	if err != nil {
		return Plan{}, err
	}
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	if len(params) > maxParams {
		return Plan{}, InvalidParam("params", "are %d bytes: at most %d are allowed", len(params), maxParams)
	}
	p, err := a.Plan(ctx, params, snap)
	if err != nil {
		return Plan{}, fmt.Errorf("%s: %w", spec.Name, err)
	}
	if p.Params, err = canonical(p.Params); err != nil {
		return Plan{}, fmt.Errorf("%s: %w", spec.Name, err)
	}
	p.Action, p.Hash, p.TTLSeconds = spec.Name, paramsHash(spec.Name, p.Params), ttl.Seconds()
	p.Summary = fmt.Sprintf("%s for %s", p.Summary, ttl)
	p.Leased = leasedBy(p.Layers, snap.Overrides, snap.Now)
	if p.Diff, err = diffOf(p.Layers, ttl, snap); err != nil {
		return Plan{}, fmt.Errorf("%s: %w", spec.Name, err)
	}
	p.Blast = blastOf(p.Layers, snap)
	if len(p.Blast.Gateways) == 0 {
		p.Warnings = append(p.Warnings, "No gateway is connected: nothing enforces this until one is.")
	}
	return p, nil
}

// leaseOf applies the default and the bounds of a lease.
func leaseOf(spec Spec, ttl time.Duration) (time.Duration, error) {
	switch {
	case ttl == 0:
		return spec.DefaultTTL, nil
	case ttl < leastLease || ttl > spec.MaxTTL:
		return 0, InvalidParam("ttl", "is %s: %s takes %s to %s", ttl, spec.Name, leastLease, spec.MaxTTL)
	default:
		return ttl, nil
	}
}

// diffOf merges the layers in place of those in the way. What does not merge is
// a fault of the parameters: it names something that is not in the policy.
func diffOf(layers []Layer, ttl time.Duration, snap Snapshot) ([]policy.Change, error) {
	var overrides []policy.Override
	for _, o := range snap.Overrides {
		if len(leasedBy(layers, []policy.Override{o}, snap.Now)) == 0 {
			overrides = append(overrides, o)
		}
	}
	for i, l := range layers {
		overrides = append(overrides, policy.Override{
			ID: fmt.Sprintf("plan-%d", i), Path: l.Path, Value: l.Value, Expires: snap.Now.Add(ttl),
		})
	}
	after, err := policy.Merge(snap.Base, overrides, snap.Now)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidParams, err)
	}
	changes := policy.Diff(snap.Effective, after)
	if changes == nil {
		changes = []policy.Change{}
	}
	return changes, nil
}

// Choices lists the values that parameters of each kind can take in the policy
// in force: "dependency", "route", "tenant" and "limit_target".
func (e *Engine) Choices(ctx context.Context) (map[string][]string, error) {
	snap, err := e.snapshot(ctx)
	if err != nil {
		return nil, fmt.Errorf("read choices: %w", err)
	}
	doc := snap.Effective
	c := map[string][]string{
		"dependency": Names(doc.Dependencies), "route": Names(doc.Routes), "tenant": Names(doc.Tenants),
	}
	c["limit_target"] = LimitTargets(doc)
	return c, nil
}
