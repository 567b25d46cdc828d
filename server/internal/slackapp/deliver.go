package slackapp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"holdfast/server/chat"
	"holdfast/server/outbox"
)

const (
	// deliverLease is how long a claimed message is ours; after a crash it is claimed again.
	deliverLease = 30 * time.Second
	deliverPoll  = 500 * time.Millisecond
	deliverBatch = 16
	maxBackoff   = time.Minute
	// metadataEvent marks our messages, so that a lost reply does not post twice.
	metadataEvent = "holdfast_message"
	metadataKey   = "post_key"
)

// permanent are Slack errors that no repetition mends.
var permanent = map[string]bool{
	"channel_not_found": true, "is_archived": true, "not_in_channel": true, "invalid_blocks": true,
	"invalid_auth": false, "msg_too_long": true, "no_text": true, "user_not_in_channel": true,
}

// waitError asks for another try after a while that is not a failure.
type waitError struct{ d time.Duration }

func (e waitError) Error() string { return "wait " + e.d.String() }

// deliverLoop sends what is due, woken by commits and by a poll.
func (a *App) deliverLoop(ctx context.Context) {
	tick := time.NewTicker(deliverPoll)
	defer tick.Stop()
	wake := a.opts.Queue.Wake(outbox.TopicChat)
	for {
		n, err := a.deliverDue(ctx)
		if err != nil && ctx.Err() == nil {
			a.opts.Logger.Error("outbox not readable", "component", "slack", "error", err)
		}
		if n == deliverBatch {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-wake:
		case <-tick.C:
		}
	}
}

// deliverDue sends one batch; messages of different keys go side by side.
func (a *App) deliverDue(ctx context.Context) (int, error) {
	if n, oldest, err := a.opts.Queue.Pending(ctx, outbox.TopicChat); err == nil {
		a.metrics.pending.Set(float64(n))
		a.metrics.oldest.Set(oldest.Seconds())
	}
	batch, err := a.opts.Queue.Claim(ctx, outbox.TopicChat, deliverBatch, deliverLease)
	if err != nil {
		return 0, err
	}
	var wg sync.WaitGroup
	for _, m := range batch {
		wg.Go(func() { a.deliver(ctx, m) })
	}
	wg.Wait()
	return len(batch), nil
}

// deliver sends one message and settles it.
func (a *App) deliver(ctx context.Context, m outbox.Message) {
	err := a.send(ctx, m)
	if ctx.Err() != nil {
		return // the lease lapses and the message is sent by the next process
	}
	result, settle := a.judge(m, err)
	a.metrics.delivered.WithLabelValues(m.Kind, result).Inc()
	if err := settle(ctx); err != nil {
		a.opts.Logger.Error("outbox not settled", "component", "slack", "message", m.ID, "error", err)
	}
}

func (a *App) judge(m outbox.Message, err error) (string, func(context.Context) error) {
	var wait waitError
	var limited *slack.RateLimitedError
	var slackErr slack.SlackErrorResponse
	retry := func(d time.Duration, reason string) func(context.Context) error {
		return func(ctx context.Context) error { return a.opts.Queue.Retry(ctx, m.ID, d, reason) }
	}
	switch {
	case err == nil:
		return "sent", func(ctx context.Context) error { return a.opts.Queue.Done(ctx, m.ID) }
	case errors.As(err, &wait):
		return "paced", retry(wait.d, "")
	case errors.As(err, &limited):
		a.pace.hold(a.opts.Channel, limited.RetryAfter)
		return "ratelimited", retry(limited.RetryAfter, "ratelimited")
	case errors.As(err, &slackErr) && permanent[slackErr.Err], errors.Is(err, chat.ErrNotFound):
		a.opts.Logger.Error("message cannot be delivered", "component", "slack", "kind", m.Kind, "subject", m.Subject, "error", err)
		return "buried", func(ctx context.Context) error { return a.opts.Queue.Bury(ctx, m.ID, err.Error()) }
	default:
		a.opts.Logger.Warn("message not delivered, will be tried again", "component", "slack", "kind", m.Kind, "subject", m.Subject, "error", err)
		return "failed", retry(backoff(m.Attempts), clip(err.Error(), 500))
	}
}

func backoff(attempts int) time.Duration {
	return min(maxBackoff, 500*time.Millisecond<<min(attempts, 10))
}

func (a *App) send(ctx context.Context, m outbox.Message) error {
	switch m.Kind {
	case outbox.KindCard:
		return a.sendCard(ctx, m)
	case outbox.KindThread:
		return a.sendThread(ctx, m)
	case outbox.KindEphemeral:
		return a.sendEphemeral(ctx, m)
	default:
		return fmt.Errorf("kind %q: %w", m.Kind, chat.ErrNotFound)
	}
}

// sendCard draws the subject as it is now and brings its message up to date.
func (a *App) sendCard(ctx context.Context, m outbox.Message) error {
	msg, err := a.draw(ctx, m.Subject)
	if err != nil {
		return err
	}
	ref, err := a.opts.Refs.MessageRef(ctx, m.Subject)
	switch {
	case errors.Is(err, chat.ErrNotFound):
		return a.postCard(ctx, m.Subject, msg, nil)
	case err != nil:
		return err
	case ref.TS == "":
		return a.postCard(ctx, m.Subject, msg, &ref)
	}
	_, _, _, err = a.api.UpdateMessageContext(ctx, ref.Channel, ref.TS, slack.MsgOptionText(msg.Text, false), slack.MsgOptionBlocks(msg.Blocks...))
	var slackErr slack.SlackErrorResponse
	if errors.As(err, &slackErr) && (slackErr.Err == "message_not_found" || slackErr.Err == "cant_update_message" || slackErr.Err == "edit_window_closed") {
		return a.postCard(ctx, m.Subject, msg, nil)
	}
	return err
}

func (a *App) draw(ctx context.Context, subject string) (message, error) {
	kind, id, _ := strings.Cut(subject, ":")
	switch kind {
	case "incident":
		c, err := a.opts.Chat.IncidentCard(ctx, id)
		return drawIncident(c), err
	case "change":
		c, err := a.opts.Chat.ChangeCard(ctx, id)
		return drawChange(c), err
	default:
		return message{}, fmt.Errorf("no card for %q: %w", subject, chat.ErrNotFound)
	}
}

// postCard claims the card in the database before posting, so that an answer
// that got lost is looked for instead of posted again.
func (a *App) postCard(ctx context.Context, subject string, msg message, claimed *chat.MessageRef) error {
	ref := chat.MessageRef{Subject: subject, Channel: a.opts.Channel, PostKey: rand.Text(), UpdatedAt: a.opts.Now()}
	if claimed != nil {
		ref = *claimed
		ts, err := a.find(ctx, ref.Channel, "", ref.PostKey)
		if err != nil {
			return err
		}
		if ts != "" {
			ref.TS = ts
			return a.opts.Refs.SaveMessageRef(ctx, ref)
		}
	}
	if wait := a.pace.take(ref.Channel); wait > 0 {
		return waitError{wait}
	}
	if err := a.opts.Refs.SaveMessageRef(ctx, ref); err != nil {
		return err
	}
	ts, err := a.post(ctx, ref.Channel, "", ref.PostKey, msg)
	if err != nil {
		return err
	}
	ref.TS = ts
	return a.opts.Refs.SaveMessageRef(ctx, ref)
}

func (a *App) post(ctx context.Context, channel, thread, key string, msg message) (string, error) {
	opts := []slack.MsgOption{
		slack.MsgOptionText(msg.Text, false),
		slack.MsgOptionMetadata(slack.SlackMetadata{EventType: metadataEvent, EventPayload: map[string]any{metadataKey: key}}),
		slack.MsgOptionDisableLinkUnfurl(),
	}
	if len(msg.Blocks) > 0 {
		opts = append(opts, slack.MsgOptionBlocks(msg.Blocks...))
	}
	if thread != "" {
		opts = append(opts, slack.MsgOptionTS(thread))
	}
	_, ts, err := a.api.PostMessageContext(ctx, channel, opts...)
	return ts, err
}

// find looks for a message of ours by its key: in the channel, or in a thread.
func (a *App) find(ctx context.Context, channel, thread, key string) (string, error) {
	var found []slack.Message
	if thread == "" {
		h, err := a.api.GetConversationHistoryContext(ctx, &slack.GetConversationHistoryParameters{ChannelID: channel, Limit: 100, IncludeAllMetadata: true})
		if err != nil {
			return "", err
		}
		found = h.Messages
	} else {
		var err error
		found, _, _, err = a.api.GetConversationRepliesContext(ctx, &slack.GetConversationRepliesParameters{ChannelID: channel, Timestamp: thread, Limit: 200, IncludeAllMetadata: true})
		if err != nil {
			return "", err
		}
	}
	for _, m := range found {
		if m.Metadata.EventType == metadataEvent && m.Metadata.EventPayload[metadataKey] == key {
			return m.Timestamp, nil
		}
	}
	return "", nil
}

// sendThread posts one line under the card of its subject.
func (a *App) sendThread(ctx context.Context, m outbox.Message) error {
	text, err := payload(m)
	if err != nil {
		return err
	}
	ref, err := a.opts.Refs.MessageRef(ctx, m.Subject)
	if errors.Is(err, chat.ErrNotFound) || err == nil && ref.TS == "" {
		return waitError{300 * time.Millisecond} // the card comes first
	}
	if err != nil {
		return err
	}
	key := "msg-" + strconv.FormatInt(m.ID, 10)
	if m.Attempts > 0 {
		if ts, err := a.find(ctx, ref.Channel, ref.TS, key); err != nil || ts != "" {
			return err
		}
	}
	if wait := a.pace.take(ref.Channel); wait > 0 {
		return waitError{wait}
	}
	_, err = a.post(ctx, ref.Channel, ref.TS, key, message{Text: escapeClip(text.Text, maxText)})
	return err
}

func (a *App) sendEphemeral(ctx context.Context, m outbox.Message) error {
	text, err := payload(m)
	if err != nil {
		return err
	}
	channel := text.Channel
	if channel == "" {
		channel = a.opts.Channel
	}
	_, err = a.api.PostEphemeralContext(ctx, channel, text.User, slack.MsgOptionText(escapeClip(text.Text, maxText), false))
	return err
}

func payload(m outbox.Message) (outbox.Text, error) {
	var t outbox.Text
	if err := json.Unmarshal(m.Payload, &t); err != nil || t.Text == "" {
		return t, fmt.Errorf("message %d has no text: %w", m.ID, chat.ErrNotFound)
	}
	return t, nil
}
