package slackapp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"holdfast/server/chat"
	"holdfast/server/outbox"
)

const (
	// deliverLease is how long a claimed message is ours; after a crash it is
	// claimed again, so a card is stale for at most that long. A delivery ends
	// well before, so that no two overlap.
	deliverLease   = 15 * time.Second
	deliverTimeout = 10 * time.Second
	deliverPoll    = 500 * time.Millisecond
	// deliverAtOnce bounds messages on their way, each of another key.
	deliverAtOnce = 16
	maxBackoff    = time.Minute
)

// staleAfter is when a message that could not be delivered is worth nothing any more.
var staleAfter = map[string]time.Duration{
	outbox.KindThread:    24 * time.Hour,
	outbox.KindEphemeral: 15 * time.Minute,
}

// waitError asks for another try after a while; it is no failure, and nothing was sent.
type waitError struct{ d time.Duration }

func (e waitError) Error() string { return "wait " + e.d.String() }

// deliverLoop sends what is due, woken by commits, by finished deliveries and by
// a poll. When closing it takes no more and waits for what is on its way.
func (a *App) deliverLoop(ctx context.Context) {
	tick := time.NewTicker(deliverPoll)
	defer tick.Stop()
	wake := a.opts.Queue.Wake(outbox.TopicChat)
	slots := make(chan struct{}, deliverAtOnce)
	landed := make(chan struct{}, 1)
	var flying sync.WaitGroup
	defer flying.Wait()
	a.measure(ctx)
	for {
		for _, m := range a.claim(ctx, deliverAtOnce-len(slots)) {
			slots <- struct{}{}
			flying.Go(func() {
				a.deliver(ctx, m)
				<-slots
				select {
				case landed <- struct{}{}:
				default:
				}
			})
		}
		select {
		case <-a.closing:
			return
		case <-ctx.Done():
			return
		case <-wake:
		case <-landed:
		case <-tick.C:
			a.measure(ctx)
		}
	}
}

func (a *App) measure(ctx context.Context) {
	if n, oldest, err := a.opts.Queue.Pending(ctx, outbox.TopicChat); err == nil {
		a.metrics.pending.Set(float64(n))
		a.metrics.oldest.Set(oldest.Seconds())
	}
}

func (a *App) claim(ctx context.Context, limit int) []outbox.Message {
	if limit <= 0 {
		return nil
	}
	batch, err := a.opts.Queue.Claim(ctx, outbox.TopicChat, limit, deliverLease)
	if err != nil && ctx.Err() == nil {
		a.opts.Logger.Error("outbox not readable", "error", err)
	}
	return batch
}

// deliver sends one message and settles it.
func (a *App) deliver(ctx context.Context, m outbox.Message) {
	err := a.sendWithin(ctx, m)
	if ctx.Err() != nil {
		return // the lease lapses and the message is sent by the next process
	}
	v := a.judge(m, err)
	a.metrics.delivered.WithLabelValues(kindLabel(m.Kind), v.result).Inc()
	if err := v.settle(ctx); err != nil && ctx.Err() == nil {
		a.opts.Logger.Error("outbox not settled", "message", m.ID, "error", err)
	}
}

// sendWithin bounds one delivery and keeps a panic from taking the others down.
func (a *App) sendWithin(ctx context.Context, m outbox.Message) (err error) {
	ctx, cancel := context.WithTimeout(ctx, deliverTimeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("delivery broke: %v", p)
		}
	}()
	return a.send(ctx, m)
}

func kindLabel(kind string) string {
	switch kind {
	case outbox.KindCard, outbox.KindThread, outbox.KindEphemeral:
		return kind
	}
	return "other"
}

// judgement is what becomes of a message after an attempt.
type judgement struct {
	result string
	settle func(context.Context) error
}

func (a *App) judge(m outbox.Message, err error) judgement {
	var wait waitError
	f := failureOf(err)
	switch {
	case err == nil:
		return judgement{"sent", func(ctx context.Context) error { return a.opts.Queue.Done(ctx, m.ID) }}
	case tooOld(m, a.opts.Now()):
		return a.bury(m, "too old to be of use: "+a.reason(err))
	case errors.As(err, &wait):
		return judgement{"paced", a.retry(m, wait.d, true, "paced")}
	case f.limited > 0:
		a.pace.hold(f.pauses(a.opts.Channel), f.limited)
		return judgement{"ratelimited", a.retry(m, f.limited, true, "ratelimited")}
	case errors.Is(err, chat.ErrNotFound):
		return a.bury(m, a.reason(err))
	}
	if alarming[f.code] {
		a.alarm(f.code, m)
	}
	if permanent[f.code] {
		return a.bury(m, a.reason(err))
	}
	a.opts.Logger.Warn("message not delivered, will be tried again", "kind", m.Kind, "subject", m.Subject, "attempt", m.Attempts, "reason", a.reason(err))
	return judgement{"failed", a.retry(m, backoff(m.Attempts), f.refused, a.reason(err))}
}

// retry puts a message back. That nothing was sent is noted, so that the next
// attempt need not look for it in Slack.
func (a *App) retry(m outbox.Message, d time.Duration, nothingSent bool, reason string) func(context.Context) error {
	if nothingSent && neverSent(m) {
		reason = unsentMark(m.Attempts) + reason
	}
	return func(ctx context.Context) error { return a.opts.Queue.Retry(ctx, m.ID, d, clip(reason, 500)) }
}

func (a *App) bury(m outbox.Message, reason string) judgement {
	a.opts.Logger.Error("message cannot be delivered and is set aside", "kind", m.Kind, "subject", m.Subject, "reason", reason)
	return judgement{"buried", func(ctx context.Context) error { return a.opts.Queue.Bury(ctx, m.ID, clip(reason, 500)) }}
}

// alarm tells the operators of something that only they can mend.
func (a *App) alarm(code string, m outbox.Message) {
	a.metrics.alarms.WithLabelValues(code).Inc()
	a.opts.Logger.Error("Slack refuses messages until an operator mends it", "reason", code, "hint", hints[code], "kind", m.Kind, "subject", m.Subject)
}

func tooOld(m outbox.Message, now time.Time) bool {
	limit, ok := staleAfter[m.Kind]
	return ok && !m.CreatedAt.IsZero() && now.Sub(m.CreatedAt) > limit
}

// unsentMark names the attempt that surely sent nothing, as did all before it. An
// attempt that died leaves the mark of an earlier one, which then does not fit.
func unsentMark(attempt int) string { return fmt.Sprintf("nothing sent up to attempt %d: ", attempt) }

// neverSent is true when no earlier attempt can have reached Slack.
func neverSent(m outbox.Message) bool {
	return m.Attempts <= 1 || strings.HasPrefix(m.LastError, unsentMark(m.Attempts-1))
}

func backoff(attempts int) time.Duration {
	return min(maxBackoff, 500*time.Millisecond<<min(max(attempts-1, 0), 10))
}
