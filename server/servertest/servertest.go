package servertest

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"holdfast/gpuguard"
	"holdfast/gpuguard/enginesim"
	"holdfast/gpuguard/gpuguardtest"
	"holdfast/gpuguard/policy"
	"holdfast/internal/testenv"
	"holdfast/server"
	"holdfast/server/identity"
	"holdfast/server/slacksim"
)

// patience is how long a step of the system may take before a test gives up: far
// above what it takes, since the race detector and a busy machine slow it down.
const patience = 30 * time.Second

// System is a running system. It ends with the test.
type System struct {
	Server *server.Server
	// URL is the server's base address, without a slash at its end.
	URL string
	// DatabaseURL opens the same database, as an operator's command would.
	DatabaseURL string
	// Sim is the simulated Slack; nil when left out.
	Sim *slacksim.Sim
	// Engine is the simulated engine behind the gateways.
	Engine   *enginesim.Engine
	Gateways []*gpuguard.Guard
	// Tokens are valid service tokens of each kind, except api tokens, which act
	// for a person: see APIToken.
	Tokens Tokens
	// Logs has everything the server logged, one JSON object a line.
	Logs *gpuguardtest.Buffer

	t      testing.TB
	client *http.Client
	// options are those the server runs with.
	options server.Options
	// operator works on the database beside the server.
	operator *server.Operator

	mu sync.Mutex
	// apiTokens are by handle of the person they act for.
	apiTokens map[string]string
}

// Tokens are service tokens in plain text.
type Tokens struct {
	// Hook is for Alertmanager; OtherHook for another alert source.
	Hook, OtherHook string
	CI, Gateway     string
}

// New starts a system; it has stopped without error when the test ends.
func New(t testing.TB, o Options) *System {
	t.Helper()
	s := &System{t: t, Logs: &gpuguardtest.Buffer{}, apiTokens: map[string]string{}, client: &http.Client{
		Timeout:       patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true},
	}}
	t.Cleanup(s.client.CloseIdleConnections)
	s.DatabaseURL = databaseURL(t, o.Database)
	var engineURL string
	s.Engine, engineURL = gpuguardtest.Engine(t)
	so := s.serverOptions(document(engineURL), o)
	if !o.WithoutSlack {
		s.startSlack(&so, o)
	}
	if o.Server != nil {
		o.Server(&so)
	}
	s.startServer(so)
	s.stopLast(func(ctx context.Context) error { return s.Server.Stop(ctx) })
	s.openOperator()
	for i := range o.Gateways {
		s.startGateway(i)
	}
	s.waitForPolicy()
	return s
}

func databaseURL(t testing.TB, database string) string {
	t.Helper()
	switch database {
	case Postgres:
		return testenv.Postgres(t)
	case SQLite, "":
		return "sqlite:" + filepath.Join(t.TempDir(), "holdfast.db")
	default:
		t.Fatalf("servertest: database %q: want %s or %s", database, SQLite, Postgres)
		return ""
	}
}

// document is a policy with the tenant "acme", the dependency and pool "llm" over
// one engine, and the route "chat" with a fallback.
func document(engineURL string) policy.Document {
	doc := gpuguardtest.Document(engineURL)
	doc.Tenants = map[string]policy.Tenant{"acme": {Keys: []string{gpuguardtest.Digest(Key)}}}
	doc.Dependencies["llm"] = policy.Dependency{Service: "llm"}
	return doc
}

func (s *System) serverOptions(doc policy.Document, o Options) server.Options {
	if o.Policy != nil {
		o.Policy(&doc)
	}
	hook := func(source string) server.TokenSeed {
		plain, _ := identity.NewToken(identity.TokenHook, source, nil, "")
		return server.TokenSeed{Kind: identity.TokenHook, Name: source, Token: plain, Scopes: []string{"source:" + source}}
	}
	seed := func(kind identity.TokenKind, name string) server.TokenSeed {
		plain, _ := identity.NewToken(kind, name, nil, "")
		return server.TokenSeed{Kind: kind, Name: name, Token: plain}
	}
	seeds := []server.TokenSeed{hook("alertmanager"), hook("grafana"), seed(identity.TokenCI, "pipeline"), seed(identity.TokenGateway, "gateways")}
	s.Tokens = Tokens{Hook: seeds[0].Token, OtherHook: seeds[1].Token, CI: seeds[2].Token, Gateway: seeds[3].Token}
	reg := prometheus.NewRegistry()
	return server.Options{
		Addr: "127.0.0.1:0", DatabaseURL: s.DatabaseURL, Config: config(), Policy: &doc, Tokens: seeds,
		Logger: slog.New(slog.NewJSONHandler(s.Logs, nil)), Registerer: reg, Gatherer: reg,
	}
}

func (s *System) startSlack(so *server.Options, o Options) {
	s.t.Helper()
	opts := slacksim.DefaultOptions()
	opts.Rates.Off = true
	opts.Users = append(opts.Users, slacksim.User{ID: Carol, Name: "carol", RealName: "Carol Chen"}, slacksim.User{ID: Daniel, Name: "daniel"})
	if o.Slack != nil {
		o.Slack(&opts)
	}
	sim, err := slacksim.New(opts)
	require.NoError(s.t, err)
	require.NoError(s.t, sim.Start(s.t.Context()))
	s.stopLast(sim.Stop)
	s.Sim = sim
	so.Slack = &server.SlackSecrets{BotToken: opts.BotToken, SigningSecret: opts.SigningSecret, APIURL: sim.APIURL()}
}

func (s *System) startServer(so server.Options) {
	s.t.Helper()
	srv, err := server.New(so)
	require.NoError(s.t, err)
	require.NoError(s.t, srv.Start(s.t.Context()))
	s.Server, s.URL, s.options = srv, srv.URL(), so
	if s.Sim != nil {
		require.NoError(s.t, s.Sim.SetInteractivityURL(s.URL+"/slack/interactions"))
		require.NoError(s.t, s.Sim.SetCommandsURL(s.URL+"/slack/commands"))
		require.NoError(s.t, s.Sim.SetEventsURL(s.URL+"/slack/events"))
	}
}

// Restart stops the server without waiting for anybody and starts another one at
// the same address, on the same database.
func (s *System) Restart() {
	s.t.Helper()
	now, cancel := context.WithCancel(s.t.Context())
	cancel()
	// Requests that are cut, such as streams, are what a hard stop is about.
	_ = s.Server.Stop(now)
	so := s.options
	so.Addr = s.Server.Addr()
	reg := prometheus.NewRegistry()
	so.Registerer, so.Gatherer = reg, reg
	s.startServer(so)
}

func (s *System) openOperator() {
	s.t.Helper()
	var err error
	s.operator, err = server.OpenOperator(s.t.Context(), s.DatabaseURL, nil)
	require.NoError(s.t, err)
	s.stopLast(func(context.Context) error { return s.operator.Close() })
}

func (s *System) startGateway(i int) {
	s.t.Helper()
	o := gpuguard.DefaultOptions()
	o.Addr, o.AdminAddr, o.Name = "127.0.0.1:0", "", fmt.Sprintf("gw-%d", i+1)
	o.Control = &gpuguard.Control{URL: s.URL, Token: s.Tokens.Gateway}
	o.Logger, o.DrainTimeout = slog.New(slog.DiscardHandler), 2*time.Second
	g, err := gpuguard.New(o)
	require.NoError(s.t, err)
	require.NoError(s.t, g.Start(s.t.Context()))
	s.stopLast(g.Stop)
	s.Gateways = append(s.Gateways, g)
}

// stopLast stops a part at the end of the test, after the parts started later.
func (s *System) stopLast(stop func(context.Context) error) {
	s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := stop(ctx); err != nil {
			s.t.Errorf("servertest: stop: %v", err)
		}
	})
}

func (s *System) waitForPolicy() {
	s.t.Helper()
	for _, g := range s.Gateways {
		s.Eventually("a policy at every gateway", func() bool { return g.Effective().Revision > 0 })
	}
	if len(s.Gateways) == 0 {
		return
	}
	s.Eventually("every gateway heard", func() bool {
		live := 0
		for _, g := range s.ListGateways() {
			if g.State == "live" {
				live++
			}
		}
		return live == len(s.Gateways)
	})
}

// Eventually polls until ok, and fails the test with what it waited for when
// that does not come.
func (s *System) Eventually(what string, ok func() bool) {
	s.t.Helper()
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			s.t.Fatalf("servertest: waited %s for %s\n%s", patience, what, s.lastLogs())
		}
		time.Sleep(5 * time.Millisecond) //nolint:forbidigo // a running system is watched over HTTP; there is no event to wait for
	}
}

// lastLogs is the end of the server's log, for a failing test.
func (s *System) lastLogs() string {
	logs := s.Logs.String()
	return logs[max(0, len(logs)-4000):]
}

// GatewayURL is the base address of a gateway for callers.
func (s *System) GatewayURL(i int) string { return "http://" + s.Gateways[i].Addr() }

// Operator works on the database beside the server, as the command line does.
func (s *System) Operator() *server.Operator { return s.operator }

// discard reads a body to its end.
func discard(r io.ReadCloser) ([]byte, error) {
	defer func() { _ = r.Close() }()
	return io.ReadAll(r)
}
