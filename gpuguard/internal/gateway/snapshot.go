package gateway

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"holdfast/gpuguard/internal/breaker"
	"holdfast/gpuguard/internal/limit"
	"holdfast/gpuguard/internal/telemetry"
	"holdfast/gpuguard/policy"
)

// snapshot is a compiled policy. Nothing in it changes, apart from what the
// pointers to state that outlives it lead to.
type snapshot struct {
	effective  policy.Effective
	live       int       // gateways that limits are divided by
	nextExpiry time.Time // of a lease; zero when none runs
	routes     []*route  // longest prefix first
	tenants    keyring
	global     *gate
	gates      []*gate
	pools      map[string]*pool
	deps       map[string]*dependency
}

type tenant struct {
	name, class string
	limit       *gate
}

type dependency struct {
	name        string
	timeouts    policy.Timeouts
	breaker     *breaker.Breaker
	client      Client
	broken      *atomic.Bool // its upstream refuses our credential or account
	forcedOpen  bool
	forcedUntil time.Time
}

type pool struct {
	name       string
	dependency *dependency
	endpoints  []*endpoint
	turn       *atomic.Uint32
	// secretHeader and secret authenticate the gateway upstream; empty when nothing does.
	secretHeader, secret string
}

type route struct {
	name         string
	prefix       string
	methods      []string
	authRequired bool
	pool         *pool
	expectJSON   bool
	maxBody      int64
	limit        *gate
	fallback     *fallback
	series       *telemetry.Series
}

// Apply compiles the policy and swaps it in. On an error nothing changes. The
// effective document must be valid; live is the number of gateways that share
// its limits, at least 1.
func (g *Gateway) Apply(eff policy.Effective, live int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.opts.Clock()
	doc := eff.Document.WithDefaults()
	// Everything that can fail comes first, so that a refused policy leaves no trace.
	secrets, err := g.secrets(doc)
	if err != nil {
		return err
	}
	addresses, err := parseEndpoints(doc)
	if err != nil {
		return err
	}
	keys, err := parseKeys(doc)
	if err != nil {
		return err
	}
	c := compiler{
		g: g, now: now, doc: doc, leases: leaseEnds(eff.Overrides),
		snap: &snapshot{effective: eff, live: max(1, live), tenants: keyring{}, pools: map[string]*pool{}, deps: map[string]*dependency{}},
	}
	c.snap.nextExpiry, _ = policy.NextExpiry(eff.Overrides, now)
	c.dependencies()
	c.pools(secrets, addresses)
	c.limits()
	c.tenants(keys)
	c.routes()
	g.current.Store(c.snap)
	g.forget(c.snap)
	return nil
}

// secrets resolves the credential of each pool; what was resolved once stands
// in for a source that fails later.
func (g *Gateway) secrets(doc policy.Document) (map[string]string, error) {
	out := map[string]string{}
	for name, p := range doc.Pools {
		if p.Credential == nil {
			continue
		}
		at := "pools." + name + ".credential"
		if g.opts.Secret == nil {
			return nil, fmt.Errorf("%s: this gateway was given no way to read credentials", at)
		}
		secret, err := g.opts.Secret(*p.Credential)
		if err != nil {
			// A source that is gone for the moment must not keep a lease from ending.
			known, ok := g.known[*p.Credential]
			if !ok {
				return nil, fmt.Errorf("%s: %w", at, err)
			}
			secret = known
		}
		secret = strings.TrimRight(secret, "\r\n") // a file's last line break
		if secret == "" || strings.ContainsFunc(secret, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return nil, fmt.Errorf("%s: the secret is empty or has control characters", at)
		}
		g.known[*p.Credential] = secret
		out[name] = p.Credential.Prefix + secret
	}
	return out, nil
}

func parseEndpoints(doc policy.Document) (map[string]*url.URL, error) {
	out := map[string]*url.URL{}
	for poolName, p := range doc.Pools {
		for name, e := range p.Endpoints {
			u, err := url.Parse(e.URL)
			if err != nil || u.Host == "" {
				return nil, fmt.Errorf("pools.%s.endpoints.%s.url: not an absolute URL", poolName, name)
			}
			u.Path = strings.TrimRight(u.Path, "/")
			u.RawPath = ""
			out[slotKey(poolName, name, e.URL)] = u
		}
	}
	return out, nil
}

func parseKeys(doc policy.Document) (map[string][][sha256.Size]byte, error) {
	out := map[string][][sha256.Size]byte{}
	for name, t := range doc.Tenants {
		for i, text := range t.Keys {
			raw, err := hex.DecodeString(text)
			if err != nil || len(raw) != sha256.Size {
				return nil, fmt.Errorf("tenants.%s.keys[%d]: not a SHA-256 digest in hex", name, i)
			}
			out[name] = append(out[name], [sha256.Size]byte(raw))
		}
	}
	return out, nil
}

// leaseEnds is the end of the lease on each overridden path.
func leaseEnds(overrides []policy.Override) map[string]time.Time {
	out := make(map[string]time.Time, len(overrides))
	for _, o := range overrides {
		out[o.Path] = o.Expires
	}
	return out
}

// slotKey tells endpoints apart over time: another URL is another endpoint.
func slotKey(pool, endpoint, rawURL string) string { return pool + "\x00" + endpoint + "\x00" + rawURL }

// compiler builds a snapshot over the gateway's lasting state. Its methods
// cannot fail. The gateway's lock is held.
type compiler struct {
	g      *Gateway
	now    time.Time
	doc    policy.Document
	leases map[string]time.Time
	snap   *snapshot
}

func (c *compiler) dependencies() {
	for name, d := range c.doc.Dependencies {
		cfg := breakerConfig(d.Breaker)
		b := c.g.breakers[name]
		if b == nil {
			b = breaker.New(c.now, cfg)
			c.g.breakers[name] = b
			c.g.clients[name] = c.g.opts.NewClient(d.Timeouts.Connect.D())
			c.g.broken[name] = &atomic.Bool{}
		} else {
			b.Configure(c.now, cfg)
			c.g.clients[name].SetConnectTimeout(d.Timeouts.Connect.D())
		}
		c.snap.deps[name] = &dependency{
			name: name, timeouts: d.Timeouts, breaker: b, client: c.g.clients[name], broken: c.g.broken[name],
			forcedOpen:  d.Breaker.Forced == policy.ForcedOpen,
			forcedUntil: c.leases[policy.BreakerForcedPath(name)],
		}
	}
}

func breakerConfig(b policy.Breaker) breaker.Config {
	cfg := breaker.Config{
		Disabled: b.Disabled, WindowCalls: b.WindowCalls, WindowTime: b.WindowTime.D(),
		FailureRate: b.FailureRate, MinimumCalls: b.MinimumCalls, ConsecutiveFailures: b.ConsecutiveFailures,
		OpenFor: b.OpenFor.D(), Probes: b.HalfOpenProbes, HalfOpenFor: b.HalfOpenFor.D(),
	}
	switch b.Forced {
	case policy.ForcedOpen:
		cfg.Forced = breaker.ForceOpen
	case policy.ForcedClosed:
		cfg.Forced = breaker.ForceClosed
	case policy.ForcedNone:
	}
	return cfg
}

func (c *compiler) pools(secrets map[string]string, addresses map[string]*url.URL) {
	for name, p := range c.doc.Pools {
		out := &pool{name: name, dependency: c.snap.deps[p.Dependency], turn: &atomic.Uint32{}, secret: secrets[name]}
		if p.Credential != nil {
			out.secretHeader = http.CanonicalHeaderKey(p.Credential.Header)
		}
		for _, endpointName := range slices.Sorted(maps.Keys(p.Endpoints)) {
			e := p.Endpoints[endpointName]
			key := slotKey(name, endpointName, e.URL)
			s := c.g.slots[key]
			if s == nil {
				s = &slot{}
				c.g.slots[key] = s
			}
			out.endpoints = append(out.endpoints, &endpoint{name: endpointName, url: addresses[key], drained: e.Drained, slot: s})
		}
		c.snap.pools[name] = out
	}
}

// gate returns the gate of a limit, nil for none.
func (c *compiler) gate(path string, l *policy.Limit) *gate {
	if l == nil {
		return nil
	}
	share := limit.Rate{PerSecond: l.RequestsPerSecond, Burst: l.Burst}.Share(c.snap.live)
	b := c.g.buckets[path]
	if b == nil {
		b = limit.New(c.now, share)
		c.g.buckets[path] = b
	} else {
		b.Set(c.now, share)
	}
	out := &gate{path: path, bucket: b, until: c.leases[path]}
	c.snap.gates = append(c.snap.gates, out)
	return out
}

func (c *compiler) limits() { c.snap.global = c.gate(policy.GlobalLimitPath, c.doc.Limits.Global) }

func (c *compiler) tenants(keys map[string][][sha256.Size]byte) {
	for name, t := range c.doc.Tenants {
		out := &tenant{name: name, class: t.Class, limit: c.gate(policy.TenantLimitPath(name), t.Limit)}
		for _, digest := range keys[name] {
			c.snap.tenants.add(digest, out)
		}
	}
}

func (c *compiler) routes() {
	for name, r := range c.doc.Routes {
		p := c.snap.pools[r.Pool]
		out := &route{
			name: name, prefix: r.Match.PathPrefix, methods: r.Match.Methods,
			authRequired: r.Auth != policy.AuthOptional, pool: p, expectJSON: r.Expect == policy.ExpectJSON,
			maxBody: r.MaxBodyBytes, limit: c.gate(policy.RouteLimitPath(name), r.Limit),
			series: c.g.metrics.Series(name, p.dependency.name), fallback: newFallback(r.Fallback),
		}
		c.snap.routes = append(c.snap.routes, out)
	}
	slices.SortFunc(c.snap.routes, func(a, b *route) int {
		return cmp.Or(cmp.Compare(len(b.prefix), len(a.prefix)), strings.Compare(a.name, b.name))
	})
}

// forget drops the state of names that are gone. Requests that still use it
// hold it themselves.
func (g *Gateway) forget(s *snapshot) {
	for name, c := range g.clients {
		if s.deps[name] == nil {
			c.Close()
			delete(g.clients, name)
			delete(g.breakers, name)
			delete(g.broken, name)
		}
	}
	kept := make(map[string]bool, len(s.gates))
	for _, gt := range s.gates {
		kept[gt.path] = true
	}
	maps.DeleteFunc(g.buckets, func(path string, _ *limit.Bucket) bool { return !kept[path] })
	used := map[*slot]bool{}
	for _, p := range s.pools {
		for _, e := range p.endpoints {
			used[e.slot] = true
		}
	}
	maps.DeleteFunc(g.slots, func(_ string, sl *slot) bool { return !used[sl] })
}
