package httpapi

import (
	"context"
	"time"

	"holdfast/server/audit"
	"holdfast/server/identity"
	"holdfast/server/internal/httpapi/gen"
)

// loginLinkTTL is how long a one-time console login made here is good for.
const loginLinkTTL = 15 * time.Minute

func (a *handlers) GetMe(ctx context.Context, _ gen.GetMeRequestObject) (gen.GetMeResponseObject, error) {
	me, err := a.me(ctx)
	return gen.GetMe200JSONResponse(me), err
}

func (a *handlers) me(ctx context.Context) (gen.Me, error) {
	p, ok := identity.From(ctx)
	if !ok {
		return gen.Me{}, identity.ErrUnauthenticated
	}
	me := gen.Me{Kind: gen.MeKind(p.Kind), Id: text(p.PersonID), Handle: text(p.Handle), Name: p.Name, Role: string(p.Role)}
	if p.PersonID != "" {
		person, err := a.Identity.Person(ctx, p.PersonID)
		if err != nil {
			return me, err
		}
		linked := person.SlackUser != ""
		me.SlackLinked, me.Handle = &linked, text(person.Handle)
	}
	return me, nil
}

func (a *handlers) LinkSlack(ctx context.Context, r gen.LinkSlackRequestObject) (gen.LinkSlackResponseObject, error) {
	_, err := a.Identity.ConsumeSlackLink(ctx, r.Body.Code)
	return gen.LinkSlack204Response{}, err
}

func (a *handlers) ListPeople(ctx context.Context, _ gen.ListPeopleRequestObject) (gen.ListPeopleResponseObject, error) {
	people, err := a.Identity.People(ctx)
	return gen.ListPeople200JSONResponse{Items: convert(people, toPerson)}, err
}

func (a *handlers) CreatePerson(ctx context.Context, r gen.CreatePersonRequestObject) (gen.CreatePersonResponseObject, error) {
	p, err := a.Identity.CreatePerson(ctx, r.Body.Handle, r.Body.Name, identity.Role(r.Body.Role))
	return gen.CreatePerson201JSONResponse(toPerson(p)), err
}

func (a *handlers) UpdatePerson(ctx context.Context, r gen.UpdatePersonRequestObject) (gen.UpdatePersonResponseObject, error) {
	edit := identity.PersonEdit{Name: r.Body.Name, Disabled: r.Body.Disabled, UnlinkSlack: value(r.Body.UnlinkSlack)}
	if r.Body.Role != nil {
		role := identity.Role(*r.Body.Role)
		edit.Role = &role
	}
	p, err := a.Identity.UpdatePerson(ctx, r.Id, edit)
	return gen.UpdatePerson200JSONResponse(toPerson(p)), err
}

func (a *handlers) CreateLoginLink(ctx context.Context, r gen.CreateLoginLinkRequestObject) (gen.CreateLoginLinkResponseObject, error) {
	code, err := a.Identity.IssueLoginLink(ctx, r.Id, loginLinkTTL)
	if err != nil {
		return nil, err
	}
	return gen.CreateLoginLink201JSONResponse{Url: a.loginURL(code), ExpiresAt: time.Now().Add(loginLinkTTL).UTC()}, nil
}

func (a *handlers) loginURL(code string) string {
	u := a.PublicURL.JoinPath("login")
	q := u.Query()
	q.Set("code", code)
	u.RawQuery = q.Encode()
	return u.String()
}

func (a *handlers) ListTokens(ctx context.Context, _ gen.ListTokensRequestObject) (gen.ListTokensResponseObject, error) {
	tokens, err := a.Identity.Tokens(ctx)
	return gen.ListTokens200JSONResponse{Items: convert(tokens, toToken)}, err
}

func (a *handlers) CreateToken(ctx context.Context, r gen.CreateTokenRequestObject) (gen.CreateTokenResponseObject, error) {
	req := identity.TokenRequest{Kind: identity.TokenKind(r.Body.Kind), Name: r.Body.Name, Scopes: value(r.Body.Scopes)}
	if r.Body.ExpiresAt != nil {
		req.TTL = time.Until(*r.Body.ExpiresAt)
		if req.TTL <= 0 {
			return nil, badField("expires_at", "lies in the past")
		}
	}
	plain, t, err := a.Identity.CreateToken(ctx, req)
	return gen.CreateToken201JSONResponse{Token: toToken(t), Secret: plain}, err
}

func (a *handlers) RevokeToken(ctx context.Context, r gen.RevokeTokenRequestObject) (gen.RevokeTokenResponseObject, error) {
	return gen.RevokeToken204Response{}, a.Identity.RevokeToken(ctx, r.Id)
}

func (a *handlers) ListAudit(ctx context.Context, r gen.ListAuditRequestObject) (gen.ListAuditResponseObject, error) {
	before, err := numberCursor(r.Params.Cursor)
	if err != nil {
		return nil, err
	}
	limit := pageLimit(r.Params.Limit)
	items, err := a.Audit.AuditEntries(ctx, before, limit)
	if err != nil {
		return nil, err
	}
	head, err := a.Audit.Head(ctx)
	if err != nil {
		return nil, err
	}
	out := gen.ListAudit200JSONResponse{Items: convert(items, toAuditEntry), Head: &gen.AuditHead{Seq: head.Seq, Hash: head.Hash}}
	if len(items) > 0 {
		out.Next = nextNumber(len(items) == limit, items[len(items)-1].ID)
	}
	return out, nil
}

func toAuditEntry(e audit.Linked) gen.AuditEntry {
	out := gen.AuditEntry{
		Id: e.ID, At: e.At.UTC(), ActorId: text(e.ActorID), Actor: e.ActorName, Channel: e.Channel, Verb: e.Verb,
		Subject: e.Subject, Decision: gen.AuditEntryDecision(e.Decision), Reason: text(e.Reason), Seq: number(e.Seq), Hash: text(e.Hash),
	}
	if len(e.Details) > 0 {
		out.Details = &e.Details
	}
	return out
}
