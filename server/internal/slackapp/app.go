package slackapp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/slack-go/slack"
)

// queueSize bounds verified requests that wait for a worker; past it Slack is
// told 503, so that the person sees that nothing happened.
const queueSize = 512

// workers is how many clicks are committed at once.
const workers = 4

// App is the Slack adapter. New, then Start, then Stop.
type App struct {
	opts     Options
	api      *slack.Client
	verifier verifier
	replays  replays
	metrics  metrics
	teams    map[string]bool
	appID    string
	pace     *pace

	jobs   chan func(context.Context)
	cancel context.CancelFunc
	wg     sync.WaitGroup
	stop   sync.Once
}

// New checks the options; it refuses an empty signing secret (R17).
func New(opts Options) (*App, error) {
	if err := opts.validate(); err != nil {
		return nil, err
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
		metrics:  newMetrics(opts.Registerer),
		teams:    map[string]bool{},
		appID:    opts.AppID,
		pace:     newPace(opts.Now),
		jobs:     make(chan func(context.Context), queueSize),
	}
	for _, t := range opts.TeamIDs {
		a.teams[t] = true
	}
	return a, nil
}

// Start learns the workspace when it was not configured, and begins to deliver.
// Slack being away is no reason not to start: delivery goes on when it is back.
func (a *App) Start(ctx context.Context) error {
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	a.cancel = cancel
	if len(a.teams) == 0 {
		if err := a.learnTeam(ctx); err != nil {
			cancel()
			return err
		}
	}
	for range workers {
		a.wg.Go(func() { a.work(run) })
	}
	a.wg.Go(func() { a.deliverLoop(run) })
	return nil
}

func (a *App) learnTeam(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	who, err := a.api.AuthTestContext(ctx)
	if err != nil {
		return fmt.Errorf("slack: auth.test failed, so the workspace is unknown; set it in the configuration or check SLACK_BOT_TOKEN: %w", err)
	}
	a.teams[who.TeamID] = true
	return nil
}

// Stop finishes the requests already accepted, as far as ctx allows, and ends delivery.
func (a *App) Stop(ctx context.Context) error {
	a.stop.Do(func() {
		close(a.jobs)
		if a.cancel == nil {
			return
		}
		drained := make(chan struct{})
		go func() {
			for len(a.jobs) > 0 && ctx.Err() == nil {
				time.Sleep(10 * time.Millisecond)
			}
			close(drained)
		}()
		<-drained
		a.cancel()
	})
	done := make(chan struct{})
	go func() { a.wg.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return errors.New("slack: still busy at the end of the time to stop")
	}
}

func (a *App) work(ctx context.Context) {
	for job := range a.jobs {
		a.runJob(ctx, job)
	}
}

// runJob bounds one job and keeps a panic from taking the others down.
func (a *App) runJob(ctx context.Context, job func(context.Context)) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			a.opts.Logger.Error("slack request failed", "component", "slack", "panic", fmt.Sprint(p))
		}
	}()
	job(ctx)
}
