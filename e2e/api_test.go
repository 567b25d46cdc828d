//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// api is the server's HTTP API as one caller sees it.
type api struct {
	url, token string
}

// call makes a call with a JSON body (nil sends none) and reads a JSON answer
// into out (nil reads none). It returns the status.
func (a api) call(t *testing.T, method, path string, body, out any) int {
	t.Helper()
	status, err := a.try(method, path, body, out)
	require.NoError(t, err, "%s %s", method, path)
	return status
}

func (a api) try(method, path string, body, out any) (int, error) {
	return a.tryKeyed(method, path, "", body, out)
}

// tryKeyed sends an Idempotency-Key with it.
func (a api) tryKeyed(method, path, key string, body, out any) (int, error) {
	var send io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return 0, err
		}
		send = bytes.NewReader(raw)
	}
	req, err := http.NewRequest(method, a.url+path, send)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+a.token)
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := caller.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil || out == nil || len(raw) == 0 {
		return resp.StatusCode, err
	}
	return resp.StatusCode, json.Unmarshal(raw, out)
}

// must makes a call that answers this status.
func (a api) must(t *testing.T, want int, method, path string, body any) {
	t.Helper()
	var answer json.RawMessage
	got := a.call(t, method, path, body, &answer)
	require.Equal(t, want, got, "%s %s: %s", method, path, answer)
}

// get reads a document; anything but 200 fails the test.
func (a api) get(t *testing.T, path string, out any) {
	t.Helper()
	require.Equal(t, http.StatusOK, a.call(t, http.MethodGet, path, nil, out), "GET %s", path)
}

// breakers counts the gateways that report the breaker of llm in a state.
func (a api) breakers(state string) int {
	var page struct {
		Items []struct {
			Breakers map[string]struct{ State string }
		}
	}
	if status, err := a.try(http.MethodGet, "/api/v1/gateways", nil, &page); err != nil || status != http.StatusOK {
		return -1
	}
	n := 0
	for _, g := range page.Items {
		if g.Breakers["llm"].State == state {
			n++
		}
	}
	return n
}

type actionRun struct {
	ID, Status string
	EndReason  string `json:"end_reason"`
}

func (a api) runs(t *testing.T) []actionRun {
	t.Helper()
	var page struct{ Items []actionRun }
	a.get(t, "/api/v1/action-runs?limit=200", &page)
	return page.Items
}

// overrides counts the layers of the policy in force.
func (a api) overrides(t *testing.T) int {
	t.Helper()
	var p struct{ Overrides []json.RawMessage }
	a.get(t, "/api/v1/policy", &p)
	return len(p.Overrides)
}

// audited counts the audit rows of a verb.
func (a api) audited(t *testing.T, verb string) int {
	t.Helper()
	var page struct{ Items []struct{ Verb string } }
	a.get(t, "/api/v1/audit?limit=200", &page)
	n := 0
	for _, e := range page.Items {
		if e.Verb == verb {
			n++
		}
	}
	return n
}

// chat asks a gateway for a completion and returns X-Degraded and the status.
func chat(t *testing.T, gateway, key string) (degraded string, status int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, gateway+"/v1/chat/completions",
		bytes.NewReader([]byte(`{"model":"demo-model","max_tokens":4,"messages":[{"role":"user","content":"hello"}]}`)))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := caller.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	return resp.Header.Get("X-Degraded"), resp.StatusCode
}
