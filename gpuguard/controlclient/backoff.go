package controlclient

import (
	"context"
	"math/rand/v2"
	"time"
)

// Waiting between attempts: half of it is random, so that a fleet does not
// return to a restarted server in one instant.
const (
	backoffFirst = 250 * time.Millisecond
	backoffMost  = 5 * time.Second
)

// backoff doubles its wait with each attempt up to backoffMost; zero is ready to use.
type backoff struct{ last time.Duration }

func (b *backoff) next() time.Duration {
	b.last = min(backoffMost, max(backoffFirst, 2*b.last))
	return b.last/2 + rand.N(b.last/2+1)
}

func (b *backoff) reset() { b.last = 0 }

// sleep waits for d and says false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
