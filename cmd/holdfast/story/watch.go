package story

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"time"

	"holdfast/server/api/client"
)

// errRefused says that the server answered with a problem.
var errRefused = errors.New("the server refused")

// viewer reads the server as a person with a console does.
type viewer struct{ api *client.ClientWithResponses }

// login trades a one-time link for a session.
func login(ctx context.Context, base, link string) (viewer, error) {
	u, err := url.Parse(link)
	if err != nil {
		return viewer{}, fmt.Errorf("login link: %w", err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		return viewer{}, err
	}
	sameOrigin := func(_ context.Context, r *http.Request) error {
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		return nil
	}
	api, err := client.NewClientWithResponses(base,
		client.WithHTTPClient(&http.Client{Jar: jar, Timeout: 5 * time.Second}), client.WithRequestEditorFn(sameOrigin))
	if err != nil {
		return viewer{}, err
	}
	answer, err := api.CreateSessionWithResponse(ctx, client.CreateSessionJSONRequestBody{Code: u.Query().Get("code")})
	if err != nil {
		return viewer{}, fmt.Errorf("log in: %w", err)
	}
	return viewer{api}, problem("log in", answer.ApplicationproblemJSONDefault)
}

// problem turns a problem document into an error.
func problem(what string, p *client.Problem) error {
	switch {
	case p == nil:
		return nil
	case p.Detail != nil:
		return fmt.Errorf("%s: %w: %s: %s", what, errRefused, p.Title, *p.Detail)
	default:
		return fmt.Errorf("%s: %w: %s", what, errRefused, p.Title)
	}
}

// incident finds the oldest incident of a service opened since a time; nil when there is none yet.
func (v viewer) incident(ctx context.Context, service string, since time.Time) (*client.Incident, error) {
	answer, err := v.api.ListIncidentsWithResponse(ctx, &client.ListIncidentsParams{})
	if err != nil {
		return nil, err
	}
	if answer.JSON200 == nil {
		return nil, problem("list incidents", answer.ApplicationproblemJSONDefault)
	}
	var found *client.Incident
	for _, in := range answer.JSON200.Items { // newest first
		if in.Service != nil && *in.Service == service && !in.OpenedAt.Before(since) {
			found = &in
		}
	}
	return found, nil
}

// runs lists the action runs accepted since a time, oldest first.
func (v viewer) runs(ctx context.Context, since time.Time) ([]client.ActionRun, error) {
	answer, err := v.api.ListRunsWithResponse(ctx, &client.ListRunsParams{})
	if err != nil {
		return nil, err
	}
	if answer.JSON200 == nil {
		return nil, problem("list runs", answer.ApplicationproblemJSONDefault)
	}
	runs := slices.DeleteFunc(answer.JSON200.Items, func(r client.ActionRun) bool { return r.AcceptedAt.Before(since) })
	slices.Reverse(runs)
	return runs, nil
}

// deploy enters a finished deploy in the calendar, as a pipeline does. Only an
// allowed one is started; the decision says which it was.
func deploy(ctx context.Context, base, token, service, environment, run, summary string) (client.Verdict, error) {
	auth := func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+token)
		return nil
	}
	api, err := client.NewClientWithResponses(base, client.WithHTTPClient(&http.Client{Timeout: 10 * time.Second}), client.WithRequestEditorFn(auth))
	if err != nil {
		return "", err
	}
	length := "10m"
	claim, err := api.ClaimChangeWithResponse(ctx, client.ClaimChangeJSONRequestBody{
		Service: service, Environment: environment, RunId: run, Summary: &summary, Duration: &length,
	})
	if err != nil {
		return "", fmt.Errorf("claim: %w", err)
	}
	if claim.JSON200 == nil {
		return "", problem("claim", claim.ApplicationproblemJSONDefault)
	}
	d := *claim.JSON200
	if d.Decision != client.Allow || d.ChangeId == nil {
		return d.Decision, nil
	}
	started, err := api.StartChangeWithResponse(ctx, *d.ChangeId, client.StartChangeJSONRequestBody{RunId: run, FencingToken: d.FencingToken})
	if err != nil {
		return d.Decision, fmt.Errorf("start: %w", err)
	}
	if err := problem("start", started.ApplicationproblemJSONDefault); err != nil {
		return d.Decision, err
	}
	done, err := api.FinishChangeWithResponse(ctx, *d.ChangeId, client.FinishChangeJSONRequestBody{
		RunId: run, FencingToken: d.FencingToken, Result: client.FinishChangeJSONBodyResultSucceeded,
	})
	if err != nil {
		return d.Decision, fmt.Errorf("finish: %w", err)
	}
	return d.Decision, problem("finish", done.ApplicationproblemJSONDefault)
}
