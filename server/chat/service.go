package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast/actions"
	"holdfast/loop"
	"holdfast/server/audit"
	"holdfast/server/identity"
	"holdfast/server/incident"
	"holdfast/server/outbox"
)

const (
	// buttonTTL is how long a button can be pressed (R23).
	buttonTTL = 24 * time.Hour
	// linkTTL is how long the one-time link for an unknown chat user works.
	linkTTL = 15 * time.Minute
)

// Options configure a Service. Zero durations take the default named with them.
type Options struct {
	// Store, Runner, Runbooks, Changes and Incidents are required.
	Store     Store
	Runner    Runner
	Runbooks  Runbooks
	Changes   Changes
	Incidents Incidents
	// PublicURL is the console's address, without a slash at its end.
	PublicURL string
	// Logger and Metrics may be nil.
	Logger  *slog.Logger
	Metrics prometheus.Registerer
	// PollEvery is how often due clicks are looked for when no wake-up comes (1 s).
	PollEvery time.Duration
	// ClickLease is how long one server has for a click before it is tried again,
	// by this or another server (10 s).
	ClickLease time.Duration
	// GiveUpAfter is when a click that meets faults is refused (10 min): a measure
	// pressed long ago fits no longer.
	GiveUpAfter time.Duration
}

// Service makes the content of cards, commits clicks and does what they ask. Its
// methods are safe for concurrent use, also by several servers on one database.
type Service struct {
	store       Store
	runner      Runner
	runbooks    Runbooks
	changes     Changes
	incidents   Incidents
	publicURL   string
	log         *slog.Logger
	clicks      *prometheus.CounterVec
	pollEvery   time.Duration
	clickLease  time.Duration
	giveUpAfter time.Duration

	clicking loop.Runner
}

// New makes a Service; Start makes it do what clicks ask. It fails when a
// required part is missing or the metrics cannot be registered.
func New(o Options) (*Service, error) {
	if o.Store == nil || o.Runner == nil || o.Runbooks == nil || o.Changes == nil || o.Incidents == nil {
		return nil, errors.New("chat: Options need a Store, a Runner, Runbooks, Changes and Incidents")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	clicks := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "holdfast_chat_clicks_total",
		Help: "Button presses and forms, by what became of them.",
	}, []string{"result"})
	if o.Metrics != nil {
		if err := o.Metrics.Register(clicks); err != nil {
			return nil, fmt.Errorf("chat: %w", err)
		}
	}
	return &Service{
		store: o.Store, runner: o.Runner, runbooks: o.Runbooks, changes: o.Changes, incidents: o.Incidents,
		publicURL: strings.TrimRight(o.PublicURL, "/"), log: o.Logger, clicks: clicks,
		pollEvery:   cmp.Or(o.PollEvery, time.Second),
		clickLease:  cmp.Or(o.ClickLease, 10*time.Second),
		giveUpAfter: cmp.Or(o.GiveUpAfter, 10*time.Minute),
	}, nil
}

// Start does what clicks ask until Stop or the end of ctx. Starting twice has no effect.
func (s *Service) Start(ctx context.Context) { s.clicking.Start(ctx, s.loop) }

// Stop ends what Start began and waits for the click in progress.
func (s *Service) Stop() { s.clicking.Stop() }

func (s *Service) loop(ctx context.Context) {
	loop.Every(ctx, s.pollEvery, s.store.WakeClicks(), nil, func(ctx context.Context) {
		if _, err := s.Process(ctx); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "clicks could not all be worked off; they are tried again", "error", err)
		}
	})
}

// spec describes an action by name; false when there is no such action.
func (s *Service) spec(name string) (actions.Spec, bool) {
	for _, spec := range s.runner.Specs() {
		if spec.Name == name {
			return spec, true
		}
	}
	return actions.Spec{}, false
}

// incidentSubject and the like are what buttons and cards are about.
func incidentSubject(id string) string { return "incident:" + id }
func changeSubject(id string) string   { return "change:" + id }
func runSubject(id string) string      { return "run:" + id }

// refreshCard asks for the card of a subject to be brought up to date.
func refreshCard(tx Tx, card string) error {
	kind, id, _ := strings.Cut(card, ":")
	if kind == "incident" {
		return incident.RefreshCard(tx, id)
	}
	return tx.Enqueue(outbox.Card(card))
}

// clickRow begins the audit row of a person's press.
func clickRow(p identity.Person, subject string, d audit.Decision, reason string) audit.Entry {
	return identity.Of(p, identity.ChannelSlack).AuditEntry(verbClick, subject, d, clip(reason, 300))
}

// clip shortens text to at most n runes.
func clip(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05 UTC") }
