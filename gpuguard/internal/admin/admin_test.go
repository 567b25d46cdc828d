package admin

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"holdfast/gpuguard/controlclient"
	"holdfast/gpuguard/policy"
)

var now = time.Date(2026, 3, 1, 14, 0, 0, 0, time.UTC)

// source is a gateway in a given condition.
type source struct {
	notReady  error
	effective *policy.Effective
	control   *controlclient.Status
}

func (s source) Ready() error { return s.notReady }

func (s source) Effective() (policy.Effective, bool) {
	if s.effective == nil {
		return policy.Effective{}, false
	}
	return *s.effective, true
}

func (s source) State() policy.State {
	return policy.State{InFlight: 3, ActiveOverrides: []string{"run-1"}}
}

func (s source) Control() (controlclient.Status, bool) {
	if s.control == nil {
		return controlclient.Status{}, false
	}
	return *s.control, true
}

func get(t *testing.T, o Options, path, authorization string) *httptest.ResponseRecorder {
	t.Helper()
	o.Clock = func() time.Time { return now }
	req := httptest.NewRequest(http.MethodGet, path, nil)
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	rec := httptest.NewRecorder()
	Handler(o).ServeHTTP(rec, req)
	return rec
}

func TestHealthAndReadiness(t *testing.T) {
	t.Parallel()
	o := Options{Source: source{notReady: errors.New("no policy is loaded yet")}, Token: "secret"}
	require.Equal(t, http.StatusOK, get(t, o, "/healthz", "").Code, "health never asks for a token or a policy")

	rec := get(t, o, "/readyz", "")
	require.Equal(t, http.StatusServiceUnavailable, rec.Code)
	require.Contains(t, rec.Body.String(), "no policy is loaded yet")
	require.NotEmpty(t, rec.Header().Get("Retry-After"))

	o.Source = source{}
	require.Equal(t, http.StatusOK, get(t, o, "/readyz", "").Code)
}

func TestTokenIsAskedFor(t *testing.T) {
	t.Parallel()
	o := Options{Source: source{effective: &policy.Effective{}}, Gatherer: prometheus.NewRegistry(), Token: "right-token"}
	for _, path := range []string{"/policy", "/state", "/metrics"} {
		for _, wrong := range []string{"", "Bearer", "Bearer wrong", "Basic right-token", "right-token", "Bearer right-token-and-more"} {
			rec := get(t, o, path, wrong)
			require.Equal(t, http.StatusUnauthorized, rec.Code, "%s with %q", path, wrong)
			require.Contains(t, rec.Header().Get("WWW-Authenticate"), "Bearer")
			require.NotContains(t, rec.Body.String(), "right-token")
		}
		require.Equal(t, http.StatusOK, get(t, o, path, "bearer right-token").Code, path)
	}
	o.Token = ""
	require.Equal(t, http.StatusOK, get(t, o, "/policy", "").Code, "without a token configured none is asked for")
}

func TestPolicyPage(t *testing.T) {
	t.Parallel()
	digest := strings.Repeat("ab", 32)
	doc := policy.Document{Version: policy.Version, Tenants: map[string]policy.Tenant{"acme": {Keys: []string{digest}}}}
	hash, err := policy.Hash(doc)
	require.NoError(t, err)
	rec := get(t, Options{Source: source{effective: &policy.Effective{
		Lineage: "l1", Revision: 7, Document: doc,
		Overrides: []policy.Override{
			{ID: "run-1", Path: policy.GlobalLimitPath, Value: json.RawMessage(`{"requests_per_second":5}`), Owner: "alice", Reason: "storm", Expires: now.Add(90 * time.Second)},
			{ID: "run-0", Path: policy.RouteLimitPath("chat"), Value: json.RawMessage(`{"requests_per_second":5}`), Expires: now.Add(-time.Second)},
		},
	}}}, "/policy", "")
	require.Equal(t, http.StatusOK, rec.Code)
	require.Equal(t, "no-store", rec.Header().Get("Cache-Control"))

	var page struct {
		Lineage   string
		Revision  int64
		Hash      string
		Document  policy.Document
		Overrides []struct {
			ID        string
			Owner     string
			Expires   time.Time
			Remaining float64 `json:"remaining_seconds"`
		}
	}
	require.NoError(t, json.Unmarshal(rec.Body.Bytes(), &page))
	require.Equal(t, "l1", page.Lineage)
	require.EqualValues(t, 7, page.Revision)
	require.Equal(t, hash, page.Hash)
	require.Len(t, page.Overrides, 1, "an ended override is not shown")
	require.Equal(t, "alice", page.Overrides[0].Owner)
	require.InDelta(t, 90, page.Overrides[0].Remaining, 0.001)
	require.Equal(t, now.Add(90*time.Second), page.Overrides[0].Expires)
	require.NotContains(t, rec.Body.String(), digest)
	require.Equal(t, []string{"abababab…"}, page.Document.Tenants["acme"].Keys)
	require.Equal(t, digest, doc.Tenants["acme"].Keys[0], "the policy in force is not touched")
}

func TestPolicyPageWithoutPolicy(t *testing.T) {
	t.Parallel()
	rec := get(t, Options{Source: source{}}, "/policy", "")
	require.Equal(t, http.StatusServiceUnavailable, rec.Code)
	require.Equal(t, "application/problem+json", rec.Header().Get("Content-Type"))
}

func TestStatePage(t *testing.T) {
	t.Parallel()
	o := Options{Name: "gw-1", Version: "v1", Source: source{control: &controlclient.Status{Connected: true, Revision: 7}}}
	rec := get(t, o, "/state", "")
	require.Equal(t, http.StatusOK, rec.Code)
	var page statePage
	require.NoError(t, json.Unmarshal(rec.Body.Bytes(), &page))
	require.Equal(t, "gw-1", page.Name)
	require.EqualValues(t, 3, page.State.InFlight)
	require.True(t, page.Control.Connected)

	o.Source = source{}
	require.NotContains(t, get(t, o, "/state", "").Body.String(), "control", "a gateway without a server says nothing of one")
}

func TestMetricsPage(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "gpuguard_probe_total", Help: "A probe."})
	reg.MustRegister(counter)
	counter.Inc()
	require.Contains(t, get(t, Options{Source: source{}, Gatherer: reg}, "/metrics", "").Body.String(), "gpuguard_probe_total 1")
	require.Equal(t, http.StatusNotFound, get(t, Options{Source: source{}}, "/metrics", "").Code)
}

func TestOnlyReading(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/healthz", "/readyz", "/policy", "/state"} {
		rec := httptest.NewRecorder()
		Handler(Options{Source: source{}}).ServeHTTP(rec, httptest.NewRequest(http.MethodPost, path, strings.NewReader("{}")))
		require.Equal(t, http.StatusMethodNotAllowed, rec.Code, path)
	}
}
