// Package gateway is the request path. Its stages stand in files of their own
// and run in this order:
//
//	route → authenticate → classify → limits → choose → admit → call → relay → settle
//
// A stage lets the request go on or refuses it. Whatever happens, end settles
// every right the request took (tokens, permit, endpoint slot) and reports
// exactly one outcome.
//
// The policy is compiled into an immutable snapshot that is swapped as a whole:
// a request keeps the snapshot it began with. Breakers, buckets, connections
// and endpoint counts live on by name across snapshots.
package gateway

import (
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast/gpuguard/internal/breaker"
	"holdfast/gpuguard/internal/limit"
	"holdfast/gpuguard/internal/telemetry"
	"holdfast/gpuguard/internal/upstream"
	"holdfast/gpuguard/policy"
)

// Client is a Caller with the life of a dependency.
type Client interface {
	upstream.Caller
	SetConnectTimeout(time.Duration)
	Close()
}

// Options configure a Gateway. Logger, AccessLog, Clock, NewClient, BodyTimeout and
// WriteTimeout are required.
type Options struct {
	// Secret resolves upstream credentials; nil refuses policies that need one.
	Secret func(policy.Credential) (string, error)
	// Logger takes events, AccessLog one line per request.
	Logger    *slog.Logger
	AccessLog *slog.Logger
	// Clock is the time of breakers, buckets, leases and measurements.
	Clock func() time.Time
	// NewClient opens the connections of one dependency.
	NewClient func(connect time.Duration) Client
	// BodyTimeout bounds the reading of a request body, WriteTimeout one write
	// to a caller that does not read.
	BodyTimeout  time.Duration
	WriteTimeout time.Duration
	// Registerer publishes the metrics; nil publishes none.
	Registerer prometheus.Registerer
	// LeaseOver is called, from a request, when the policy in force has a lease
	// that ended; it should apply the policy without it. Nil is allowed.
	LeaseOver func()
	// LastHeard is when the server was last heard of; whatever policy is in
	// force was current then. Nil for gateways without a server.
	LastHeard func() time.Time
}

// Gateway is the handler of the data port.
type Gateway struct {
	opts     Options
	metrics  *telemetry.Metrics
	unrouted *telemetry.Series
	current  atomic.Pointer[snapshot]
	// confirmed is when the policy was last applied or confirmed.
	confirmed atomic.Pointer[time.Time]

	mu       sync.Mutex // guards Apply and the maps
	breakers map[string]*breaker.Breaker
	clients  map[string]Client
	broken   map[string]*atomic.Bool // misconfigured dependencies
	buckets  map[string]*limit.Bucket
	slots    map[string]*slot
	known    map[policy.Credential]string // secrets resolved so far
}

// New returns a gateway without a policy: it refuses everything until Apply.
func New(o Options) (*Gateway, error) {
	g := &Gateway{
		opts:     o,
		breakers: map[string]*breaker.Breaker{},
		clients:  map[string]Client{},
		broken:   map[string]*atomic.Bool{},
		buckets:  map[string]*limit.Bucket{},
		slots:    map[string]*slot{},
		known:    map[policy.Credential]string{},
	}
	m, err := telemetry.New(o.Registerer, g.reading)
	if err != nil {
		return nil, err
	}
	g.metrics = m
	g.unrouted = m.Series("", "")
	return g, nil
}

// Close closes idle upstream connections. Call it when no request is left.
func (g *Gateway) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.clients {
		c.Close()
	}
}

// InFlight is the number of requests inside the gateway.
func (g *Gateway) InFlight() int64 { return g.metrics.InFlight() }

// ServeHTTP takes one request to its one outcome.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.metrics.Enter()
	defer g.metrics.Leave()
	x := newExchange(g, w, r)
	defer x.end()
	x.run()
}

// stage decides whether a request goes on: nil means it does.
type stage func(*exchange) *refusal

// stages is the order up to the call. What would refuse over-long contexts or
// answer from a cache belongs between classify and takeLimits, since limits
// protect engines and count only what reaches one; admission by engine state
// belongs after takeLimits, a bulkhead before admit.
var stages = []stage{
	(*exchange).route,
	(*exchange).authenticate,
	(*exchange).classify,
	(*exchange).takeLimits,
	(*exchange).choose,
	(*exchange).admit,
}

func (x *exchange) run() {
	for _, s := range stages {
		if no := s(x); no != nil {
			x.refuse(no)
			return
		}
	}
	x.forward()
}
