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

// pace keeps new messages to Slack's rate per channel, and holds what Slack asked
// to pause: a channel for posts, a method for everything else.
type pace struct {
	now     func() time.Time
	mu      sync.Mutex
	buckets map[string]*bucket
	// pauses is the end of a pause that Slack asked for, by what it holds.
	pauses map[string]time.Time
}

type bucket struct {
	tokens float64
	at     time.Time
	// cardUntil keeps what is left for a card that was told to wait: what is wrong
	// comes before what is said about it.
	cardUntil time.Time
	// told is the latest turn given to a thread line, so that many waiting lines
	// do not all come back at the same moment.
	told time.Time
}

func newPace(now func() time.Time) *pace {
	return &pace{now: now, buckets: map[string]*bucket{}, pauses: map[string]time.Time{}}
}

// take returns 0 when a message may be posted now, else how long to wait.
func (p *pace) take(channel string, card bool) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if wait := p.pauses[channel].Sub(now); wait > 0 {
		return wait
	}
	b := p.get(channel, now)
	b.tokens = min(paceBurst, b.tokens+max(0, now.Sub(b.at).Seconds())/paceEvery.Seconds())
	b.at = now
	need := time.Duration((1 - b.tokens) * float64(paceEvery))
	switch {
	case card && need > 0:
		b.cardUntil = now.Add(need + paceEvery)
		return need
	case card:
		b.cardUntil = time.Time{}
	case need > 0 || now.Before(b.cardUntil):
		turn := latest(now.Add(need), b.cardUntil, b.told.Add(paceEvery))
		b.told = turn
		return max(turn.Sub(now), time.Millisecond)
	}
	b.tokens--
	return 0
}

// hold pauses a channel or a method.
func (p *pace) hold(what string, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pauses[what] = latest(p.pauses[what], p.now().Add(d))
}

// held returns how long a method is still to pause.
func (p *pace) held(method string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(0, p.pauses[method].Sub(p.now()))
}

func (p *pace) get(channel string, now time.Time) *bucket {
	b := p.buckets[channel]
	if b == nil {
		b = &bucket{tokens: paceBurst, at: now}
		p.buckets[channel] = b
	}
	return b
}

func latest(times ...time.Time) time.Time {
	var out time.Time
	for _, t := range times {
		if t.After(out) {
			out = t
		}
	}
	return out
}
