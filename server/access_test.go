package server_test

import (
	"bufio"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"holdfast/internal/testenv"
	"holdfast/server/servertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.Cleanup(testenv.Exit)) }

func TestRefusalsAtTheDoorAreAudited(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, servertest.Options{WithoutSlack: true})
	viewer, cookie := s.APIToken("mallory"), s.LoginCookie("alice")
	run := servertest.Request{
		Method: http.MethodPost, Path: "/api/v1/actions/trip_breaker/run", Token: viewer, Body: map[string]any{"reason": "x", "params": map[string]any{"dependency": "llm"}},
		Header: http.Header{"Idempotency-Key": {"key-of-mallory"}},
	}
	for range 3 {
		require.Equal(t, http.StatusForbidden, s.Do(run).Status)
	}
	require.Equal(t, http.StatusForbidden, s.Do(servertest.Request{Method: http.MethodGet, Path: "/api/v1/policy", Token: s.Tokens.CI}).Status)
	crossSite := servertest.Request{
		Method: http.MethodPost, Path: "/api/v1/freezes", Cookie: cookie, Body: map[string]any{"reason": "x"},
		Header: http.Header{"Sec-Fetch-Site": {"cross-site"}},
	}
	require.Equal(t, http.StatusForbidden, s.Do(crossSite).Status)
	count := map[string]int{}
	for _, e := range s.Audit() {
		if e.Verb == "api.refused" {
			require.Equal(t, "denied", e.Decision)
			count[e.Subject+" "+e.Actor]++
		}
	}
	require.Equal(t, map[string]int{
		"operation:runAction Mallory Moss":       1,
		"operation:getPolicy pipeline":           1,
		"operation:createFreeze Alice Andersson": 1,
	}, count, "once a minute each")
}

func TestStreamsEndWithTheRightsOfTheirCaller(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, servertest.Options{WithoutSlack: true})
	cookie := s.LoginCookie("mallory")
	gateway := s.Token("gateway", "", 0, "gateway:gw-9")
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	open := func(path string, header http.Header) *bufio.Scanner {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
		require.NoError(t, err)
		req.Header = header
		resp, err := client.Do(req)
		require.NoError(t, err)
		t.Cleanup(func() { _ = resp.Body.Close() })
		require.Equal(t, http.StatusOK, resp.StatusCode)
		return bufio.NewScanner(resp.Body)
	}
	events := open("/api/v1/events", http.Header{"Cookie": {"holdfast_session=" + cookie}})
	updates := open("/api/v1/policy/stream?gateway=gw-9", http.Header{"Authorization": {"Bearer " + gateway}})
	var people struct {
		Items []struct{ ID, Handle string }
	}
	s.Get("/api/v1/people", &people)
	for _, p := range people.Items {
		if p.Handle == "mallory" {
			a := s.Do(servertest.Request{Method: http.MethodPatch, Path: "/api/v1/people/" + p.ID, Token: s.APIToken("alice"), Body: map[string]any{"disabled": true}})
			require.Equal(t, http.StatusOK, a.Status, a.Body)
		}
	}
	s.Revoke(gateway)
	start := time.Now()
	for events.Scan() {
	}
	for updates.Scan() {
	}
	require.Less(t, time.Since(start), 20*time.Second, "both ended within a few keep-alives")
	require.NoError(t, events.Err())
	require.NoError(t, updates.Err())
}

func TestRequestsAreReadWhole(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, servertest.Options{WithoutSlack: true})
	check := func(body string) servertest.Answer {
		return s.Do(servertest.Request{Method: http.MethodPost, Path: "/api/v1/changes/check", Token: s.Tokens.CI, Body: body})
	}
	good := `{"service":"checkout","environment":"prod","run_id":"r1"}`
	require.Equal(t, http.StatusOK, check(good+" \n").Status)
	for _, rest := range []string{" trailing", good, "}", "null"} {
		a := check(good + rest)
		require.Equal(t, http.StatusBadRequest, a.Status, rest)
		require.Contains(t, a.Body, "goes on after its JSON value")
	}
	put := servertest.Request{
		Method: http.MethodPut, Path: "/api/v1/policy", Token: s.APIToken("alice"), Body: strings.NewReader("{}"),
		Header: http.Header{"If-Match": {`"0"`}},
	}
	a := s.Do(put)
	require.Equal(t, http.StatusBadRequest, a.Status, "nobody skips the revision they read")
	require.Contains(t, a.Body, "If-Match")
}

// What the access table promises a pipeline is not refused further in.
func TestPipelinesReadWhatTheTableLetsThem(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, servertest.Options{WithoutSlack: true})
	for _, path := range []string{"/api/v1/changes", "/api/v1/freezes", "/api/v1/services", "/api/v1/me"} {
		a := s.Do(servertest.Request{Method: http.MethodGet, Path: path, Token: s.Tokens.CI})
		require.Equal(t, http.StatusOK, a.Status, "%s: %s", path, a.Body)
	}
}

func TestAStrangerLearnsNothingAboutParameters(t *testing.T) {
	t.Parallel()
	s := servertest.New(t, servertest.Options{WithoutSlack: true})
	for _, r := range []servertest.Request{
		{Method: http.MethodGet, Path: "/api/v1/policy/stream"},
		{Method: http.MethodGet, Path: "/api/v1/changes?limit=many"},
		{Method: http.MethodPut, Path: "/api/v1/policy", Body: "{}"},
		{Method: http.MethodPost, Path: "/api/v1/actions/trip_breaker/run", Body: "{"},
	} {
		require.Equal(t, http.StatusUnauthorized, s.Do(r).Status, "%s %s", r.Method, r.Path)
	}
	a := s.Do(servertest.Request{Method: http.MethodGet, Path: "/api/v1/changes?limit=many", Token: s.Tokens.CI})
	require.Equal(t, http.StatusBadRequest, a.Status)
	require.Contains(t, a.Body, "limit")
}
