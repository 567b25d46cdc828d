package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"holdfast/cmd/holdfast/story"
	"holdfast/gpuguard"
	"holdfast/gpuguard/enginesim"
	"holdfast/gpuguard/policy"
	"holdfast/server"
	"holdfast/server/slacksim"
	"holdfast/strict/yamlfile"
)

//go:embed demo/holdfast.yaml
var demoConfig []byte

//go:embed demo/policy.yaml
var demoPolicy []byte

// demoFlags are the ports and the state of a demo.
type demoFlags struct {
	state, database          string
	port, slackPort          int
	gatewayPorts, adminPorts []int
	enginePorts              []int
	traffic                  float64
	story                    storyFlags
}

func (a *app) demoCommand() *cobra.Command {
	var f demoFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run everything on this machine: server, gateways, engines, a simulated Slack and traffic",
		Long: `Run the whole product in one process on loopback ports: server and console,
two gateways, two simulated engines, a simulated Slack with working buttons, and
some traffic. No account and no other program is needed.

With --story an outage is played and told: the engine gets its fault, and the
alert, the card and everything after it come by themselves.

With SLACK_BOT_TOKEN, SLACK_SIGNING_SECRET and SLACK_CHANNEL set, cards go to real Slack.`,
		Example: `  holdfast demo
  holdfast demo --story slow-model
  holdfast demo --port 18080 --traffic 50
  holdfast demo alert`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.demo(cmd.Context(), f) },
	}
	pf := cmd.PersistentFlags()
	pf.StringVar(&f.state, "state", filepath.Join(a.stateDir(), "demo"), "folder for the demo's database and tokens ($HOLDFAST_STATE_DIR)")
	fl := cmd.Flags()
	fl.StringVar(&f.database, "database", a.get("HOLDFAST_DATABASE_URL", ""), "postgres://… instead of a SQLite file in the state folder ($HOLDFAST_DATABASE_URL)")
	fl.IntVar(&f.port, "port", 8080, "port of API and console")
	fl.IntVar(&f.slackPort, "slack-port", 8082, "port of the simulated Slack")
	fl.IntSliceVar(&f.gatewayPorts, "gateway-ports", []int{8081, 8083}, "ports of the gateways")
	fl.IntSliceVar(&f.adminPorts, "gateway-admin-ports", []int{9081, 9083}, "admin ports of the gateways")
	fl.IntSliceVar(&f.enginePorts, "engine-ports", []int{9101, 9102}, "ports of the LLM and the embedding engine")
	fl.Float64Var(&f.traffic, "traffic", 12, "background requests per second; 0 sends none; a story brings its own before it")
	f.story.register(cmd)
	cmd.AddCommand(a.demoAlertCommand(&f.state))
	return cmd
}

func (f demoFlags) validate() error {
	if len(f.gatewayPorts) == 0 || len(f.gatewayPorts) != len(f.adminPorts) {
		return usagef("--gateway-ports and --gateway-admin-ports: want one admin port for each gateway")
	}
	if len(f.enginePorts) != 2 {
		return usagef("--engine-ports: want two, for the LLM and the embedding engine")
	}
	if f.traffic < 0 || f.traffic > maxTraffic {
		return usagef("--traffic %g: want 0 to %d requests/s", f.traffic, maxTraffic)
	}
	return f.story.validate()
}

// demoRun is a running demo.
type demoRun struct {
	app    *app
	flags  demoFlags
	opts   server.Options
	facts  demoFacts
	sim    *slacksim.Sim
	server *server.Server
	guards []*gpuguard.Guard
	// llm is the engine that a story gives its fault.
	llm *enginesim.Engine
	// stops run newest first.
	stops []func(context.Context) error
}

// demo starts everything, tells where it is, and stops it at the end of ctx.
func (a *app) demo(ctx context.Context, f demoFlags) (err error) {
	begun := time.Now()
	if err := f.validate(); err != nil {
		return err
	}
	d := &demoRun{app: a, flags: f}
	defer func() { err = errors.Join(err, stopAll(d.stops)) }()
	for _, step := range []func(context.Context) error{d.prepare, d.startSlack, d.startEngines, d.startServer, d.startGateways, d.ready} {
		if err := step(ctx); err != nil {
			return interrupted(ctx, err)
		}
	}
	if err := d.banner(ctx, time.Since(begun)); err != nil {
		return err
	}
	if f.story.name != "" {
		err = d.playStory(ctx)
	}
	if err == nil {
		if f.traffic > 0 {
			d.startTraffic(ctx)
		}
		<-ctx.Done()
	}
	fmt.Fprintln(a.err, "\nstopping …")
	return err
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// prepare reads the demo's files and makes its state folder.
func (d *demoRun) prepare(context.Context) error {
	log, err := d.app.logger()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(d.flags.state, 0o700); err != nil {
		return fmt.Errorf("state folder: %w; choose another with --state", err)
	}
	if d.facts, err = loadOrMakeFacts(d.flags.state); err != nil {
		return err
	}
	d.opts, err = d.app.serverOptions(serveFlags{
		listen: loopback(d.flags.port), database: d.flags.database, state: d.flags.state,
	})
	if err != nil {
		return err
	}
	d.opts.Logger = log
	d.opts.Tokens = d.facts.seeds()
	channel := d.opts.Config.Slack.Channel
	if _, err := yamlfile.Decode("demo/holdfast.yaml", demoConfig, &d.opts.Config); err != nil {
		return err
	}
	if d.opts.Slack != nil { // real Slack: its own channel and people
		d.opts.Config.Slack = server.SlackConfig{Channel: channel}
		for i := range d.opts.Config.People {
			d.opts.Config.People[i].SlackTeam, d.opts.Config.People[i].SlackUser = "", ""
		}
	}
	d.opts.Config.Metrics = d.metrics()
	d.opts.Policy, err = d.policy()
	return err
}

// metrics is what the embedded Prometheus scrapes: often, because somebody watches.
func (d *demoRun) metrics() server.MetricsConfig {
	job := func(name string, labels map[string]string, ports ...int) server.ScrapeJob {
		j := server.ScrapeJob{Job: name, Labels: map[string]string{"environment": "prod"}}
		maps.Copy(j.Labels, labels)
		for _, port := range ports {
			j.Targets = append(j.Targets, loopback(port))
		}
		return j
	}
	return server.MetricsConfig{
		ScrapeInterval: policy.Duration(time.Second), EvaluationInterval: policy.Duration(time.Second),
		Jobs: []server.ScrapeJob{
			job("gateway", nil, d.flags.adminPorts...),
			job("engine", map[string]string{"service": "llm", "pool": "llm"}, d.flags.enginePorts[0]),
			job("engine", map[string]string{"service": "embeddings", "pool": "embeddings"}, d.flags.enginePorts[1]),
			job("holdfast", nil, d.flags.port),
		},
	}
}

// policy is the demo's policy with the engines' ports of this run.
func (d *demoRun) policy() (*policy.Document, error) {
	file, err := yamlfile.Parse("demo/policy.yaml", demoPolicy)
	if err != nil {
		return nil, err
	}
	doc, err := checkPolicy(file)
	if err != nil {
		return nil, err
	}
	for i, pool := range []string{"llm", "embeddings"} {
		for name, e := range doc.Pools[pool].Endpoints {
			e.URL = "http://" + loopback(d.flags.enginePorts[i])
			doc.Pools[pool].Endpoints[name] = e
		}
	}
	d.flags.story.dayOf(doc)
	return doc, nil
}

func (d *demoRun) startSlack(ctx context.Context) error {
	if d.opts.Slack != nil {
		return nil
	}
	o := slacksim.DefaultOptions()
	o.Addr, o.Logger = loopback(d.flags.slackPort), d.opts.Logger.With("component", "slacksim")
	o.InteractivityURL = "http://" + loopback(d.flags.port) + "/slack/interactions"
	o.CommandsURL = "http://" + loopback(d.flags.port) + "/slack/commands"
	o.EmptyHint = "Nothing here yet. Post a sample alert: " + d.app.self() + " demo alert"
	sim, err := slacksim.New(o)
	if err != nil {
		return err
	}
	if err := sim.Start(ctx); err != nil {
		return portError(fmt.Errorf("simulated Slack: %w", err), "--slack-port")
	}
	d.sim = sim
	d.stops = append(d.stops, sim.Stop)
	d.opts.Slack = &server.SlackSecrets{BotToken: o.BotToken, SigningSecret: o.SigningSecret, APIURL: sim.APIURL()}
	return nil
}

func (d *demoRun) startEngines(ctx context.Context) error {
	for i, model := range []string{"demo-model", "demo-embeddings"} {
		o := enginesim.DefaultOptions()
		o.Listen, o.Model, o.Logger = loopback(d.flags.enginePorts[i]), model, d.opts.Logger.With("component", "engine", "model", model)
		if i == 0 && d.flags.story.name != "" {
			o.Profile = story.Profile()
		}
		e, err := enginesim.New(o)
		if err != nil {
			return err
		}
		if err := e.Start(ctx); err != nil {
			return portError(fmt.Errorf("engine %s: %w", model, err), "--engine-ports")
		}
		if i == 0 {
			d.llm = e
		}
		d.stops = append(d.stops, e.Stop)
	}
	return nil
}

func (d *demoRun) startServer(ctx context.Context) error {
	s, err := server.New(d.opts)
	if err != nil {
		return err
	}
	if err := s.Start(ctx); err != nil {
		return portError(err, "--port")
	}
	d.server = s
	d.stops = append(d.stops, s.Stop)
	// The state may come from a run with other ports.
	return s.KeepPolicy(ctx, *d.opts.Policy)
}

func (d *demoRun) startGateways(ctx context.Context) error {
	for i, port := range d.flags.gatewayPorts {
		name := "gw-" + strconv.Itoa(i+1)
		g, err := startGateway(ctx, gatewaySettings{
			name: name, listen: loopback(port), admin: loopback(d.flags.adminPorts[i]),
			control: d.server.URL(), token: d.facts.GatewayToken, state: filepath.Join(d.flags.state, name), secret: d.app.credential,
		}, quiet(d.opts))
		if err != nil {
			return portError(err, "--gateway-ports or --gateway-admin-ports")
		}
		d.guards = append(d.guards, g)
		d.stops = append(d.stops, g.Stop)
	}
	return nil
}

// ready waits until each gateway holds a policy.
func (d *demoRun) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for _, g := range d.guards {
		for g.Effective().Revision == 0 {
			select {
			case <-ctx.Done():
				return errors.New("the gateways got no policy within 15 s; look at the log above")
			case <-tick.C:
			}
		}
	}
	return nil
}
