package gateway_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"holdfast/gpuguard/internal/gateway"
	"holdfast/gpuguard/internal/upstream"
	"holdfast/gpuguard/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	key      = "sk-test-alpha"
	chatPath = "/v1/chat/completions"
)

// memory is a network of in-process pipes, so that tests can run in a bubble
// with its own time.
type memory struct {
	mu        sync.Mutex
	listeners map[string]*memoryListener
}

func (m *memory) listen(addr string) net.Listener {
	l := &memoryListener{addr: addr, conns: make(chan net.Conn), closed: make(chan struct{})}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.listeners[addr] = l
	return l
}

func (m *memory) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	m.mu.Lock()
	l := m.listeners[addr]
	m.mu.Unlock()
	if l == nil {
		return nil, &net.OpError{Op: "dial", Net: "memory", Err: errRefused}
	}
	here, there := net.Pipe()
	select {
	case l.conns <- there:
		return here, nil
	case <-l.closed:
		return nil, &net.OpError{Op: "dial", Net: "memory", Err: errRefused}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type refusedError struct{}

func (refusedError) Error() string { return "connection refused" }

var errRefused = refusedError{}

type memoryListener struct {
	addr   string
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error   { l.once.Do(func() { close(l.closed) }); return nil }
func (l *memoryListener) Addr() net.Addr { return memoryAddr(l.addr) }

type memoryAddr string

func (memoryAddr) Network() string  { return "memory" }
func (a memoryAddr) String() string { return string(a) }

// bench is a gateway between a client and scripted upstreams.
type bench struct {
	t        *testing.T
	net      *memory
	gateway  *gateway.Gateway
	registry *prometheus.Registry
	log      *lockedBuffer // one line per request
	events   *lockedBuffer // everything else
	client   *http.Client
	document policy.Document
	revision int64
	servers  []*http.Server
}

// inBubble runs a test with its own time over an in-process network.
func inBubble(t *testing.T, upstreams map[string]http.HandlerFunc, change func(*policy.Document), test func(*testing.T, *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, upstreams, change)
		defer b.close()
		test(t, b)
	})
}

func newBench(t *testing.T, upstreams map[string]http.HandlerFunc, change func(*policy.Document)) *bench {
	b := &bench{t: t, net: &memory{listeners: map[string]*memoryListener{}}, registry: prometheus.NewRegistry(), log: &lockedBuffer{}, events: &lockedBuffer{}}
	endpoints := map[string]policy.Endpoint{}
	for name, h := range upstreams {
		b.serve(name+":80", h)
		endpoints[name] = policy.Endpoint{URL: "http://" + name}
	}
	b.document = document(endpoints)
	if change != nil {
		change(&b.document)
	}
	g, err := gateway.New(gateway.Options{
		Logger:      slog.New(slog.NewJSONHandler(b.events, nil)),
		AccessLog:   slog.New(slog.NewJSONHandler(b.log, nil)),
		Clock:       time.Now,
		NewClient:   func(d time.Duration) gateway.Client { return upstream.NewClientWithDial(d, b.net.dial) },
		BodyTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second,
		Registerer: b.registry,
		Secret:     func(policy.Credential) (string, error) { return "upstream-secret", nil },
	})
	require.NoError(t, err)
	b.gateway = g
	b.apply()
	b.serve("gateway:80", g.ServeHTTP)
	b.client = &http.Client{
		Transport:     &http.Transport{DialContext: b.net.dial, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return b
}

func (b *bench) serve(addr string, h http.HandlerFunc) {
	s := &http.Server{Handler: h, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), ReadHeaderTimeout: time.Minute}
	l := b.net.listen(addr)
	b.servers = append(b.servers, s)
	go func() { _ = s.Serve(l) }()
}

func (b *bench) close() {
	b.client.CloseIdleConnections()
	for _, s := range b.servers {
		_ = s.Close()
	}
	b.gateway.Close()
	pass(time.Minute) // of the bubble: handlers that sleep wake up and leave
	synctest.Wait()
}

// pass lets time go by; in a bubble it takes none.
func pass(d time.Duration) { <-time.After(d) }

// apply puts the document in force, with overrides already merged into it.
func (b *bench) apply(overrides ...policy.Override) {
	b.t.Helper()
	b.revision++
	doc, err := policy.Merge(b.document, overrides, time.Now())
	require.NoError(b.t, err)
	require.NoError(b.t, b.gateway.Apply(policy.Effective{Lineage: "test", Revision: b.revision, Document: doc, Overrides: overrides}, 1))
}

// document is a policy with one dependency "llm" whose limits are those of
// INCIDENTS A, and the route "chat".
func document(endpoints map[string]policy.Endpoint) policy.Document {
	digest := sha256.Sum256([]byte(key))
	return policy.Document{
		Version: policy.Version,
		Tenants: map[string]policy.Tenant{"alpha": {Class: "vip", Keys: []string{hex.EncodeToString(digest[:])}}},
		Dependencies: map[string]policy.Dependency{"llm": {
			Timeouts: policy.Timeouts{
				Connect: dur(3 * time.Second), FirstByte: dur(15 * time.Second), Idle: dur(5 * time.Second),
				Total: dur(20 * time.Second), StreamTotal: dur(10 * time.Minute),
			},
		}},
		Pools:  map[string]policy.Pool{"llm": {Dependency: "llm", Endpoints: endpoints}},
		Routes: map[string]policy.Route{"chat": {Match: policy.Match{PathPrefix: "/v1"}, Pool: "llm", Expect: policy.ExpectJSON}},
	}
}

func dur(d time.Duration) policy.Duration { return policy.Duration(d) }

// answer is a response read to its end.
type answer struct {
	status  int
	header  http.Header
	trailer http.Header
	body    string
	err     error // of reading the body
}

func (a answer) outcome() policy.Outcome {
	if o := a.header.Get("X-Gpuguard-Outcome"); o != "" {
		return policy.Outcome(o)
	}
	return policy.Outcome(a.trailer.Get("X-Gpuguard-Outcome"))
}

func (b *bench) request(method, path, body string) *http.Request {
	b.t.Helper()
	var r io.Reader
	if body != "" {
		r = bytes.NewReader([]byte(body))
	}
	req, err := http.NewRequestWithContext(b.t.Context(), method, "http://gateway"+path, r)
	require.NoError(b.t, err)
	req.Header.Set("Authorization", "Bearer "+key)
	return req
}

func (b *bench) do(req *http.Request) answer {
	b.t.Helper()
	resp, err := b.client.Do(req)
	require.NoError(b.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, resp.Trailer, string(body), err}
}

func (b *bench) chat(body string) answer {
	b.t.Helper()
	return b.do(b.request(http.MethodPost, chatPath, body))
}

// outcomes is the count of one outcome of the dependency llm.
func (b *bench) outcomes(o policy.Outcome) int64 {
	return b.gateway.State().Outcomes["llm"][o]
}

func (b *bench) breaker() policy.BreakerState { return b.gateway.State().Breakers["llm"] }

// errorOf reads the OpenAI error shape.
func errorOf(t *testing.T, a answer) (code, kind string) {
	t.Helper()
	var e struct {
		Error struct {
			Message string  `json:"message"`
			Type    string  `json:"type"`
			Code    string  `json:"code"`
			Param   *string `json:"param"`
		} `json:"error"`
	}
	require.NoError(t, json.Unmarshal([]byte(a.body), &e), a.body)
	require.NotEmpty(t, e.Error.Message)
	return e.Error.Code, e.Error.Type
}

const (
	plainBody  = `{"model":"m","messages":[{"role":"user","content":"hello"}]}`
	streamBody = `{"model":"m","messages":[{"role":"user","content":"hello"}],"stream":true}`
	goodAnswer = `{"id":"1","choices":[{"message":{"content":"hi"}}]}`
	chunk      = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n"
	done       = "data: [DONE]\n\n"
)

func jsonAnswer(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func events(w http.ResponseWriter, parts ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, p := range parts {
		_, _ = io.WriteString(w, p)
		w.(http.Flusher).Flush()
	}
}

func eventAnswer(parts ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		events(w, parts...)
	}
}

func only(h http.HandlerFunc) map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{"one": h}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// counted counts the calls of a handler.
func counted(n *atomic.Int64, h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		h(w, r)
	}
}
