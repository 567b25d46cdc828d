package httpapi

import (
	"context"
	"fmt"

	"github.com/gin-gonic/gin"

	"holdfast/server/alert"
	"holdfast/server/identity"
	"holdfast/server/incident"
	"holdfast/server/internal/httpapi/gen"
)

const (
	detailAlerts      = 200
	detailSuggestions = 4
)

func raw(ctx context.Context) []byte {
	if c, ok := ctx.(*gin.Context); ok {
		b, _ := c.Get(rawKey)
		body, _ := b.([]byte)
		return body
	}
	return nil
}

func (a *handlers) ReceiveAlertmanager(ctx context.Context, _ gen.ReceiveAlertmanagerRequestObject) (gen.ReceiveAlertmanagerResponseObject, error) {
	p, err := identity.RequireToken(ctx, identity.TokenHook)
	if err != nil {
		return nil, err
	}
	n, err := alert.ParseAlertmanager(raw(ctx), p.Name)
	if err != nil {
		return nil, err
	}
	rc, err := a.Alerts.Accept(ctx, n)
	return gen.ReceiveAlertmanager200JSONResponse{
		Incident: text(rc.Incident), Number: number(rc.Number), New: rc.New, Updated: rc.Updated,
		Resolved: rc.Resolved, Duplicate: rc.Duplicate, Stale: rc.Stale,
	}, err
}

func (a *handlers) ListAlerts(ctx context.Context, r gen.ListAlertsRequestObject) (gen.ListAlertsResponseObject, error) {
	before, err := numberCursor(r.Params.Cursor)
	if err != nil {
		return nil, err
	}
	limit := pageLimit(r.Params.Limit)
	items, err := a.Alerts.Alerts(ctx, before, limit)
	if err != nil {
		return nil, err
	}
	out := gen.ListAlerts200JSONResponse{Items: convert(items, toAlert)}
	if len(items) > 0 {
		out.Next = nextNumber(len(items) == limit, items[len(items)-1].ID)
	}
	return out, nil
}

func (a *handlers) ListIncidents(ctx context.Context, r gen.ListIncidentsRequestObject) (gen.ListIncidentsResponseObject, error) {
	before, err := numberCursor(r.Params.Cursor)
	if err != nil {
		return nil, err
	}
	f := incident.Filter{Open: value(r.Params.Open), Before: before, Limit: pageLimit(r.Params.Limit)}
	items, err := a.Incidents.List(ctx, f)
	if err != nil {
		return nil, err
	}
	out := gen.ListIncidents200JSONResponse{Items: convert(items, toIncident)}
	if len(items) > 0 {
		out.Next = nextNumber(len(items) == f.Limit, items[len(items)-1].Number)
	}
	return out, nil
}

func (a *handlers) GetIncident(ctx context.Context, r gen.GetIncidentRequestObject) (gen.GetIncidentResponseObject, error) {
	in, err := a.Incidents.Get(ctx, r.Id)
	if err != nil {
		return nil, err
	}
	members, err := a.Alerts.Members(ctx, in.ID, detailAlerts)
	if err != nil {
		return nil, err
	}
	runs, err := a.Actions.ForIncident(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	suggestions, err := a.suggest(ctx, in, members)
	if err != nil {
		return nil, err
	}
	return gen.GetIncident200JSONResponse{
		Incident: toIncident(in), Alerts: convert(members, toAlert), Runs: convert(runs, a.toRun), Suggestions: suggestions,
		Runbooks: a.suggestRunbooks(in, members),
	}, nil
}

// suggest proposes actions for the newest firing member of an incident that is not over.
func (a *handlers) suggest(ctx context.Context, in incident.Incident, members []alert.Occurrence) ([]gen.Suggestion, error) {
	if in.Status == incident.StatusResolved || len(members) == 0 {
		return []gen.Suggestion{}, nil
	}
	found, err := a.Actions.Suggest(ctx, members[0].Labels, members[0].Annotations, detailSuggestions)
	if err != nil {
		return nil, fmt.Errorf("suggest actions: %w", err)
	}
	out := make([]gen.Suggestion, 0, len(found))
	for _, s := range found {
		out = append(out, gen.Suggestion{Action: s.Action, Title: s.Title, Params: object(s.Params), Why: s.Why})
	}
	return out, nil
}

func (a *handlers) GetTimeline(ctx context.Context, r gen.GetTimelineRequestObject) (gen.GetTimelineResponseObject, error) {
	after, err := numberCursor(r.Params.Cursor)
	if err != nil {
		return nil, err
	}
	limit := pageLimit(r.Params.Limit)
	items, err := a.Incidents.Timeline(ctx, r.Id, after, limit)
	if err != nil {
		return nil, err
	}
	out := gen.GetTimeline200JSONResponse{Items: convert(items, toEntry)}
	if len(items) > 0 {
		out.Next = nextNumber(len(items) == limit, items[len(items)-1].ID)
	}
	return out, nil
}

func (a *handlers) AddNote(ctx context.Context, r gen.AddNoteRequestObject) (gen.AddNoteResponseObject, error) {
	return gen.AddNote204Response{}, a.Incidents.AddNote(ctx, r.Id, r.Body.Text)
}

func (a *handlers) AcknowledgeIncident(ctx context.Context, r gen.AcknowledgeIncidentRequestObject) (gen.AcknowledgeIncidentResponseObject, error) {
	return gen.AcknowledgeIncident204Response{}, a.Incidents.Acknowledge(ctx, r.Id)
}

func (a *handlers) ResolveIncident(ctx context.Context, r gen.ResolveIncidentRequestObject) (gen.ResolveIncidentResponseObject, error) {
	var res incident.Resolution
	if r.Body != nil {
		res = incident.Resolution{Force: value(r.Body.Force), Reason: value(r.Body.Reason)}
	}
	return gen.ResolveIncident204Response{}, a.Incidents.Resolve(ctx, r.Id, res)
}
