package slackapp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slack-go/slack"
)

const (
	// queueSize bounds verified requests that wait for a worker; past it Slack is
	// told 503, so that the person sees that nothing happened.
	queueSize = 512
	// workers is how many clicks are committed at once; repliers is how many
	// private answers and forms are on their way to Slack at once. They are apart,
	// so that a slow Slack never keeps a click from being committed.
	workers  = 4
	repliers = 4
	// jobTimeout bounds one job.
	jobTimeout = 30 * time.Second
	// teamRetry is how often the workspace is asked for while it is unknown.
	teamRetry = 5 * time.Second
)

// App is the Slack adapter. New, then Start, then Stop.
type App struct {
	opts     Options
	api      *slack.Client
	verifier verifier
	replays  replays
	metrics  metrics
	// teams is nil until the workspace is known.
	teams atomic.Pointer[map[string]bool]
	pace  *pace

	jobs    *jobQueue
	replies *jobQueue

	started atomic.Bool
	stop    sync.Once
	// closing ends the claiming of messages, kill what is still in progress.
	closing chan struct{}
	kill    context.CancelFunc
	wg      sync.WaitGroup
}

// New checks the options; it refuses an empty signing secret (R17).
func New(opts Options) (*App, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	m, err := newMetrics(opts.Registerer)
	if err != nil {
		return nil, fmt.Errorf("slack: register metrics: %w", err)
	}
	clientOpts := []slack.Option{slack.OptionHTTPClient(opts.HTTPClient)}
	if opts.APIURL != "" {
		clientOpts = append(clientOpts, slack.OptionAPIURL(opts.APIURL))
	}
	a := &App{
		opts:     opts,
		api:      slack.New(opts.BotToken, clientOpts...),
		verifier: verifier{secret: []byte(opts.SigningSecret), now: opts.Now},
		replays:  replays{now: opts.Now},
		metrics:  m,
		pace:     newPace(opts.Now),
		jobs:     newJobQueue(queueSize),
		replies:  newJobQueue(queueSize),
		closing:  make(chan struct{}),
		kill:     func() {},
	}
	if len(opts.TeamIDs) > 0 {
		a.setTeams(opts.TeamIDs...)
	}
	return a, nil
}

func (a *App) setTeams(ids ...string) {
	teams := make(map[string]bool, len(ids))
	for _, id := range ids {
		teams[id] = true
	}
	a.teams.Store(&teams)
}

// Start begins to work and to deliver; call it once. Slack being away is no
// reason not to start: the workspace, where it is not configured, is learnt when
// Slack is back, and until then interactions are answered 503.
func (a *App) Start(ctx context.Context) error {
	run, kill := context.WithCancel(context.WithoutCancel(ctx))
	a.kill = kill
	for range workers {
		a.wg.Go(func() { a.work(run, a.jobs) })
	}
	a.wg.Go(func() { a.deliverLoop(run) })
	for range repliers {
		a.wg.Go(func() { a.work(run, a.replies) })
	}
	a.started.Store(true)
	if a.teams.Load() == nil {
		a.wg.Go(func() { a.learnTeam(run) })
	}
	return nil
}

// learnTeam asks Slack which workspace the token belongs to until it answers.
func (a *App) learnTeam(ctx context.Context) {
	tick := time.NewTicker(teamRetry)
	defer tick.Stop()
	for {
		who, err := a.api.AuthTestContext(ctx)
		if err == nil && who.TeamID != "" {
			a.setTeams(who.TeamID)
			return
		}
		if ctx.Err() == nil {
			a.opts.Logger.Error("the workspace is unknown: auth.test failed, will be tried again; name the workspace in the configuration or check SLACK_BOT_TOKEN", "reason", a.reason(err))
		}
		select {
		case <-a.closing:
			return
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Stop finishes the requests already accepted and the messages on their way, as
// far as ctx allows. What is left in the outbox is delivered by the next process.
func (a *App) Stop(ctx context.Context) error {
	a.stop.Do(func() {
		close(a.closing)
		a.jobs.close()
	})
	if !a.started.Load() {
		return nil
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.jobs.drained() // a job may still ask for a reply
		a.replies.close()
		a.wg.Wait()
	}()
	defer a.kill()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	a.kill()
	<-done // every job and call ends with its context
	return errors.New("slack: requests in progress were cut off at the end of the time to stop")
}

func (a *App) work(ctx context.Context, q *jobQueue) {
	for job := range q.jobs {
		a.runJob(ctx, job)
		q.pending.Done()
	}
}

// runJob bounds one job and keeps a panic from taking the others down.
func (a *App) runJob(ctx context.Context, job func(context.Context)) {
	ctx, cancel := context.WithTimeout(ctx, jobTimeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			a.opts.Logger.Error("slack request failed", "panic", fmt.Sprint(p))
		}
	}()
	job(ctx)
}
