package slackapp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast/actions"
	"holdfast/server/audit"
	"holdfast/server/chat"
	"holdfast/server/incident"
	"holdfast/server/outbox"
)

// Chat is what this adapter needs of package chat.
type Chat interface {
	IncidentCard(ctx context.Context, incidentID string) (chat.IncidentCard, error)
	ChangeCard(ctx context.Context, changeID string) (chat.ChangeCard, error)
	Accept(ctx context.Context, p chat.Press) (chat.Answer, error)
	SubmitForm(ctx context.Context, f chat.FormSubmission) (chat.Answer, error)
}

// Refs remembers where cards stand.
type Refs interface {
	MessageRef(ctx context.Context, subject string) (chat.MessageRef, error)
	SaveMessageRef(ctx context.Context, ref chat.MessageRef) error
}

// FormAction is an action offered in the form behind "More…", with the values
// its choice parameters may take now.
type FormAction struct {
	Spec    actions.Spec
	Choices map[string][]string
}

// Desk answers what forms and commands ask.
type Desk interface {
	FormActions(ctx context.Context) ([]FormAction, error)
	OpenIncidents(ctx context.Context) ([]incident.Incident, error)
	// Denied records a refused request in the audit.
	Denied(ctx context.Context, e audit.Entry) error
}

// Options configure the app.
type Options struct {
	// BotToken and SigningSecret are Slack's; both are required, an empty secret is refused.
	BotToken      string
	SigningSecret string
	// APIURL replaces https://slack.com/api/ (slacksim); it ends with a slash.
	APIURL string
	// TeamIDs are the workspaces whose people may act; AppID is our app. Empty accepts what auth.test names.
	TeamIDs []string
	AppID   string
	// Channel is the id of the channel that cards go to.
	Channel string
	// FallbackChannel takes cards while Channel is archived or refuses the app; empty for none (C39).
	FallbackChannel string
	// PublicURL is the console's address.
	PublicURL string

	Chat  Chat
	Refs  Refs
	Desk  Desk
	Queue outbox.Queue

	Logger     *slog.Logger
	Registerer prometheus.Registerer
	HTTPClient *http.Client
	Now        func() time.Time
}

// validate lists everything that is missing.
func (o *Options) validate() error {
	var errs []error
	for name, v := range map[string]string{
		"bot token (SLACK_BOT_TOKEN)":           o.BotToken,
		"signing secret (SLACK_SIGNING_SECRET)": o.SigningSecret,
		"channel":                               o.Channel,
	} {
		if v == "" {
			errs = append(errs, fmt.Errorf("slack: %s is empty", name))
		}
	}
	if o.Chat == nil || o.Refs == nil || o.Desk == nil || o.Queue == nil {
		errs = append(errs, errors.New("slack: Chat, Refs, Desk and Queue are required"))
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.HTTPClient == nil {
		o.HTTPClient = &http.Client{Timeout: 10 * time.Second}
	}
	return errors.Join(errs...)
}
