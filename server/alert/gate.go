package alert

import (
	"context"
	"errors"
	"fmt"
)

// gate bounds how many deliveries are worked on and how many wait. A queue
// without a bound would hold every body of a storm in memory.
type gate struct {
	places  chan struct{}
	waiting chan struct{}
}

func newGate(concurrent, waiting int) *gate {
	return &gate{places: make(chan struct{}, concurrent), waiting: make(chan struct{}, concurrent+waiting)}
}

// enter waits for a place and gives the function that frees it. ErrOverloaded
// when too many wait already, or when the caller's time is up.
func (g *gate) enter(ctx context.Context) (leave func(), err error) {
	select {
	case g.waiting <- struct{}{}:
	default:
		return nil, fmt.Errorf("%w: %d are being taken in or wait", ErrOverloaded, cap(g.waiting))
	}
	select {
	case g.places <- struct{}{}:
		return func() { <-g.places; <-g.waiting }, nil
	case <-ctx.Done():
		<-g.waiting
		return nil, errors.Join(ErrOverloaded, ctx.Err())
	}
}
