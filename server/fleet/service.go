package fleet

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast/loop"
	"holdfast/server/audit"
	"holdfast/server/identity"
)

// Options configure a Service. Zero durations take the default named with them.
type Options struct {
	// Store is required.
	Store Store
	// Logger and Metrics may be nil.
	Logger  *slog.Logger
	Metrics prometheus.Registerer
	// PollEvery is how often the head and the members are looked at when no wake-up comes (1 s).
	PollEvery time.Duration
	// ForgetAfter is when a gateway that is not heard any more is forgotten (24 h).
	ForgetAfter time.Duration
}

// Service is the writer of policy and the roll-call of gateways. Its methods are
// safe for concurrent use, also by several servers on one database.
type Service struct {
	store       Store
	log         *slog.Logger
	metrics     *metrics
	pollEvery   time.Duration
	forgetAfter time.Duration
	hub         *hub
	samples     *samples
	runner      loop.Runner
}

// New makes a Service; Start makes its stream follow the policy. It fails when
// the Store is missing or the metrics cannot be registered.
func New(o Options) (*Service, error) {
	if o.Store == nil {
		return nil, errors.New("fleet: Options need a Store")
	}
	m, err := newMetrics(o.Metrics)
	if err != nil {
		return nil, err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Service{
		store: o.Store, log: o.Logger, metrics: m,
		pollEvery:   cmp.Or(o.PollEvery, time.Second),
		forgetAfter: cmp.Or(o.ForgetAfter, 24*time.Hour),
		hub:         newHub(), samples: newSamples(),
	}, nil
}

// Start follows revisions and members until Stop or the end of ctx, and feeds
// the subscribers. Starting twice has no effect.
func (s *Service) Start(ctx context.Context) {
	s.hub.open()
	s.runner.Start(ctx, s.follow)
}

// Stop ends what Start began and closes every subscription.
func (s *Service) Stop() { s.runner.Stop() }

// permit requires a person's role and audits a refusal.
func (s *Service) permit(ctx context.Context, least identity.Role, verb, subject string) (identity.Principal, error) {
	p, err := identity.Require(ctx, least)
	if err == nil {
		return p, nil
	}
	return p, s.deny(ctx, p, verb, subject, err)
}

// deny audits a refusal in a transaction of its own, because the refused one is
// rolled back, and returns cause.
func (s *Service) deny(ctx context.Context, p identity.Principal, verb, subject string, cause error) error {
	err := s.store.InTx(ctx, func(tx Tx) error {
		return tx.Audit(p.AuditEntry(verb, subject, audit.Denied, short(cause.Error())))
	})
	return errors.Join(cause, err)
}

// maxReason bounds texts in the audit (bytes).
const maxReason = 500

func short(s string) string {
	if len(s) > maxReason {
		return s[:maxReason]
	}
	return s
}
