package enginesim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// minTick bounds how often the timer fires, so that a large TimeScale does not
// become a busy loop. Several steps are then done at once.
const minTick = 200 * time.Microsecond

var errStopping = errors.New("the engine is shutting down")

// Engine is a simulated inference engine. Its methods are safe for concurrent
// use. The model is driven by one timer that runs only while there is work, so
// an idle engine costs nothing.
type Engine struct {
	opts     Options
	log      *slog.Logger
	registry *prometheus.Registry
	metrics  *metrics
	started  time.Time
	stopping chan struct{} // closed by Stop

	mu     sync.Mutex
	model  *model
	timer  *time.Timer
	load   Load
	number uint64 // requests since the knobs were set
	hung   int
	closed bool

	servers servers
}

// New makes an engine that works through Handler at once; Start adds listeners.
// The error wraps ErrInvalidOptions or ErrInvalidKnobs.
func New(opts Options) (*Engine, error) {
	if err := opts.Validate(); err != nil {
		return nil, fmt.Errorf("enginesim: %w", err)
	}
	e := &Engine{
		opts:     opts,
		log:      opts.Logger,
		registry: prometheus.NewRegistry(),
		started:  time.Now(),
		stopping: make(chan struct{}),
		load:     Load{PromptTokens: float64(opts.PromptTokens), OutputTokens: float64(opts.OutputTokens)},
	}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	e.model = newModel(opts.Profile, opts.Knobs, e.handle)
	e.metrics = newMetrics(e.registry, e)
	return e, nil
}

// Knobs are the faults in force.
func (e *Engine) Knobs() Knobs {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.model.knobs
}

// SetKnobs replaces the faults. Requests already decided keep their fate, while
// decode speed changes for all at once. The error wraps ErrInvalidKnobs.
func (e *Engine) SetKnobs(k Knobs) error {
	_, err := e.updateKnobs(func(Knobs) (Knobs, error) { return k, nil })
	return err
}

// updateKnobs changes the knobs in one atomic step and returns the new ones.
func (e *Engine) updateKnobs(change func(Knobs) (Knobs, error)) (Knobs, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	k, err := change(e.model.knobs)
	if err != nil {
		return Knobs{}, err
	}
	if err := k.Validate(); err != nil {
		return Knobs{}, err
	}
	now := e.now()
	e.model.advance(now)
	e.model.setKnobs(now, k)
	e.number = 0
	e.rearm(now)
	e.log.Info("knobs set", "knobs", k)
	return k, nil
}

// State is a snapshot of queue, batch, memory and capacity.
func (e *Engine) State() State {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	e.model.advance(now)
	e.rearm(now)
	s := e.model.state(now, e.load)
	s.Model = e.opts.Model
	s.Hung = e.hung
	return s
}

// now is the model time.
func (e *Engine) now() time.Time {
	return e.started.Add(time.Duration(float64(time.Since(e.started)) * e.opts.TimeScale))
}

// real turns a duration of model time into wall-clock time.
func (e *Engine) real(d time.Duration) time.Duration {
	return time.Duration(float64(d) / e.opts.TimeScale)
}

// rearm sets the timer to the end of the step in progress. The caller holds mu.
func (e *Engine) rearm(now time.Time) {
	next, busy := e.model.next()
	if !busy || e.closed {
		if e.timer != nil {
			e.timer.Stop()
		}
		return
	}
	wait := max(minTick, e.real(next.Sub(now)))
	if e.timer == nil {
		e.timer = time.AfterFunc(wait, e.tick)
		return
	}
	e.timer.Reset(wait)
}

func (e *Engine) tick() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	now := e.now()
	e.model.advance(now)
	e.rearm(now)
}

// handle receives the model's events; mu is held.
func (e *Engine) handle(ev event) {
	c := ev.seq.owner.(*call)
	switch ev.kind {
	case eventToken:
		e.metrics.token(ev)
		c.made = ev.seq.made
		if !c.streaming {
			return
		}
	case eventDone:
		e.metrics.done(ev)
		e.learn(ev.seq)
		c.done = true
	case eventFailed:
		e.log.Warn("request lost: out of memory", "prompt_tokens", ev.seq.prompt)
		e.metrics.failed(ev)
		c.done, c.err = true, errOutOfMemory
	}
	c.signal()
}

// learn keeps a moving mean of request sizes over about the last 50 requests.
func (e *Engine) learn(s *sequence) {
	const weight = 0.02
	e.load.PromptTokens += weight * (float64(s.prompt) - e.load.PromptTokens)
	e.load.OutputTokens += weight * (float64(s.made) - e.load.OutputTokens)
}

// decide numbers a request and draws its fault.
func (e *Engine) decide(stream bool) (fault, Knobs) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f := e.model.knobs.fault(e.number, stream)
	e.number++
	e.metrics.injected(f)
	return f, e.model.knobs
}

// hang holds a request until its client leaves or the engine stops.
func (e *Engine) hang(ctx context.Context) {
	e.addHung(1)
	defer e.addHung(-1)
	select {
	case <-ctx.Done():
	case <-e.stopping:
	}
}

func (e *Engine) addHung(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hung += n
}

// draining tells whether Stop was called.
func (e *Engine) draining() bool {
	select {
	case <-e.stopping:
		return true
	default:
		return false
	}
}

// Handler serves the OpenAI-compatible API and, when AdminListen is empty, the
// admin API for loopback clients.
func (e *Engine) Handler() http.Handler {
	mux := http.NewServeMux()
	e.routes(mux)
	if e.opts.AdminListen == "" {
		e.adminRoutes(mux)
	}
	return mux
}
