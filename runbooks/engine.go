package runbooks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast/actions"
	"holdfast/loop"
)

// Options configure an Engine. Zero durations take the default named with them.
type Options struct {
	// Store, Actions and Library are required.
	Store   Store
	Actions Actions
	Library *Library
	// Metrics answers criteria; without it they never have data.
	Metrics Metrics
	// CheckQuery says what is wrong with a PromQL query; nil accepts all.
	CheckQuery func(query string) error
	// Logger and Registerer may be nil.
	Logger     *slog.Logger
	Registerer prometheus.Registerer
	// PollEvery is the fallback when no wake-up comes (500 ms).
	PollEvery time.Duration
	// CheckEvery is the time between two judgements of one criterion (2 s).
	CheckEvery time.Duration
	// QueryTimeout bounds one question to Metrics (3 s).
	QueryTimeout time.Duration
	// RetryAfter is how long a run whose transition failed is set aside (5 s), so that it stops no other.
	RetryAfter time.Duration
}

// Engine runs runbooks. Its methods are safe for concurrent use, also by several
// servers on one database.
type Engine struct {
	store        Store
	actions      Actions
	metrics      Metrics
	library      *Library
	checkQuery   func(string) error
	specs        map[string]actions.Spec
	log          *slog.Logger
	counts       *counts
	waits        waits
	pollEvery    time.Duration
	queryTimeout time.Duration
	retryAfter   time.Duration

	kicked chan struct{}

	runner loop.Runner
}

// NewEngine makes an Engine; it does nothing by itself before Start. It fails
// when something required is missing, when a runbook of the library names an
// action that is not there or does not fit it (strict.Errors), or when the
// metrics cannot be registered.
func NewEngine(o Options) (*Engine, error) {
	if o.Store == nil || o.Actions == nil || o.Library == nil {
		return nil, errors.New("runbooks: Options need a Store, Actions and a Library")
	}
	specs := o.Actions.Specs()
	if err := o.Library.Check(Checks{Specs: specs, CheckQuery: o.CheckQuery}); err != nil {
		return nil, fmt.Errorf("runbooks: %w", err)
	}
	c, err := newCounts(o.Registerer)
	if err != nil {
		return nil, fmt.Errorf("runbooks: %w", err)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	e := &Engine{
		store: o.Store, actions: o.Actions, metrics: o.Metrics, library: o.Library, checkQuery: o.CheckQuery,
		specs: map[string]actions.Spec{}, log: o.Logger, counts: c,
		pollEvery:    cmp.Or(o.PollEvery, 500*time.Millisecond),
		waits:        waits{checkEvery: cmp.Or(o.CheckEvery, 2*time.Second)},
		queryTimeout: cmp.Or(o.QueryTimeout, 3*time.Second),
		retryAfter:   cmp.Or(o.RetryAfter, 5*time.Second),
		kicked:       make(chan struct{}, 1),
	}
	for _, s := range specs {
		e.specs[s.Name] = s
	}
	return e, nil
}

// Runbooks lists the runbooks of the library by id.
func (e *Engine) Runbooks() []Runbook { return e.library.Runbooks() }

// Runbook finds one by id; ErrUnknownRunbook names the ones there are.
func (e *Engine) Runbook(id string) (Runbook, error) { return e.library.Runbook(id) }

// Suggest proposes the runbooks that an alert names; see Library.Suggest.
func (e *Engine) Suggest(labels, annotations map[string]string) []Suggestion {
	return e.library.Suggest(labels, annotations)
}

// Find reads one run; ErrNotFound.
func (e *Engine) Find(ctx context.Context, id string) (run Run, err error) {
	err = e.store.View(ctx, func(tx Tx) error {
		run, err = tx.RunbookRun(id)
		return err
	})
	return run, err
}

// List reads the runs that the filter selects, newest first.
func (e *Engine) List(ctx context.Context, f Filter) (runs []Run, err error) {
	err = e.store.View(ctx, func(tx Tx) error {
		runs, err = tx.RunbookRuns(f)
		return err
	})
	return runs, err
}

// Start runs the ticker until Stop or the end of ctx. Starting twice has no effect.
func (e *Engine) Start(ctx context.Context) { e.runner.Start(ctx, e.loop) }

// Stop ends the ticker and waits for the transitions in progress. A stopped engine may be started again.
func (e *Engine) Stop() { e.runner.Stop() }

func (e *Engine) loop(ctx context.Context) {
	loop.Every(ctx, e.pollEvery, e.store.Wake(), e.kicked, func(ctx context.Context) {
		if _, err := e.Tick(ctx); err != nil && ctx.Err() == nil {
			e.log.WarnContext(ctx, "runbook runs could not all be moved on; they are tried again", "error", err)
		}
	})
}

// kick makes the loop look at once; without a loop it does nothing.
func (e *Engine) kick() { loop.Kick(e.kicked) }
