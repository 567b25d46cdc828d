package slacksim

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
)

// SlashRequest is one slash command.
type SlashRequest struct {
	// Command begins with "/"; Text is what follows.
	Command, Text string
	// UserID types it in Channel (id or name).
	UserID, Channel string
	// Tamper changes the delivery.
	Tamper Tamper
}

// Slash types a slash command.
func (s *Sim) Slash(ctx context.Context, command, text, userID, channel string) (ClickResult, error) {
	return s.SlashCommand(ctx, SlashRequest{Command: command, Text: text, UserID: userID, Channel: channel})
}

// SlashCommand types a slash command and shows the app's answer as Slack does:
// to the person alone, or to all with response_type in_channel.
func (s *Sim) SlashCommand(ctx context.Context, in SlashRequest) (ClickResult, error) {
	u, err := s.actor(in.UserID)
	if err != nil {
		return ClickResult{}, err
	}
	if !strings.HasPrefix(in.Command, "/") || strings.ContainsAny(in.Command, " \n") || len(in.Command) < 2 {
		return ClickResult{}, fmt.Errorf("slacksim: command %q: %w: want a word that begins with /", in.Command, ErrInput)
	}
	st := s.state
	st.mu.Lock()
	c := st.find(in.Channel, true)
	if c == nil {
		st.mu.Unlock()
		return ClickResult{}, fmt.Errorf("slacksim: channel %q: %w", in.Channel, ErrNotFound)
	}
	res := ClickResult{TriggerID: st.newTrigger(u.ID, ""), ResponseURL: s.newResponseURL(c.ID, "", u.ID)}
	channelID, name := c.ID, channelName(c)
	st.mu.Unlock()
	form := url.Values{
		"token": {verificationToken}, "team_id": {or(in.Tamper.TeamID, s.opts.TeamID)}, "team_domain": {s.domain()},
		"channel_id": {channelID}, "channel_name": {name}, "user_id": {u.ID}, "user_name": {u.Name},
		"command": {in.Command}, "text": {in.Text}, "api_app_id": {or(in.Tamper.AppID, s.opts.AppID)},
		"is_enterprise_install": {"false"}, "response_url": {res.ResponseURL}, "trigger_id": {res.TriggerID},
	}
	sent, err := s.deliver(ctx, outgoing{
		kind: "slash_command", userID: u.ID, what: in.Command, url: s.url(&s.commands),
		contentType: formType, body: []byte(form.Encode()), tamper: in.Tamper,
	})
	sent.TriggerID, sent.ResponseURL = res.TriggerID, res.ResponseURL
	if err != nil || !sent.Acked() {
		return sent, err
	}
	return sent, s.showCommandAnswer(channelID, u.ID, sent.Response)
}

// showCommandAnswer posts what the acknowledgement carried.
func (s *Sim) showCommandAnswer(channelID, userID string, raw []byte) error {
	if strings.TrimSpace(string(raw)) == "" {
		return nil
	}
	var in responseMessage
	if json.Unmarshal(raw, &in) != nil {
		text := string(raw)
		in = responseMessage{Text: &text}
	}
	body, bad := s.readContent(in.params())
	if bad != nil {
		return fmt.Errorf("slacksim: the answer to the command would not be shown: %v", bad.body["error"])
	}
	if body.empty() {
		return nil
	}
	s.applyResponse(responseURL{channel: channelID, user: userID}, in, body)
	return nil
}
