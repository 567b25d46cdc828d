package slacksim

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
)

// verificationToken is the deprecated token in payloads. Apps must ignore it.
const verificationToken = "deprecated-verification-token"

// ClickRequest says who uses which element.
type ClickRequest struct {
	// Channel (id or name) and TS name the message; ViewID names a modal
	// instead.
	Channel, TS, ViewID string
	// ActionID names the element; BlockID tells two with one action id apart.
	ActionID, BlockID string
	// UserID is who clicks.
	UserID string
	// Value is the choice in a menu, date or time picker: an option's value,
	// a user id, "2026-01-31" or "18:30". Not used for buttons. Several values
	// of checkboxes or a multi-select go into Values.
	Value  string
	Values []string
	// Tamper changes the delivery.
	Tamper Tamper
}

// clicked is an element found, with what surrounds it.
type clicked struct {
	channel      *channel
	message      *Message
	view         *view
	attachmentID int
	block        Block
	element      Element
}

// Click uses an element as a person would: it builds the block_actions
// payload, signs it and posts it to the app. The error is nil whenever the app
// answered in time, whatever the status; see ClickResult.Acked.
func (s *Sim) Click(ctx context.Context, in ClickRequest) (ClickResult, error) {
	u, err := s.actor(in.UserID)
	if err != nil {
		return ClickResult{}, err
	}
	st := s.state
	st.mu.Lock()
	at, err := st.locate(in)
	if err != nil {
		st.mu.Unlock()
		return ClickResult{}, fmt.Errorf("slacksim: click: %w", err)
	}
	chosen, err := choice(at.element, in)
	if err != nil {
		st.mu.Unlock()
		return ClickResult{}, fmt.Errorf("slacksim: click: %w", err)
	}
	payload, res := s.blockActions(at, u, chosen, in.Tamper)
	st.mu.Unlock()
	sent, err := s.deliver(ctx, outgoing{
		kind: "block_actions", userID: u.ID, what: in.ActionID, url: s.url(&s.interactivity),
		contentType: formType, body: payloadForm(payload), tamper: in.Tamper,
	})
	sent.TriggerID, sent.ResponseURL, sent.ActionTS = res.TriggerID, res.ResponseURL, res.ActionTS
	return sent, err
}

const formType = "application/x-www-form-urlencoded"

// payloadForm encodes a payload as Slack posts it.
func payloadForm(payload any) []byte {
	raw, err := json.Marshal(payload)
	if err != nil {
		// Payloads are built from JSON that was parsed before.
		raw = []byte("{}")
	}
	return []byte(url.Values{"payload": {string(raw)}}.Encode())
}

// actor returns an active user.
func (s *Sim) actor(id string) (User, error) {
	u, ok := s.state.user(id)
	switch {
	case !ok:
		return User{}, fmt.Errorf("slacksim: user %q: %w", id, ErrNotFound)
	case u.Deleted:
		return User{}, fmt.Errorf("slacksim: user %q is deactivated: %w", id, ErrNotAllowed)
	}
	return u, nil
}

// locate finds the element. The caller holds the lock.
func (st *state) locate(in ClickRequest) (clicked, error) {
	if in.ViewID != "" {
		return st.locateInView(in)
	}
	c := st.find(in.Channel, true)
	if c == nil {
		return clicked{}, fmt.Errorf("channel %q: %w", in.Channel, ErrNotFound)
	}
	m := c.message(in.TS, true)
	if m == nil {
		return clicked{}, fmt.Errorf("message %s in %s: %w", in.TS, in.Channel, ErrNotFound)
	}
	if m.EphemeralTo != "" && m.EphemeralTo != in.UserID {
		return clicked{}, fmt.Errorf("message %s is visible to %s only: %w", in.TS, m.EphemeralTo, ErrNotAllowed)
	}
	at := clicked{channel: c, message: m}
	if b, e, ok := findElement(m.Blocks, in); ok {
		at.block, at.element = b, e
		return at, nil
	}
	for _, a := range m.Attachments {
		if b, e, ok := findElement(a.Blocks, in); ok {
			at.block, at.element, at.attachmentID = b, e, a.ID
			return at, nil
		}
	}
	return clicked{}, fmt.Errorf("element %q in message %s (it has %v): %w", in.ActionID, in.TS, actionIDs(m.Elements()), ErrNotFound)
}

func (st *state) locateInView(in ClickRequest) (clicked, error) {
	v := st.views[in.ViewID]
	if v == nil {
		return clicked{}, fmt.Errorf("view %s: %w", in.ViewID, ErrNotFound)
	}
	if v.UserID != in.UserID {
		return clicked{}, fmt.Errorf("view %s belongs to %s: %w", in.ViewID, v.UserID, ErrNotAllowed)
	}
	b, e, ok := findElement(v.Blocks, in)
	if !ok {
		return clicked{}, fmt.Errorf("element %q in view %s: %w", in.ActionID, in.ViewID, ErrNotFound)
	}
	return clicked{view: v, block: b, element: e}, nil
}

func findElement(blocks []Block, in ClickRequest) (Block, Element, bool) {
	for _, b := range blocks {
		if in.BlockID != "" && b.BlockID != in.BlockID {
			continue
		}
		for _, e := range b.all() {
			if e.interactive() && e.ActionID == in.ActionID {
				return b, e, true
			}
		}
	}
	return Block{}, Element{}, false
}

func actionIDs(elements []Element) []string {
	ids := make([]string, len(elements))
	for i, e := range elements {
		ids[i] = e.ActionID
	}
	return ids
}

// choice returns the type-specific part of an action: what was chosen.
func choice(e Element, in ClickRequest) (map[string]any, error) {
	values := in.Values
	if len(values) == 0 && in.Value != "" {
		values = []string{in.Value}
	}
	out := map[string]any{"type": e.Type}
	switch e.Type {
	case "button":
		if e.Text != nil {
			out["text"] = e.Text
		}
		if e.Value != "" {
			out["value"] = e.Value
		}
		if e.Style != "" {
			out["style"] = e.Style
		}
		return out, nil
	case "checkboxes", "multi_static_select":
		picked, err := pickOptions(e, values)
		out["selected_options"] = picked
		return out, err
	case "overflow", "static_select", "radio_buttons":
		if len(values) != 1 {
			return nil, fmt.Errorf("%s %q needs one value of %v: %w", e.Type, e.ActionID, optionValues(e), ErrInput)
		}
		picked, err := pickOptions(e, values)
		if err != nil {
			return nil, err
		}
		out["selected_option"] = picked[0]
		return out, nil
	}
	if len(values) != 1 {
		return nil, fmt.Errorf("%s %q needs one value: %w", e.Type, e.ActionID, ErrInput)
	}
	out[valueField(e.Type)] = values[0]
	return out, nil
}

// valueField is where an element's value sits in actions and state.
func valueField(elementType string) string {
	switch elementType {
	case "users_select":
		return "selected_user"
	case "datepicker":
		return "selected_date"
	case "timepicker":
		return "selected_time"
	}
	return "value"
}

func pickOptions(e Element, values []string) ([]Option, error) {
	all := e.AllOptions()
	picked := []Option{}
	for _, v := range values {
		i := slices.IndexFunc(all, func(o Option) bool { return o.Value == v })
		if i < 0 {
			return nil, fmt.Errorf("%s %q has no option %q, it has %v: %w", e.Type, e.ActionID, v, optionValues(e), ErrInput)
		}
		picked = append(picked, all[i])
	}
	return picked, nil
}

func optionValues(e Element) []string {
	var out []string
	for _, o := range e.AllOptions() {
		out = append(out, o.Value)
	}
	return out
}

// blockActions builds the payload. The caller holds the lock.
func (s *Sim) blockActions(at clicked, u User, chosen map[string]any, t Tamper) (map[string]any, ClickResult) {
	st := s.state
	actionTS := st.nextTS()
	action := map[string]any{"action_id": at.element.ActionID, "block_id": at.block.BlockID, "action_ts": actionTS}
	maps.Copy(action, chosen)
	viewID := ""
	if at.view != nil {
		viewID = at.view.ID
	}
	res := ClickResult{ActionTS: actionTS, TriggerID: st.newTrigger(u.ID, viewID)}
	payload := s.envelope("block_actions", u, t)
	payload["trigger_id"] = res.TriggerID
	payload["actions"] = []any{action}
	if at.view != nil {
		payload["container"] = map[string]any{"type": "view", "view_id": at.view.ID}
		payload["view"] = s.wireView(at.view)
		return payload, res
	}
	if statefulType(at.element.Type) {
		at.channel.choose(choiceKey{u.ID, at.message.TS, at.block.BlockID, at.element.ActionID}, chosen)
	}
	res.ResponseURL = s.newResponseURL(at.channel.ID, at.message.TS, u.ID)
	payload["response_url"] = res.ResponseURL
	payload["channel"] = map[string]any{"id": at.channel.ID, "name": channelName(at.channel)}
	payload["container"] = messageContainer(at)
	payload["state"] = map[string]any{"values": at.channel.stateValues(at.message, u.ID)}
	if at.message.EphemeralTo == "" {
		// Slack sends no message for a click on an ephemeral one.
		payload["message"] = s.wire(*at.message, true)
	}
	return payload, res
}

// envelope is what all interaction payloads share.
func (s *Sim) envelope(kind string, u User, t Tamper) map[string]any {
	return map[string]any{
		"type":                  kind,
		"team":                  map[string]any{"id": or(t.TeamID, s.opts.TeamID), "domain": s.domain()},
		"user":                  map[string]any{"id": u.ID, "username": u.Name, "name": u.Name, "team_id": or(t.UserTeamID, u.TeamID)},
		"api_app_id":            or(t.AppID, s.opts.AppID),
		"token":                 verificationToken,
		"enterprise":            nil,
		"is_enterprise_install": false,
	}
}

func messageContainer(at clicked) map[string]any {
	kind := "message"
	out := map[string]any{
		"message_ts": at.message.TS, "channel_id": at.channel.ID, "is_ephemeral": at.message.EphemeralTo != "",
	}
	if at.attachmentID > 0 {
		kind = "message_attachment"
		out["attachment_id"], out["is_app_unfurl"] = at.attachmentID, false
	}
	if at.message.ThreadTS != "" {
		out["thread_ts"] = at.message.ThreadTS
	}
	out["type"] = kind
	return out
}

func channelName(c *channel) string {
	if c.isIM {
		return "directmessage"
	}
	return c.Name
}

// statefulType says whether an element's choice is part of state.values.
func statefulType(t string) bool { return t != "button" && t != "overflow" }

// stateValues returns what a person sees selected in a message's menus.
func (c *channel) stateValues(m *Message, userID string) map[string]map[string]any {
	out := map[string]map[string]any{}
	for _, b := range m.AllBlocks() {
		for _, e := range b.all() {
			if !e.interactive() || !statefulType(e.Type) {
				continue
			}
			value := c.chosen[choiceKey{userID, m.TS, b.BlockID, e.ActionID}]
			if value == nil {
				value = initialState(e)
			}
			if out[b.BlockID] == nil {
				out[b.BlockID] = map[string]any{}
			}
			out[b.BlockID][e.ActionID] = value
		}
	}
	return out
}

// initialState is an element's state before anybody touched it.
func initialState(e Element) map[string]any {
	out := map[string]any{"type": e.Type}
	null := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	switch e.Type {
	case "checkboxes", "multi_static_select":
		out["selected_options"] = orEmpty(e.InitialOptions)
	case "static_select", "radio_buttons":
		out["selected_option"] = e.InitialOption
	case "users_select":
		out["selected_user"] = null(e.InitialUser)
	case "datepicker":
		out["selected_date"] = null(e.InitialDate)
	case "timepicker":
		out["selected_time"] = null(e.InitialTime)
	default:
		out["value"] = null(e.InitialValue)
	}
	return out
}
