package identity

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"holdfast/server/audit"
)

// DefaultSessionTTL is how long a console login lasts.
const DefaultSessionTTL = 12 * time.Hour

// Options configure the Service.
type Options struct {
	// Store is required.
	Store Store
	// Logger may be nil.
	Logger *slog.Logger
	// SessionTTL is how long a console login lasts; zero means DefaultSessionTTL.
	SessionTTL time.Duration
}

// Service authenticates callers and manages people, tokens, sessions and links.
type Service struct {
	store      Store
	log        *slog.Logger
	sessionTTL time.Duration
	failures   *failureLimit
}

// New makes a Service. It panics without a Store, a fault of the program.
func New(o Options) *Service {
	if o.Store == nil {
		panic("identity.New: Options.Store is nil")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.SessionTTL <= 0 {
		o.SessionTTL = DefaultSessionTTL
	}
	return &Service{store: o.Store, log: o.Logger, sessionTTL: o.SessionTTL, failures: newFailureLimit()}
}

// deny writes the audit row of a refusal in a transaction of its own, because
// the refused one is rolled back, and returns cause.
func (s *Service) deny(ctx context.Context, p Principal, verb, subject string, cause error) error {
	err := s.store.InTx(ctx, func(tx Tx) error {
		return tx.Audit(p.AuditEntry(verb, subject, audit.Denied, reasonOf(cause)))
	})
	if err != nil {
		return errors.Join(cause, err)
	}
	return cause
}

// Refused audits that a caller was turned away before any service was asked, once
// a minute for each caller and operation. Failing to record it must not hide the
// refusal.
func (s *Service) Refused(ctx context.Context, p Principal, operation string, cause error) {
	err := s.store.InTx(ctx, func(tx Tx) error {
		if !s.failures.due(p.ActorID()+" "+operation, tx.Now()) {
			return nil
		}
		return tx.Audit(p.AuditEntry("api.refused", "operation:"+operation, audit.Denied, reasonOf(cause)))
	})
	if err != nil {
		s.log.WarnContext(ctx, "cannot record a refused request", "operation", operation, "error", err)
	}
}

// permit requires the role and audits a refusal.
func (s *Service) permit(ctx context.Context, least Role, verb, subject string) (Principal, error) {
	p, err := Require(ctx, least)
	if err != nil {
		return p, s.deny(ctx, p, verb, subject, err)
	}
	return p, nil
}

const maxReason = 300

// reasonOf shortens an error for the audit.
func reasonOf(err error) string {
	text := err.Error()
	if len(text) > maxReason {
		text = text[:maxReason]
	}
	return text
}
