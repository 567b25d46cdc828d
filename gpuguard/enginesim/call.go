package enginesim

import (
	"context"
	"errors"
	"time"
)

var errOutOfMemory = errors.New("CUDA out of memory")

// work is what one request asks of the engine, in tokens.
type work struct {
	prompt, output int
	limit          int // output the client asked for, which is more than output when the answer ends by itself
	stream         bool
	finishReason   string
}

// context is the longest context in tokens that the request may need.
func (w work) context() int { return w.prompt + max(w.output, w.limit) }

// call is one request inside the engine. Its fields are guarded by Engine.mu.
type call struct {
	engine    *Engine
	seq       *sequence
	streaming bool // wants to know about each token
	// finishReason is how the answer will end if nothing goes wrong.
	finishReason string
	made         int // output tokens
	done         bool
	err          error
	wake         chan struct{}
}

// progress is how far a call has come.
type progress struct {
	made int
	done bool
	err  error
}

// submit queues a sequence. The error is one of the model's, errOutOfMemory
// only later through wait.
func (e *Engine) submit(w work) (*call, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.draining() {
		return nil, errStopping
	}
	c := &call{engine: e, streaming: w.stream, finishReason: w.finishReason, wake: make(chan struct{}, 1)}
	now := e.now()
	e.model.advance(now)
	seq, err := e.admit(now, w, c)
	e.rearm(now)
	if err != nil {
		e.metrics.rejected(err)
		return nil, err
	}
	c.seq = seq
	return c, nil
}

// admit refuses a request by the output it asked for, as engines do, and not by
// the output it will get.
func (e *Engine) admit(now time.Time, w work, c *call) (*sequence, error) {
	if w.context() > e.opts.Profile.MaxContextTokens {
		return nil, errContextTooLong
	}
	return e.model.submit(now, w.prompt, w.output, c)
}

// signal wakes the waiting handler; a handler that is behind sees only the latest.
func (c *call) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// wait blocks until there is progress. It returns the context's error when the
// client left and errStopping when the engine stops.
func (c *call) wait(ctx context.Context) (progress, error) {
	select {
	case <-c.wake:
		c.engine.mu.Lock()
		defer c.engine.mu.Unlock()
		return progress{made: c.made, done: c.done, err: c.err}, nil
	case <-ctx.Done():
		return progress{}, ctx.Err()
	}
}

// finish blocks until the call has ended and returns the number of output tokens.
func (c *call) finish(ctx context.Context) (int, error) {
	for {
		p, err := c.wait(ctx)
		switch {
		case err != nil:
			return 0, err
		case p.err != nil:
			return 0, p.err
		case p.done:
			return p.made, nil
		}
	}
}

// release frees slot and KV blocks of a call that has not ended. Deferred by
// every handler, it makes a lost client free its slot at once.
func (c *call) release() {
	e := c.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	if c.done {
		return
	}
	c.done = true
	now := e.now()
	e.model.advance(now)
	if c.seq.state != stateEnded {
		e.metrics.aborted()
		e.model.cancel(c.seq)
	}
	e.rearm(now)
}
