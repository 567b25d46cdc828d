package slacksim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Sim is one simulated workspace with one app. Its methods may be called from
// any goroutine.
type Sim struct {
	opts    Options
	log     *slog.Logger
	state   *state
	hub     *hub
	limiter *limiter
	faults  faults
	client  *http.Client
	handler http.Handler

	urlMu                   sync.Mutex
	interactivity, commands string
	events                  string

	deliveryMu sync.Mutex
	deliveries []Delivery

	runMu    sync.Mutex
	server   *http.Server
	addr     atomic.Pointer[string] // read by handlers while Stop waits for them
	served   chan struct{}          // closed when Serve returned
	stopping chan struct{}          // closed by Stop
	stopOnce sync.Once
}

// ErrRunning says that Start was called twice.
var ErrRunning = errors.New("slacksim: already started")

// New returns a workspace that is not listening yet. It reports every problem
// of the options at once.
func New(o Options) (*Sim, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	h := newHub()
	s := &Sim{
		opts: o, log: o.Logger, hub: h, state: newState(o, h), limiter: newLimiter(o.Rates, o.Clock),
		interactivity: o.InteractivityURL, commands: o.CommandsURL, events: o.EventsURL,
		stopping: make(chan struct{}),
		client: &http.Client{
			// Slack does not follow redirects of a request URL.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport:     &http.Transport{MaxIdleConnsPerHost: 8, IdleConnTimeout: 30 * time.Second},
		},
	}
	s.handler = s.routes()
	return s, nil
}

// Start listens and serves until Stop, once. The context bounds only the start.
func (s *Sim) Start(ctx context.Context) error {
	s.runMu.Lock()
	defer s.runMu.Unlock()
	if s.server != nil {
		return ErrRunning
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", s.opts.Addr)
	if err != nil {
		return fmt.Errorf("slacksim: cannot listen on %s (is another program using the port?): %w", s.opts.Addr, err)
	}
	addr := ln.Addr().String()
	s.addr.Store(&addr)
	s.served = make(chan struct{})
	s.server = &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		IdleTimeout:       time.Minute,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	go func() {
		defer close(s.served)
		if err := s.server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("slacksim stopped serving", "error", err)
		}
	}()
	s.log.Info("slacksim listening", "url", "http://"+addr)
	return nil
}

// Stop ends page streams, waits for requests under way until the context
// ends, and then closes what is left. It may be called more than once.
func (s *Sim) Stop(ctx context.Context) error {
	s.stopOnce.Do(func() { close(s.stopping) })
	s.client.CloseIdleConnections()
	s.runMu.Lock()
	defer s.runMu.Unlock()
	if s.server == nil {
		return nil
	}
	err := s.server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("slacksim: stop: %w", err), s.server.Close())
	}
	<-s.served
	return err
}

// Addr returns the listening address, empty before Start.
func (s *Sim) Addr() string {
	if addr := s.addr.Load(); addr != nil {
		return *addr
	}
	return ""
}

// URL returns the page's address without a trailing slash: PublicURL where
// that is set, else the listening address.
func (s *Sim) URL() string {
	if s.opts.PublicURL != "" {
		return strings.TrimSuffix(s.opts.PublicURL, "/")
	}
	return "http://" + s.Addr()
}

// APIURL returns the Web API's base, for slack.OptionAPIURL. It ends in "/".
func (s *Sim) APIURL() string { return s.URL() + "/api/" }

// ResponseURLPrefix is what every response_url begins with, for the app's
// allow-list.
func (s *Sim) ResponseURLPrefix() string { return s.URL() + "/response/" }

// Handler returns the whole HTTP surface, for mounting elsewhere.
func (s *Sim) Handler() http.Handler { return s.handler }

// Options returns the options in force, defaults filled in.
func (s *Sim) Options() Options { return s.opts }

// SetInteractivityURL sets where clicks and modal submissions go.
func (s *Sim) SetInteractivityURL(u string) error { return s.setURL(&s.interactivity, u) }

// SetCommandsURL sets where slash commands go.
func (s *Sim) SetCommandsURL(u string) error { return s.setURL(&s.commands, u) }

// SetEventsURL sets where Events API deliveries go.
func (s *Sim) SetEventsURL(u string) error { return s.setURL(&s.events, u) }

func (s *Sim) setURL(field *string, u string) error {
	if err := checkURL(u); err != nil {
		return fmt.Errorf("slacksim: %w", err)
	}
	s.urlMu.Lock()
	defer s.urlMu.Unlock()
	*field = u
	return nil
}

func (s *Sim) url(field *string) string {
	s.urlMu.Lock()
	defer s.urlMu.Unlock()
	return *field
}

// routes builds the HTTP surface: the API for the app, the page for people.
func (s *Sim) routes() http.Handler {
	people := http.NewServeMux()
	people.HandleFunc("GET /{$}", s.handlePage)
	people.HandleFunc("GET /sim/view", s.handleFragment)
	people.HandleFunc("GET /sim/events", s.handleEvents)
	people.HandleFunc("GET /sim/assets/{name}", handleAsset)
	people.HandleFunc("POST /sim/click", s.handleClick)
	people.HandleFunc("POST /sim/submit", s.handleSubmit)
	people.HandleFunc("POST /sim/close", s.handleClose)
	people.HandleFunc("POST /sim/say", s.handleSay)
	if s.opts.AllowFaults {
		people.HandleFunc("GET /sim/faults", s.handleFaults)
		people.HandleFunc("POST /sim/faults", s.handleFaults)
		people.HandleFunc("DELETE /sim/faults", s.handleFaults)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/api/{method}", s.handleAPI)
	mux.HandleFunc("POST /response/{token}", s.handleResponseURL)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]any{"ok": true})
	})
	mux.Handle("/", s.guard(http.NewCrossOriginProtection().Handler(people)))
	return mux
}
