package controlclient

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"holdfast/gpuguard/policy"
	"holdfast/strict"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "hf_gateway_canary-token"

// pipeListener is a network of in-memory pipes, so that a synctest bubble can
// tell when everybody waits.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case l.conns <- there:
		return here, nil
	case <-l.closed:
		return nil, fmt.Errorf("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// fakeServer is the server's side of the stream, driven by the test.
type fakeServer struct {
	t       *testing.T
	network *pipeListener
	http    *http.Server
	streams chan *fakeStream

	mu sync.Mutex
	// refuse, when set, answers the next requests in place of the server.
	refuse func(w http.ResponseWriter, r *http.Request) bool
	acks   []policy.Ack
	// silent stops the keep-alive comments.
	silent bool
}

// fakeStream is one open stream.
type fakeStream struct {
	header http.Header
	query  string
	out    chan string
	// gone is closed when the client left.
	gone chan struct{}
}

func newFakeServer(t *testing.T) *fakeServer {
	s := &fakeServer{t: t, network: newPipeListener(), streams: make(chan *fakeStream, 100)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /base/api/v1/policy/stream", s.stream)
	mux.HandleFunc("POST /base/api/v1/policy/ack", s.ack)
	s.http = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		refuse := s.refuse
		s.mu.Unlock()
		if refuse == nil || !refuse(w, r) {
			mux.ServeHTTP(w, r)
		}
	})}
	go func() { _ = s.http.Serve(s.network) }()
	t.Cleanup(func() { _ = s.http.Close() })
	return s
}

func (s *fakeServer) stream(w http.ResponseWriter, r *http.Request) {
	st := &fakeStream{header: r.Header, query: r.URL.RawQuery, out: make(chan string), gone: make(chan struct{})}
	defer close(st.gone)
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	flusher := http.NewResponseController(w)
	_ = flusher.Flush()
	s.streams <- st
	alive := time.NewTicker(5 * time.Second)
	defer alive.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case text, ok := <-st.out:
			if !ok {
				return
			}
			_, _ = w.Write([]byte(text))
		case <-alive.C:
			s.mu.Lock()
			silent := s.silent
			s.mu.Unlock()
			if silent {
				continue
			}
			_, _ = w.Write([]byte(": still here\n\n"))
		}
		_ = flusher.Flush()
	}
}

func (s *fakeServer) ack(w http.ResponseWriter, r *http.Request) {
	var a policy.Ack
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Header.Get("Authorization") != "Bearer "+token || strict.DecodeJSON(body, &a) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acks = append(s.acks, a)
	w.WriteHeader(http.StatusNoContent)
}

func (s *fakeServer) lastAck() policy.Ack {
	s.mu.Lock()
	defer s.mu.Unlock()
	require.NotEmpty(s.t, s.acks)
	return s.acks[len(s.acks)-1]
}

func (s *fakeServer) ackCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.acks)
}

func (s *fakeServer) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// send delivers raw text on the stream.
func (st *fakeStream) send(text string) { st.out <- text }

// update delivers a policy event.
func (st *fakeStream) update(t *testing.T, u policy.Update) {
	data, err := json.Marshal(u)
	require.NoError(t, err)
	st.send(fmt.Sprintf("id: %s:%d\nevent: policy\ndata: %s\n\n", u.Lineage, u.Revision, data))
}

// gateway is the gateway's side: what was applied, and an error to give next.
type gateway struct {
	mu      sync.Mutex
	applied []policy.Update
	fail    error
}

func (g *gateway) apply(_ context.Context, u policy.Update) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fail != nil {
		return g.fail
	}
	g.applied = append(g.applied, u)
	return nil
}

func (g *gateway) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.applied)
}

func (g *gateway) last(t *testing.T) policy.Update {
	g.mu.Lock()
	defer g.mu.Unlock()
	require.NotEmpty(t, g.applied)
	return g.applied[len(g.applied)-1]
}

// lockedBuffer takes the log of several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// rig is a running client against a fake server, inside a synctest bubble.
type rig struct {
	t       *testing.T
	server  *fakeServer
	gateway *gateway
	client  *Client
	log     *lockedBuffer
	dir     string
}

// inBubble runs test with a started client; change may alter its options.
func inBubble(t *testing.T, change func(*Options), test func(*rig)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, server: newFakeServer(t), gateway: &gateway{}, log: &lockedBuffer{}, dir: t.TempDir()}
		transport := &http.Transport{DialContext: r.server.network.dial}
		o := Options{
			URL: "http://holdfast.test/base/", Token: token, Gateway: "gw-1", Instance: "i-1", Version: "v1",
			StateDir:   r.dir,
			HTTPClient: &http.Client{Transport: transport, Timeout: time.Second}, // the timeout must not cut the stream
			Logger:     slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			Apply:      r.gateway.apply,
			State:      func() policy.State { return policy.State{InFlight: 7} },
		}
		if change != nil {
			change(&o)
		}
		var err error
		r.client, err = New(o)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); r.client.Run(ctx) }()
		defer func() {
			cancel()
			<-done
			transport.CloseIdleConnections()
			require.NotContains(t, r.log.String(), "canary", "the token is never logged")
		}()
		test(r)
	})
}

// pass lets the bubble's time go on by d, and everything happen that is due.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// connected waits for the next stream.
func (r *rig) connected() *fakeStream {
	r.t.Helper()
	select {
	case st := <-r.server.streams:
		synctest.Wait()
		return st
	case <-time.After(time.Minute):
		require.Fail(r.t, "the client did not connect")
		return nil
	}
}

// deliver sends an update and waits until everything it causes has happened.
func (r *rig) deliver(st *fakeStream, u policy.Update) {
	r.t.Helper()
	st.update(r.t, u)
	synctest.Wait()
}

const baseJSON = `{"version":1,"dependencies":{"llm":{}},"pools":{"main":{"dependency":"llm","endpoints":{}}},"routes":{"chat":{"match":{"path_prefix":"/"},"pool":"main"}}}`

// update is a valid update of lineage "l1".
func update(revision int64, overrides ...policy.Override) policy.Update {
	if overrides == nil {
		overrides = []policy.Override{}
	}
	return policy.Update{Lineage: "l1", Revision: revision, Base: json.RawMessage(baseJSON), Overrides: overrides, LiveGateways: 1}
}

// trip is a lease on the breaker.
func trip(remaining time.Duration) policy.Override {
	return policy.Override{
		ID: "run-1", Path: policy.BreakerForcedPath("llm"), Value: json.RawMessage(`"open"`),
		Owner: "alice", Reason: "storm", RemainingSeconds: remaining.Seconds(),
	}
}
