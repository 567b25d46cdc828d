package slacksim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Errors of deliveries to the app.
var (
	// ErrNoURL says that the app's URL for this kind of request is not set.
	ErrNoURL = errors.New("no request URL is set for this kind of request")
	// ErrAckTimeout says that the app did not answer in time. It may still
	// have acted.
	ErrAckTimeout = errors.New("the app did not answer in time")
	// ErrNotFound says that there is no such message, view or element.
	ErrNotFound = errors.New("not found")
	// ErrNotAllowed says that Slack's own client would not have let the person
	// do this: a deactivated account, another person's ephemeral message.
	ErrNotAllowed = errors.New("not possible for this person")
	// ErrInput says that the modal's inputs do not fit, which Slack's client
	// checks before it submits.
	ErrInput = errors.New("input does not fit")
)

// Tamper changes a delivery for tests of the app's defences. The zero value
// sends what Slack would send.
type Tamper struct {
	// TimestampShift moves the signed timestamp; negative is the past.
	TimestampShift time.Duration
	// TeamID, UserTeamID and AppID replace team.id, user.team_id and
	// api_app_id in the payload.
	TeamID, UserTeamID, AppID string
	// Secret signs with another secret.
	Secret string
	// Unsigned leaves both signature headers out.
	Unsigned bool
	// Signature replaces the signature header's value.
	Signature string
	// Body changes the body after it was signed.
	Body func([]byte) []byte
	// Query is appended to the URL, for example "payload={}".
	Query string
}

// Request is one HTTP request as it was sent to the app.
type Request struct {
	URL    string
	Header http.Header
	Body   []byte
}

// ClickResult is how the app answered a click, command or submission.
type ClickResult struct {
	// Status is the HTTP status, 0 when there was no answer.
	Status int
	// Took is the time to the whole answer.
	Took time.Duration
	// Response is the answer's body, at most 64 KiB of it.
	Response []byte
	// TriggerID, ResponseURL and ActionTS are what the payload carried.
	TriggerID, ResponseURL, ActionTS string
	// Request is what was sent, for Replay.
	Request Request
}

// Acked says whether the app answered 200 in time.
func (r ClickResult) Acked() bool { return r.Status == http.StatusOK }

// Delivery is one entry of the log of requests to the app.
type Delivery struct {
	// Kind is block_actions, view_submission, view_closed, slash_command,
	// event or replay.
	Kind string
	// At is when it was sent; UserID on whose behalf; What names the action,
	// command or view.
	At     time.Time
	UserID string
	What   string
	// Status and Took are as in ClickResult.
	Status int
	Took   time.Duration
	// Problem is empty when the app answered 200 in time.
	Problem string
}

// maxDeliveries bounds the log.
const maxDeliveries = 200

// Deliveries returns the latest requests to the app, oldest first.
func (s *Sim) Deliveries() []Delivery {
	s.deliveryMu.Lock()
	defer s.deliveryMu.Unlock()
	return slices.Clone(s.deliveries)
}

func (s *Sim) record(d Delivery) {
	s.deliveryMu.Lock()
	if len(s.deliveries) >= maxDeliveries {
		s.deliveries = slices.Delete(s.deliveries, 0, 1)
	}
	s.deliveries = append(s.deliveries, d)
	s.deliveryMu.Unlock()
	s.hub.changed()
}

// outgoing is a request to be signed and sent.
type outgoing struct {
	kind, userID, what string
	url                string
	contentType        string
	body               []byte
	header             http.Header // extra headers
	tamper             Tamper
}

// deliver signs and sends a request.
func (s *Sim) deliver(ctx context.Context, out outgoing) (ClickResult, error) {
	if out.url == "" {
		return ClickResult{}, fmt.Errorf("slacksim: %s: %w", out.kind, ErrNoURL)
	}
	req, err := s.signed(out)
	if err != nil {
		return ClickResult{}, err
	}
	return s.send(ctx, out, req)
}

// signed builds the request, with the wanted tampering.
func (s *Sim) signed(out outgoing) (Request, error) {
	t := out.tamper
	target := out.url
	if t.Query != "" {
		u, err := url.Parse(target)
		if err != nil {
			return Request{}, fmt.Errorf("slacksim: %s: %w", out.kind, err)
		}
		u.RawQuery = t.Query
		target = u.String()
	}
	secret := s.opts.SigningSecret
	if t.Secret != "" {
		secret = t.Secret
	}
	h := signedHeader(secret, s.opts.Clock.Now().Add(t.TimestampShift), out.contentType, out.body)
	if t.Signature != "" {
		h.Set(HeaderSignature, t.Signature)
	}
	if t.Unsigned {
		h.Del(HeaderSignature)
		h.Del(HeaderTimestamp)
	}
	maps.Copy(h, out.header)
	body := out.body
	if t.Body != nil {
		body = t.Body(slices.Clone(body))
	}
	return Request{URL: target, Header: h, Body: body}, nil
}

// maxAckBody bounds what is read of an answer.
const maxAckBody = 64 << 10

// send sends a request as it is and records how it went.
func (s *Sim) send(ctx context.Context, out outgoing, r Request) (ClickResult, error) {
	res := ClickResult{Request: r}
	ctx, cancel := context.WithTimeout(ctx, s.opts.AckTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return res, fmt.Errorf("slacksim: %s: %w", out.kind, err)
	}
	req.Header = r.Header.Clone()
	at, start := s.opts.Clock.Now(), time.Now()
	resp, err := s.client.Do(req)
	if err == nil {
		res.Response, err = io.ReadAll(io.LimitReader(resp.Body, maxAckBody))
		resp.Body.Close()
	}
	res.Took = time.Since(start)
	if err != nil {
		err = s.sendProblem(ctx, out.kind, err)
	} else {
		res.Status = resp.StatusCode
	}
	s.record(Delivery{
		Kind: out.kind, At: at, UserID: out.userID, What: out.what,
		Status: res.Status, Took: res.Took, Problem: ackProblem(res, err),
	})
	return res, err
}

func (s *Sim) sendProblem(ctx context.Context, kind string, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("slacksim: %s: %w (limit %s)", kind, ErrAckTimeout, s.opts.AckTimeout)
	}
	// The URL is the app's own and holds no secret; the wrapped error names it.
	return fmt.Errorf("slacksim: %s: the app cannot be reached: %w", kind, err)
}

func ackProblem(res ClickResult, err error) string {
	switch {
	case errors.Is(err, ErrAckTimeout):
		return "no answer in time"
	case err != nil:
		return "app cannot be reached"
	case !res.Acked():
		return fmt.Sprintf("answered %d instead of 200", res.Status)
	}
	return ""
}

// Replay sends the very bytes and headers of an earlier delivery again, with
// its old timestamp and signature.
func (s *Sim) Replay(ctx context.Context, earlier ClickResult) (ClickResult, error) {
	if earlier.Request.URL == "" {
		return ClickResult{}, fmt.Errorf("slacksim: replay: %w: the earlier delivery was never sent", ErrNotFound)
	}
	res, err := s.send(ctx, outgoing{kind: "replay", what: "same bytes again"}, earlier.Request)
	res.TriggerID, res.ResponseURL, res.ActionTS = earlier.TriggerID, earlier.ResponseURL, earlier.ActionTS
	return res, err
}

// domain is the workspace's name in URLs and payloads.
func (s *Sim) domain() string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if (r >= 'a' && r <= 'z') || (r >= '0' && r <= '9') {
			return r
		}
		return '-'
	}, strings.ToLower(s.opts.TeamName)), "-")
}

// or returns the first that is not empty.
func or(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
