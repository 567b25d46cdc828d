package httpapi

import (
	"context"
	"time"

	"holdfast/server/change"
	"holdfast/server/internal/httpapi/gen"
)

// defaultDuration is the window of a change that states none.
const defaultDuration = 30 * time.Minute

func changeRequest(b gen.ChangeRequest) (change.Request, error) {
	d, err := duration("duration", b.Duration, defaultDuration)
	if err != nil {
		return change.Request{}, err
	}
	kind := change.KindDeploy
	if b.Kind != nil {
		kind = change.Kind(*b.Kind)
	}
	return change.Request{
		Service: b.Service, Environment: b.Environment, Kind: kind, Start: value(b.Start), Duration: d,
		RunID: b.RunId, Summary: value(b.Summary), URL: value(b.Url), Actor: value(b.Actor),
	}, nil
}

func (a *handlers) CheckChange(ctx context.Context, r gen.CheckChangeRequestObject) (gen.CheckChangeResponseObject, error) {
	req, err := changeRequest(*r.Body)
	if err != nil {
		return nil, err
	}
	d, err := a.Changes.Check(ctx, req)
	return gen.CheckChange200JSONResponse(a.toDecision(d, change.Change{})), err
}

func (a *handlers) ClaimChange(ctx context.Context, r gen.ClaimChangeRequestObject) (gen.ClaimChangeResponseObject, error) {
	req, err := changeRequest(*r.Body)
	if err != nil {
		return nil, err
	}
	d, c, err := a.Changes.Claim(ctx, req)
	return gen.ClaimChange200JSONResponse(a.toDecision(d, c)), err
}

func (a *handlers) ListChanges(ctx context.Context, r gen.ListChangesRequestObject) (gen.ListChangesResponseObject, error) {
	p := r.Params
	f := change.Filter{
		Environment: value(p.Environment), Service: value(p.Service), From: value(p.From), To: value(p.To),
		Active: value(p.Active), Before: value(p.Cursor), Limit: pageLimit(p.Limit),
	}
	items, err := a.Changes.List(ctx, f)
	if err != nil {
		return nil, err
	}
	out := gen.ListChanges200JSONResponse{Items: convert(items, toChange)}
	if len(items) == f.Limit {
		out.Next = text(items[len(items)-1].Cursor())
	}
	return out, nil
}

func (a *handlers) GetChange(ctx context.Context, r gen.GetChangeRequestObject) (gen.GetChangeResponseObject, error) {
	c, err := a.Changes.Get(ctx, r.Id)
	return gen.GetChange200JSONResponse{ChangeJSONResponse: gen.ChangeJSONResponse(toChange(c))}, err
}

func (a *handlers) ConfirmChange(ctx context.Context, r gen.ConfirmChangeRequestObject) (gen.ConfirmChangeResponseObject, error) {
	var hash string
	if r.Body != nil {
		hash = value(r.Body.Hash)
	}
	if hash == "" { // nothing to compare with: what stands there now is what is confirmed
		c, err := a.Changes.Get(ctx, r.Id)
		if err != nil {
			return nil, err
		}
		hash = c.ParamsHash
	}
	c, err := a.Changes.Confirm(ctx, r.Id, hash)
	return gen.ConfirmChange200JSONResponse{ChangeJSONResponse: gen.ChangeJSONResponse(toChange(c))}, err
}

func (a *handlers) RejectChange(ctx context.Context, r gen.RejectChangeRequestObject) (gen.RejectChangeResponseObject, error) {
	c, err := a.Changes.Reject(ctx, r.Id)
	return gen.RejectChange200JSONResponse{ChangeJSONResponse: gen.ChangeJSONResponse(toChange(c))}, err
}

func holder(run string, token *int64) change.Holder {
	return change.Holder{RunID: run, FencingToken: value(token)}
}

func (a *handlers) StartChange(ctx context.Context, r gen.StartChangeRequestObject) (gen.StartChangeResponseObject, error) {
	c, err := a.Changes.Start(ctx, r.Id, holder(r.Body.RunId, r.Body.FencingToken))
	return gen.StartChange200JSONResponse{ChangeJSONResponse: gen.ChangeJSONResponse(toChange(c))}, err
}

func (a *handlers) FinishChange(ctx context.Context, r gen.FinishChangeRequestObject) (gen.FinishChangeResponseObject, error) {
	c, err := a.Changes.Finish(ctx, r.Id, holder(r.Body.RunId, r.Body.FencingToken), change.Status(r.Body.Result))
	return gen.FinishChange200JSONResponse{ChangeJSONResponse: gen.ChangeJSONResponse(toChange(c))}, err
}

func (a *handlers) ExtendChange(ctx context.Context, r gen.ExtendChangeRequestObject) (gen.ExtendChangeResponseObject, error) {
	d, err := duration("duration", &r.Body.Duration, 0)
	if err != nil {
		return nil, err
	}
	c, err := a.Changes.Extend(ctx, r.Id, holder(r.Body.RunId, r.Body.FencingToken), d)
	return gen.ExtendChange200JSONResponse{ChangeJSONResponse: gen.ChangeJSONResponse(toChange(c))}, err
}

func (a *handlers) CancelChange(ctx context.Context, r gen.CancelChangeRequestObject) (gen.CancelChangeResponseObject, error) {
	c, err := a.Changes.Cancel(ctx, r.Id, holder(r.Body.RunId, r.Body.FencingToken))
	return gen.CancelChange200JSONResponse{ChangeJSONResponse: gen.ChangeJSONResponse(toChange(c))}, err
}

func (a *handlers) ListFreezes(ctx context.Context, _ gen.ListFreezesRequestObject) (gen.ListFreezesResponseObject, error) {
	items, err := a.Changes.Freezes(ctx, time.Now(), time.Time{})
	return gen.ListFreezes200JSONResponse{Items: convert(items, toFreeze)}, err
}

func (a *handlers) CreateFreeze(ctx context.Context, r gen.CreateFreezeRequestObject) (gen.CreateFreezeResponseObject, error) {
	b := r.Body
	f, err := a.Changes.CreateFreeze(ctx, change.Freeze{
		Reason: b.Reason, Services: value(b.Services), Environments: value(b.Environments),
		Kinds: convert(value(b.Kinds), func(k gen.ChangeKind) change.Kind { return change.Kind(k) }),
		Start: b.Start, End: value(b.End),
	})
	return gen.CreateFreeze201JSONResponse(toFreeze(f)), err
}

func (a *handlers) DeleteFreeze(ctx context.Context, r gen.DeleteFreezeRequestObject) (gen.DeleteFreezeResponseObject, error) {
	return gen.DeleteFreeze204Response{}, a.Changes.DeleteFreeze(ctx, r.Id)
}

func (a *handlers) ListServices(_ context.Context, _ gen.ListServicesRequestObject) (gen.ListServicesResponseObject, error) {
	out, err := recode[gen.Catalogue](catalogueView(a.Changes.Catalogue()))
	return gen.ListServices200JSONResponse(out), err
}
