package servertest

import (
	"testing"

	"holdfast/gpuguard/policy"
	"holdfast/server"
	"holdfast/server/change"
	"holdfast/server/identity"
	"holdfast/server/slacksim"
)

// Kinds of database.
const (
	SQLite   = "sqlite"
	Postgres = "postgres"
)

// Options say what to run. The zero value is a server on SQLite with a simulated
// Slack and an engine, and without gateways.
type Options struct {
	// Database is SQLite (default) or Postgres.
	Database string
	// Gateways is how many gateways take their policy from the server; New waits until each holds it.
	Gateways int
	// WithoutSlack leaves the simulated Slack out.
	WithoutSlack bool
	// Policy changes the base policy before the server starts.
	Policy func(*policy.Document)
	// Server changes the server's options before it starts.
	Server func(*server.Options)
	// Slack changes the simulated Slack's options before it starts. Its rate
	// limits are off unless this sets them.
	Slack func(*slacksim.Options)
}

// Each runs fn on both databases, in parallel subtests named after them.
func Each(t *testing.T, fn func(t *testing.T, database string)) {
	t.Helper()
	for _, database := range []string{SQLite, Postgres} {
		t.Run(database, func(t *testing.T) {
			t.Parallel()
			fn(t, database)
		})
	}
}

// Workspace and channel of the simulated Slack.
const (
	Team    = "T0HOLDFAST"
	Channel = "C0INCIDENTS"
)

// Key is the API key of the tenant "acme" at the gateways.
const Key = "sk-servertest-acme"

// People of the system: one of each role, with the Slack user of each.
var People = map[identity.Role]Person{
	identity.RoleAdmin:     {Handle: "alice", Name: "Alice Andersson", Slack: "U0000ALICE"},
	identity.RoleApprover:  {Handle: "bob", Name: "Bob Berger", Slack: "U000000BOB"},
	identity.RoleResponder: {Handle: "carol", Name: "Carol Chen", Slack: "U0000CAROL"},
	identity.RoleViewer:    {Handle: "mallory", Name: "Mallory Moss", Slack: "U00MALLORY"},
}

// Person is somebody who may use the system. The Slack users U000000EVE (a guest
// of another company) and U000DANIEL (linked to nobody) are strangers to it.
type Person struct {
	Handle, Name string
	// Slack is the Slack user id.
	Slack string
}

// Slack users by name.
const (
	Alice   = "U0000ALICE"
	Bob     = "U000000BOB"
	Carol   = "U0000CAROL"
	Mallory = "U00MALLORY"
	Daniel  = "U000DANIEL"
	Eve     = "U000000EVE"
)

// config is a shop whose checkout talks to an assistant, and a newsletter apart.
func config() server.Config {
	c := server.Config{
		Environments: map[string]server.EnvironmentConfig{"prod": {Scope: change.ScopeNeighbourhood}},
		Services: map[string]server.ServiceConfig{
			"checkout":   {DependsOn: []string{"assistant"}, Owner: "shop"},
			"assistant":  {DependsOn: []string{"llm"}, Owner: "assistant"},
			"llm":        {Owner: "inference"},
			"newsletter": {Owner: "marketing"},
		},
		Slack: server.SlackConfig{Channel: Channel, Teams: []string{Team}, AppID: "A0HOLDFAST"},
	}
	for role, p := range People {
		c.People = append(c.People, server.PersonConfig{Handle: p.Handle, Name: p.Name, Role: role, SlackTeam: Team, SlackUser: p.Slack})
	}
	return c
}
