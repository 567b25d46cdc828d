//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"holdfast/gpuguard"
	"holdfast/gpuguard/gpuguardtest"
	"holdfast/gpuguard/policy"
	"holdfast/internal/testenv"
	"holdfast/server/identity"
	"holdfast/server/slacksim"
)

const tenantKey = "sk-e2e-acme"

// configuration is a shop, with people bound to the simulated Slack's.
const configuration = `
environments:
  prod: {guard_band: 2h}
services:
  checkout: {depends_on: [assistant]}
  assistant: {depends_on: [llm]}
  llm: {}
people:
  - {handle: alice, name: Alice Andersson, role: admin, slack_team: T0HOLDFAST, slack_user: U0000ALICE}
  - {handle: bob, name: Bob Berger, role: approver, slack_team: T0HOLDFAST, slack_user: U000000BOB}
slack:
  channel: C0INCIDENTS
  teams: [T0HOLDFAST]
`

// world is a server process that can be killed and started again, between a
// simulated Slack, a gateway and an engine that live in the test.
type world struct {
	t        *testing.T
	database string
	server   *process
	args     []string
	env      []string
	url      string
	sim      *slacksim.Sim
	engine   string
	gateway  *gpuguard.Guard
	// admin is the gateway's admin address; empty without one. config is the server's configuration file.
	admin, config string

	hookToken, ciToken, gatewayToken string
	// alice and bob are API clients of an admin and an approver.
	alice, bob api
}

// databases are what every promise is shown on.
func databases(t *testing.T, fn func(t *testing.T, database string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { fn(t, filepath.Join(t.TempDir(), "holdfast.db")) })
	t.Run("postgres", func(t *testing.T) { fn(t, testenv.Postgres(t)) })
}

// newWorld starts everything but the gateway.
func newWorld(t *testing.T, database string) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{t: t, database: database}
	w.startSlack()
	_, w.engine = gpuguardtest.Engine(t)
	doc := gpuguardtest.Document(w.engine)
	doc.Tenants = map[string]policy.Tenant{"acme": {Keys: []string{gpuguardtest.Digest(tenantKey)}}}
	doc.Dependencies["llm"] = policy.Dependency{Service: "llm"}
	raw, err := policy.Encode(doc)
	require.NoError(t, err)
	w.config = filepath.Join(dir, "holdfast.yaml")
	w.configure(configuration)
	port := freePorts(t, 1)[0]
	w.url = "http://127.0.0.1:" + port
	w.args = []string{
		"serve", "--listen", "127.0.0.1:" + port, "--database", database, "--state", dir,
		"--config", w.config,
		"--policy", writeFile(t, filepath.Join(dir, "policy.yaml"), string(raw)),
		"--bootstrap-tokens", writeFile(t, filepath.Join(dir, "tokens.yaml"), w.tokens()),
	}
	o := w.sim.Options()
	w.env = []string{"SLACK_BOT_TOKEN=" + o.BotToken, "SLACK_SIGNING_SECRET=" + o.SigningSecret, "SLACK_CHANNEL=C0INCIDENTS", "SLACK_API_URL=" + w.sim.APIURL()}
	require.NoError(t, w.sim.SetInteractivityURL(w.url+"/slack/interactions"))
	w.startServer()
	w.alice, w.bob = api{w.url, w.apiToken("alice")}, api{w.url, w.apiToken("bob")}
	return w
}

// configure writes the server's configuration; it counts from its next start.
func (w *world) configure(text string) { writeFile(w.t, w.config, text) }

func (w *world) startSlack() {
	w.t.Helper()
	o := slacksim.DefaultOptions()
	o.Rates.Off = true
	sim, err := slacksim.New(o)
	require.NoError(w.t, err)
	require.NoError(w.t, sim.Start(w.t.Context()))
	w.t.Cleanup(func() { stop(w.t, sim.Stop) })
	w.sim = sim
}

// tokens are the bootstrap tokens; JSON is YAML too.
func (w *world) tokens() string {
	w.hookToken, _ = identity.NewToken(identity.TokenHook, "am", nil, "")
	w.ciToken, _ = identity.NewToken(identity.TokenCI, "ci", nil, "")
	w.gatewayToken, _ = identity.NewToken(identity.TokenGateway, "gw", nil, "")
	raw, err := json.Marshal([]map[string]any{
		{"kind": "hook", "name": "alertmanager", "token": w.hookToken, "scopes": []string{"source:alertmanager"}},
		{"kind": "ci", "name": "pipeline", "token": w.ciToken},
		{"kind": "gateway", "name": "gateways", "token": w.gatewayToken},
	})
	require.NoError(w.t, err)
	return string(raw)
}

func (w *world) apiToken(handle string) string {
	w.t.Helper()
	return output(w.t, nil, program("holdfast"), "token", "create", "--kind", "api", "--name", "e2e", "--owner", handle, "--database", w.database)
}

func (w *world) startServer() {
	w.t.Helper()
	w.server = start(w.t, w.env, program("holdfast"), w.args...)
	ready(w.t, w.server, w.url+"/readyz")
}

// startGateway runs a gateway of the server and waits until it holds its policy.
func (w *world) startGateway() {
	w.t.Helper()
	o := gpuguard.DefaultOptions()
	reg := prometheus.NewRegistry()
	o.Addr, o.AdminAddr, o.Name, o.Registerer, o.Gatherer = "127.0.0.1:0", w.admin, "gw-1", reg, reg
	o.Control = &gpuguard.Control{URL: w.url, Token: w.gatewayToken}
	o.Logger, o.DrainTimeout = slog.New(slog.DiscardHandler), time.Second
	g, err := gpuguard.New(o)
	require.NoError(w.t, err)
	require.NoError(w.t, g.Start(w.t.Context()))
	w.t.Cleanup(func() { stop(w.t, g.Stop) })
	w.gateway = g
	eventually(w.t, "the gateway heard", func() bool { return w.alice.breakers("closed")+w.alice.breakers("forced_open") > 0 })
}

func (w *world) gatewayURL() string { return "http://" + w.gateway.Addr() }

func stop(t *testing.T, stop func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := stop(ctx); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// alert posts a firing alert as Alertmanager would.
func (w *world) alert() {
	w.t.Helper()
	labels := map[string]string{"alertname": "LLMErrorRateHigh", "severity": "critical", "service": "llm", "dependency": "llm", "environment": "prod"}
	annotations := map[string]string{"summary": "23 % of requests fail", "suggested_actions": "trip_breaker:dependency=llm"}
	status := api{w.url, w.hookToken}.call(w.t, http.MethodPost, "/hooks/alertmanager", map[string]any{
		"version": "4", "groupKey": "llm", "truncatedAlerts": 0, "status": "firing", "receiver": "holdfast",
		"groupLabels": map[string]string{"alertname": "LLMErrorRateHigh"}, "commonLabels": labels, "commonAnnotations": annotations,
		"externalURL": "http://127.0.0.1:9093",
		"alerts": []map[string]any{{
			"status": "firing", "labels": labels, "annotations": annotations, "startsAt": time.Now().UTC().Format(time.RFC3339Nano),
			"endsAt": "0001-01-01T00:00:00Z", "generatorURL": "http://127.0.0.1:9090", "fingerprint": "a1b2c3d4e5f60718",
		}},
	}, nil)
	require.Equal(w.t, http.StatusOK, status)
}

// card waits until a message of the channel matches.
func (w *world) card(what string, match func(slacksim.Message) bool) slacksim.Message {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	m, err := w.sim.WaitMessage(ctx, func(m slacksim.Message) bool { return m.EphemeralTo == "" && match(m) })
	if err != nil {
		for _, m := range w.sim.Messages("") {
			w.t.Log(m.Visible())
		}
	}
	require.NoError(w.t, err, "waited for %s", what)
	return m
}

// press clicks a button as alice once it is there.
func (w *world) press(label string) {
	w.t.Helper()
	m := w.card("the button "+label, func(m slacksim.Message) bool { _, ok := m.Button(label); return ok })
	b, _ := m.Button(label)
	res, err := w.sim.Click(w.t.Context(), slacksim.ClickRequest{Channel: m.Channel, TS: m.TS, ActionID: b.ActionID, UserID: "U0000ALICE"})
	require.NoError(w.t, err)
	require.True(w.t, res.Acked(), "answered %d", res.Status)
}
