// Package breaker is a circuit breaker as a pure state machine: it starts no
// goroutine and reads no clock, every call carries the time. One Breaker
// guards one dependency.
//
// A call asks with Acquire and reports through its Permit. Permits belong to
// the generation (period between two state changes) they were given in: a
// result that arrives in a later generation is counted as late and changes
// nothing.
package breaker

import (
	"sync"
	"time"
)

// State is what the breaker does with a call.
type State string

// States. The forced ones are set by a person and overlay the automatic state.
const (
	Closed       State = "closed"
	Open         State = "open"
	HalfOpen     State = "half_open"
	ForcedOpen   State = "forced_open"
	ForcedClosed State = "forced_closed"
)

// States lists every state, in a fixed order.
func States() []State { return []State{Closed, Open, HalfOpen, ForcedOpen, ForcedClosed} }

// Result is how a call ended.
type Result int

// Results. Ignored is neither success nor failure: a caller that left, a fault
// of the caller's, a call that was never made.
const (
	Success Result = iota
	Failure
	Ignored
)

// Force overlays the automatic state.
type Force int

// Forces; NotForced leaves the automatic rule in charge.
const (
	NotForced Force = iota
	ForceOpen
	ForceClosed
)

// Config is the rule of one breaker. Both rules (rate and consecutive
// failures) hold at once; the one that is reached first opens.
type Config struct {
	// Disabled switches the automatic rule off: the breaker stays closed unless forced.
	Disabled bool
	// WindowCalls is the size of the count window (calls, ≥ 1), used when WindowTime is 0.
	WindowCalls int
	// WindowTime is the length of the time window. It moves in tenths, so it
	// covers between 0.9 and 1 times this.
	WindowTime time.Duration
	// FailureRate opens the breaker when reached (ratio, 0 < r ≤ 1).
	FailureRate float64
	// MinimumCalls is the least number of judged calls in the window before FailureRate counts.
	MinimumCalls int
	// ConsecutiveFailures opens the breaker at that many failures in a row; 0 switches this rule off.
	ConsecutiveFailures int
	// OpenFor is the time from opening to the first probe.
	OpenFor time.Duration
	// Probes is how many calls are tried at once while half-open, and how many must succeed to close (≥ 1).
	Probes int
	// HalfOpenFor is the longest wait for the outcome of probes; after it as many new ones are admitted.
	HalfOpenFor time.Duration
	// Forced overlays the automatic state.
	Forced Force
}

// Breaker guards one dependency. It is safe for concurrent use.
type Breaker struct {
	mu     sync.Mutex
	cfg    Config
	window window
	now    time.Time // latest time seen; callers' readings may arrive out of order

	state      State // Closed, Open or HalfOpen: the automatic state under a force
	generation uint64
	since      time.Time // begin of the generation
	row        int       // failures in a row in this generation

	// Half-open: probes of this generation that succeeded, and probes given out
	// in this round that have not reported.
	succeeded   int
	outstanding int
	round       uint64
	roundSince  time.Time

	late uint64
}

// New returns a closed breaker.
func New(now time.Time, cfg Config) *Breaker {
	return &Breaker{cfg: cfg, window: newWindow(cfg), now: now, state: Closed, generation: 1, since: now}
}

// Permit is the right to make one call. The zero Permit reports nowhere.
type Permit struct {
	breaker    *Breaker
	generation uint64
	round      uint64
}

// Acquire asks to make a call. When refused, retryAfter is the time until
// asking again makes sense: the remaining open time, and 0 when that is
// unknown (forced open, or probes under way). A granted permit must be ended
// with Done exactly once.
func (b *Breaker) Acquire(now time.Time) (p Permit, ok bool, retryAfter time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now = b.advance(now)
	switch b.cfg.Forced {
	case ForceOpen:
		return Permit{}, false, 0
	case ForceClosed:
		return b.permit(), true, 0
	case NotForced:
	}
	switch b.state {
	case Open:
		if wait := b.since.Add(b.cfg.OpenFor).Sub(now); wait > 0 {
			return Permit{}, false, wait
		}
		b.enter(HalfOpen)
		return b.probe()
	case HalfOpen:
		return b.probe()
	default:
		return b.permit(), true, 0
	}
}

func (b *Breaker) permit() Permit {
	return Permit{breaker: b, generation: b.generation, round: b.round}
}

// probe grants one of the calls of a half-open breaker.
func (b *Breaker) probe() (Permit, bool, time.Duration) {
	if b.cfg.HalfOpenFor > 0 && b.now.Sub(b.roundSince) >= b.cfg.HalfOpenFor {
		// Probes that take longer than this (streams, hangs) must not keep
		// everybody out; their results still count when they come.
		b.newRound()
	}
	if b.succeeded+b.outstanding >= b.cfg.Probes {
		return Permit{}, false, 0
	}
	b.outstanding++
	return b.permit(), true, 0
}

func (b *Breaker) newRound() {
	b.round++
	b.roundSince = b.now
	b.outstanding = 0
}

// Done reports how the call ended. Only the first report of a permit counts.
// It tells the automatic state and whether this report changed it.
func (p *Permit) Done(now time.Time, r Result) (s State, changed bool) {
	b := p.breaker
	if b == nil {
		return "", false
	}
	p.breaker = nil
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(now)
	switch {
	case p.generation != b.generation:
		b.late++
		return b.state, false
	case b.state == HalfOpen:
		b.probed(p.round, r)
	default:
		b.judge(r)
	}
	return b.state, p.generation != b.generation
}

// probed settles a probe.
func (b *Breaker) probed(round uint64, r Result) {
	if round == b.round {
		b.outstanding--
	}
	switch r {
	case Failure:
		b.enter(Open)
	case Success:
		b.succeeded++
		if b.succeeded >= b.cfg.Probes {
			b.close()
		}
	case Ignored:
	}
}

// judge settles a call of a closed or forced breaker.
func (b *Breaker) judge(r Result) {
	if r == Ignored {
		return
	}
	b.window.add(b.now, r == Failure)
	if r == Success {
		b.row = 0
	} else {
		b.row++
	}
	if b.state == Closed && b.cfg.Forced != ForceClosed && !b.cfg.Disabled && b.tripped() {
		b.enter(Open)
	}
}

func (b *Breaker) tripped() bool {
	if b.cfg.ConsecutiveFailures > 0 && b.row >= b.cfg.ConsecutiveFailures {
		return true
	}
	calls, failures := b.window.count(b.now)
	return calls > 0 && calls >= b.cfg.MinimumCalls && float64(failures) >= b.cfg.FailureRate*float64(calls)
}

// close begins a fresh closed period: what was counted before the trip says
// nothing about the recovered dependency.
func (b *Breaker) close() {
	b.window.clear()
	b.enter(Closed)
}

// enter begins a new generation.
func (b *Breaker) enter(s State) {
	b.state = s
	b.generation++
	b.since = b.now
	b.row, b.succeeded = 0, 0
	b.newRound()
}

// Configure changes the rule at run time. The window and the automatic state
// are kept, also under a force; a force to closed, and Disabled, end an open
// period at once. A changed window length or kind starts with an empty window,
// a changed number of calls keeps the newest.
func (b *Breaker) Configure(now time.Time, cfg Config) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.advance(now)
	b.window = b.window.resized(b.cfg, cfg)
	b.cfg = cfg
	if (cfg.Forced == ForceClosed || cfg.Disabled) && b.state != Closed {
		b.enter(Closed)
	}
}

// Status is a reading of the breaker.
type Status struct {
	State State
	// FailureRate of the window (ratio 0–1) and Calls judged in it.
	FailureRate float64
	Calls       int
	// Late counts results that arrived after their period had ended.
	Late uint64
	// Generation grows by one with each change of the automatic state.
	Generation uint64
	// RetryAfter is the remaining open time; 0 in other states.
	RetryAfter time.Duration
}

// Status reads the breaker without changing it: no permit is used, and a lapsed
// open period shows as half-open only once a call was let through.
func (b *Breaker) Status(now time.Time) Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	now = b.advance(now)
	calls, failures := b.window.count(now)
	s := Status{State: b.state, Calls: calls, Late: b.late, Generation: b.generation}
	if calls > 0 {
		s.FailureRate = float64(failures) / float64(calls)
	}
	if b.state == Open {
		s.RetryAfter = max(0, b.since.Add(b.cfg.OpenFor).Sub(now))
	}
	switch b.cfg.Forced {
	case ForceOpen:
		s.State = ForcedOpen
	case ForceClosed:
		s.State = ForcedClosed
	case NotForced:
	}
	return s
}

// advance returns the time to use: never earlier than one already used.
func (b *Breaker) advance(now time.Time) time.Time {
	if now.After(b.now) {
		b.now = now
	}
	return b.now
}
