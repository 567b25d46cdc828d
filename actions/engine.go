package actions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast/loop"
)

// Options configure an Engine. Zero durations take the default named with them.
type Options struct {
	// Store and Registry are required.
	Store    Store
	Registry *Registry
	// Logger and Registerer may be nil.
	Logger     *slog.Logger
	Registerer prometheus.Registerer
	// Metrics judges the effect of runs; nil judges by the gateways' reports alone.
	Metrics Metrics
	// PollEvery is the fallback when no wake-up comes (500 ms).
	PollEvery time.Duration
	// AckWait is how long gateways may take before the missing ones are named
	// (10 s); the engine goes on waiting.
	AckWait time.Duration
	// VerifyAfter is the delay before an enforced run is judged (2 s),
	// VerifyEvery the time between judgements while they do not confirm it (5 s),
	// VerifyFor how long they are repeated (2 min).
	VerifyAfter, VerifyEvery, VerifyFor time.Duration
	// Settle is how long an effect may take to show in the metrics before its
	// absence counts (75 s: the rules look at the last minute, and samples come late).
	Settle time.Duration
	// RetryAfter is how long a run whose step failed is set aside (5 s), so that it stops no other.
	RetryAfter time.Duration
	// SweepEvery is how often layers without a live run are looked for (5 s).
	SweepEvery time.Duration
}

// Engine runs actions. Its methods are safe for concurrent use, also by several
// servers on one database.
type Engine struct {
	store      Store
	registry   *Registry
	log        *slog.Logger
	metrics    *metrics
	data       Metrics
	timing     timing
	pollEvery  time.Duration
	retryAfter time.Duration
	sweepEvery time.Duration

	kicked chan struct{}

	runner loop.Runner

	mu      sync.Mutex
	sweptAt time.Time
}

// NewEngine makes an Engine; it does nothing by itself before Start. It fails
// when Store or Registry is missing or the metrics cannot be registered.
func NewEngine(o Options) (*Engine, error) {
	if o.Store == nil || o.Registry == nil {
		return nil, errors.New("actions: Options need a Store and a Registry")
	}
	m, err := newMetrics(o.Registerer)
	if err != nil {
		return nil, fmt.Errorf("actions: %w", err)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Engine{
		store: o.Store, registry: o.Registry, log: o.Logger, metrics: m, data: o.Metrics,
		timing: timing{
			ackWait:     cmp.Or(o.AckWait, 10*time.Second),
			verifyAfter: cmp.Or(o.VerifyAfter, 2*time.Second),
			verifyEvery: cmp.Or(o.VerifyEvery, 5*time.Second),
			verifyFor:   cmp.Or(o.VerifyFor, 2*time.Minute),
			settle:      cmp.Or(o.Settle, 75*time.Second),
		},
		pollEvery:  cmp.Or(o.PollEvery, 500*time.Millisecond),
		retryAfter: cmp.Or(o.RetryAfter, 5*time.Second),
		sweepEvery: cmp.Or(o.SweepEvery, 5*time.Second),
		kicked:     make(chan struct{}, 1),
	}, nil
}

// Specs describes the actions there are, in the order of registration.
func (e *Engine) Specs() []Spec { return e.registry.Specs() }

// Find reads one run; ErrNotFound.
func (e *Engine) Find(ctx context.Context, id string) (run Run, err error) {
	err = e.store.View(ctx, func(tx Tx) error {
		run, err = tx.Run(id)
		return err
	})
	return run, err
}

// List reads runs accepted before the given time (zero: from the newest), newest first.
func (e *Engine) List(ctx context.Context, before time.Time, limit int) (runs []Run, err error) {
	err = e.store.View(ctx, func(tx Tx) error {
		runs, err = tx.Runs(before, limit)
		return err
	})
	return runs, err
}

// Live lists the runs that hold or will hold a lease, newest first; of one
// incident when named.
func (e *Engine) Live(ctx context.Context, incidentID string) (runs []Run, err error) {
	err = e.store.View(ctx, func(tx Tx) error {
		runs, err = tx.LiveRuns(incidentID)
		return err
	})
	return runs, err
}

// Start runs the ticker until Stop or the end of ctx. Starting twice has no effect.
func (e *Engine) Start(ctx context.Context) { e.runner.Start(ctx, e.loop) }

// Stop ends the ticker and waits for the step in progress. A stopped engine may be started again.
func (e *Engine) Stop() { e.runner.Stop() }

func (e *Engine) loop(ctx context.Context) {
	loop.Every(ctx, e.pollEvery, e.store.Wake(), e.kicked, func(ctx context.Context) {
		if _, err := e.Tick(ctx); err != nil && ctx.Err() == nil {
			e.log.WarnContext(ctx, "action runs could not all be moved on; they are tried again", "error", err)
		}
	})
}

// kick makes the loop look at once; without a loop it does nothing.
func (e *Engine) kick() { loop.Kick(e.kicked) }
