package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"holdfast/actions"
	"holdfast/actions/builtin"
	"holdfast/gpuguard/policy"
	"holdfast/runbooks"
	"holdfast/server/alert"
	"holdfast/server/change"
	"holdfast/server/chat"
	"holdfast/server/fleet"
	"holdfast/server/identity"
	"holdfast/server/incident"
	"holdfast/server/internal/httpapi"
	"holdfast/server/internal/prom/embedded"
	"holdfast/server/internal/slackapp"
	"holdfast/server/internal/store"
	"holdfast/server/observe"
)

// answerTime is how long a request may take from its header to the end of its answer.
const answerTime = 2 * time.Minute

// Server is one holdfast server.
type Server struct {
	opts   Options
	log    *slog.Logger
	store  *store.Store
	public *url.URL

	people    *identity.Service
	incidents *incident.Service
	intake    *alert.Intake
	calendar  *change.Calendar
	fleet     *fleet.Service
	engine    *actions.Engine
	library   *runbooks.Library
	runbooks  *runbooks.Engine
	chat      *chat.Service
	slack     *slackapp.App
	events    *events
	// metrics answers PromQL; prometheus is the one in this process. Either may be nil.
	metrics    observe.Source
	prometheus *embedded.Engine

	listener net.Listener
	http     *http.Server
	// cleanups run in reverse order on Stop.
	cleanups []func(context.Context) error
	stopOnce sync.Once
	stopErr  error
}

// New checks the options and reads the runbooks; nothing is opened yet.
func New(opts Options) (*Server, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	library, err := LoadRunbooks(opts.RunbookDir)
	if err != nil {
		return nil, err
	}
	return &Server{opts: opts, log: opts.Logger, library: library}, nil
}

// Start opens the database, brings its schema up to date, enters what the
// configuration names, starts the loops and listens. When it fails, everything
// it began is taken down again.
func (s *Server) Start(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			err = errors.Join(err, s.Stop(stop))
		}
	}()
	// The port first: a second server on the same machine must not touch the database's seeds.
	if err := s.listen(ctx); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{s.openStore, s.openMetrics, s.domain, s.seed, s.startChat, s.startLoops, s.startMetrics, s.serve} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) cleanup(f func(context.Context) error) { s.cleanups = append(s.cleanups, f) }

func (s *Server) listen(ctx context.Context) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.opts.Addr)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", s.opts.Addr, err)
	}
	s.listener = l
	s.cleanup(func(context.Context) error {
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	})
	public := s.opts.PublicURL
	if public == "" {
		public = "http://" + l.Addr().String()
	}
	s.public, err = url.Parse(public)
	return err
}

func (s *Server) openStore(ctx context.Context) error {
	st, err := store.Open(ctx, store.Options{URL: s.opts.DatabaseURL, Logger: s.log.With("component", "store"), Clock: s.opts.Clock})
	if err != nil {
		return err
	}
	s.store = st
	s.cleanup(func(context.Context) error { return st.Close() })
	if err := st.Migrate(ctx); err != nil {
		return fmt.Errorf("bring the database schema up to date: %w", err)
	}
	st.Start(ctx)
	return nil
}

// domain makes the services.
func (s *Server) domain(context.Context) (err error) {
	s.people = identity.New(identity.Options{Store: s.store.Identity(), Logger: s.log.With("component", "identity"), SessionTTL: s.opts.SessionTTL})
	s.incidents = incident.New(incident.Options{Store: s.store.Incidents()})
	s.intake = alert.New(alert.Options{Store: s.store.Alerts(), Logger: s.log.With("component", "alerts"), Registerer: s.opts.Registerer})
	s.calendar = change.New(change.Options{Store: s.store.Changes(), Catalogue: s.opts.Config.Catalogue(), People: s.people, Logger: s.log.With("component", "calendar"), Registerer: s.opts.Registerer})
	s.fleet, err = fleet.New(fleet.Options{Store: s.store.Fleet(), Logger: s.log.With("component", "fleet"), Metrics: s.opts.Registerer})
	if err != nil {
		return err
	}
	registry, err := actions.NewRegistry(builtin.All()...)
	if err != nil {
		return err
	}
	s.engine, err = actions.NewEngine(actions.Options{Store: s.store.Actions(), Registry: registry, Logger: s.log.With("component", "actions"), Registerer: s.opts.Registerer, Metrics: s.judge()})
	if err != nil {
		return err
	}
	s.runbooks, err = runbooks.NewEngine(runbooks.Options{
		Store: s.store.Runbooks(), Actions: s.engine, Library: s.library, Metrics: s.metrics, CheckQuery: embedded.CheckQuery,
		Logger: s.log.With("component", "runbooks"), Registerer: s.opts.Registerer,
	})
	if err != nil {
		return err
	}
	s.chat, err = chat.New(chat.Options{
		Store: s.store.Chat(), Runner: s.engine, Changes: s.calendar, Incidents: s.incidents, Runbooks: s.runbooks,
		PublicURL: s.public.String(), Logger: s.log.With("component", "chat"), Metrics: s.opts.Registerer,
	})
	s.events = newEvents(s.store)
	return err
}

// seed enters people, tokens and the first policy where they are not known yet.
func (s *Server) seed(ctx context.Context) error {
	for _, p := range s.opts.Config.People {
		person, err := s.people.SeedPerson(ctx, p.Handle, p.Name, p.Role)
		if err != nil {
			return err
		}
		if p.SlackUser == "" {
			continue
		}
		if err := bindSlack(ctx, s.store, person.ID, p.SlackTeam, p.SlackUser); err != nil {
			return fmt.Errorf("bind %s to Slack: %w", p.Handle, err)
		}
	}
	for _, t := range s.opts.Tokens {
		if err := s.people.SeedToken(ctx, t.Kind, t.Name, t.Token, t.Scopes); err != nil {
			return err
		}
	}
	if s.opts.Policy == nil {
		return nil
	}
	if _, err := s.fleet.Init(ctx, *s.opts.Policy); err != nil {
		return fmt.Errorf("first policy: %w", err)
	}
	return nil
}

func (s *Server) startChat(context.Context) (err error) {
	if s.opts.Slack == nil {
		return nil
	}
	c := s.opts.Config.Slack
	s.slack, err = slackapp.New(slackapp.Options{
		BotToken: s.opts.Slack.BotToken, SigningSecret: s.opts.Slack.SigningSecret, APIURL: s.opts.Slack.APIURL,
		TeamIDs: c.Teams, AppID: c.AppID, Channel: c.Channel, PublicURL: s.public.String(),
		Chat: s.chat, Refs: refs{s.store}, Desk: desk{s.engine, s.incidents, s.store}, Queue: s.store.Outbox(),
		Logger: s.log.With("component", "slack"), Registerer: s.opts.Registerer,
	})
	return err
}

// startLoops starts everything that works by itself.
func (s *Server) startLoops(ctx context.Context) error {
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cleanup(func(context.Context) error { cancel(); return nil })
	s.fleet.Start(run)
	s.cleanup(func(context.Context) error { s.fleet.Stop(); return nil })
	s.engine.Start(run)
	s.cleanup(func(context.Context) error { s.engine.Stop(); return nil })
	s.runbooks.Start(run)
	s.cleanup(func(context.Context) error { s.runbooks.Stop(); return nil })
	s.chat.Start(run)
	s.cleanup(func(context.Context) error { s.chat.Stop(); return nil })
	s.every(run, 5*time.Second, "expire claims", func(ctx context.Context) error {
		_, err := s.calendar.ExpireLapsed(ctx)
		return err
	})
	if s.slack == nil {
		return nil
	}
	if err := s.slack.Start(run); err != nil {
		return err
	}
	s.cleanup(s.slack.Stop)
	return nil
}

// every calls f at the given distance until the server stops.
func (s *Server) every(ctx context.Context, d time.Duration, what string, f func(context.Context) error) {
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer close(done)
		tick := time.NewTicker(d)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := f(ctx); err != nil && ctx.Err() == nil {
				s.log.Error("loop failed, will be tried again", "loop", what, "error", err)
			}
		}
	}()
	s.cleanup(func(context.Context) error { cancel(); <-done; return nil })
}

func (s *Server) serve(context.Context) error {
	var slackHandler http.Handler
	if s.slack != nil {
		slackHandler = s.slack.Handler()
	}
	handler, err := httpapi.New(httpapi.Options{
		Identity: s.people, Incidents: s.incidents, Alerts: s.intake, Changes: s.calendar, Actions: s.engine,
		Runbooks: s.runbooks, Fleet: s.fleet, Audit: s.store, Events: s.events, Ready: s.store.Ping,
		Unavailable: func(err error) bool { return errors.Is(err, store.ErrUnavailable) },
		Slack:       slackHandler, Console: s.opts.Console, PublicURL: s.public, SessionTTL: s.opts.SessionTTL,
		Metrics: s.metrics, Signals: s.board(),
		Logger: s.log, Registerer: s.opts.Registerer, Gatherer: s.opts.Gatherer,
	})
	if err != nil {
		return err
	}
	s.http = &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		// For readers that stopped reading; above the time for a body and its work
		// together. Streams set their own limit at each write.
		WriteTimeout:   answerTime,
		IdleTimeout:    2 * time.Minute,
		MaxHeaderBytes: 64 << 10,
		ErrorLog:       slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	failed := make(chan error, 1)
	go func() { failed <- s.http.Serve(s.listener) }()
	s.cleanup(func(ctx context.Context) error {
		// Streams last until told to end; everything else is let finish.
		s.events.close()
		s.fleet.Stop()
		if err := s.http.Shutdown(ctx); err != nil {
			_ = s.http.Close()
			return fmt.Errorf("open requests were cut: %w", err)
		}
		if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	s.log.Info("listening", "addr", s.Addr(), "url", s.public.String(), "database", s.store.Database())
	return nil
}

// Addr is where it listens, once started.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// URL is the address people use, once started.
func (s *Server) URL() string { return s.public.String() }

// LoginLink makes a one-time console login for a person, as an operator with
// access to the machine may (holdfast login-link, holdfast demo).
func (s *Server) LoginLink(ctx context.Context, handle string, ttl time.Duration) (string, error) {
	ctx = identity.WithPrincipal(ctx, identity.System())
	p, err := s.people.PersonByHandle(ctx, handle)
	if err != nil {
		return "", fmt.Errorf("person %q: %w", handle, err)
	}
	code, err := s.people.IssueLoginLink(ctx, p.ID, ttl)
	if err != nil {
		return "", err
	}
	return loginURL(s.public, code), nil
}

// KeepPolicy makes doc the base document unless it is already; leases above it
// stay. holdfast demo uses it, whose policy follows its flags.
func (s *Server) KeepPolicy(ctx context.Context, doc policy.Document) error {
	raw, err := policy.Encode(doc)
	if err != nil {
		return err
	}
	_, err = s.fleet.PutBase(identity.WithPrincipal(ctx, identity.System()), raw, 0)
	return err
}

func loginURL(public *url.URL, code string) string {
	u := public.JoinPath("login")
	u.RawQuery = url.Values{"code": {code}}.Encode()
	return u.String()
}

// Stop takes everything down, newest first, within ctx. It may be called more than once.
func (s *Server) Stop(ctx context.Context) error {
	s.stopOnce.Do(func() {
		var errs []error
		for _, cleanup := range slices.Backward(s.cleanups) {
			errs = append(errs, cleanup(ctx))
		}
		s.stopErr = errors.Join(errs...)
	})
	return s.stopErr
}
