package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/util/compression"

	"holdfast/server/internal/prom/notify"
	"holdfast/server/observe"
)

// Storage layout. The head holds up to one and a half blocks in memory and in the
// write-ahead log. Retention drops whole blocks, so their largest size is what the
// disk holds beyond it.
const (
	blockRange    = 30 * time.Minute
	maxBlockRange = 90 * time.Minute
	walSegment    = 16 << 20
	// stripes of the series map: Prometheus' default of 16384 is for millions of series.
	stripes = 512
)

// Restoring pending alerts after a restart.
const (
	// outageTolerance is the longest gap over which a pending alert keeps its time.
	outageTolerance = time.Hour
	// maxGrace is the least time a restored alert stays pending, so that it fires on
	// fresh data; Prometheus' default of ten minutes would restore none of the short
	// waits that our rules have.
	maxGrace = 10 * time.Second
)

// Engine is a Prometheus in this process. It implements observe.Source: before
// Start and after Stop it answers ErrUnavailable.
type Engine struct {
	o       Options
	log     *slog.Logger
	rules   *library
	promql  *promql.Engine
	parser  parser.Parser
	metrics *metrics
	turns   chan struct{}

	// mu is held for reading while something uses run, for writing while it changes.
	mu      sync.RWMutex
	run     *running
	started bool
	// jobsMu orders SetJobs and guards jobs and running.pools.
	jobsMu sync.Mutex
	jobs   []Job
}

// running is what exists between Start and Stop.
type running struct {
	db      *tsdb.DB
	rules   *rules.Manager
	scrape  *scrape.Manager
	targets chan map[string][]*targetgroup.Group
	sender  *notify.Sender
	pools   map[string]string // the token of every job name so far
	// queries ends with Stop, which does not wait for what people asked.
	queries context.Context //nolint:containedctx // it is what enter joins to each caller's context
	abort   context.CancelFunc
	stop    context.CancelFunc
	wait    sync.WaitGroup
}

// New checks the options and the rule files; it touches no disk. The error lists
// every fault of the rules with file and line.
func New(o Options) (*Engine, error) {
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("embedded Prometheus: %w", err)
	}
	if err := checkJobs(o.Jobs); err != nil {
		return nil, fmt.Errorf("embedded Prometheus: %w", err)
	}
	p := parser.NewParser(parser.Options{})
	lib, err := readRules(o.Rules, p, o.Logger)
	if err != nil {
		return nil, fmt.Errorf("embedded Prometheus: %w", err)
	}
	if o.Deliver == nil {
		if len(lib.alerting()) > 0 {
			return nil, errors.New("embedded Prometheus: there are alerting rules, but Deliver is nil")
		}
		o.Deliver = func(context.Context, []byte) error { return nil }
	}
	m, err := newMetrics(o.Registerer)
	if err != nil {
		return nil, fmt.Errorf("embedded Prometheus: %w", err)
	}
	return &Engine{
		o: o, log: o.Logger, rules: lib, parser: p, metrics: m, jobs: o.Jobs,
		turns: make(chan struct{}, o.Queries),
		promql: promql.NewEngine(promql.EngineOpts{
			Logger: o.Logger, MaxSamples: o.MaxSamples, Timeout: o.QueryTimeout, LookbackDelta: o.LookbackDelta(),
			NoStepSubqueryIntervalFn: func(int64) int64 { return o.EvaluationInterval.Milliseconds() },
			EnableAtModifier:         true, EnableNegativeOffset: true, Parser: p,
		}),
	}, nil
}

// Kind implements observe.Source.
func (*Engine) Kind() observe.Kind { return observe.Embedded }

// Start opens the storage, replaying what was not written to blocks yet, and
// begins to scrape and to evaluate. It returns when queries can be answered; ctx
// ends nothing after that. An Engine is started once.
func (e *Engine) Start(ctx context.Context) error {
	e.jobsMu.Lock()
	defer e.jobsMu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.started {
		return errors.New("embedded Prometheus: started before")
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := os.MkdirAll(e.o.Dir, 0o700); err != nil {
		return fmt.Errorf("embedded Prometheus: %w", err)
	}
	begun := time.Now()
	db, err := tsdb.Open(filepath.Join(e.o.Dir, "tsdb"), e.log, nil, e.storage(), nil)
	if err != nil {
		return fmt.Errorf("embedded Prometheus: open the storage in %s: %w", e.o.Dir, err)
	}
	if err := e.begin(db); err != nil {
		return fmt.Errorf("embedded Prometheus: %w", errors.Join(err, db.Close()))
	}
	e.started = true
	e.metrics.follow(db.Head().NumSeries)
	e.log.InfoContext(ctx, "embedded Prometheus runs", "dir", e.o.Dir, "series", db.Head().NumSeries(),
		"opened_in", time.Since(begun).String(), "rule_files", len(e.rules.names))
	return nil
}

func (e *Engine) storage() *tsdb.Options {
	o := tsdb.DefaultOptions()
	o.RetentionDuration = e.o.Retention.Milliseconds()
	o.MinBlockDuration, o.MaxBlockDuration = blockRange.Milliseconds(), maxBlockRange.Milliseconds()
	o.WALSegmentSize, o.WALCompression = walSegment, compression.Snappy
	o.StripeSize = stripes
	return o
}

// begin starts everything over an open storage.
func (e *Engine) begin(db *tsdb.DB) error {
	scraper, err := scrape.NewManager(&scrape.Options{
		DiscoveryReloadInterval: reloadInterval(e.o.ScrapeInterval), DiscoveryReloadOnStartup: true,
	}, e.log, nil, nil, db, prometheus.NewRegistry())
	if err != nil {
		return err
	}
	sender, err := notify.New(notify.Options{
		Journal: filepath.Join(e.o.Dir, "alerts.json"), Rules: e.rules.alerting(), Deliver: e.o.Deliver,
		Settle: e.o.settle(), Repeat: e.o.Repeat, ExternalURL: e.o.ExternalURL,
		Delivered: e.metrics.delivered, Logger: e.log,
	})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	queries, abort := context.WithCancel(ctx)
	r := &running{
		db: db, scrape: scraper, sender: sender, stop: stop, queries: queries, abort: abort,
		targets: make(chan map[string][]*targetgroup.Group), pools: map[string]string{},
		rules: e.ruleManager(ctx, db),
	}
	if err := e.apply(r, e.jobs); err != nil {
		stop()
		return err
	}
	if err := r.rules.Update(e.o.EvaluationInterval, e.rules.names, labels.EmptyLabels(), e.o.ExternalURL, e.evaluate); err != nil {
		stop()
		return err
	}
	r.wait.Go(func() { sender.Run(ctx) })
	r.wait.Go(func() { _ = scraper.Run(r.targets) }) // nil, always
	r.wait.Go(r.rules.Run)
	r.targets <- targetGroups(e.jobs, r.pools)
	e.run = r
	return nil
}

func (e *Engine) ruleManager(ctx context.Context, db *tsdb.DB) *rules.Manager {
	external, err := url.Parse(e.o.ExternalURL)
	if err != nil {
		external = &url.URL{} // New has parsed it
	}
	return rules.NewManager(&rules.ManagerOptions{
		ExternalURL: external, Context: ctx, Logger: e.log, Parser: e.parser, GroupLoader: e.rules,
		QueryFunc: rules.EngineQueryFunc(e.promql, db), AppendableV2: db, Queryable: db,
		// Alerts are taken from the state after each evaluation, see evaluate.
		NotifyFunc:      func(context.Context, string, ...*rules.Alert) {},
		OutageTolerance: outageTolerance,
		ForGracePeriod:  min(maxGrace, 2*e.o.EvaluationInterval),
		ResendDelay:     e.o.EvaluationInterval,
	})
}

// Stop ends scraping and evaluation and closes the storage. What fires stays in
// the journal and goes on after the next Start. When ctx ends first Stop returns
// its error while closing goes on.
func (e *Engine) Stop(ctx context.Context) error {
	e.mu.RLock()
	if e.run != nil {
		e.run.abort()
	}
	e.mu.RUnlock()
	e.mu.Lock()
	r := e.run
	e.run = nil
	e.mu.Unlock()
	if r == nil {
		return nil
	}
	e.metrics.follow(nil)
	closed := make(chan error, 1)
	go func() { closed <- r.close() }()
	select {
	case err := <-closed:
		return err
	case <-ctx.Done():
		return fmt.Errorf("embedded Prometheus: still closing: %w", ctx.Err())
	}
}

// close takes the parts down in the reverse order of the flow of data.
func (r *running) close() error {
	r.rules.Stop()
	// A reload that is pending would start scraping after Stop; without target sets
	// it does nothing. The second send returns when the first was taken in.
	for range 2 {
		r.targets <- map[string][]*targetgroup.Group{}
	}
	r.scrape.Stop()
	r.stop()
	r.wait.Wait()
	return r.db.Close()
}
