package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"holdfast/actions"
	"holdfast/server/identity"
	"holdfast/server/internal/httpapi/gen"
)

func (a *handlers) ListActions(ctx context.Context, _ gen.ListActionsRequestObject) (gen.ListActionsResponseObject, error) {
	choices, err := a.Actions.Choices(ctx)
	if err != nil {
		return nil, err
	}
	items := make([]gen.ActionSpec, 0, 8)
	for _, s := range a.Actions.Specs() {
		spec, err := recode[gen.ActionSpec](s)
		if err != nil {
			return nil, err
		}
		spec.DefaultTtl, spec.MaxTtl = s.DefaultTTL.String(), s.MaxTTL.String()
		for i, p := range s.Params {
			spec.Params[i].Choices = list(choices[p.Kind])
		}
		items = append(items, spec)
	}
	return gen.ListActions200JSONResponse{Items: items}, nil
}

func (a *handlers) PlanAction(ctx context.Context, r gen.PlanActionRequestObject) (gen.PlanActionResponseObject, error) {
	ttl, err := duration("ttl", r.Body.Ttl, 0)
	if err != nil {
		return nil, err
	}
	params, err := json.Marshal(r.Body.Params)
	if err != nil {
		return nil, fmt.Errorf("parameters: %w", err)
	}
	p, err := a.Actions.Plan(ctx, r.Name, params, ttl)
	if err != nil {
		return nil, err
	}
	out, err := toPlan(p)
	return gen.PlanAction200JSONResponse(out), err
}

// toPlan shows empty lists as [], as the description promises.
func toPlan(p actions.Plan) (gen.Plan, error) {
	out, err := recode[gen.Plan](p)
	if err != nil {
		return out, err
	}
	out.Params = object(p.Params)
	out.Warnings = notNil(out.Warnings)
	out.Leased = notNil(out.Leased)
	out.Layers = notNil(out.Layers)
	out.Diff = notNil(out.Diff)
	out.Blast.Routes = notNil(out.Blast.Routes)
	out.Blast.Gateways = notNil(out.Blast.Gateways)
	return out, nil
}

func notNil[T any](v []T) []T {
	if v == nil {
		return []T{}
	}
	return v
}

// actor is the person who asks; actions are a person's, never a service token's.
func actor(ctx context.Context) (actions.Actor, error) {
	p, err := identity.RequirePerson(ctx, identity.RoleViewer)
	return actions.Actor{PersonID: p.PersonID, Name: p.Name, Channel: string(p.Channel)}, err
}

func (a *handlers) RunAction(ctx context.Context, r gen.RunActionRequestObject) (gen.RunActionResponseObject, error) {
	who, err := actor(ctx)
	if err != nil {
		return nil, err
	}
	ttl, err := duration("ttl", r.Body.Ttl, 0)
	if err != nil {
		return nil, err
	}
	params, err := json.Marshal(r.Body.Params)
	if err != nil {
		return nil, fmt.Errorf("parameters: %w", err)
	}
	if id := value(r.Body.Incident); id != "" {
		if _, err := a.Incidents.Get(ctx, id); err != nil {
			return nil, err
		}
	}
	run, err := a.Actions.Run(ctx, actions.Request{
		Action: r.Name, Params: params, TTL: ttl, Reason: r.Body.Reason, IncidentID: value(r.Body.Incident),
		// The key is the caller's own: two people may not meet on one key.
		Actor: who, Key: who.PersonID + ":" + r.Params.IdempotencyKey, PlanHash: value(r.Body.PlanHash),
	})
	if errors.Is(err, actions.ErrDuplicate) && run.ID != "" {
		return gen.RunAction200JSONResponse(a.toRun(run)), nil
	}
	return gen.RunAction202JSONResponse(a.toRun(run)), err
}

func (a *handlers) ListRuns(ctx context.Context, r gen.ListRunsRequestObject) (gen.ListRunsResponseObject, error) {
	if value(r.Params.Live) {
		runs, err := a.Actions.Live(ctx, "")
		return gen.ListRuns200JSONResponse{Items: convert(runs, a.toRun)}, err
	}
	micros, err := numberCursor(r.Params.Cursor)
	if err != nil {
		return nil, err
	}
	var before time.Time
	if micros > 0 {
		before = time.UnixMicro(micros)
	}
	limit := pageLimit(r.Params.Limit)
	runs, err := a.Actions.List(ctx, before, limit)
	if err != nil {
		return nil, err
	}
	out := gen.ListRuns200JSONResponse{Items: convert(runs, a.toRun)}
	if len(runs) > 0 {
		out.Next = nextNumber(len(runs) == limit, runs[len(runs)-1].AcceptedAt.UnixMicro())
	}
	return out, nil
}

func (a *handlers) GetRun(ctx context.Context, r gen.GetRunRequestObject) (gen.GetRunResponseObject, error) {
	run, err := a.Actions.Find(ctx, r.Id)
	return gen.GetRun200JSONResponse{ActionRunJSONResponse: gen.ActionRunJSONResponse(a.toRun(run))}, err
}

func (a *handlers) RevertRun(ctx context.Context, r gen.RevertRunRequestObject) (gen.RevertRunResponseObject, error) {
	who, err := actor(ctx)
	if err != nil {
		return nil, err
	}
	run, err := a.Actions.Revert(ctx, r.Id, who)
	return gen.RevertRun200JSONResponse{ActionRunJSONResponse: gen.ActionRunJSONResponse(a.toRun(run))}, err
}

func (a *handlers) RenewRun(ctx context.Context, r gen.RenewRunRequestObject) (gen.RenewRunResponseObject, error) {
	who, err := actor(ctx)
	if err != nil {
		return nil, err
	}
	ttl, err := duration("ttl", &r.Body.Ttl, 0)
	if err != nil {
		return nil, err
	}
	run, err := a.Actions.Renew(ctx, r.Id, who, ttl)
	return gen.RenewRun200JSONResponse{ActionRunJSONResponse: gen.ActionRunJSONResponse(a.toRun(run))}, err
}
