package slacksim

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// Clock tells the time. Tests inject one that stands still.
type Clock interface {
	Now() time.Time
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

// User is one person the workspace knows.
type User struct {
	// ID is the Slack user id, for example "U0000ALICE".
	ID string
	// Name is the handle, without "@".
	Name string
	// RealName is shown on the page; Name when empty.
	RealName string
	// Email is the profile address; may be empty.
	Email string
	// TeamID is the person's own workspace. Empty means the simulator's
	// TeamID; another value makes a Slack Connect guest of another company.
	TeamID string
	// IsGuest marks a restricted account of the own workspace.
	IsGuest bool
	// Deleted marks a deactivated account: it can be looked up but not click.
	Deleted bool
}

// Channel is one conversation of the workspace.
type Channel struct {
	// ID is the Slack channel id, for example "C0INCIDENTS".
	ID string
	// Name is the channel's name without "#".
	Name string
	// Topic is shown under the name.
	Topic string
	// IsPrivate marks a private channel.
	IsPrivate bool
	// IsArchived makes every post answer is_archived.
	IsArchived bool
	// BotMissing makes every post answer not_in_channel.
	BotMissing bool
}

// RateLimits are Slack's rates. The zero value of a field takes Slack's
// number; Off switches all limits off, for tests about something else.
type RateLimits struct {
	// Off switches rate limiting off.
	Off bool
	// MessagesPerSecond is the rate of new messages per channel (Slack: 1).
	MessagesPerSecond float64
	// MessageBurst is how many messages a quiet channel takes at once. Slack
	// only speaks of "short bursts"; 3 unless set.
	MessageBurst int
	// WorkspacePerMinute caps new messages over all channels (Slack: several
	// hundred; 300 unless set).
	WorkspacePerMinute int
	// Tier1 to Tier4 are calls per minute and method (Slack: 1, 20, 50, 100).
	Tier1, Tier2, Tier3, Tier4 int
}

// Options configure a Sim. Start from DefaultOptions.
type Options struct {
	// Addr is the listening address; port 0 picks a free one.
	Addr string
	// PublicURL is how the app reaches the simulator, when that differs from
	// the listening address (a container name, say). It is the base of
	// response URLs. Empty means the listening address.
	PublicURL string
	// AllowedHosts are extra host names under which the page may be opened.
	// Loopback names and IP addresses always work; other names are refused, so
	// that a foreign site cannot reach the page by rebinding its own name.
	AllowedHosts []string
	// SigningSecret signs every request to the app. Required.
	SigningSecret string
	// BotToken is the bearer token the API accepts. Required.
	BotToken string
	// TeamID, TeamName and AppID identify workspace and app.
	TeamID, TeamName, AppID string
	// BotUserID, BotID and BotName identify the app's bot user.
	BotUserID, BotID, BotName string
	// InteractivityURL receives clicks and modal submissions, CommandsURL
	// slash commands, EventsURL Events API deliveries. Each may be empty and
	// set later.
	InteractivityURL, CommandsURL, EventsURL string
	// Channels and Users seed the workspace.
	Channels []Channel
	Users    []User
	// Scopes are the OAuth scopes of the bot token; nil grants all that the
	// simulator's methods need.
	Scopes []string
	// Clock tells the time; the system clock when nil.
	Clock Clock
	// Logger receives operational logs; discarded when nil.
	Logger *slog.Logger
	// EmptyHint is shown in a channel without messages: what to do next.
	EmptyHint string
	// AllowFaults enables POST /sim/faults.
	AllowFaults bool
	// Rates are the rate limits.
	Rates RateLimits
	// AckTimeout is how long the app may take to answer; AckLimit when 0.
	AckTimeout time.Duration
}

// DefaultOptions returns a workspace with four people and two channels on a
// free local port. Signing secret and token are not secret: they only work
// here.
//
// alice, bob and mallory belong to the workspace; eve is a Slack Connect guest
// of another company. Who may do what is the app's business.
func DefaultOptions() Options {
	return Options{
		Addr:          "127.0.0.1:0",
		SigningSecret: "slacksim-signing-secret",
		BotToken:      "xoxb-slacksim-token",
		TeamID:        "T0HOLDFAST",
		TeamName:      "Holdfast demo",
		AppID:         "A0HOLDFAST",
		BotUserID:     "U0HOLDFAST",
		BotID:         "B0HOLDFAST",
		BotName:       "holdfast",
		Channels: []Channel{
			{ID: "C0INCIDENTS", Name: "incidents", Topic: "Alerts, actions and what they did"},
			{ID: "C000CHANGES", Name: "changes", Topic: "Deploys and other changes that need a word"},
		},
		Users: []User{
			{ID: "U0000ALICE", Name: "alice", RealName: "Alice Andersson", Email: "alice@example.com"},
			{ID: "U000000BOB", Name: "bob", RealName: "Bob Berger", Email: "bob@example.com"},
			{ID: "U00MALLORY", Name: "mallory", RealName: "Mallory Moss", Email: "mallory@example.com"},
			{ID: "U000000EVE", Name: "eve", RealName: "Eve (other company)", TeamID: "T0PARTNERS"},
		},
		EmptyHint: "Nothing has been posted to this channel.",
	}
}

var (
	userIDPattern    = regexp.MustCompile(`^[UW][A-Z0-9]{5,20}$`)
	channelIDPattern = regexp.MustCompile(`^[CG][A-Z0-9]{5,20}$`)
	teamIDPattern    = regexp.MustCompile(`^T[A-Z0-9]{5,20}$`)
	appIDPattern     = regexp.MustCompile(`^A[A-Z0-9]{5,20}$`)
	botIDPattern     = regexp.MustCompile(`^B[A-Z0-9]{5,20}$`)
	namePattern      = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,79}$`)
)

// withDefaults fills what has a meaning when left empty.
func (o Options) withDefaults() Options {
	d := DefaultOptions()
	fill := func(field *string, value string) {
		if *field == "" {
			*field = value
		}
	}
	fill(&o.Addr, d.Addr)
	fill(&o.TeamID, d.TeamID)
	fill(&o.TeamName, d.TeamName)
	fill(&o.AppID, d.AppID)
	fill(&o.BotUserID, d.BotUserID)
	fill(&o.BotID, d.BotID)
	fill(&o.BotName, d.BotName)
	fill(&o.EmptyHint, d.EmptyHint)
	if o.Clock == nil {
		o.Clock = systemClock{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.AckTimeout == 0 {
		o.AckTimeout = AckLimit
	}
	if o.Scopes == nil {
		o.Scopes = allScopes()
	}
	o.Rates = o.Rates.withDefaults()
	return o
}

func (r RateLimits) withDefaults() RateLimits {
	fill := func(field *int, value int) {
		if *field == 0 {
			*field = value
		}
	}
	if r.MessagesPerSecond == 0 {
		r.MessagesPerSecond = 1
	}
	fill(&r.MessageBurst, 3)
	fill(&r.WorkspacePerMinute, 300)
	fill(&r.Tier1, 1)
	fill(&r.Tier2, 20)
	fill(&r.Tier3, 50)
	fill(&r.Tier4, 100)
	return r
}

// validate returns every problem at once, or nil.
func (o Options) validate() error {
	var problems []error
	bad := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf(format, args...))
	}
	if _, _, err := net.SplitHostPort(o.Addr); err != nil {
		bad("Addr %q: want host:port, for example 127.0.0.1:8082", o.Addr)
	}
	if strings.TrimSpace(o.SigningSecret) == "" {
		bad("SigningSecret is empty: requests to the app could not be signed")
	}
	if strings.TrimSpace(o.BotToken) == "" {
		bad("BotToken is empty: the API could not tell the app from anyone else")
	}
	ids := []struct {
		field, value string
		pattern      *regexp.Regexp
	}{
		{"TeamID", o.TeamID, teamIDPattern},
		{"AppID", o.AppID, appIDPattern},
		{"BotUserID", o.BotUserID, userIDPattern},
		{"BotID", o.BotID, botIDPattern},
	}
	for _, id := range ids {
		if !id.pattern.MatchString(id.value) {
			bad("%s %q: want %s", id.field, id.value, id.pattern)
		}
	}
	for field, value := range map[string]string{
		"PublicURL": o.PublicURL, "InteractivityURL": o.InteractivityURL,
		"CommandsURL": o.CommandsURL, "EventsURL": o.EventsURL,
	} {
		if err := checkURL(value); err != nil {
			bad("%s: %w", field, err)
		}
	}
	if o.AckTimeout < 0 {
		bad("AckTimeout %s is negative", o.AckTimeout)
	}
	problems = append(problems, o.Rates.validate()...)
	problems = append(problems, validateChannels(o.Channels)...)
	problems = append(problems, validateUsers(o.Users, o.BotUserID)...)
	if len(problems) > 0 {
		return fmt.Errorf("slacksim: invalid options: %w", errors.Join(problems...))
	}
	return nil
}

func (r RateLimits) validate() []error {
	if r.MessagesPerSecond < 0 || min(r.MessageBurst, r.WorkspacePerMinute, r.Tier1, r.Tier2, r.Tier3, r.Tier4) < 0 {
		return []error{errors.New("option Rates: a rate is negative; use Off to switch limits off")}
	}
	return nil
}

func validateChannels(channels []Channel) []error {
	var problems []error
	if len(channels) == 0 {
		problems = append(problems, errors.New("option Channels is empty: there is nowhere to post"))
	}
	seen := map[string]bool{}
	for i, c := range channels {
		if !channelIDPattern.MatchString(c.ID) {
			problems = append(problems, fmt.Errorf("option Channels[%d].ID %q: want %s", i, c.ID, channelIDPattern))
		}
		if !namePattern.MatchString(c.Name) {
			problems = append(problems, fmt.Errorf("option Channels[%d].Name %q: want lower-case letters, digits, - _ or .", i, c.Name))
		}
		if seen[c.ID] || seen["#"+c.Name] {
			problems = append(problems, fmt.Errorf("option Channels[%d] (%s, %q): id or name is used twice", i, c.ID, c.Name))
		}
		seen[c.ID], seen["#"+c.Name] = true, true
	}
	return problems
}

func validateUsers(users []User, botUserID string) []error {
	var problems []error
	if len(users) == 0 {
		problems = append(problems, errors.New("option Users is empty: nobody could click"))
	}
	seen := map[string]bool{botUserID: true}
	for i, u := range users {
		if !userIDPattern.MatchString(u.ID) {
			problems = append(problems, fmt.Errorf("option Users[%d].ID %q: want %s", i, u.ID, userIDPattern))
		}
		if !namePattern.MatchString(u.Name) {
			problems = append(problems, fmt.Errorf("option Users[%d].Name %q: want lower-case letters, digits, - _ or .", i, u.Name))
		}
		if u.TeamID != "" && !teamIDPattern.MatchString(u.TeamID) {
			problems = append(problems, fmt.Errorf("option Users[%d].TeamID %q: want %s", i, u.TeamID, teamIDPattern))
		}
		if seen[u.ID] {
			problems = append(problems, fmt.Errorf("option Users[%d].ID %q is used twice", i, u.ID))
		}
		seen[u.ID] = true
	}
	return problems
}

// checkURL accepts an empty string or an absolute http(s) URL.
func checkURL(raw string) error {
	if raw == "" {
		return nil
	}
	u, err := url.Parse(raw)
	if err != nil {
		return fmt.Errorf("%q is not a URL: %w", raw, err)
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return fmt.Errorf("%q: want an absolute http or https URL", raw)
	}
	return nil
}
