package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast/actions"
	"holdfast/gpuguard/policy"
	"holdfast/runbooks"
	"holdfast/server/alert"
	"holdfast/server/audit"
	"holdfast/server/change"
	"holdfast/server/fleet"
	"holdfast/server/identity"
	"holdfast/server/incident"
	"holdfast/server/observe"
)

// Fleet is what this package needs of the policy's keeper.
type Fleet interface {
	Head(ctx context.Context) (fleet.Head, error)
	Effective(ctx context.Context) (policy.Effective, error)
	// PutBase replaces the base document; ifRevision is the revision that was read.
	PutBase(ctx context.Context, base json.RawMessage, ifRevision int64) (fleet.Head, error)
	Revisions(ctx context.Context, before int64, limit int) ([]fleet.Revision, error)
	ConfirmLineage(ctx context.Context) error
	Gateways(ctx context.Context) ([]fleet.Member, error)
	// Subscribe gives the policy now and at every change, until ctx ends.
	Subscribe(ctx context.Context, gateway string) (<-chan policy.Update, error)
	Ack(ctx context.Context, ack policy.Ack) error
}

// AuditReader reads the audit.
type AuditReader interface {
	AuditEntries(ctx context.Context, before int64, limit int) ([]audit.Linked, error)
	Head(ctx context.Context) (audit.Head, error)
}

// Runbooks is what this package needs of the runbook engine.
type Runbooks interface {
	Runbooks() []runbooks.Runbook
	Runbook(id string) (runbooks.Runbook, error)
	// Launch gives ErrDuplicate with the first run when the key is known.
	Launch(ctx context.Context, r runbooks.StartRequest) (runbooks.Run, error)
	Answer(ctx context.Context, runID string, a runbooks.AnswerRequest) (runbooks.Run, error)
	Cancel(ctx context.Context, runID string, who actions.Actor) (runbooks.Run, error)
	Find(ctx context.Context, id string) (runbooks.Run, error)
	List(ctx context.Context, f runbooks.Filter) ([]runbooks.Run, error)
	Suggest(labels, annotations map[string]string) []runbooks.Suggestion
}

// Signals gives the board of golden signals; empty texts take every service and
// every environment.
type Signals interface {
	Board(ctx context.Context, service, environment string) ([]observe.ServiceSignals, error)
}

// Event says that something changed.
type Event struct {
	ID      int64
	Topic   string
	Subject string
}

// Events broadcasts what changed.
type Events interface {
	// Subscribe closes the channel when the subscriber is too slow or the server stops.
	Subscribe() (events <-chan Event, cancel func())
	// Since gives later events; complete is false when some are gone.
	Since(id int64) (events []Event, complete bool)
}

// Options configure the handler. All but Metrics, Signals, Slack, Console and
// Registerer are required.
type Options struct {
	Identity  *identity.Service
	Incidents *incident.Service
	Alerts    *alert.Intake
	Changes   *change.Calendar
	Actions   *actions.Engine
	Runbooks  Runbooks
	Fleet     Fleet
	Audit     AuditReader
	Events    Events
	// Ready says whether the database answers.
	Ready func(ctx context.Context) error
	// Unavailable says whether an error means that the database was away: it may be
	// back by the time anybody asks Ready.
	Unavailable func(err error) bool

	// Metrics answers PromQL, Signals the board; nil without a source of metrics.
	Metrics observe.Source
	Signals Signals

	// Slack serves /slack/, Console everything that is not an API path. Nil means 404.
	Slack   http.Handler
	Console http.Handler

	// PublicURL is the address that people use; https makes cookies Secure.
	PublicURL *url.URL
	// SessionTTL bounds the session cookie.
	SessionTTL time.Duration
	Logger     *slog.Logger
	// Registerer gets the metrics, Gatherer is served at /metrics; both may be nil.
	Registerer prometheus.Registerer
	Gatherer   prometheus.Gatherer
}

func (o *Options) validate() error {
	if o.Identity == nil || o.Incidents == nil || o.Alerts == nil || o.Changes == nil || o.Actions == nil ||
		o.Runbooks == nil || o.Fleet == nil || o.Audit == nil || o.Events == nil || o.Ready == nil || o.Unavailable == nil || o.PublicURL == nil {
		return errors.New("httpapi: a required option is missing")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.SessionTTL <= 0 {
		o.SessionTTL = identity.DefaultSessionTTL
	}
	return nil
}
