package slacksim

import (
	"math"
	"sync"
	"time"
)

// tier is Slack's rate class of a method.
type tier int

const (
	tierNone tier = iota
	tier1
	tier2
	tier3
	tier4
	tierMessage // chat.postMessage: per channel, plus a workspace cap
)

// limiter holds one token bucket per key.
type limiter struct {
	rates RateLimits
	clock Clock

	mu      sync.Mutex
	buckets map[string]*bucket
}

type bucket struct {
	tokens float64
	at     time.Time
}

func newLimiter(rates RateLimits, clock Clock) *limiter {
	return &limiter{rates: rates, clock: clock, buckets: map[string]*bucket{}}
}

// method takes one call of a method. It returns 0 when the call may go on and
// otherwise the whole seconds to wait.
func (l *limiter) method(name string, t tier) int {
	var perMinute int
	switch t {
	case tier1:
		perMinute = l.rates.Tier1
	case tier2:
		perMinute = l.rates.Tier2
	case tier3:
		perMinute = l.rates.Tier3
	case tier4:
		perMinute = l.rates.Tier4
	default:
		return 0
	}
	return l.take(want{"method:" + name, float64(perMinute) / 60, float64(perMinute)})
}

// message takes one new message in a channel.
func (l *limiter) message(channel string) int {
	return l.take(
		want{"channel:" + channel, l.rates.MessagesPerSecond, float64(l.rates.MessageBurst)},
		want{"workspace", float64(l.rates.WorkspacePerMinute) / 60, float64(l.rates.WorkspacePerMinute)},
	)
}

// want asks for one token of a bucket that refills at perSecond up to burst.
type want struct {
	key              string
	perSecond, burst float64
}

// take takes one token from every bucket, or none: a call refused by the
// workspace cap must not use up its channel's token.
func (l *limiter) take(wants ...want) int {
	if l.rates.Off {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	wait := 0.0
	for _, w := range wants {
		b := l.refill(w, now)
		// Rounding must not refuse a token that is due exactly now.
		if missing := 1 - b.tokens; missing > 1e-9 {
			wait = max(wait, missing/w.perSecond)
		}
	}
	if wait > 0 {
		return max(1, int(math.Ceil(wait-1e-9)))
	}
	for _, w := range wants {
		l.buckets[w.key].tokens--
	}
	return 0
}

func (l *limiter) refill(w want, now time.Time) *bucket {
	b, ok := l.buckets[w.key]
	if !ok {
		b = &bucket{tokens: w.burst, at: now}
		l.buckets[w.key] = b
		return b
	}
	if passed := now.Sub(b.at).Seconds(); passed > 0 {
		b.tokens = min(w.burst, b.tokens+passed*w.perSecond)
		b.at = now
	}
	return b
}
