package gpuguard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/gpuguard"
	"holdfast/gpuguard/gpuguardtest"
	"holdfast/gpuguard/policy"
)

// control is a server that sends one policy to whoever asks, and keeps the acks.
type control struct {
	*httptest.Server
	mu   sync.Mutex
	acks []policy.Ack
}

func newControl(t *testing.T, u policy.Update) *control {
	t.Helper()
	c := &control{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/policy/stream", func(w http.ResponseWriter, r *http.Request) {
		data, _ := json.Marshal(u)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "id: %s:%d\nevent: policy\ndata: %s\n\n", u.Lineage, u.Revision, data)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	mux.HandleFunc("POST /api/v1/policy/ack", func(w http.ResponseWriter, r *http.Request) {
		var a policy.Ack
		if json.NewDecoder(r.Body).Decode(&a) == nil {
			c.mu.Lock()
			c.acks = append(c.acks, a)
			c.mu.Unlock()
		}
		w.WriteHeader(http.StatusNoContent)
	})
	c.Server = httptest.NewServer(mux)
	return c
}

func (c *control) lastAck() (policy.Ack, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.acks) == 0 {
		return policy.Ack{}, false
	}
	return c.acks[len(c.acks)-1], true
}

func TestGatewayOutlivesItsServer(t *testing.T) {
	t.Parallel()
	up := gpuguardtest.NewUpstream(t, gpuguardtest.JSON(http.StatusOK, goodAnswer))
	raw, err := policy.Encode(gpuguardtest.Document(up.URL))
	require.NoError(t, err)
	server := newControl(t, policy.Update{
		Lineage: "l1", Revision: 7, Base: raw, LiveGateways: 2,
		Overrides: []policy.Override{gpuguardtest.TripBreaker(t, 3*time.Second)},
	})
	dir := t.TempDir()
	start := func() *gpuguard.Guard {
		o := gpuguard.DefaultOptions()
		o.Addr, o.AdminAddr, o.Name, o.StateDir = "127.0.0.1:0", "127.0.0.1:0", "gw-1", dir
		o.Control = &gpuguard.Control{URL: server.URL, Token: "hf_gateway_test"}
		o.Logger = slog.New(slog.DiscardHandler)
		g, err := gpuguard.New(o)
		require.NoError(t, err)
		require.NoError(t, g.Start(t.Context()))
		return g
	}
	g := start()
	require.Eventually(t, func() bool { a, ok := server.lastAck(); return ok && a.Revision == 7 }, 10*time.Second, 5*time.Millisecond)
	ack, _ := server.lastAck()
	require.Equal(t, policy.AckApplied, ack.Result)
	require.Equal(t, "gw-1", ack.Gateway)
	require.Equal(t, policy.OutcomeBreakerOpen, post(t, g, "").Outcome())
	require.NoError(t, g.Stop(context.Background()))

	server.CloseClientConnections()
	server.Close()
	g = start()
	defer func() { require.NoError(t, g.Stop(context.Background())) }()
	require.EqualValues(t, 7, g.Effective().Revision, "served from disk")
	require.Equal(t, []string{"trip"}, g.State().ActiveOverrides)
	require.Equal(t, policy.OutcomeBreakerOpen, post(t, g, "").Outcome())
	require.Eventually(t, func() bool { return len(g.State().ActiveOverrides) == 0 }, 10*time.Second, 10*time.Millisecond,
		"the lease ends without the server, also across a restart")
	require.Equal(t, policy.OutcomeOK, post(t, g, "").Outcome())
}

func post(t *testing.T, g *gpuguard.Guard, key string) gpuguardtest.Answer {
	t.Helper()
	if key == "" {
		key = gpuguardtest.Key
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+g.Addr()+gpuguardtest.ChatPath, strings.NewReader(plainBody))
	require.NoError(t, err)
	r.Header.Set("X-Api-Key", key)
	r.Close = true
	resp, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return gpuguardtest.Answer{Status: resp.StatusCode, Header: resp.Header, Trailer: resp.Trailer, Body: string(body), Err: err}
}

func TestAdminPortTellsReadiness(t *testing.T) {
	t.Parallel()
	get := func(base, path string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, nil)
		require.NoError(t, err)
		r.Close = true
		resp, err := http.DefaultTransport.RoundTrip(r)
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(body)
	}
	o := gpuguard.DefaultOptions()
	o.Addr, o.AdminAddr = "127.0.0.1:0", "127.0.0.1:0"
	o.Logger = slog.New(slog.DiscardHandler)
	g, err := gpuguard.New(o)
	require.NoError(t, err)
	require.NoError(t, g.Start(t.Context()))
	defer func() { require.NoError(t, g.Stop(context.Background())) }()
	status, _ := get("http://"+g.AdminAddr(), "/healthz")
	require.Equal(t, http.StatusOK, status)
	status, body := get("http://"+g.AdminAddr(), "/readyz")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, body, "no policy")
	a := post(t, g, "")
	require.Equal(t, http.StatusServiceUnavailable, a.Status)
	require.Equal(t, "1", a.Header.Get("Retry-After"))
	for _, path := range []string{"/healthz", "/metrics", "/state", "/policy"} {
		status, _ = get("http://"+g.Addr(), path)
		require.Equal(t, http.StatusServiceUnavailable, status, "the data port knows nothing of administration: %s", path)
	}

	full := gpuguardtest.Start(t, gpuguardtest.Document("http://127.0.0.1:1"))
	status, _ = get("http://"+full.AdminAddr(), "/readyz")
	require.Equal(t, http.StatusOK, status)
	status, body = get("http://"+full.AdminAddr(), "/metrics")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "gpuguard_policy_revision 1")
	require.Contains(t, body, `gpuguard_breaker_state{dependency="llm",state="closed"} 1`)
}
