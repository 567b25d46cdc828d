package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
)

// policyChannel is the PostgreSQL channel that announces new policy revisions.
const policyChannel = "holdfast_policy"

const (
	// chainEvery bounds the time to a link; a busy second becomes one batch.
	chainEvery = time.Second
	// pruneEvery is how often old rows are removed.
	pruneEvery = time.Hour
	// reconnectFirst and reconnectMost bound the pauses of the listener.
	reconnectFirst = 500 * time.Millisecond
	reconnectMost  = 30 * time.Second
)

// Start runs, until ctx ends or Close: the audit chainer, the hourly removal of
// old rows, and on PostgreSQL the listener for policy revisions of other
// servers. Call it once, after Migrate.
func (s *Store) Start(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	s.mu.Lock()
	s.stop = stop
	s.mu.Unlock()
	s.background.Go(func() { s.chainLoop(ctx) })
	s.background.Go(func() { s.pruneLoop(ctx) })
	if !s.sqlite {
		s.background.Go(func() { s.listenLoop(ctx) })
	}
}

func (s *Store) chainLoop(ctx context.Context) {
	ticker := time.NewTicker(chainEvery)
	defer ticker.Stop()
	for {
		n, err := s.ChainPending(ctx, maxChain)
		if err != nil && ctx.Err() == nil {
			s.logger.ErrorContext(ctx, "audit entries are not linked", "error", err)
		}
		if n == maxChain {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (s *Store) pruneLoop(ctx context.Context) {
	ticker := time.NewTicker(pruneEvery)
	defer ticker.Stop()
	for {
		if err := s.Prune(ctx, Retention{}); err != nil && ctx.Err() == nil {
			s.logger.ErrorContext(ctx, "old rows are not removed", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// notify announces a revision to other servers when the transaction commits.
func (tx *Tx) notify(lineage string, revision int64) error {
	if tx.store.sqlite {
		return nil
	}
	return tx.exec("announce a revision", "SELECT pg_notify(?, ?)", policyChannel, fmt.Sprintf("%s:%d", lineage, revision))
}

// listenLoop keeps a connection that hears of revisions. While it is gone the
// readers' own poll finds them.
func (s *Store) listenLoop(ctx context.Context) {
	wait := reconnectFirst
	for ctx.Err() == nil {
		heard, err := s.listen(ctx)
		if ctx.Err() != nil {
			return
		}
		if heard {
			wait = reconnectFirst
		}
		s.logger.WarnContext(ctx, "not listening for policy revisions", "error", err, "again_in", wait)
		timer := time.NewTimer(wait/2 + rand.N(wait/2))
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
		wait = min(2*wait, reconnectMost)
	}
}

// listen returns when the connection is lost; heard says whether there was one.
func (s *Store) listen(ctx context.Context) (heard bool, err error) {
	conn, err := pgx.Connect(ctx, s.source)
	if err != nil {
		return false, err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(closing)
	}()
	if _, err := conn.Exec(ctx, "LISTEN "+policyChannel); err != nil {
		return false, err
	}
	// What was announced while nobody listened is lost: look once.
	s.wakes.signal(wakePolicy)
	for {
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return true, err
		}
		s.wakes.signal(wakePolicy)
	}
}
