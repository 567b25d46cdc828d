package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"holdfast/server/api/client"
)

// errCredentials marks a missing or refused token: never a reason to allow.
var errCredentials = errors.New("check HOLDFAST_TOKEN")

// maxAnswer bounds what is read of an answer.
const maxAnswer = 4 << 20

type askFunc func(context.Context, client.ChangeRequest) (*client.ChangeDecision, error)

// conn is a connection to the server that retries what may pass by itself.
type conn struct {
	api   *client.Client
	pause func(context.Context, time.Duration) error
}

func (a *app) connect() (*conn, error) {
	if a.url == "" {
		return nil, exitf(exitUsage, "no server: set HOLDFAST_URL or --url, such as https://holdfast.example.com")
	}
	u, err := url.Parse(a.url)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil {
		return nil, exitf(exitUsage, "HOLDFAST_URL: want http or https with a host and no user, such as https://holdfast.example.com")
	}
	if a.token == "" {
		return nil, &exitError{code: exitUsage, err: fmt.Errorf("no token: %w (make one with 'holdfast token create --kind ci --name NAME')", errCredentials)}
	}
	hc := &http.Client{
		Timeout: a.timeout,
		// A redirect would carry the token to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	auth := func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+a.token)
		return nil
	}
	api, err := client.NewClient(strings.TrimRight(a.url, "/"), client.WithHTTPClient(hc), client.WithRequestEditorFn(auth))
	if err != nil {
		return nil, exitf(exitUsage, "HOLDFAST_URL: %w", err)
	}
	return &conn{api: api, pause: a.pause}, nil
}

func (c *conn) check(ctx context.Context, req client.ChangeRequest) (*client.ChangeDecision, error) {
	return fetch[client.ChangeDecision](ctx, c, func() (*http.Response, error) { return c.api.CheckChange(ctx, req) })
}

func (c *conn) claim(ctx context.Context, req client.ChangeRequest) (*client.ChangeDecision, error) {
	return fetch[client.ChangeDecision](ctx, c, func() (*http.Response, error) { return c.api.ClaimChange(ctx, req) })
}

// fetch calls until the server gives a final answer, at most four times; every
// call of this program may be repeated, since the server knows the run id.
func fetch[T any](ctx context.Context, c *conn, call func() (*http.Response, error)) (*T, error) {
	var last error
	for try := range 4 {
		if try > 0 {
			if err := c.pause(ctx, jittered(500*time.Millisecond<<try)); err != nil {
				break
			}
		}
		v, again, err := attempt[T](call)
		if !again {
			return v, err
		}
		last = err
	}
	if last == nil {
		last = exitf(exitUnreachable, "interrupted: %w", ctx.Err())
	}
	return nil, last
}

// attempt makes one call; again says that asking once more may help.
func attempt[T any](call func() (*http.Response, error)) (v *T, again bool, err error) {
	resp, err := call()
	if err != nil {
		return nil, true, exitf(exitUnreachable, "cannot reach the server: %w", redact(err))
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, true, exitf(exitUnreachable, "the answer broke off: %w", redact(err))
	}
	if resp.StatusCode >= 300 {
		return nil, resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 500, problemError(resp.StatusCode, body)
	}
	v = new(T)
	if err := json.Unmarshal(body, v); err != nil {
		return nil, false, exitf(exitUnreachable, "the answer is not holdfast's (is HOLDFAST_URL right?): %w", err)
	}
	return v, false, nil
}

// problemError turns a problem document into an error with the right exit code.
func problemError(status int, body []byte) error {
	var p client.Problem
	text := http.StatusText(status)
	if json.Unmarshal(body, &p) == nil && p.Title != "" {
		text = p.Title
		if p.Detail != nil && *p.Detail != "" {
			text += ": " + *p.Detail
		}
		if p.Errors != nil {
			for _, e := range *p.Errors {
				text += fmt.Sprintf("; %s: %s", e.Path, e.Message)
			}
		}
	}
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return &exitError{code: exitUnreachable, err: fmt.Errorf("%s: %w", text, errCredentials)}
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge:
		return exitf(exitUsage, "%s", text)
	case http.StatusNotFound, http.StatusConflict, http.StatusGone, http.StatusPreconditionFailed:
		return exitf(exitDenied, "%s", text)
	default:
		return exitf(exitUnreachable, "the server answered %d: %s", status, text)
	}
}

// redact drops the URL from transport errors: a proxy's password may stand in it.
func redact(err error) error {
	if ue, ok := errors.AsType[*url.Error](err); ok {
		return ue.Err
	}
	return err
}
