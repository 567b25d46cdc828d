package gpuguard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/gpuguard/controlclient"
	"holdfast/gpuguard/internal/admin"
	"holdfast/gpuguard/internal/gateway"
	"holdfast/gpuguard/internal/upstream"
	"holdfast/gpuguard/policy"
)

// ErrStarted is returned by Start when the guard was started or stopped before.
var ErrStarted = errors.New("the gateway was started before")

// standaloneLineage names the policy of a gateway without a server.
const standaloneLineage = "standalone"

// Guard is one gateway. Make it with New.
type Guard struct {
	opts    Options
	log     *slog.Logger
	gateway *gateway.Gateway
	holder  *holder

	mu       sync.Mutex
	started  bool
	data     *listener
	admin    *listener
	control  atomic.Pointer[controlclient.Client]
	cancel   context.CancelFunc
	running  sync.WaitGroup
	draining atomic.Bool
	stopOnce sync.Once
	stopErr  error
}

// listener is one port with its server.
type listener struct {
	net.Listener
	server *http.Server
}

// New checks the options, registers the metrics and, when Options.Policy is
// set, applies it. It opens nothing.
func New(o Options) (*Guard, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("gpuguard options: %w", err)
	}
	g := &Guard{opts: o.filled()}
	g.log = g.opts.Logger
	gw, err := gateway.New(gateway.Options{
		Secret: g.opts.Secret, Logger: g.log, AccessLog: g.opts.AccessLog, Clock: g.opts.Clock,
		NewClient:   func(connect time.Duration) gateway.Client { return upstream.NewClient(connect) },
		BodyTimeout: g.opts.BodyTimeout, WriteTimeout: g.opts.WriteTimeout,
		Registerer: g.opts.Registerer, LeaseOver: func() { g.holder.tryEndLeases() }, LastHeard: g.lastHeard,
	})
	if err != nil {
		return nil, err
	}
	g.gateway = gw
	g.holder = &holder{gateway: gw, clock: g.opts.Clock, log: g.log}
	if o.Policy != nil {
		if err := g.applyStandalone(*o.Policy); err != nil {
			return nil, fmt.Errorf("policy: %w", err)
		}
	}
	return g, nil
}

func (o Options) filled() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.AccessLog == nil {
		o.AccessLog = o.Logger
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return o
}

func (g *Guard) applyStandalone(d policy.Document) error {
	raw, err := policy.Encode(d)
	if err != nil {
		return err
	}
	return g.ApplyUpdate(policy.Update{Lineage: standaloneLineage, Revision: 1, Base: raw, LiveGateways: 1})
}

// ApplyUpdate puts a policy in force as a whole, or returns why not and changes
// nothing: strict.Errors name the fields, ErrStaleRevision and
// ErrLineageNotConfirmed the fencing. Overrides end by this gateway's clock, at
// Expires when set and else after RemainingSeconds. Requests in flight keep the
// policy they began with.
func (g *Guard) ApplyUpdate(u policy.Update) error { return g.holder.apply(u) }

// State is what the gateway reports of itself.
func (g *Guard) State() policy.State { return g.gateway.State() }

// Effective is the policy in force with its live overrides, not to be changed;
// the zero value when none is.
func (g *Guard) Effective() policy.Effective {
	eff, _ := g.gateway.Effective()
	return eff
}

// Start listens, loads the last good policy when there is a server to take it
// from, and returns once requests are taken. ctx bounds starting only; Stop ends
// what was started.
func (g *Guard) Start(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.started {
		return ErrStarted
	}
	g.started = true
	if err := g.listen(ctx); err != nil {
		g.closeListeners()
		return err
	}
	if err := g.startControl(); err != nil {
		g.closeListeners()
		return err
	}
	g.serve(g.data)
	g.serve(g.admin)
	g.log.Info("gateway started", "addr", g.data.Addr().String(), "name", g.opts.Name)
	return nil
}

func (g *Guard) listen(ctx context.Context) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", g.opts.Addr)
	if err != nil {
		return fmt.Errorf("listen for callers on %s (is another gateway running? choose another Addr): %w", g.opts.Addr, err)
	}
	g.data = &listener{Listener: l, server: g.server(g.gateway)}
	if g.opts.AdminAddr == "" {
		return nil
	}
	l, err = lc.Listen(ctx, "tcp", g.opts.AdminAddr)
	if err != nil {
		return fmt.Errorf("listen for administration on %s (choose another AdminAddr): %w", g.opts.AdminAddr, err)
	}
	g.admin = &listener{Listener: l, server: g.server(admin.Handler(admin.Options{
		Source: source{g}, Gatherer: g.opts.Gatherer, Token: g.opts.AdminToken,
		Name: g.opts.Name, Version: g.opts.Version, Clock: g.opts.Clock,
	}))}
	return nil
}

func (g *Guard) server(h http.Handler) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Server{
		Handler:                      h,
		Protocols:                    protocols,
		DisableGeneralOptionsHandler: true,
		ReadHeaderTimeout:            g.opts.ReadHeaderTimeout,
		IdleTimeout:                  g.opts.IdleTimeout,
		MaxHeaderBytes:               g.opts.MaxHeaderBytes,
		ErrorLog:                     slog.NewLogLogger(g.log.Handler(), slog.LevelWarn),
	}
}

func (g *Guard) serve(l *listener) {
	if l == nil {
		return
	}
	g.running.Go(func() {
		if err := l.server.Serve(l.Listener); !errors.Is(err, http.ErrServerClosed) {
			g.log.Error("listener failed", "addr", l.Addr().String(), "error", err)
		}
	})
}

// startControl takes up the last good policy and begins to follow the server.
func (g *Guard) startControl() error {
	if g.opts.Control == nil {
		return nil
	}
	held := g.lastGood()
	client, err := controlclient.New(controlclient.Options{
		URL: g.opts.Control.URL, Token: g.opts.Control.Token, Gateway: g.opts.Name, Version: g.opts.Version,
		StateDir: g.opts.StateDir, Held: held, Clock: g.opts.Clock, Logger: g.log, Registerer: g.opts.Registerer,
		Apply: func(_ context.Context, u policy.Update) error { return g.ApplyUpdate(u) },
		State: g.State,
	})
	if err != nil {
		return fmt.Errorf("control client: %w", err)
	}
	g.control.Store(client)
	ctx, cancel := context.WithCancel(context.Background())
	g.cancel = cancel
	g.running.Go(func() { client.Run(ctx) })
	return nil
}

// lastHeard is when the server last sent anything; zero when never.
func (g *Guard) lastHeard() time.Time {
	if c := g.control.Load(); c != nil {
		return c.Status().LastHeard
	}
	return time.Time{}
}

// lastGood applies the policy kept on disk, so that the gateway serves before,
// and without, its server.
func (g *Guard) lastGood() *policy.Update {
	if g.opts.StateDir == "" {
		return nil
	}
	u, err := controlclient.LoadLastKnownGood(g.opts.StateDir, g.opts.Clock())
	switch {
	case errors.Is(err, controlclient.ErrNoLastKnownGood):
		return nil
	case err != nil:
		g.log.Error("last good policy could not be read; waiting for the server", "error", err)
		return nil
	}
	if err := g.ApplyUpdate(u); err != nil {
		g.log.Error("last good policy is refused; waiting for the server", "error", err)
		return nil
	}
	return &u
}

// Addr is where callers connect; empty before Start.
func (g *Guard) Addr() string { return g.addr(func() *listener { return g.data }) }

// AdminAddr is where administration is served; empty before Start and without AdminAddr.
func (g *Guard) AdminAddr() string { return g.addr(func() *listener { return g.admin }) }

func (g *Guard) addr(of func() *listener) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if l := of(); l != nil {
		return l.Addr().String()
	}
	return ""
}

// Stop takes no new requests, lets those in flight finish within DrainTimeout
// and ctx, cuts the rest, and returns when nothing of the guard runs any more.
// It is idempotent: later calls return what the first returned. The error says
// how many requests were cut.
func (g *Guard) Stop(ctx context.Context) error {
	g.stopOnce.Do(func() { g.stopErr = g.stop(ctx) })
	return g.stopErr
}

func (g *Guard) stop(ctx context.Context) error {
	g.draining.Store(true)
	g.mu.Lock()
	g.started = true // a stopped guard cannot be started
	g.mu.Unlock()
	// From here on nothing writes the fields that Start set.
	err := g.drain(ctx)
	if g.cancel != nil {
		g.cancel()
	}
	g.closeListeners()
	g.running.Wait()
	g.holder.stop()
	g.gateway.Close()
	return err
}

// drain waits for the requests in flight and cuts those that take too long.
func (g *Guard) drain(ctx context.Context) error {
	if g.data == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, g.opts.DrainTimeout)
	defer cancel()
	err := g.data.server.Shutdown(ctx)
	if err == nil {
		return nil
	}
	cut := g.gateway.InFlight()
	_ = g.data.server.Close()
	g.awaitHandlers()
	if cut > 0 {
		return fmt.Errorf("stopped with %d requests cut: %w", cut, err)
	}
	return nil
}

// awaitHandlers gives cut requests the moment they need to settle.
func (g *Guard) awaitHandlers() {
	const most, pause = 2 * time.Second, 2 * time.Millisecond
	enough := time.After(most)
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for g.gateway.InFlight() > 0 {
		select {
		case <-tick.C:
		case <-enough:
			return
		}
	}
}

func (g *Guard) closeListeners() {
	for _, l := range []*listener{g.data, g.admin} {
		if l != nil {
			_ = l.server.Close()
			_ = l.Close() // when Serve never began
		}
	}
}
