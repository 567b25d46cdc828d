package slacksim

import (
	"encoding/json"
	"slices"
	"strings"
)

// Metadata is the app data of a message.
type Metadata struct {
	EventType    string          `json:"event_type"`
	EventPayload json.RawMessage `json:"event_payload"`
}

// Attachment is a secondary part of a message with a coloured bar.
type Attachment struct {
	ID        int             `json:"id"`
	Color     string          `json:"color,omitempty"`
	Fallback  string          `json:"fallback,omitempty"`
	Text      string          `json:"text,omitempty"`
	RawBlocks json.RawMessage `json:"blocks,omitempty"`
	Blocks    []Block         `json:"-"`
}

// Message is a copy of one message as it stands now.
type Message struct {
	// Channel is the channel id.
	Channel string
	// TS identifies the message in its channel ("seconds.micros").
	TS string
	// ThreadTS is the parent's TS: empty outside threads, equal to TS for a
	// parent with replies.
	ThreadTS string
	// Broadcast marks a thread reply that is also shown in the channel.
	Broadcast bool
	// UserID is the author; the bot's user id for messages of the app.
	UserID string
	// BotID is set for messages of the app.
	BotID string
	// Text is the fallback text.
	Text string
	// Blocks and Attachments are what is shown; RawBlocks is the JSON with the
	// ids that Slack filled in.
	Blocks      []Block
	RawBlocks   json.RawMessage
	Attachments []Attachment
	// Metadata is the app data, nil when none.
	Metadata *Metadata
	// EphemeralTo is the only person who sees the message, empty for all.
	EphemeralTo string
	// EditedTS is when the text was edited; editing blocks alone leaves it empty.
	EditedTS string
	// Updates counts chat.update and replace_original.
	Updates int
	// Tombstone marks a deleted parent whose replies remain.
	Tombstone bool
	// ReplyCount is the number of replies in the thread.
	ReplyCount int
}

// AllBlocks returns the blocks of the message and of its attachments.
func (m Message) AllBlocks() []Block {
	all := slices.Clone(m.Blocks)
	for _, a := range m.Attachments {
		all = append(all, a.Blocks...)
	}
	return all
}

// Elements returns every interactive element, in reading order.
func (m Message) Elements() []Element {
	var out []Element
	for _, b := range m.AllBlocks() {
		for _, e := range b.all() {
			if e.interactive() {
				out = append(out, e)
			}
		}
	}
	return out
}

// Element returns the interactive element with an action id.
func (m Message) Element(actionID string) (Element, bool) {
	for _, e := range m.Elements() {
		if e.ActionID == actionID {
			return e, true
		}
	}
	return Element{}, false
}

// Button returns the first button whose visible label contains the words,
// compared without case.
func (m Message) Button(label string) (Element, bool) {
	for _, e := range m.Elements() {
		if e.Type == "button" && e.Text != nil && strings.Contains(strings.ToLower(visible(*e.Text)), strings.ToLower(label)) {
			return e, true
		}
	}
	return Element{}, false
}

// Visible returns what a person reads: the texts of blocks and attachments
// with markup resolved, or the fallback text when there are no blocks.
func (m Message) Visible() string {
	var lines []string
	if len(m.Blocks) == 0 && m.Text != "" {
		lines = append(lines, plainMrkdwn(m.Text))
	}
	for _, b := range m.Blocks {
		for _, t := range b.texts() {
			lines = append(lines, visible(t))
		}
	}
	for _, a := range m.Attachments {
		if len(a.Blocks) == 0 && a.Text != "" {
			lines = append(lines, plainMrkdwn(a.Text))
		}
		for _, b := range a.Blocks {
			for _, t := range b.texts() {
				lines = append(lines, visible(t))
			}
		}
	}
	return strings.Join(lines, "\n")
}

// Notifies returns who the message notifies by name: "channel", "here",
// "everyone" or user ids. A label that leaks through unescaped shows up here.
func (m Message) Notifies() []string {
	var out []string
	add := func(s string) {
		for _, who := range mentions(s) {
			if !slices.Contains(out, who) {
				out = append(out, who)
			}
		}
	}
	add(m.Text)
	for _, a := range m.Attachments {
		add(a.Text)
	}
	for _, b := range m.AllBlocks() {
		for _, t := range b.texts() {
			if t.Type == "mrkdwn" {
				add(t.Text)
			}
		}
	}
	return out
}

// wireMessage is a message as the API and payloads carry it.
type wireMessage struct {
	Type         string          `json:"type"`
	Subtype      string          `json:"subtype,omitempty"`
	User         string          `json:"user,omitempty"`
	BotID        string          `json:"bot_id,omitempty"`
	AppID        string          `json:"app_id,omitempty"`
	Text         string          `json:"text"`
	TS           string          `json:"ts"`
	Team         string          `json:"team,omitempty"`
	ThreadTS     string          `json:"thread_ts,omitempty"`
	ParentUserID string          `json:"parent_user_id,omitempty"`
	ReplyCount   int             `json:"reply_count,omitempty"`
	LatestReply  string          `json:"latest_reply,omitempty"`
	Blocks       json.RawMessage `json:"blocks,omitempty"`
	Attachments  []Attachment    `json:"attachments,omitempty"`
	Edited       *wireEdited     `json:"edited,omitempty"`
	Metadata     *Metadata       `json:"metadata,omitempty"`
}

type wireEdited struct {
	User string `json:"user"`
	TS   string `json:"ts"`
}

// wire renders a message; metadata is left out unless asked for, as Slack does.
func (m Message) wire(teamID, appID string, withMetadata bool) wireMessage {
	w := wireMessage{
		Type: "message", User: m.UserID, BotID: m.BotID, Text: m.Text, TS: m.TS, Team: teamID,
		ThreadTS: m.ThreadTS, ReplyCount: m.ReplyCount, Blocks: m.RawBlocks, Attachments: m.Attachments,
	}
	if m.BotID != "" {
		w.AppID = appID
	}
	switch {
	case m.Tombstone:
		w.Subtype = "tombstone"
	case m.Broadcast:
		w.Subtype = "thread_broadcast"
	}
	if m.EditedTS != "" {
		w.Edited = &wireEdited{User: m.UserID, TS: m.EditedTS}
	}
	if withMetadata {
		w.Metadata = m.Metadata
	}
	return w
}
