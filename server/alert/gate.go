package alert

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// gate bounds how many deliveries are worked on, how many wait, and how much
// memory their bodies take together. A queue without a bound would hold every
// body of a storm.
type gate struct {
	places chan struct{}
	limit  int
	bytes  int64

	mu     sync.Mutex
	inside int
	held   int64
}

func newGate(concurrent, waiting int, bytes int64) *gate {
	return &gate{places: make(chan struct{}, concurrent), limit: concurrent + waiting, bytes: bytes}
}

// enter waits for a place for a body of the given size and gives the function
// that frees it. ErrOverloaded when too much waits already, or when the caller's
// time is up. A body that is alone is always let in.
func (g *gate) enter(ctx context.Context, size int64) (leave func(), err error) {
	if err := g.admit(size); err != nil {
		return nil, err
	}
	select {
	case g.places <- struct{}{}:
		return func() { <-g.places; g.release(size) }, nil
	case <-ctx.Done():
		g.release(size)
		return nil, errors.Join(ErrOverloaded, ctx.Err())
	}
}

func (g *gate) admit(size int64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inside >= g.limit || g.inside > 0 && g.held+size > g.bytes {
		return fmt.Errorf("%w: %d of %d bytes are being taken in or wait", ErrOverloaded, g.inside, g.held)
	}
	g.inside++
	g.held += size
	return nil
}

func (g *gate) release(size int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	g.held -= size
}
