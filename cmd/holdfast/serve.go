package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"

	rules "holdfast/deploy/prometheus"
	"holdfast/gpuguard"
	"holdfast/gpuguard/policy"
	"holdfast/server"
	"holdfast/server/change"
	"holdfast/server/identity"
	"holdfast/strict/yamlfile"
	"holdfast/version"
	"holdfast/web"
)

// stopTime is how long a stopping process lets requests finish.
const stopTime = 15 * time.Second

// serveFlags are the settings of a server.
type serveFlags struct {
	listen, publicURL, database, config, policy, tokens, state string
	prometheus, runbooks                                       string
	withGateway                                                bool
	gatewayListen, gatewayAdmin                                string
}

func (a *app) serveCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the server",
		Long: `Run the server: API, console, Slack and hooks on one address.

Slack is used when SLACK_BOT_TOKEN and SLACK_SIGNING_SECRET are set; cards go to
slack.channel of the configuration, or to SLACK_CHANNEL.

Metrics come from the Prometheus named by --prometheus-url (a bearer token for it
in HOLDFAST_PROMETHEUS_TOKEN). Without one, holdfast scrapes the jobs under
metrics of the configuration by itself, keeps six hours in the state folder and
evaluates its alert rules.`,
		Example: `  holdfast serve --database holdfast.db --policy policy.yaml
  holdfast serve --config holdfast.yaml --database postgres://holdfast@db/holdfast --public-url https://holdfast.example.com
  holdfast serve --with-gateway --policy policy.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context(), f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.listen, "listen", a.get("HOLDFAST_LISTEN", "127.0.0.1:8080"), "address to listen on ($HOLDFAST_LISTEN)")
	fl.StringVar(&f.publicURL, "public-url", a.get("HOLDFAST_PUBLIC_URL", ""), "address people use; default http://<listen> ($HOLDFAST_PUBLIC_URL)")
	fl.StringVar(&f.database, "database", a.get("HOLDFAST_DATABASE_URL", ""), "postgres://… or a SQLite file; default <state>/holdfast.db ($HOLDFAST_DATABASE_URL)")
	fl.StringVar(&f.config, "config", a.get("HOLDFAST_CONFIG", ""), "configuration file: environments, services, people, Slack ($HOLDFAST_CONFIG)")
	fl.StringVar(&f.policy, "policy", a.get("HOLDFAST_POLICY_FILE", ""), "base policy of a fresh database ($HOLDFAST_POLICY_FILE)")
	fl.StringVar(&f.tokens, "bootstrap-tokens", a.get("HOLDFAST_BOOTSTRAP_TOKENS_FILE", ""), "file of service tokens to enter at start ($HOLDFAST_BOOTSTRAP_TOKENS_FILE)")
	fl.StringVar(&f.state, "state", a.stateDir(), "folder for files of this server ($HOLDFAST_STATE_DIR)")
	fl.StringVar(&f.prometheus, "prometheus-url", a.get("HOLDFAST_PROMETHEUS_URL", ""), "a Prometheus of your own; without it one runs in this process ($HOLDFAST_PROMETHEUS_URL)")
	fl.StringVar(&f.runbooks, "runbooks", a.get("HOLDFAST_RUNBOOKS", ""), "folder with runbooks of your own, beside those that ship with holdfast ($HOLDFAST_RUNBOOKS)")
	fl.BoolVar(&f.withGateway, "with-gateway", false, "also run a gateway in this process")
	fl.StringVar(&f.gatewayListen, "gateway-listen", a.get("GPUGUARD_LISTEN", "127.0.0.1:8081"), "address of that gateway ($GPUGUARD_LISTEN)")
	fl.StringVar(&f.gatewayAdmin, "gateway-admin-listen", a.get("GPUGUARD_ADMIN_LISTEN", "127.0.0.1:9081"), "its admin address ($GPUGUARD_ADMIN_LISTEN)")
	return cmd
}

func (a *app) serve(ctx context.Context, f serveFlags) error {
	opts, err := a.serverOptions(f)
	if err != nil {
		return err
	}
	var token string
	if f.withGateway {
		if token, err = embeddedToken(f.state); err != nil {
			return err
		}
		opts.Tokens = append(opts.Tokens, server.TokenSeed{
			Kind: identity.TokenGateway, Name: "embedded-gateway", Token: token, Scopes: []string{"gateway:" + embeddedName},
		})
		scrapeGateway(&opts.Config, f.gatewayAdmin)
	}
	s, err := server.New(opts)
	if err != nil {
		return usageError{err}
	}
	if err := s.Start(ctx); err != nil {
		return interrupted(ctx, portError(err, "--listen"))
	}
	stops := []func(context.Context) error{s.Stop}
	if f.withGateway {
		g, err := a.embeddedGateway(ctx, f, s, token, opts)
		if err != nil {
			return errors.Join(err, stopAll(stops))
		}
		stops = append(stops, g.Stop)
	}
	<-ctx.Done()
	opts.Logger.Info("stopping")
	return stopAll(stops)
}

// interrupted forgives what failed because the process was told to stop while it
// was starting.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// stopAll stops newest first.
func stopAll(stops []func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	var errs []error
	for _, stop := range slices.Backward(stops) {
		errs = append(errs, stop(ctx))
	}
	return errors.Join(errs...)
}

func (a *app) serverOptions(f serveFlags) (server.Options, error) {
	log, err := a.logger()
	if err != nil {
		return server.Options{}, err
	}
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	opts := server.Options{
		Addr: f.listen, PublicURL: f.publicURL, DatabaseURL: f.database, RunbookDir: f.runbooks,
		Console: web.Handler(web.Options{}), Logger: log, Registerer: reg, Gatherer: reg,
	}
	if opts.DatabaseURL == "" {
		if err := os.MkdirAll(f.state, 0o700); err != nil {
			return opts, fmt.Errorf("state folder: %w", err)
		}
		opts.DatabaseURL = filepath.Join(f.state, "holdfast.db")
	}
	if f.policy != "" {
		if opts.Policy, err = loadPolicy(f.policy); err != nil {
			return opts, usageError{err}
		}
	}
	if opts.Config, err = loadConfig(f.config, opts.Policy); err != nil {
		return opts, usageError{err}
	}
	if f.tokens != "" {
		if _, err := yamlfile.Load(f.tokens, &opts.Tokens); err != nil {
			return opts, usageError{err}
		}
	}
	if opts.Prometheus, err = a.prometheusOptions(f); err != nil {
		return opts, err
	}
	return opts, a.slackOptions(&opts)
}

// prometheusOptions say where metrics come from: from a Prometheus of the
// operator's, or from the one in this process with the rules that ship with holdfast.
func (a *app) prometheusOptions(f serveFlags) (*server.PrometheusOptions, error) {
	files, err := rules.Rules()
	if err != nil {
		return nil, err
	}
	p := &server.PrometheusOptions{
		URL: f.prometheus, Token: a.get("HOLDFAST_PROMETHEUS_TOKEN", ""), Dir: filepath.Join(f.state, "metrics"), Rules: map[string][]byte{},
	}
	for _, file := range files {
		p.Rules[file.Name] = file.Data
	}
	return p, nil
}

// scrapeGateway adds the gateway of this process to what is scraped, unless the
// configuration names it.
func scrapeGateway(c *server.Config, admin string) {
	admin = hostPort(admin)
	for _, job := range c.Metrics.Jobs {
		if slices.Contains(job.Targets, admin) {
			return
		}
	}
	job := server.ScrapeJob{Job: "gateway", Targets: []string{admin}}
	if names := slices.Sorted(maps.Keys(c.Environments)); len(names) == 1 {
		job.Labels = map[string]string{"environment": names[0]}
	}
	c.Metrics.Jobs = append(c.Metrics.Jobs, job)
}

// slackOptions switches Slack on when its secrets are in the environment.
func (a *app) slackOptions(opts *server.Options) error {
	token, secret := a.get("SLACK_BOT_TOKEN", ""), a.get("SLACK_SIGNING_SECRET", "")
	if channel := a.get("SLACK_CHANNEL", ""); channel != "" {
		opts.Config.Slack.Channel = channel
	}
	if token == "" && secret == "" {
		return nil
	}
	if token == "" || secret == "" {
		return usagef("SLACK_BOT_TOKEN and SLACK_SIGNING_SECRET go together: without the secret anybody could press buttons")
	}
	opts.Slack = &server.SlackSecrets{BotToken: token, SigningSecret: secret, APIURL: a.get("SLACK_API_URL", "")}
	return nil
}

// loadPolicy reads and checks a base policy; errors name file, line and key.
func loadPolicy(path string) (*policy.Document, error) {
	file, err := yamlfile.Open(path)
	if err != nil {
		return nil, err
	}
	return checkPolicy(file)
}

func checkPolicy(file *yamlfile.File) (*policy.Document, error) {
	doc, err := policy.Decode(file.JSON())
	if err == nil {
		err = doc.Validate()
	}
	if err != nil {
		return nil, file.LocateErr(err)
	}
	return &doc, nil
}

// loadConfig reads and checks the configuration. Without a file there is one
// environment, prod, and a service for each dependency of the policy.
func loadConfig(path string, doc *policy.Document) (server.Config, error) {
	var c server.Config
	if path == "" {
		return defaultConfig(doc), nil
	}
	file, err := yamlfile.Load(path, &c)
	if err != nil {
		return c, err
	}
	return c, file.LocateErr(c.Validate())
}

func defaultConfig(doc *policy.Document) server.Config {
	c := server.Config{
		Environments: map[string]server.EnvironmentConfig{"prod": {Scope: change.ScopeNeighbourhood}},
		Services:     map[string]server.ServiceConfig{},
	}
	if doc == nil {
		return c
	}
	for name, d := range doc.Dependencies {
		if d.Service != "" {
			name = d.Service
		}
		c.Services[name] = server.ServiceConfig{}
	}
	return c
}

// embeddedName is the gateway of serve --with-gateway.
const embeddedName = "embedded"

// embeddedToken is that gateway's token, kept over restarts in a file of its owner's.
func embeddedToken(state string) (string, error) {
	path := filepath.Join(state, "gateway-"+embeddedName+".token")
	b, err := os.ReadFile(path)
	if err == nil {
		return strings.TrimSpace(string(b)), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("token of the embedded gateway: %w", err)
	}
	if err := os.MkdirAll(state, 0o700); err != nil {
		return "", fmt.Errorf("state folder: %w", err)
	}
	plain, _ := identity.NewToken(identity.TokenGateway, "embedded-gateway", nil, "")
	if err := os.WriteFile(path, []byte(plain+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("token of the embedded gateway: %w", err)
	}
	return plain, nil
}

// embeddedGateway runs a gateway beside the server.
func (a *app) embeddedGateway(ctx context.Context, f serveFlags, s *server.Server, token string, opts server.Options) (*gpuguard.Guard, error) {
	g, err := startGateway(ctx, gatewaySettings{
		name: embeddedName, listen: f.gatewayListen, admin: f.gatewayAdmin, control: "http://" + hostPort(s.Addr()), token: token,
		state: filepath.Join(f.state, "gateway-"+embeddedName), secret: a.credential,
	}, opts)
	return g, portError(err, "--gateway-listen or --gateway-admin-listen")
}

// hostPort is how a process on this machine reaches a listening address.
func hostPort(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// gatewaySettings are what differs between gateways of one process.
type gatewaySettings struct {
	name, listen, admin, control, token, state string
	secret                                     func(policy.Credential) (string, error)
}

func startGateway(ctx context.Context, g gatewaySettings, opts server.Options) (*gpuguard.Guard, error) {
	reg := prometheus.NewRegistry()
	o := gpuguard.DefaultOptions()
	o.Addr, o.AdminAddr, o.Name, o.Version, o.StateDir = g.listen, g.admin, g.name, version.Version, g.state
	o.Control = &gpuguard.Control{URL: g.control, Token: g.token}
	o.Secret, o.Registerer, o.Gatherer = g.secret, reg, reg
	o.Logger = opts.Logger.With("gateway", g.name)
	guard, err := gpuguard.New(o)
	if err != nil {
		return nil, err
	}
	if err := guard.Start(ctx); err != nil {
		return nil, fmt.Errorf("gateway %s: %w", g.name, err)
	}
	return guard, nil
}

// credential reads an upstream secret from the environment or a file, as the policy names it.
func (a *app) credential(c policy.Credential) (string, error) {
	if c.Env != "" {
		v := a.get(c.Env, "")
		if v == "" {
			return "", fmt.Errorf("environment variable %s is not set", c.Env)
		}
		return v, nil
	}
	b, err := os.ReadFile(c.File)
	if err != nil {
		return "", fmt.Errorf("credential file: %w", err)
	}
	return string(b), nil
}

// portError says which flag moves a port that is in use.
func portError(err error, flag string) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return usagef("%w; another program has this port: stop it, or choose another with %s", err, flag)
	}
	return err
}
