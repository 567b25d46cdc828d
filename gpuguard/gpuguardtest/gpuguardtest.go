// Package gpuguardtest runs a real gateway on free loopback ports between tests
// and scripted upstreams, or simulated engines.
package gpuguardtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"holdfast/gpuguard"
	"holdfast/gpuguard/enginesim"
	"holdfast/gpuguard/policy"
)

// Key is the API key of the tenant "alpha" of Document.
const Key = "sk-test-alpha"

// ChatPath is the path of the route "chat" of Document.
const ChatPath = "/v1/chat/completions"

// Lineage is the lineage of policies that Gateway.Apply sends.
const Lineage = "test"

// Digest is an API key as it stands in a policy.
func Digest(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// Document is a small valid policy: the dependency and pool "llm" over the
// given endpoint URLs (named "e0", "e1" …), the route "chat" for everything
// under /v1 with a fallback, and the tenant "alpha".
func Document(urls ...string) policy.Document {
	endpoints := map[string]policy.Endpoint{}
	for i, u := range urls {
		endpoints["e"+string(rune('0'+i))] = policy.Endpoint{URL: u}
	}
	return policy.Document{
		Version:      policy.Version,
		Tenants:      map[string]policy.Tenant{"alpha": {Keys: []string{Digest(Key)}}},
		Dependencies: map[string]policy.Dependency{"llm": {}},
		Pools:        map[string]policy.Pool{"llm": {Dependency: "llm", Endpoints: endpoints}},
		Routes: map[string]policy.Route{"chat": {
			Match: policy.Match{PathPrefix: "/v1"}, Pool: "llm", Expect: policy.ExpectJSON,
			Fallback: &policy.Fallback{Body: `{"choices":[{"message":{"content":"please try again later"}}],"degraded":true}`},
		}},
	}
}

// Gateway is a started gateway.
type Gateway struct {
	*gpuguard.Guard
	// URL is the base address for callers.
	URL string
	// Registry has the gateway's metrics.
	Registry *prometheus.Registry
	// Logs has everything the gateway logged, one JSON object a line.
	Logs *Buffer

	t        testing.TB
	base     policy.Document
	revision int64
	client   *http.Client
}

// Start runs a gateway with the given policy until the test ends. The options
// can be changed before it starts.
func Start(t testing.TB, doc policy.Document, change ...func(*gpuguard.Options)) *Gateway {
	t.Helper()
	g := &Gateway{t: t, Registry: prometheus.NewRegistry(), Logs: &Buffer{}, base: doc, client: &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: 256, DisableCompression: true,
	}}}
	o := gpuguard.DefaultOptions()
	o.Addr, o.AdminAddr, o.Name = "127.0.0.1:0", "127.0.0.1:0", "test"
	o.Logger = slog.New(slog.NewJSONHandler(g.Logs, nil))
	o.Registerer, o.Gatherer = g.Registry, g.Registry
	o.DrainTimeout = 5 * time.Second
	for _, c := range change {
		c(&o)
	}
	guard, err := gpuguard.New(o)
	require.NoError(t, err)
	g.Guard = guard
	g.Apply()
	require.NoError(t, guard.Start(t.Context()))
	g.URL = "http://" + guard.Addr()
	t.Cleanup(func() {
		g.client.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = guard.Stop(ctx)
	})
	return g
}

// Apply puts the base document with these overrides in force, as the next
// revision of Lineage.
func (g *Gateway) Apply(overrides ...policy.Override) {
	g.t.Helper()
	require.NoError(g.t, g.TryApply(overrides...))
}

// TryApply is Apply for updates that may be refused.
func (g *Gateway) TryApply(overrides ...policy.Override) error {
	g.t.Helper()
	raw, err := policy.Encode(g.base)
	require.NoError(g.t, err)
	g.revision++
	return g.ApplyUpdate(policy.Update{
		Lineage: Lineage, Revision: g.revision, Base: raw, Overrides: overrides,
		LiveGateways: 1, LineageConfirmed: true,
	})
}

// SetBase changes the base document for the next Apply.
func (g *Gateway) SetBase(change func(*policy.Document)) { change(&g.base) }

// Override is a lease on path for the given time; value must be JSON.
func Override(t testing.TB, id, path string, value any, lease time.Duration) policy.Override {
	t.Helper()
	raw, err := json.Marshal(value)
	require.NoError(t, err)
	return policy.Override{ID: id, Path: path, Value: raw, Owner: "alice", Reason: "test", RemainingSeconds: lease.Seconds()}
}

// TripBreaker is an override that holds the breaker of "llm" open.
func TripBreaker(t testing.TB, lease time.Duration) policy.Override {
	t.Helper()
	return Override(t, "trip", policy.BreakerForcedPath("llm"), policy.ForcedOpen, lease)
}

// Answer is a response read to its end.
type Answer struct {
	Status  int
	Header  http.Header
	Trailer http.Header
	Body    string
	// Err is the error of reading the body: a cut shows here.
	Err error
}

// Outcome is what the gateway said of the request, in header or trailer.
func (a Answer) Outcome() policy.Outcome {
	if o := a.Header.Get("X-Gpuguard-Outcome"); o != "" {
		return policy.Outcome(o)
	}
	return policy.Outcome(a.Trailer.Get("X-Gpuguard-Outcome"))
}

// Chat posts a body to ChatPath with Key.
func (g *Gateway) Chat(body string) Answer {
	g.t.Helper()
	a, err := g.TryChat(body)
	require.NoError(g.t, err)
	return a
}

// TryChat is Chat for any goroutine: it never ends the test.
func (g *Gateway) TryChat(body string) (Answer, error) {
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, g.URL+ChatPath, bytes.NewReader([]byte(body)))
	if err != nil {
		return Answer{}, err
	}
	r.Header.Set("Authorization", "Bearer "+Key)
	r.Header.Set("Content-Type", "application/json")
	return g.Do(r)
}

// Do sends a request and reads the answer to its end.
func (g *Gateway) Do(r *http.Request) (Answer, error) {
	resp, err := g.client.Do(r)
	if err != nil {
		return Answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return Answer{resp.StatusCode, resp.Header, resp.Trailer, string(body), err}, nil
}

// Upstream is a scripted server.
type Upstream struct {
	*httptest.Server
	calls atomic.Int64
}

// NewUpstream serves h until the test ends.
func NewUpstream(t testing.TB, h http.HandlerFunc) *Upstream {
	t.Helper()
	u := &Upstream{}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.calls.Add(1)
		h(w, r)
	}))
	t.Cleanup(u.Close)
	return u
}

// Calls is how many requests arrived.
func (u *Upstream) Calls() int64 { return u.calls.Load() }

// JSON answers every request with status and body.
func JSON(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// Events answers every request with a stream of these pieces, flushed one by one.
func Events(pieces ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for _, p := range pieces {
			_, _ = io.WriteString(w, p)
			_ = http.NewResponseController(w).Flush()
		}
	}
}

// Engine starts a simulated engine on a free port until the test ends and
// returns it with its base URL.
func Engine(t testing.TB, change ...func(*enginesim.Options)) (*enginesim.Engine, string) {
	t.Helper()
	o := enginesim.DefaultOptions()
	o.Listen = "127.0.0.1:0"
	for _, c := range change {
		c(&o)
	}
	e, err := enginesim.New(o)
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context()))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = e.Stop(ctx)
	})
	return e, "http://" + e.Addr()
}

// Buffer is a log that can be read while it is written.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// String is what was written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
