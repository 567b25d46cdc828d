// Package limit is a token bucket as a pure state machine: no goroutine, no
// clock, nobody waits in it. A bucket admits at most rate × t + burst calls in
// any time t; a call that was admitted and then not made is returned.
package limit

import (
	"math"
	"sync"
	"time"
)

// Never is the retry-after of a bucket that will not admit a call by itself
// (rate 0).
const Never = time.Duration(math.MaxInt64)

// rounding is what a sum of fractions may be short of a whole call.
const rounding = 1e-9

// Rate is the setting of a bucket.
type Rate struct {
	// PerSecond is the sustained rate in calls per second, ≥ 0; 0 refuses everything.
	PerSecond float64
	// Burst is the size of the bucket in calls, ≥ 1.
	Burst float64
}

// Share is one gateway's part of a limit for the whole fleet. The burst is
// never below one call, else a large fleet would refuse everything.
func (r Rate) Share(gateways int) Rate {
	n := float64(max(1, gateways))
	return Rate{PerSecond: r.PerSecond / n, Burst: max(1, r.Burst/n)}
}

// Bucket is a token bucket. It is safe for concurrent use.
type Bucket struct {
	mu      sync.Mutex
	rate    Rate
	tokens  float64
	at      time.Time // when tokens was right
	refused uint64
}

// New returns a full bucket.
func New(now time.Time, r Rate) *Bucket {
	return &Bucket{rate: r, tokens: r.Burst, at: now}
}

// Take admits one call or says how long it would have to wait if nobody else
// asked; Never when the rate is 0. A refusal uses nothing up.
func (b *Bucket) Take(now time.Time) (ok bool, retryAfter time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill(now)
	switch {
	case b.rate.PerSecond <= 0:
		b.refused++
		return false, Never
	case b.tokens < 1-rounding:
		b.refused++
		return false, seconds((1 - b.tokens) / b.rate.PerSecond)
	}
	b.tokens = max(0, b.tokens-1)
	return true, 0
}

// Return gives back the token of a call that was admitted and never made.
func (b *Bucket) Return(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill(now)
	b.tokens = min(b.tokens+1, b.rate.Burst)
}

// Set changes the rate at run time. Time passed so far is credited at the old
// rate; a smaller burst takes effect at once.
func (b *Bucket) Set(now time.Time, r Rate) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill(now)
	b.rate = r
	b.tokens = min(b.tokens, r.Burst)
}

// Status is a reading of a bucket.
type Status struct {
	Rate Rate
	// Tokens is how many calls would be admitted at once.
	Tokens float64
	// Refused counts refusals since the bucket was made.
	Refused uint64
}

// Status reads the bucket.
func (b *Bucket) Status(now time.Time) Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill(now)
	return Status{Rate: b.rate, Tokens: b.tokens, Refused: b.refused}
}

// fill credits the time since the last call; readings from the past credit nothing.
func (b *Bucket) fill(now time.Time) {
	passed := now.Sub(b.at)
	if passed <= 0 {
		return
	}
	b.at = now
	b.tokens = min(b.rate.Burst, b.tokens+passed.Seconds()*b.rate.PerSecond)
}

// seconds converts with saturation: a tiny rate gives waits beyond any duration.
func seconds(s float64) time.Duration {
	if s >= Never.Seconds() {
		return Never
	}
	return time.Duration(math.Ceil(s * float64(time.Second)))
}
