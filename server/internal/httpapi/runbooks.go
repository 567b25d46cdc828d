package httpapi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/gin-gonic/gin"

	"holdfast/runbooks"
	"holdfast/server/alert"
	"holdfast/server/incident"
	"holdfast/server/internal/httpapi/gen"
)

func (a *handlers) ListRunbooks(ctx context.Context, _ gen.ListRunbooksRequestObject) (gen.ListRunbooksResponseObject, error) {
	choices, err := a.choices(ctx)
	if err != nil {
		return nil, err
	}
	return gen.ListRunbooks200JSONResponse{Items: convert(a.Runbooks.Runbooks(), func(b runbooks.Runbook) gen.Runbook {
		return toRunbook(b, choices)
	})}, nil
}

func (a *handlers) GetRunbook(ctx context.Context, r gen.GetRunbookRequestObject) (gen.GetRunbookResponseObject, error) {
	b, err := a.Runbooks.Runbook(r.Id)
	if err != nil {
		return nil, err
	}
	choices, err := a.choices(ctx)
	if err != nil {
		return nil, err
	}
	return gen.GetRunbook200JSONResponse(toRunbook(b, choices)), nil
}

// choices are the values that parameters of each kind can take now: those of the
// policy in force and of the catalogue.
func (a *handlers) choices(ctx context.Context) (map[string][]string, error) {
	choices, err := a.Actions.Choices(ctx)
	if err != nil {
		return nil, fmt.Errorf("choices of runbook parameters: %w", err)
	}
	catalogue := a.Changes.Catalogue()
	choices["service"] = slices.Sorted(maps.Keys(catalogue.Services))
	choices["environment"] = slices.Sorted(maps.Keys(catalogue.Environments))
	return choices, nil
}

func (a *handlers) ListRunbookRuns(ctx context.Context, r gen.ListRunbookRunsRequestObject) (gen.ListRunbookRunsResponseObject, error) {
	micros, err := numberCursor(r.Params.Cursor)
	if err != nil {
		return nil, err
	}
	f := runbooks.Filter{IncidentID: value(r.Params.Incident), Live: value(r.Params.Live), Limit: pageLimit(r.Params.Limit)}
	if micros > 0 {
		f.Before = time.UnixMicro(micros)
	}
	runs, err := a.Runbooks.List(ctx, f)
	if err != nil {
		return nil, err
	}
	out := gen.ListRunbookRuns200JSONResponse{Items: convert(runs, toRunbookRun)}
	if len(runs) > 0 {
		out.Next = nextNumber(len(runs) == f.Limit, runs[len(runs)-1].StartedAt.UnixMicro())
	}
	return out, nil
}

func (a *handlers) StartRunbook(ctx context.Context, r gen.StartRunbookRequestObject) (gen.StartRunbookResponseObject, error) {
	who, err := actor(ctx)
	if err != nil {
		return nil, err
	}
	id := value(r.Body.Incident)
	if id != "" {
		if _, err := a.Incidents.Get(ctx, id); err != nil {
			return nil, err
		}
	}
	run, err := a.Runbooks.Launch(ctx, runbooks.StartRequest{
		Runbook: r.Body.Runbook, Params: r.Body.Params, IncidentID: id, Actor: who,
		// The key is the caller's own: two people may not meet on one key.
		Key: who.PersonID + ":" + r.Params.IdempotencyKey,
	})
	if errors.Is(err, runbooks.ErrDuplicate) && run.ID != "" {
		return gen.StartRunbook200JSONResponse{RunbookRunJSONResponse: gen.RunbookRunJSONResponse(toRunbookRun(run))}, nil
	}
	return gen.StartRunbook201JSONResponse(toRunbookRun(run)), err
}

func (a *handlers) GetRunbookRun(ctx context.Context, r gen.GetRunbookRunRequestObject) (gen.GetRunbookRunResponseObject, error) {
	run, err := a.Runbooks.Find(ctx, r.Id)
	return gen.GetRunbookRun200JSONResponse{RunbookRunJSONResponse: gen.RunbookRunJSONResponse(toRunbookRun(run))}, err
}

func (a *handlers) AnswerRunbook(ctx context.Context, r gen.AnswerRunbookRequestObject) (gen.AnswerRunbookResponseObject, error) {
	who, err := actor(ctx)
	if err != nil {
		return nil, err
	}
	run, err := a.Runbooks.Answer(ctx, r.Id, runbooks.AnswerRequest{
		Step: r.Body.Step, Attempt: r.Body.Attempt, Answer: r.Body.Answer, Note: value(r.Body.Note), Actor: who,
	})
	return gen.AnswerRunbook200JSONResponse{RunbookRunJSONResponse: gen.RunbookRunJSONResponse(toRunbookRun(run))}, err
}

func (a *handlers) CancelRunbook(ctx context.Context, r gen.CancelRunbookRequestObject) (gen.CancelRunbookResponseObject, error) {
	who, err := actor(ctx)
	if err != nil {
		return nil, err
	}
	run, err := a.Runbooks.Cancel(ctx, r.Id, who)
	return gen.CancelRunbook200JSONResponse{RunbookRunJSONResponse: gen.RunbookRunJSONResponse(toRunbookRun(run))}, err
}

// suggestRunbooks proposes each runbook that a firing alert of an open incident
// names once. What one alert does not fill in, an older one may.
func (a *handlers) suggestRunbooks(in incident.Incident, members []alert.Occurrence) []gen.RunbookSuggestion {
	out := []gen.RunbookSuggestion{}
	if in.Status == incident.StatusResolved {
		return out
	}
	for _, m := range members {
		if m.Status != alert.StatusFiring {
			continue
		}
		for _, s := range a.Runbooks.Suggest(m.Labels, m.Annotations) {
			i := slices.IndexFunc(out, func(known gen.RunbookSuggestion) bool { return known.Runbook == s.Runbook })
			if i < 0 {
				out = append(out, gen.RunbookSuggestion{
					Runbook: s.Runbook, Title: s.Title, Params: map[string]string{}, Missing: append([]string{}, s.Missing...), Why: s.Why,
				})
				i = len(out) - 1
			}
			fillIn(&out[i], s.Params)
		}
	}
	return out
}

// fillIn adds what is not known yet.
func fillIn(s *gen.RunbookSuggestion, params map[string]string) {
	for name, v := range params {
		if s.Params[name] == "" {
			s.Params[name] = v
		}
	}
	s.Missing = slices.DeleteFunc(s.Missing, func(name string) bool { return s.Params[name] != "" })
}

func toRunbook(b runbooks.Runbook, choices map[string][]string) gen.Runbook {
	return gen.Runbook{
		Id: b.ID, Version: b.Version, Title: b.Title, Summary: b.Summary, Owner: text(b.Owner),
		Params: convert(b.Params, func(p runbooks.Param) gen.RunbookParam {
			return gen.RunbookParam{
				Name: p.Name, Kind: gen.RunbookParamKind(p.Kind), Required: p.Required, Default: text(p.Default),
				Help: p.Help, Unit: text(p.Unit), Choices: list(choices[p.Kind]),
			}
		}),
		Steps: convert(b.Steps, toStep),
	}
}

func toStep(s runbooks.Step) gen.RunbookStep {
	out := gen.RunbookStep{
		Id: s.ID, Phase: gen.RunbookStepPhase(s.Phase), Title: s.Title, Kind: gen.RunbookStepKind(s.Kind),
		Command: s.Command, Expect: s.Expect, OnFailure: gen.RunbookStepOnFailure(s.OnFailure),
		Timeout: span(s.Timeout), Action: text(s.Action), Params: mapping(s.Params), Ttl: span(s.TTL),
		Question: text(s.Question), Text: text(s.Text), Wait: span(s.Wait),
	}
	if s.Automatic {
		out.Automatic = &s.Automatic
	}
	if c := s.Criterion; c != nil {
		out.Criterion = &gen.Criterion{Query: c.Query, Is: gen.CriterionIs(c.Is), Value: c.Value, Unit: text(c.Unit)}
	}
	for _, c := range s.Choices {
		out.Choices = appendTo(out.Choices, struct {
			Goto  *string `json:"goto,omitempty"`
			Id    string  `json:"id"`
			Label string  `json:"label"`
		}{text(c.Goto), c.ID, c.Label})
	}
	return out
}

// span leaves a duration of 0 out of the answer.
func span(d time.Duration) *string {
	if d == 0 {
		return nil
	}
	return text(d.String())
}

func toRunbookRun(r runbooks.Run) gen.RunbookRun {
	out := gen.RunbookRun{
		Id: r.ID, Runbook: r.Runbook.ID, Version: r.Runbook.Version, Title: r.Runbook.Title, Params: labelsOf(r.Params),
		Incident: text(r.IncidentID), StartedBy: r.StartedBy.Name, Status: gen.RunbookRunStatus(r.Status), Current: r.Current,
		Steps: make([]gen.RunbookStepState, 0, len(r.Steps)), StartedAt: r.StartedAt.UTC(), EndedAt: moment(r.EndedAt), EndedBy: text(r.EndedBy),
	}
	for i, s := range r.Steps {
		out.Steps = append(out.Steps, gen.RunbookStepState{
			Step: toStep(r.Filled(i)), Status: gen.RunbookStepStateStatus(s.Status), Attempt: s.Attempt,
			StartedAt: moment(s.StartedAt), Deadline: moment(s.Deadline), EndedAt: moment(s.EndedAt), ActionRun: text(s.ActionRun),
			Value: finiteOf(s.Value), Detail: text(s.Detail), Choice: text(s.Choice), By: text(s.By),
			Answers: append([]string{}, r.Answers(i)...),
		})
	}
	return out
}

// serveRunbookSchema gives editors the JSON Schema of a runbook file; it is no secret.
func serveRunbookSchema(c *gin.Context) {
	c.Data(http.StatusOK, "application/schema+json", runbooks.Schema())
}
