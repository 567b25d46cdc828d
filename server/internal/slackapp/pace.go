package slackapp

import (
	"sync"
	"time"
)

// Slack takes about one message a second and channel, with short bursts; what it
// drops above that it may not even report.
const (
	paceEvery = time.Second
	paceBurst = 3
)

// pace is a token bucket per channel, plus a pause that Slack asked for.
type pace struct {
	now     func() time.Time
	mu      sync.Mutex
	buckets map[string]*bucket
}

type bucket struct {
	tokens float64
	at     time.Time
	// until is the end of a pause asked for by Retry-After.
	until time.Time
}

func newPace(now func() time.Time) *pace { return &pace{now: now, buckets: map[string]*bucket{}} }

// take returns 0 when a message may be posted now, else how long to wait.
func (p *pace) take(channel string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, now := p.get(channel), p.now()
	if now.Before(b.until) {
		return b.until.Sub(now)
	}
	b.tokens = min(paceBurst, b.tokens+now.Sub(b.at).Seconds()/paceEvery.Seconds())
	b.at = now
	if b.tokens < 1 {
		return time.Duration((1 - b.tokens) * float64(paceEvery))
	}
	b.tokens--
	return 0
}

// hold pauses a channel.
func (p *pace) hold(channel string, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.get(channel)
	b.until = p.now().Add(d)
	b.tokens = 0
}

func (p *pace) get(channel string) *bucket {
	b := p.buckets[channel]
	if b == nil {
		b = &bucket{tokens: paceBurst, at: p.now()}
		p.buckets[channel] = b
	}
	return b
}
