package httpapi

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"holdfast/gpuguard/policy"
	"holdfast/server/fleet"
	"holdfast/server/internal/httpapi/gen"
	"holdfast/strict"
)

// overrideJSON is a layer as described.
type overrideJSON struct {
	policy.Override
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
}

type policyJSON struct {
	Lineage          string          `json:"lineage"`
	LineageConfirmed bool            `json:"lineage_confirmed"`
	Revision         int64           `json:"revision"`
	Base             any             `json:"base"`
	Effective        policy.Document `json:"effective"`
	Overrides        []overrideJSON  `json:"overrides"`
}

func (a *handlers) policyView(ctx context.Context, head fleet.Head) (gen.Policy, error) {
	eff, err := a.Fleet.Effective(ctx)
	if err != nil {
		return gen.Policy{}, err
	}
	v := policyJSON{
		Lineage: head.Lineage, LineageConfirmed: head.LineageConfirmed, Revision: head.Revision,
		Base: head.Base, Effective: eff.Document, Overrides: []overrideJSON{},
	}
	for _, o := range head.Overrides {
		v.Overrides = append(v.Overrides, overrideJSON{Override: o, ExpiresAt: moment(o.Expires)})
	}
	return recode[gen.Policy](v)
}

// taggedPolicy is a policy with its revision as ETag, for If-Match.
type taggedPolicy struct{ gen.Policy }

func (a *handlers) GetPolicy(ctx context.Context, _ gen.GetPolicyRequestObject) (gen.GetPolicyResponseObject, error) {
	head, err := a.Fleet.Head(ctx)
	if err != nil {
		return nil, err
	}
	p, err := a.policyView(ctx, head)
	return taggedPolicy{p}, err
}

func (a *handlers) PutPolicy(ctx context.Context, r gen.PutPolicyRequestObject) (gen.PutPolicyResponseObject, error) {
	revision, err := strconv.ParseInt(strings.Trim(strings.TrimPrefix(r.Params.IfMatch, "W/"), `"`), 10, 64)
	// The keeper takes 0 for "whatever is there"; a caller must have read something.
	if err != nil || revision < 1 {
		return nil, badField("If-Match", "send the revision that was read, as in the ETag of GET /api/v1/policy")
	}
	head, err := a.Fleet.PutBase(ctx, raw(ctx), revision)
	if err != nil {
		return nil, err
	}
	p, err := a.policyView(ctx, head)
	return taggedPolicy{p}, err
}

func (a *handlers) ListRevisions(ctx context.Context, r gen.ListRevisionsRequestObject) (gen.ListRevisionsResponseObject, error) {
	before, err := numberCursor(r.Params.Cursor)
	if err != nil {
		return nil, err
	}
	limit := pageLimit(r.Params.Limit)
	items, err := a.Fleet.Revisions(ctx, before, limit)
	if err != nil {
		return nil, err
	}
	out := gen.ListRevisions200JSONResponse{Items: convert(items, toRevision)}
	if len(items) > 0 {
		out.Next = nextNumber(len(items) == limit, items[len(items)-1].Revision)
	}
	return out, nil
}

func (a *handlers) ConfirmLineage(ctx context.Context, _ gen.ConfirmLineageRequestObject) (gen.ConfirmLineageResponseObject, error) {
	return gen.ConfirmLineage204Response{}, a.Fleet.ConfirmLineage(ctx)
}

func (a *handlers) AckPolicy(ctx context.Context, _ gen.AckPolicyRequestObject) (gen.AckPolicyResponseObject, error) {
	var ack policy.Ack
	// A gateway that is newer than the server may say more than is known here.
	if err := strict.DecodeJSON(raw(ctx), &ack); err != nil {
		return nil, fmt.Errorf("%w: %w", fleet.ErrInvalid, err)
	}
	return gen.AckPolicy204Response{}, a.Fleet.Ack(ctx, ack)
}

// gatewayJSON is a gateway as described.
type gatewayJSON struct {
	Name              string                         `json:"name"`
	State             fleet.MemberState              `json:"state"`
	Instance          string                         `json:"instance"`
	Version           string                         `json:"version"`
	Lineage           string                         `json:"lineage"`
	Revision          int64                          `json:"revision"`
	Result            policy.AckResult               `json:"result"`
	Error             string                         `json:"error,omitempty"`
	RejectedRevision  int64                          `json:"rejected_revision,omitempty"`
	ApplySeconds      float64                        `json:"apply_seconds"`
	AckedAt           *time.Time                     `json:"acked_at,omitempty"`
	LastHeardAt       time.Time                      `json:"last_heard_at"`
	InFlight          int64                          `json:"in_flight"`
	ActiveOverrides   []string                       `json:"active_overrides"`
	Breakers          map[string]policy.BreakerState `json:"breakers"`
	RequestsPerSecond *float64                       `json:"requests_per_second"`
	ErrorRatio        *float64                       `json:"error_ratio"`
}

func gatewayView(m fleet.Member) gatewayJSON {
	g := gatewayJSON{
		Name: m.Name, State: m.Standing, Instance: m.Instance, Version: m.Version, Lineage: m.Lineage, Revision: m.Revision,
		Result: m.Result, Error: m.Error, RejectedRevision: m.RejectedRevision, ApplySeconds: m.ApplySeconds,
		AckedAt: moment(m.AckedAt), LastHeardAt: m.LastHeardAt.UTC(), InFlight: m.State.InFlight,
		ActiveOverrides: append([]string{}, m.State.ActiveOverrides...), Breakers: m.State.Breakers,
	}
	if g.Breakers == nil {
		g.Breakers = map[string]policy.BreakerState{}
	}
	r := m.Rates()
	if r.Known {
		g.RequestsPerSecond = &r.PerSecond
	}
	if r.FailedKnown {
		g.ErrorRatio = &r.Failed
	}
	return g
}

func (a *handlers) ListGateways(ctx context.Context, _ gen.ListGatewaysRequestObject) (gen.ListGatewaysResponseObject, error) {
	head, err := a.Fleet.Head(ctx)
	if err != nil {
		return nil, err
	}
	members, err := a.Fleet.Gateways(ctx)
	if err != nil {
		return nil, err
	}
	items, err := recode[[]gen.Gateway](convert(members, gatewayView))
	return gen.ListGateways200JSONResponse{Lineage: head.Lineage, Revision: head.Revision, Items: items}, err
}
