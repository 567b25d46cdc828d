package policy

// Version is the document version this package reads and writes.
const Version = 1

// Document is a whole policy. Maps are keyed by name: lower-case letters,
// digits and hyphens, at most 63 characters, so that dotted paths such as
// "dependencies.llm.breaker.forced" are unambiguous.
type Document struct {
	Version      int                   `json:"version"`
	Tenants      map[string]Tenant     `json:"tenants,omitempty"`
	Dependencies map[string]Dependency `json:"dependencies"`
	Pools        map[string]Pool       `json:"pools"`
	Routes       map[string]Route      `json:"routes"`
	Limits       Limits                `json:"limits,omitzero"`
}

// Tenant is a caller known by its API keys.
type Tenant struct {
	// Class groups tenants for metrics and priorities, such as "vip" or "standard".
	Class string `json:"class,omitempty"`
	// Keys are the lower-case hex SHA-256 digests of the tenant's API keys (64 characters each).
	Keys []string `json:"keys"`
	// Limit bounds this tenant alone; nil means no limit of its own.
	Limit *Limit `json:"limit,omitempty"`
}

// Dependency is something that can fail on its own: a model, an embedding
// service, a vector database. It owns its breaker and time limits (INCIDENTS A, B).
type Dependency struct {
	// Service is the catalogue name used by the change calendar and incidents; empty means the dependency's own name.
	Service  string   `json:"service,omitempty"`
	Breaker  Breaker  `json:"breaker,omitzero"`
	Timeouts Timeouts `json:"timeouts,omitzero"`
}

// Breaker opens when too many calls of a window fail. Zero fields take the
// defaults of DefaultBreaker.
type Breaker struct {
	// Disabled switches the automatic rule off; a forced state still holds.
	Disabled bool `json:"disabled,omitempty"`
	// WindowCalls is the count window (calls); used when WindowTime is zero.
	WindowCalls int `json:"window_calls,omitempty"`
	// WindowTime is the time window; when set it replaces the count window.
	WindowTime Duration `json:"window_time,omitzero"`
	// FailureRate opens the breaker when reached (ratio, 0 < r ≤ 1).
	FailureRate float64 `json:"failure_rate,omitempty"`
	// MinimumCalls is the least number of judged calls in the window before the rate counts (C44).
	MinimumCalls int `json:"minimum_calls,omitempty"`
	// ConsecutiveFailures opens at that many failures in a row whatever the volume; the second rule for low traffic (C44).
	ConsecutiveFailures int `json:"consecutive_failures,omitempty"`
	// OpenFor is how long the breaker stays open before it probes.
	OpenFor Duration `json:"open_for,omitzero"`
	// HalfOpenProbes is how many calls may be tried at once while half-open, and how many must succeed to close.
	HalfOpenProbes int `json:"half_open_probes,omitempty"`
	// HalfOpenFor bounds the half-open state; after it new probes are admitted (C69).
	HalfOpenFor Duration `json:"half_open_for,omitzero"`
	// Forced holds the breaker open or closed. Only a leased override may set
	// it (owner, reason and expiry are the override's): a base document that
	// does is refused.
	Forced ForcedState `json:"forced,omitempty"`
}

// ForcedState is a breaker state set by a person.
type ForcedState string

// Forced states; the empty string leaves the automatic rule in charge.
const (
	ForcedNone   ForcedState = ""
	ForcedOpen   ForcedState = "open"
	ForcedClosed ForcedState = "closed"
)

// Timeouts are separate limits for separate phases (INCIDENTS A and its last
// section). Zero fields take the defaults of DefaultTimeouts.
type Timeouts struct {
	// Connect bounds dialling and TLS.
	Connect Duration `json:"connect,omitzero"`
	// FirstByte bounds the wait for the response's first byte after the request was sent.
	FirstByte Duration `json:"first_byte,omitzero"`
	// Idle bounds the silence between two chunks of a stream.
	Idle Duration `json:"idle,omitzero"`
	// Total bounds a request that is not a stream, from first to last byte.
	Total Duration `json:"total,omitzero"`
	// StreamTotal is the absolute cap of a stream; Total never cuts one (C40).
	StreamTotal Duration `json:"stream_total,omitzero"`
}

// Pool is a set of interchangeable endpoints of one dependency.
type Pool struct {
	Dependency string              `json:"dependency"`
	Endpoints  map[string]Endpoint `json:"endpoints"`
	Credential *Credential         `json:"credential,omitempty"`
}

// Endpoint is one upstream address.
type Endpoint struct {
	// URL is absolute http or https, without user info, query or fragment.
	URL string `json:"url"`
	// Drained endpoints take no new requests.
	Drained bool `json:"drained,omitempty"`
}

// Credential names where the gateway finds the upstream secret; the secret
// itself never stands in a policy. Exactly one of Env and File is set.
type Credential struct {
	// Header is the request header to set; default "Authorization".
	Header string `json:"header,omitempty"`
	// Prefix is put before the secret; default "Bearer " for Authorization.
	Prefix string `json:"prefix,omitempty"`
	Env    string `json:"env,omitempty"`
	File   string `json:"file,omitempty"`
}

// Auth says whether a route needs an API key.
type Auth string

// Auth modes; the empty string means required.
const (
	AuthRequired Auth = "required"
	AuthOptional Auth = "optional"
)

// Expect says what a healthy answer of a route looks like.
type Expect string

// Expectations; the empty string means ExpectAny.
const (
	// ExpectJSON: a 200 must carry a JSON document or, for streams, server-sent events. Empty is a failure (INCIDENTS A, C54).
	ExpectJSON Expect = "json"
	// ExpectAny: the body is not judged.
	ExpectAny Expect = "any"
)

// Route maps requests to a pool.
type Route struct {
	Match Match  `json:"match"`
	Auth  Auth   `json:"auth,omitempty"`
	Pool  string `json:"pool"`
	// Expect judges answers; see Expect.
	Expect Expect `json:"expect,omitempty"`
	// MaxBodyBytes caps request bodies; default DefaultMaxBodyBytes.
	MaxBodyBytes int64 `json:"max_body_bytes,omitempty"`
	// Limit bounds this route alone; nil means none of its own.
	Limit *Limit `json:"limit,omitempty"`
	// Fallback answers while the dependency's breaker is open or nothing can take the request; nil gives a plain 503.
	Fallback *Fallback `json:"fallback,omitempty"`
}

// Match selects requests. The longest path prefix wins.
type Match struct {
	// PathPrefix starts with "/" and matches whole path segments.
	PathPrefix string `json:"path_prefix"`
	// Methods are upper-case; empty means any but CONNECT.
	Methods []string `json:"methods,omitempty"`
}

// Fallback is a static degraded answer, marked with X-Degraded: static.
type Fallback struct {
	// Status is 200–599; default 200.
	Status int `json:"status,omitempty"`
	// ContentType defaults to application/json.
	ContentType string `json:"content_type,omitempty"`
	// Body is sent as it is, at most 64 KiB. A caller that asked for a stream
	// gets a JSON body with status 200 as one event, messages turned into deltas.
	Body string `json:"body"`
}

// Limits are the limits above single routes and tenants.
type Limits struct {
	Global *Limit `json:"global,omitempty"`
}

// Limit is a token bucket over requests that would reach an engine: limits sit
// behind the cache. The figures are for the whole fleet; each gateway enforces
// its share (DESIGN mechanism 12).
type Limit struct {
	// RequestsPerSecond is the sustained rate, ≥ 0; 0 refuses everything.
	RequestsPerSecond float64 `json:"requests_per_second"`
	// Burst is the bucket size in requests, ≥ 1; default max(1, RequestsPerSecond).
	Burst float64 `json:"burst,omitempty"`
}
