package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast/gpuguard/policy"
	"holdfast/server/identity"
	"holdfast/server/observe"
)

// Options configure a Server.
type Options struct {
	// Addr is where it listens, host:port; port 0 picks a free one.
	Addr string
	// PublicURL is the address people and Slack use; default http://<Addr>.
	PublicURL string
	// DatabaseURL is postgres://… or the path of a SQLite file.
	DatabaseURL string
	// Config is what the server is about.
	Config Config
	// Policy is the base document a fresh database begins with; nil leaves a database without one, and gateways wait.
	Policy *policy.Document
	// RunbookDir is a folder with runbooks of your own; empty for none.
	RunbookDir string
	// Tokens are service tokens to enter at start when they are not known yet.
	Tokens []TokenSeed
	// Slack is nil without Slack.
	Slack *SlackSecrets
	// Metrics answers PromQL; when nil, Prometheus says where to get an answer.
	Metrics observe.Source
	// Prometheus is nil without metrics.
	Prometheus *PrometheusOptions
	// Console serves the web console; nil serves none.
	Console http.Handler
	// SessionTTL is how long a console login lasts; zero means 12 h.
	SessionTTL time.Duration

	Logger *slog.Logger
	// Registerer and Gatherer publish metrics; both may be nil.
	Registerer prometheus.Registerer
	Gatherer   prometheus.Gatherer
	// Clock replaces the process clock in tests.
	Clock func() time.Time
}

// TokenSeed is a service token made outside, such as by a deployment's secret store.
type TokenSeed struct {
	Kind   identity.TokenKind `json:"kind"`
	Name   string             `json:"name"`
	Token  string             `json:"token"`
	Scopes []string           `json:"scopes,omitempty"`
}

// SlackSecrets connect to Slack; APIURL is set for slacksim alone.
type SlackSecrets struct {
	BotToken      string
	SigningSecret string
	APIURL        string
}

// validate reports every problem and fills in defaults.
func (o *Options) validate() error {
	var errs []error
	if _, _, err := net.SplitHostPort(o.Addr); err != nil {
		errs = append(errs, fmt.Errorf("listen address %q: want host:port, such as 127.0.0.1:8080", o.Addr))
	}
	if o.DatabaseURL == "" {
		errs = append(errs, errors.New("no database: want postgres://… or the path of a SQLite file"))
	}
	if o.PublicURL != "" {
		u, err := url.Parse(o.PublicURL)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || u.RawQuery != "" {
			errs = append(errs, errors.New("public URL: want http or https with a host, such as https://holdfast.example.com"))
		}
	}
	if err := o.Config.Validate(); err != nil {
		errs = append(errs, err)
	}
	if o.Prometheus != nil {
		errs = append(errs, o.Prometheus.validate())
	}
	if o.Slack != nil {
		errs = append(errs, o.Slack.validate(o.Config.Slack)...)
	}
	if o.Policy != nil {
		if err := o.Policy.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("policy: %w", err))
		}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return errors.Join(errs...)
}

// validate refuses buttons without a signing secret: anybody could press them.
func (s *SlackSecrets) validate(c SlackConfig) []error {
	var errs []error
	if s.BotToken == "" {
		errs = append(errs, errors.New("slack: SLACK_BOT_TOKEN is empty"))
	}
	if s.SigningSecret == "" {
		errs = append(errs, errors.New("slack: SLACK_SIGNING_SECRET is empty; without it anybody could press buttons"))
	}
	if c.Channel == "" {
		errs = append(errs, errors.New("slack: no channel; set slack.channel in the configuration or SLACK_CHANNEL"))
	}
	return errs
}
