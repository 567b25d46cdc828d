package server

import (
	"maps"
	"regexp"
	"slices"
	"time"

	"holdfast/gpuguard/policy"
	"holdfast/server/change"
	"holdfast/server/identity"
	"holdfast/strict"
)

// Config is the file named by HOLDFAST_CONFIG: what the server is about. Secrets
// never stand in it.
type Config struct {
	// Environments by name; at least one.
	Environments map[string]EnvironmentConfig `json:"environments"`
	// Services by name, with what they depend on.
	Services map[string]ServiceConfig `json:"services"`
	// People are entered at start when they are not known yet; later edits are not undone.
	People []PersonConfig `json:"people,omitempty"`
	// Slack says where cards go; it takes effect when SLACK_BOT_TOKEN is set.
	Slack SlackConfig `json:"slack,omitzero"`
	// Metrics is what the embedded Prometheus scrapes.
	Metrics MetricsConfig `json:"metrics,omitzero"`
}

// EnvironmentConfig is a place where changes happen.
type EnvironmentConfig struct {
	// GuardBand is the distance kept between changes; default 2h (INCIDENTS B).
	GuardBand policy.Duration `json:"guard_band,omitzero"`
	// Scope is "neighbourhood" (default) or "environment".
	Scope change.Scope `json:"scope,omitempty"`
}

// ServiceConfig is something that can be changed.
type ServiceConfig struct {
	DependsOn []string `json:"depends_on,omitempty"`
	Owner     string   `json:"owner,omitempty"`
}

// PersonConfig is a person to begin with.
type PersonConfig struct {
	Handle string        `json:"handle"`
	Name   string        `json:"name"`
	Role   identity.Role `json:"role"`
	// SlackTeam and SlackUser bind the person at once; leave them out to bind by a one-time link.
	SlackTeam string `json:"slack_team,omitempty"`
	SlackUser string `json:"slack_user,omitempty"`
}

// SlackConfig is the workspace.
type SlackConfig struct {
	// Channel is the id of the channel that cards go to, such as C0123456789.
	Channel string `json:"channel,omitempty"`
	// Teams are the workspace ids whose people may act; empty means the bot's own.
	Teams []string `json:"teams,omitempty"`
	// AppID refuses requests meant for another app; empty accepts any app that knows the signing secret.
	AppID string `json:"app_id,omitempty"`
}

// maxGuardBand bounds a guard band; a longer one would close the calendar.
const maxGuardBand = 7 * 24 * time.Hour

var serviceName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,99}$`)

// Validate reports every problem by path.
func (c Config) Validate() error {
	var errs strict.Errors
	if len(c.Environments) == 0 {
		errs.Addf("environments", "name at least one environment, such as prod")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Environments)) {
		c.Environments[name].validate(strict.Join("environments", name), name, &errs)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Services)) {
		path := strict.Join("services", name)
		if !serviceName.MatchString(name) {
			errs.Addf(path, "a service name has letters, digits, '.', '_' and '-', at most 100")
		}
		for i, dep := range c.Services[name].DependsOn {
			if _, ok := c.Services[dep]; !ok || dep == name {
				errs.Addf(strict.Index(path+".depends_on", i), "%q is not another service of this file", dep)
			}
		}
	}
	for i, p := range c.People {
		p.validate(strict.Index("people", i), &errs)
	}
	c.Metrics.validate("metrics", &errs)
	return errs.Err()
}

func (e EnvironmentConfig) validate(path, name string, errs *strict.Errors) {
	if !serviceName.MatchString(name) {
		errs.Addf(path, "an environment name has letters, digits, '.', '_' and '-', at most 100")
	}
	if e.GuardBand < 0 || e.GuardBand.D() > maxGuardBand {
		errs.Addf(path+".guard_band", "want 0s to %s", maxGuardBand)
	}
	switch e.Scope {
	case "", change.ScopeNeighbourhood, change.ScopeEnvironment:
	default:
		errs.Addf(path+".scope", "want %q or %q", change.ScopeNeighbourhood, change.ScopeEnvironment)
	}
}

func (p PersonConfig) validate(path string, errs *strict.Errors) {
	if p.Handle == "" {
		errs.Addf(path+".handle", "is empty")
	}
	if _, err := identity.ParseRole(string(p.Role)); err != nil {
		errs.Addf(path+".role", "want viewer, responder, approver or admin")
	}
	if (p.SlackTeam == "") != (p.SlackUser == "") {
		errs.Addf(path, "slack_team and slack_user go together")
	}
}

// Catalogue is what the calendar knows, with defaults filled in.
func (c Config) Catalogue() change.Catalogue {
	out := change.Catalogue{Services: map[string]change.Service{}, Environments: map[string]change.Environment{}}
	for name, s := range c.Services {
		out.Services[name] = change.Service{Name: name, DependsOn: s.DependsOn, Owner: s.Owner}
	}
	for name, e := range c.Environments {
		env := change.Environment{Name: name, GuardBand: e.GuardBand.D(), Scope: e.Scope}
		if env.GuardBand == 0 {
			env.GuardBand = change.DefaultGuardBand
		}
		if env.Scope == "" {
			env.Scope = change.ScopeNeighbourhood
		}
		out.Environments[name] = env
	}
	return out
}
