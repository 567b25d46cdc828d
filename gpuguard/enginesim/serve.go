package enginesim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// ListenError says that an address could not be opened.
type ListenError struct {
	// Option is the Options field that holds the address: Listen or AdminListen.
	Option string
	// Addr is the address.
	Addr string
	// Err is the error of the operating system.
	Err error
}

// Error implements error.
func (e *ListenError) Error() string {
	return fmt.Sprintf("enginesim: cannot listen on %s (option %s): %v", e.Addr, e.Option, e.Err)
}

// Unwrap returns the error of the operating system.
func (e *ListenError) Unwrap() error { return e.Err }

var errStarted = errors.New("enginesim: Start was already called")

// servers are the listeners of a started engine.
type servers struct {
	mu      sync.Mutex
	started bool
	stop    sync.Once
	main    *server
	admin   *server // nil when the admin API shares the main listener
}

type server struct {
	http *http.Server
	addr string
	done chan struct{} // closed when Serve has returned
}

// Start opens the listeners and returns when they accept connections. The
// context bounds only the opening; end the engine with Stop. The error is a
// *ListenError when an address cannot be opened.
func (e *Engine) Start(ctx context.Context) error {
	e.servers.mu.Lock()
	defer e.servers.mu.Unlock()
	if e.servers.started {
		return errStarted
	}
	main, err := listen(ctx, "Listen", e.opts.Listen)
	if err != nil {
		return err
	}
	if e.opts.AdminListen != "" {
		admin, err := listen(ctx, "AdminListen", e.opts.AdminListen)
		if err != nil {
			_ = main.Close()
			return err
		}
		mux := http.NewServeMux()
		e.adminRoutes(mux)
		e.servers.admin = serve(admin, mux, e.log)
	}
	e.servers.main = serve(main, e.Handler(), e.log)
	e.servers.started = true
	return nil
}

// Stop refuses new requests, lets running ones finish until ctx ends and then
// cuts them. It returns the context's error when it had to cut. Calling it
// again, or without Start, is safe.
func (e *Engine) Stop(ctx context.Context) error {
	e.servers.stop.Do(func() { close(e.stopping) })
	e.servers.mu.Lock()
	open := []*server{e.servers.main, e.servers.admin}
	e.servers.mu.Unlock()
	var errs []error
	for _, s := range open {
		if s == nil {
			continue
		}
		if err := s.http.Shutdown(ctx); err != nil {
			errs = append(errs, fmt.Errorf("enginesim: stop listening on %s: %w", s.addr, err))
			_ = s.http.Close()
		}
		<-s.done
	}
	e.end()
	return errors.Join(errs...)
}

// end stops the clock and fails what is left.
func (e *Engine) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	e.rearm(e.now())
	for _, s := range e.model.stop() {
		c := s.owner.(*call)
		c.done, c.err = true, errStopping
		c.signal()
	}
}

// Addr is the host:port of the OpenAI-compatible API; empty before Start.
func (e *Engine) Addr() string { return e.servers.address(false) }

// AdminAddr is the host:port of the admin API; empty before Start. It equals
// Addr when the two share a listener.
func (e *Engine) AdminAddr() string { return e.servers.address(true) }

func (s *servers) address(admin bool) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case admin && s.admin != nil:
		return s.admin.addr
	case s.main != nil:
		return s.main.addr
	}
	return ""
}

func listen(ctx context.Context, option, addr string) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, &ListenError{Option: option, Addr: addr, Err: err}
	}
	return l, nil
}

// serve has no write timeout: a stream may last as long as its client likes.
func serve(l net.Listener, h http.Handler, log *slog.Logger) *server {
	s := &server{
		http: &http.Server{
			Handler:           h,
			ReadHeaderTimeout: 10 * time.Second,
			IdleTimeout:       120 * time.Second,
			ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		},
		addr: l.Addr().String(),
		done: make(chan struct{}),
	}
	go func() {
		defer close(s.done)
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("server ended", "addr", s.addr, "error", err)
		}
	}()
	return s
}
