// Package loop runs work in the background until it is told to stop: what every
// engine with a ticker has in common. It knows the standard library only.
package loop

import (
	"context"
	"sync"
	"time"
)

// Runner runs one function at a time in the background. The zero value is ready;
// it is safe for concurrent use and must not be copied.
type Runner struct {
	mu       sync.Mutex
	stop     context.CancelFunc
	finished chan struct{}
}

// Start runs the function until Stop or the end of ctx. While one is running it
// has no effect.
func (r *Runner) Start(ctx context.Context, run func(context.Context)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stop != nil {
		return
	}
	ctx, r.stop = context.WithCancel(ctx)
	finished := make(chan struct{})
	r.finished = finished
	go func() {
		defer close(finished)
		run(ctx)
	}()
}

// Stop ends the function's context and waits until it has returned. Without one
// it does nothing; afterwards another may be started.
func (r *Runner) Stop() {
	r.mu.Lock()
	stop, finished := r.stop, r.finished
	r.stop, r.finished = nil, nil
	r.mu.Unlock()
	if stop != nil {
		stop()
		<-finished
	}
}

// Every takes a step at once, then each time the interval has passed or one of
// the wake-ups comes (nil never does), until ctx ends.
func Every(ctx context.Context, interval time.Duration, wake, kick <-chan struct{}, step func(context.Context)) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		step(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-wake:
		case <-kick:
		}
	}
}

// Kick signals a channel of capacity 1 without waiting: a signal that was not
// taken yet is enough.
func Kick(kick chan<- struct{}) {
	select {
	case kick <- struct{}{}:
	default:
	}
}
