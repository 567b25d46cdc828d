package controlclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"holdfast/strict"
)

var (
	errSilent    = fmt.Errorf("the server was silent for %s", silenceLimit)
	errStreamEnd = errors.New("the server closed the stream")
)

// streamLoop holds a stream until ctx ends. A stream that delivered something
// starts the waiting anew, so that a server restart is followed at once.
func (c *Client) streamLoop(ctx context.Context) {
	var wait backoff
	for ctx.Err() == nil {
		heard, err := c.stream(ctx)
		if ctx.Err() != nil {
			break
		}
		if heard {
			wait.reset()
		}
		c.linkDown(err)
		if !sleep(ctx, wait.next()) {
			break
		}
	}
	c.setStatus(func(s *Status) { s.Connected = false })
}

// linkDown notes and logs why the stream ended, once for each new reason.
func (c *Client) linkDown(err error) {
	reason := err.Error()
	repeated := false
	c.setStatus(func(s *Status) {
		repeated = s.LastError == reason && !s.Connected
		s.Connected, s.LastError = false, reason
	})
	level := slog.LevelWarn
	if repeated {
		level = slog.LevelDebug
	}
	c.opts.Logger.Log(context.Background(), level, "policy stream is down: the policy in force stays", "error", reason)
}

// stream opens one stream and reads it to its end. It says whether anything
// was heard on it, and always returns why it ended.
func (c *Client) stream(parent context.Context) (heard bool, err error) {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	watchdog := time.AfterFunc(silenceLimit, func() { cancel(errSilent) })
	defer watchdog.Stop()

	resp, err := c.open(ctx)
	if err != nil {
		return false, silence(ctx, err)
	}
	defer resp.Body.Close()
	c.setStatus(func(s *Status) { s.Connected, s.LastError = true, "" })
	c.opts.Logger.Info("policy stream is open")
	reader := newEventReader(resp.Body, func() {
		heard = true
		watchdog.Reset(silenceLimit)
		c.setStatus(func(s *Status) { s.LastHeard = c.opts.Clock() })
	})
	for {
		e, err := reader.next()
		switch {
		case errors.Is(err, io.EOF):
			return heard, errStreamEnd
		case err != nil:
			return heard, silence(ctx, err)
		}
		c.handle(ctx, e)
	}
}

// silence names the watchdog where it was the one that ended the request.
func silence(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, errSilent) {
		return cause
	}
	return err
}

func (c *Client) open(ctx context.Context) (*http.Response, error) {
	req, err := c.request(ctx, http.MethodGet, "policy/stream", nil)
	if err != nil {
		return nil, err
	}
	req.URL.RawQuery = url.Values{"gateway": {c.opts.Gateway}}.Encode()
	req.Header.Set("Accept", "text/event-stream")
	if held := c.current(); held != nil {
		req.Header.Set("Last-Event-ID", eventID(held.Lineage, held.Revision))
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, statusError(resp)
	}
	if media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); media != "text/event-stream" {
		resp.Body.Close()
		return nil, fmt.Errorf("the control URL answers %q in place of an event stream: is it a holdfast server?", resp.Header.Get("Content-Type"))
	}
	return resp, nil
}

// request builds an authenticated request to one path of the API.
func (c *Client) request(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.opts.URL, "/")+"/api/v1/"+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.opts.Token)
	req.Header.Set("User-Agent", "gpuguard/"+c.opts.Version)
	return req, nil
}

// handle acts on one event. Names it does not know are skipped: a newer server
// may send them.
func (c *Client) handle(ctx context.Context, e event) {
	switch e.name {
	case "policy":
		c.receive(ctx, e)
	case "members":
		var m struct {
			LiveGateways int `json:"live_gateways"`
		}
		if err := strict.DecodeJSON(e.data, &m); err != nil || m.LiveGateways < 1 {
			c.opts.Logger.Warn("members event cannot be used", "error", err, "live_gateways", m.LiveGateways)
			return
		}
		c.members(ctx, m.LiveGateways)
	default:
		c.opts.Logger.Debug("unknown event skipped", "event", e.name)
	}
}

// eventID is the id of a policy event: "lineage:revision".
func eventID(lineage string, revision int64) string {
	return lineage + ":" + strconv.FormatInt(revision, 10)
}

// eventRevision reads the revision of an event id; 0 when it has none.
func eventRevision(id string) int64 {
	revision, err := strconv.ParseInt(id[strings.LastIndex(id, ":")+1:], 10, 64)
	if err != nil {
		return 0
	}
	return revision
}

// statusError explains an answer that is no success. It quotes the title and
// detail of a problem document, and nothing else of the body.
func statusError(resp *http.Response) error {
	const most = 8 << 10
	body, _ := io.ReadAll(io.LimitReader(resp.Body, most))
	text := "the server answered " + resp.Status
	if detail := problemText(body); detail != "" {
		text += ": " + detail
	}
	switch {
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		text += " (is the gateway token right, and not revoked or expired?)"
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		text += " (redirects are not followed: give the final address as control URL)"
	}
	return errors.New(text)
}
