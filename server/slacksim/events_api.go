package slacksim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// EventRequest is one Events API delivery.
type EventRequest struct {
	// Event is the inner event; its "type" names it.
	Event map[string]any
	// ID is the event_id; a fresh one when empty. Slack keeps it over retries.
	ID string
	// RetryNum above 0 marks a repeated delivery, RetryReason says why.
	RetryNum    int
	RetryReason string
	// Tamper changes the delivery.
	Tamper Tamper
}

// SendEvent delivers one event to the app, once.
func (s *Sim) SendEvent(ctx context.Context, in EventRequest) (ClickResult, error) {
	st := s.state
	st.mu.Lock()
	id := in.ID
	if id == "" {
		id = st.nextID("Ev0")
	}
	st.mu.Unlock()
	body, err := json.Marshal(map[string]any{
		"token": verificationToken, "type": "event_callback", "event": in.Event, "event_id": id,
		"event_time": s.opts.Clock.Now().Unix(), "team_id": or(in.Tamper.TeamID, s.opts.TeamID),
		"context_team_id": s.opts.TeamID, "context_enterprise_id": nil, "is_ext_shared_channel": false,
		"api_app_id": or(in.Tamper.AppID, s.opts.AppID),
		"authorizations": []any{map[string]any{
			"enterprise_id": nil, "team_id": s.opts.TeamID, "user_id": s.opts.BotUserID, "is_bot": true, "is_enterprise_install": false,
		}},
	})
	if err != nil {
		return ClickResult{}, fmt.Errorf("slacksim: event: %w", err)
	}
	header := http.Header{}
	if in.RetryNum > 0 {
		header.Set(HeaderRetryNum, strconv.Itoa(in.RetryNum))
		header.Set(HeaderRetryReason, or(in.RetryReason, "http_error"))
	}
	user, _ := in.Event["user"].(string)
	kind, _ := in.Event["type"].(string)
	return s.deliver(ctx, outgoing{
		kind: "event", userID: user, what: kind, url: s.url(&s.events), contentType: "application/json",
		body: body, header: header, tamper: in.Tamper,
	})
}

// VerifyEventsURL does the url_verification handshake and says whether the
// app returned the challenge.
func (s *Sim) VerifyEventsURL(ctx context.Context) error {
	challenge := randomHex(20)
	body, err := json.Marshal(map[string]any{"token": verificationToken, "challenge": challenge, "type": "url_verification"})
	if err != nil {
		return fmt.Errorf("slacksim: url_verification: %w", err)
	}
	res, err := s.deliver(ctx, outgoing{kind: "event", what: "url_verification", url: s.url(&s.events), contentType: "application/json", body: body})
	if err != nil {
		return err
	}
	if !res.Acked() || !strings.Contains(string(res.Response), challenge) {
		return fmt.Errorf("slacksim: url_verification: the app answered %d without the challenge", res.Status)
	}
	return nil
}

// Say posts a message as a person. With an events URL the app hears of it, a
// second time when it does not answer 200, as Slack does.
func (s *Sim) Say(ctx context.Context, channel, userID, text, threadTS string) (Message, error) {
	u, err := s.actor(userID)
	if err != nil {
		return Message{}, err
	}
	if strings.TrimSpace(text) == "" || runes(text) > MaxPostText {
		return Message{}, fmt.Errorf("slacksim: say: %w: want 1 to %d characters", ErrInput, MaxPostText)
	}
	st := s.state
	st.mu.Lock()
	c := st.find(channel, true)
	if c == nil || c.IsArchived {
		st.mu.Unlock()
		return Message{}, fmt.Errorf("slacksim: say in %q: %w: no such open channel", channel, ErrNotFound)
	}
	mention := "<@" + s.opts.BotUserID + ">"
	text = strings.ReplaceAll(escapeText(text), "@"+s.opts.BotName, mention)
	m := st.add(c, Message{UserID: u.ID, Text: text, ThreadTS: threadTS})
	st.mu.Unlock()
	if s.url(&s.events) == "" {
		return m, nil
	}
	kinds := []string{"message"}
	if strings.Contains(text, mention) {
		kinds = append(kinds, "app_mention")
	}
	for _, kind := range kinds {
		err = errors.Join(err, s.sendMessageEvent(ctx, kind, m, u))
	}
	return m, err
}

func (s *Sim) sendMessageEvent(ctx context.Context, kind string, m Message, u User) error {
	event := map[string]any{
		"type": kind, "channel": m.Channel, "user": u.ID, "text": m.Text, "ts": m.TS, "event_ts": m.TS, "team": u.TeamID,
	}
	if kind == "message" {
		event["channel_type"] = "channel"
	}
	if m.ThreadTS != "" {
		event["thread_ts"] = m.ThreadTS
	}
	s.state.mu.Lock()
	in := EventRequest{Event: event, ID: s.state.nextID("Ev0")}
	s.state.mu.Unlock()
	res, err := s.SendEvent(ctx, in)
	if err == nil && res.Acked() {
		return nil
	}
	in.RetryNum, in.RetryReason = 1, "http_error"
	if errors.Is(err, ErrAckTimeout) {
		in.RetryReason = "http_timeout"
	}
	res, err = s.SendEvent(ctx, in)
	if err == nil && !res.Acked() {
		err = fmt.Errorf("slacksim: event %s: the app answered %d", kind, res.Status)
	}
	return err
}

// escapeText escapes what a person typed, as Slack's client does.
func escapeText(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}
