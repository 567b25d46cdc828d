package slackapp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"holdfast/server/chat"
	"holdfast/server/outbox"
)

const (
	// metadataEvent marks our messages, so that a lost reply does not post twice.
	metadataEvent = "holdfast_message"
	metadataKey   = "post_key"
)

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

// sendCard draws the subject as it is now and brings its message up to date. Only
// one card message of a subject is on its way at a time, because they share a key.
func (a *App) sendCard(ctx context.Context, m outbox.Message) error {
	ref, err := a.opts.Refs.MessageRef(ctx, m.Subject)
	known := err == nil
	if err != nil && !errors.Is(err, chat.ErrNotFound) {
		return err
	}
	if wait := a.pace.held("chat.update"); wait > 0 && ref.TS != "" {
		return waitError{wait}
	}
	msg, err := a.draw(ctx, m.Subject)
	switch {
	case err != nil:
		return err
	case !known:
		return a.postCard(ctx, m, a.newRef(m.Subject, a.opts.Channel), msg, false)
	case ref.TS == "":
		return a.postCard(ctx, m, ref, msg, true)
	}
	err = a.update(ctx, m, ref, msg)
	switch code := failureOf(err).code; {
	case code == "message_not_found":
		return a.postCard(ctx, m, a.newRef(m.Subject, ref.Channel), msg, false)
	case code == "cant_update_message", code == "edit_window_closed":
		msg.Blocks = append(msg.Blocks, a.earlier(ctx, ref))
		return a.postCard(ctx, m, a.newRef(m.Subject, ref.Channel), msg, false)
	case gone(code) && a.canFallBack(ref.Channel):
		a.alarm(code, m)
		return a.postCard(ctx, m, a.newRef(m.Subject, a.opts.FallbackChannel), msg, false)
	}
	return err
}

func (a *App) newRef(subject, channel string) chat.MessageRef {
	return chat.MessageRef{Subject: subject, Channel: channel, PostKey: rand.Text(), UpdatedAt: a.opts.Now()}
}

func (a *App) canFallBack(from string) bool {
	return a.opts.FallbackChannel != "" && from != a.opts.FallbackChannel
}

// earlier points to a card that Slack does not let us edit any more.
func (a *App) earlier(ctx context.Context, ref chat.MessageRef) slack.Block {
	label := "an earlier message"
	if at, err := a.api.GetPermalinkContext(ctx, &slack.PermalinkParameters{Channel: ref.Channel, Ts: ref.TS}); err == nil {
		label = link(at, label)
	}
	return slack.NewContextBlock("", mrkdwn("This goes on from "+label+", which Slack does not let holdfast edit any more.", maxText))
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

// postCard claims the card in the database before posting. A card claimed before
// may be out although its answer was lost, so it is looked for first.
func (a *App) postCard(ctx context.Context, m outbox.Message, ref chat.MessageRef, msg message, claimed bool) error {
	if wait := a.pace.take(ref.Channel, true); wait > 0 {
		return waitError{wait}
	}
	if claimed {
		ts, err := a.find(ctx, ref.Channel, "", ref.PostKey)
		if err != nil && !gone(failureOf(err).code) {
			return err
		}
		if ts != "" {
			ref.TS = ts
			if err := a.opts.Refs.SaveMessageRef(ctx, ref); err != nil {
				return err
			}
			return a.update(ctx, m, ref, msg) // it was drawn a while ago
		}
	} else if err := a.opts.Refs.SaveMessageRef(ctx, ref); err != nil {
		return err
	}
	ts, err := a.post(ctx, m, ref.Channel, "", ref.PostKey, msg)
	if code := failureOf(err).code; gone(code) && a.canFallBack(ref.Channel) {
		a.alarm(code, m)
		return a.postCard(ctx, m, a.newRef(m.Subject, a.opts.FallbackChannel), msg, false)
	}
	if err != nil {
		return err
	}
	ref.TS = ts
	return a.opts.Refs.SaveMessageRef(ctx, ref)
}

// drawnTooBig are answers to blocks that Slack does not take; people must still be told.
var drawnTooBig = map[string]bool{"invalid_blocks": true, "invalid_blocks_format": true, "msg_too_long": true, "msg_blocks_too_long": true}

// orText sends a message, or its text alone where Slack refuses the blocks.
func (a *App) orText(m outbox.Message, msg message, call func(message) error) error {
	err := call(msg)
	code := failureOf(err).code
	if !drawnTooBig[code] || len(msg.Blocks) == 0 {
		return err
	}
	a.alarm(code, m)
	return call(message{Text: escapedText(msg), URL: msg.URL})
}

func escapedText(msg message) string {
	if msg.URL == "" {
		return msg.Text
	}
	return msg.Text + "\n" + link(msg.URL, "Open in holdfast")
}

func (a *App) update(ctx context.Context, m outbox.Message, ref chat.MessageRef, msg message) error {
	return a.orText(m, msg, func(msg message) error {
		opts := []slack.MsgOption{slack.MsgOptionText(msg.Text, false)}
		if len(msg.Blocks) > 0 {
			opts = append(opts, slack.MsgOptionBlocks(msg.Blocks...))
		}
		_, _, _, err := a.api.UpdateMessageContext(ctx, ref.Channel, ref.TS, opts...)
		return called("chat.update", ref.Channel, err)
	})
}

func (a *App) post(ctx context.Context, m outbox.Message, channel, thread, key string, msg message) (ts string, err error) {
	err = a.orText(m, msg, func(msg message) error {
		opts := []slack.MsgOption{
			slack.MsgOptionText(msg.Text, false),
			slack.MsgOptionMetadata(slack.SlackMetadata{EventType: metadataEvent, EventPayload: map[string]any{metadataKey: key}}),
			slack.MsgOptionDisableLinkUnfurl(),
		}
		if len(msg.Blocks) > 0 {
			opts = append(opts, slack.MsgOptionBlocks(msg.Blocks...))
		}
		if thread != "" {
			// A line says what happened in words alone; "*" in a label is no markup.
			opts = append(opts, slack.MsgOptionTS(thread), slack.MsgOptionDisableMarkdown())
		}
		_, ts, err = a.api.PostMessageContext(ctx, channel, opts...)
		return called(methodPost, channel, err)
	})
	return ts, err
}

// find looks for a message of ours by its key: in the channel, or in a thread.
func (a *App) find(ctx context.Context, channel, thread, key string) (string, error) {
	method := "conversations.history"
	if thread != "" {
		method = "conversations.replies"
	}
	if wait := a.pace.held(method); wait > 0 {
		return "", waitError{wait}
	}
	found, err := a.recent(ctx, channel, thread)
	if err != nil {
		return "", called(method, channel, err)
	}
	for _, m := range found {
		if m.Metadata.EventType == metadataEvent && m.Metadata.EventPayload[metadataKey] == key {
			return m.Timestamp, nil
		}
	}
	return "", nil
}

// recent lists the latest messages of a channel, or of a thread.
func (a *App) recent(ctx context.Context, channel, thread string) ([]slack.Message, error) {
	if thread == "" {
		h, err := a.api.GetConversationHistoryContext(ctx, &slack.GetConversationHistoryParameters{ChannelID: channel, Limit: 100, IncludeAllMetadata: true})
		if err != nil {
			return nil, err
		}
		return h.Messages, nil
	}
	var all []slack.Message
	p := &slack.GetConversationRepliesParameters{ChannelID: channel, Timestamp: thread, Limit: 200, IncludeAllMetadata: true}
	for range 10 { // replies come oldest first, so the last page counts
		page, more, cursor, err := a.api.GetConversationRepliesContext(ctx, p)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		if !more || cursor == "" {
			break
		}
		p.Cursor = cursor
	}
	return all, nil
}

// sendThread posts one line under the card of its subject.
func (a *App) sendThread(ctx context.Context, m outbox.Message) error {
	text, err := payload(m)
	if err != nil {
		return err
	}
	ref, err := a.opts.Refs.MessageRef(ctx, m.Subject)
	if errors.Is(err, chat.ErrNotFound) || err == nil && ref.TS == "" {
		return waitError{untilCard(m, a.opts.Now())}
	}
	if err != nil {
		return err
	}
	if wait := a.pace.take(ref.Channel, false); wait > 0 {
		return waitError{wait}
	}
	key := "msg-" + strconv.FormatInt(m.ID, 10)
	if !neverSent(m) {
		if ts, err := a.find(ctx, ref.Channel, ref.TS, key); err != nil || ts != "" {
			return err
		}
	}
	_, err = a.post(ctx, m, ref.Channel, ref.TS, key, message{Text: escapeClip(text.Text, maxText)})
	return err
}

// untilCard is how long a line waits for its card: short at first, then longer,
// since a card that cannot be posted stays away for long.
func untilCard(m outbox.Message, now time.Time) time.Duration {
	return max(200*time.Millisecond, min(maxBackoff, now.Sub(m.CreatedAt)/4))
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
	return a.tell(ctx, channel, text.User, text.Text)
}

// tell sends a text that one person sees.
func (a *App) tell(ctx context.Context, channel, user, text string) error {
	const method = "chat.postEphemeral"
	if wait := a.pace.held(method); wait > 0 {
		return waitError{wait}
	}
	_, err := a.api.PostEphemeralContext(ctx, channel, user, slack.MsgOptionText(escapeClip(text, maxText), false))
	return called(method, channel, err)
}

func payload(m outbox.Message) (outbox.Text, error) {
	var t outbox.Text
	if err := json.Unmarshal(m.Payload, &t); err != nil || t.Text == "" {
		return t, fmt.Errorf("message %d has no text: %w", m.ID, chat.ErrNotFound)
	}
	return t, nil
}
