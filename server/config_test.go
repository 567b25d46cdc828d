package server

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"holdfast/server/change"
	"holdfast/strict"
	"holdfast/strict/yamlfile"
)

func TestConfigNamesEveryProblem(t *testing.T) {
	t.Parallel()
	text := `environments:
  prod: {guard_band: 200h, scope: everything}
  "prod!": {}
services:
  checkout: {depends_on: [asistant, checkout]}
people:
  - {handle: "", name: A, role: root}
  - {handle: bob, name: Bob, role: viewer, slack_user: U1}
metrics:
  scrape_interval: 100ms
  retention: 10m
  jobs:
    - {job: "my engine", targets: [], labels: {job: x}}
    - {job: engine, targets: ["http://127.0.0.1:9101/metrics", "127.0.0.1:0"], path: metrics}
`
	var c Config
	file, err := yamlfile.Decode("holdfast.yaml", []byte(text), &c)
	require.NoError(t, err)
	var errs strict.Errors
	require.ErrorAs(t, file.LocateErr(c.Validate()), &errs)
	got := map[string]int{}
	for _, e := range errs {
		got[e.Path] = e.Line
	}
	want := map[string]int{
		`environments["prod!"]`: 3, "environments.prod.guard_band": 2, "environments.prod.scope": 2,
		"services.checkout.depends_on[0]": 5, "services.checkout.depends_on[1]": 5,
		"people[0].handle": 7, "people[0].role": 7, "people[1]": 8,
		"metrics.scrape_interval": 10, "metrics.retention": 11,
		"metrics.jobs[0].job": 13, "metrics.jobs[0].targets": 13, "metrics.jobs[0].labels.job": 13,
		"metrics.jobs[1].targets[0]": 14, "metrics.jobs[1].targets[1]": 14, "metrics.jobs[1].path": 14,
	}
	require.Empty(t, cmp.Diff(want, got))
	require.ErrorContains(t, Config{}.Validate(), "at least one environment")
}

func TestCatalogueFillsInDefaults(t *testing.T) {
	t.Parallel()
	c := Config{
		Environments: map[string]EnvironmentConfig{"prod": {}, "lab": {Scope: change.ScopeEnvironment}},
		Services:     map[string]ServiceConfig{"a": {DependsOn: []string{"b"}, Owner: "team"}, "b": {}},
	}
	require.NoError(t, c.Validate())
	require.Empty(t, cmp.Diff(change.Catalogue{
		Services: map[string]change.Service{"a": {Name: "a", DependsOn: []string{"b"}, Owner: "team"}, "b": {Name: "b"}},
		Environments: map[string]change.Environment{
			"prod": {Name: "prod", GuardBand: 2 * time.Hour, Scope: change.ScopeNeighbourhood},
			"lab":  {Name: "lab", GuardBand: 2 * time.Hour, Scope: change.ScopeEnvironment},
		},
	}, c.Catalogue()))
}

func TestNewRefusesDangerousOptions(t *testing.T) {
	t.Parallel()
	good := Options{Addr: "127.0.0.1:0", DatabaseURL: "x.db", Config: Config{Environments: map[string]EnvironmentConfig{"prod": {}}}}
	_, err := New(good)
	require.NoError(t, err)
	tests := []struct {
		name string
		edit func(*Options)
		want string
	}{
		{"address", func(o *Options) { o.Addr = "8080" }, "want host:port"},
		{"no database", func(o *Options) { o.DatabaseURL = "" }, "no database"},
		{"public URL with a password", func(o *Options) { o.PublicURL = "https://u:secret@h" }, "public URL"},
		{"buttons without a signing secret", func(o *Options) { o.Slack = &SlackSecrets{BotToken: "x"} }, "SLACK_SIGNING_SECRET is empty"},
		{"metrics without a folder", func(o *Options) { o.Prometheus = &PrometheusOptions{} }, "needs a folder"},
		{"Slack without a channel", func(o *Options) { o.Slack = &SlackSecrets{BotToken: "x", SigningSecret: "y"} }, "no channel"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := good
			tt.edit(&o)
			_, err := New(o)
			require.ErrorContains(t, err, tt.want)
			require.NotContains(t, err.Error(), "secret@")
		})
	}
}
