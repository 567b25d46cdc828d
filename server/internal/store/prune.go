package store

import (
	"context"
	"time"
)

// Retention says how long rows are kept that nothing needs any more. Zero
// fields take the defaults. Incidents, changes, runs, revisions and the audit
// are never removed.
type Retention struct {
	// RawNotifications are bodies of alerts as received; default 7 days.
	RawNotifications time.Duration
	// Buried are messages that could not be delivered; default 30 days.
	Buried time.Duration
	// Logins are one-time links and sessions, counted from their expiry; default 1 day.
	Logins time.Duration
}

const day = 24 * time.Hour

func (r Retention) withDefaults() Retention {
	set := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	set(&r.RawNotifications, 7*day)
	set(&r.Buried, 30*day)
	set(&r.Logins, day)
	return r
}

// Prune removes what is older than its retention.
func (s *Store) Prune(ctx context.Context, r Retention) error {
	r = r.withDefaults()
	return s.InTx(ctx, func(tx *Tx) error {
		for _, p := range []struct {
			statement string
			keep      time.Duration
		}{
			{"DELETE FROM raw_notifications WHERE received_at < ?", r.RawNotifications},
			{"DELETE FROM outbox WHERE buried_at < ?", r.Buried},
			{"DELETE FROM links WHERE expires_at < ?", r.Logins},
			{"DELETE FROM sessions WHERE expires_at < ?", r.Logins},
		} {
			if err := tx.exec("remove old rows", p.statement, at(tx.now.Add(-p.keep))); err != nil {
				return err
			}
		}
		return nil
	})
}
