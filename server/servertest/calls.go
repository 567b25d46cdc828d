package servertest

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/server/identity"
)

// Answer is a response read to its end.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// Problem is the problem document of an answer.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Errors []struct {
		Path    string `json:"path"`
		Message string `json:"message"`
		Line    int    `json:"line"`
	} `json:"errors"`
}

// Problem reads the body as a problem document; ok is false when it is none.
func (a Answer) Problem() (p Problem, ok bool) {
	if a.Header.Get("Content-Type") != "application/problem+json" {
		return p, false
	}
	return p, json.Unmarshal([]byte(a.Body), &p) == nil && p.Status == a.Status && p.Type != "" && p.Title != ""
}

// Request is one call to the server. Body is sent as it is when it is a string,
// []byte or io.Reader, and as JSON otherwise; nil sends none.
type Request struct {
	Method, Path string
	// Token is sent as a bearer token, Cookie as the console's session; both may be empty.
	Token, Cookie string
	Body          any
	Header        http.Header
}

// Do makes a call and reads the answer; it fails the test only when there is none.
func (s *System) Do(r Request) Answer {
	s.t.Helper()
	a, err := s.Try(r)
	require.NoError(s.t, err)
	return a
}

// Try is Do for any goroutine: it never ends the test.
func (s *System) Try(r Request) (Answer, error) {
	var body io.Reader
	switch b := r.Body.(type) {
	case nil:
	case io.Reader:
		body = b
	case string:
		body = strings.NewReader(b)
	case []byte:
		body = bytes.NewReader(b)
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			return Answer{}, err
		}
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(s.t.Context(), r.Method, s.URL+r.Path, body)
	if err != nil {
		return Answer{}, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.Token != "" {
		req.Header.Set("Authorization", "Bearer "+r.Token)
	}
	if r.Cookie != "" {
		req.AddCookie(&http.Cookie{Name: "holdfast_session", Value: r.Cookie})
		req.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	maps.Copy(req.Header, r.Header)
	resp, err := s.client.Do(req)
	if err != nil {
		return Answer{}, err
	}
	read, err := discard(resp.Body)
	return Answer{resp.StatusCode, resp.Header, string(read)}, err
}

// Get reads a JSON document as the admin; it fails the test unless the answer is 200.
func (s *System) Get(path string, into any) {
	s.t.Helper()
	a := s.Do(Request{Method: http.MethodGet, Path: path, Token: s.APIToken("alice")})
	require.Equal(s.t, http.StatusOK, a.Status, "GET %s: %s", path, a.Body)
	require.NoError(s.t, json.Unmarshal([]byte(a.Body), into), "GET %s", path)
}

// APIToken gives an api token that acts for a person, the same at every call.
func (s *System) APIToken(handle string) string {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.apiTokens[handle] == "" {
		s.apiTokens[handle] = s.Token(identity.TokenAPI, handle, 0)
	}
	return s.apiTokens[handle]
}

// Token makes a service token beside the server; owner is a handle or empty, a
// zero ttl lasts.
func (s *System) Token(kind identity.TokenKind, owner string, ttl time.Duration, scopes ...string) string {
	s.t.Helper()
	plain, _, err := s.operator.CreateToken(s.t.Context(), kind, "servertest", owner, scopes, ttl)
	require.NoError(s.t, err)
	return plain
}

// Revoke ends a token at once.
func (s *System) Revoke(plain string) {
	s.t.Helper()
	parsed, err := identity.ParseToken(plain)
	require.NoError(s.t, err)
	require.NoError(s.t, s.operator.RevokeToken(s.t.Context(), parsed.ID))
}

// LoginCookie logs a person in at the console with a one-time link and gives the
// value of the session cookie.
func (s *System) LoginCookie(handle string) string {
	s.t.Helper()
	link, err := s.Server.LoginLink(s.t.Context(), handle, time.Minute)
	require.NoError(s.t, err)
	u, err := url.Parse(link)
	require.NoError(s.t, err)
	a := s.Do(Request{Method: http.MethodPost, Path: "/api/v1/session", Body: map[string]string{"code": u.Query().Get("code")}})
	require.Equal(s.t, http.StatusOK, a.Status, a.Body)
	for _, c := range (&http.Response{Header: a.Header}).Cookies() {
		if c.Name == "holdfast_session" {
			return c.Value
		}
	}
	s.t.Fatal("servertest: the login set no cookie")
	return ""
}

// Alert is one alert of a notification.
type Alert struct {
	// Name, Service and Severity are labels; "LLMErrorRateHigh", "llm" and "critical" when empty.
	Name, Service, Severity string
	// StartsAt tells occurrences apart; a fixed time of the test's day when zero.
	StartsAt time.Time
	Resolved bool
	// Annotations are added to the usual ones.
	Annotations map[string]string
}

// Notification is a version 4 webhook as Alertmanager sends it, with one alert.
func Notification(a Alert) map[string]any {
	fill := func(s *string, value string) {
		if *s == "" {
			*s = value
		}
	}
	fill(&a.Name, "LLMErrorRateHigh")
	fill(&a.Service, "llm")
	fill(&a.Severity, "critical")
	if a.StartsAt.IsZero() {
		a.StartsAt = time.Now().UTC().Truncate(time.Hour)
	}
	status, ends := "firing", "0001-01-01T00:00:00Z"
	if a.Resolved {
		status, ends = "resolved", time.Now().UTC().Format(time.RFC3339)
	}
	labels := map[string]string{"alertname": a.Name, "severity": a.Severity, "service": a.Service, "dependency": a.Service, "environment": "prod"}
	annotations := map[string]string{
		"summary":           "23 % of requests fail",
		"suggested_actions": "trip_breaker:dependency=llm, set_rate_limit:target=global;requests_per_second=50",
	}
	maps.Copy(annotations, a.Annotations)
	return map[string]any{
		"version": "4", "groupKey": `{}:{alertname="` + a.Name + `"}`, "truncatedAlerts": 0, "status": status,
		"receiver": "holdfast", "groupLabels": map[string]string{"alertname": a.Name},
		"commonLabels": labels, "commonAnnotations": annotations, "externalURL": "http://127.0.0.1:9093",
		"alerts": []map[string]any{{
			"status": status, "labels": labels, "annotations": annotations, "startsAt": a.StartsAt.Format(time.RFC3339),
			"endsAt": ends, "generatorURL": "http://127.0.0.1:9090/graph", "fingerprint": "a1b2c3d4e5f60718",
		}},
	}
}

// Receipt is the hook's answer.
type Receipt struct {
	Incident                                 string
	Number                                   int64
	New, Updated, Resolved, Duplicate, Stale int
}

// PostAlert posts a notification to the Alertmanager hook and gives its receipt.
func (s *System) PostAlert(a Alert) Receipt {
	s.t.Helper()
	got := s.Do(Request{Method: http.MethodPost, Path: "/hooks/alertmanager", Token: s.Tokens.Hook, Body: Notification(a)})
	require.Equal(s.t, http.StatusOK, got.Status, got.Body)
	var r Receipt
	require.NoError(s.t, json.Unmarshal([]byte(got.Body), &r))
	return r
}

// Run is an action run as the API shows it.
type Run struct {
	ID, Action, Status, Incident, Requester string
	EndReason                               string `json:"end_reason"`
	Revision                                int64
	Missing                                 []string
	AcceptedAt                              time.Time  `json:"accepted_at"`
	EnforcedAt                              *time.Time `json:"enforced_at"`
	EndedAt                                 *time.Time `json:"ended_at"`
	Verification                            struct{ Verdict, Detail string }
}

// Runs lists the action runs, newest first.
func (s *System) Runs() []Run {
	s.t.Helper()
	var page struct{ Items []Run }
	s.Get("/api/v1/action-runs?limit=200", &page)
	return page.Items
}

// RunbookRun is a runbook run as the API shows it.
type RunbookRun struct {
	ID, Runbook, Version, Status, Incident string
	StartedBy                              string `json:"started_by"`
	EndedBy                                string `json:"ended_by"`
	Params                                 map[string]string
	Current                                int
	Steps                                  []struct {
		Step struct{ ID, Title, Kind string }
		// Status, Attempt and Answers say what a person may do.
		Status  string
		Attempt int
		Answers []string
		// ActionRun is the action run that the step started.
		ActionRun string `json:"action_run"`
		Value     *float64
		Detail    string
	}
}

// RunbookRun reads one runbook run.
func (s *System) RunbookRun(id string) (r RunbookRun) {
	s.t.Helper()
	s.Get("/api/v1/runbook-runs/"+id, &r)
	return r
}

// StartRunbook starts a runbook as a person, for an incident that may be empty.
func (s *System) StartRunbook(handle, runbook, incident, key string, params map[string]string) Answer {
	s.t.Helper()
	body := map[string]any{"runbook": runbook, "params": params}
	if incident != "" {
		body["incident"] = incident
	}
	return s.Do(Request{
		Method: http.MethodPost, Path: "/api/v1/runbook-runs", Token: s.APIToken(handle),
		Header: http.Header{"Idempotency-Key": {key}}, Body: body,
	})
}

// AnswerRunbook answers an attempt of a step as a person.
func (s *System) AnswerRunbook(handle, run, step string, attempt int, answer string) Answer {
	s.t.Helper()
	return s.Do(Request{
		Method: http.MethodPost, Path: "/api/v1/runbook-runs/" + run + "/answer", Token: s.APIToken(handle),
		Body: map[string]any{"step": step, "attempt": attempt, "answer": answer},
	})
}

// Gateway is a gateway as the API shows it.
type Gateway struct {
	Name, State string
	Revision    int64
	Breakers    map[string]struct{ State string }
}

// ListGateways lists the gateways the server knows.
func (s *System) ListGateways() []Gateway {
	s.t.Helper()
	var page struct{ Items []Gateway }
	s.Get("/api/v1/gateways", &page)
	return page.Items
}

// AuditEntry is an audit row as the API shows it.
type AuditEntry struct {
	ID                                              int64
	Actor, Channel, Verb, Subject, Decision, Reason string
	Details                                         map[string]string
}

// Audit lists the newest audit rows, newest first.
func (s *System) Audit() []AuditEntry {
	s.t.Helper()
	var page struct{ Items []AuditEntry }
	s.Get("/api/v1/audit?limit=200", &page)
	return page.Items
}

// Chat asks a gateway for a chat completion as the tenant "acme".
func (s *System) Chat(gateway int) Answer {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.GatewayURL(gateway)+"/v1/chat/completions",
		strings.NewReader(`{"model":"demo-model","max_tokens":4,"messages":[{"role":"user","content":"hello"}]}`))
	require.NoError(s.t, err)
	req.Header.Set("Authorization", "Bearer "+Key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(req)
	require.NoError(s.t, err)
	body, err := discard(resp.Body)
	require.NoError(s.t, err)
	return Answer{resp.StatusCode, resp.Header, string(body)}
}
