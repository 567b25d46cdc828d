// Package outbox carries side effects out of the database: a message is written
// in the same transaction as the state change that causes it, and delivered at
// least once, in order per key (DESIGN mechanism 6).
package outbox

import (
	"encoding/json"
	"time"
)

// Topics.
const (
	// TopicChat is delivered to Slack.
	TopicChat = "chat"
)

// Kinds of TopicChat.
const (
	// KindCard: bring the card of Subject ("incident:<id>" or "change:<id>") up to date. Coalesced.
	KindCard = "card"
	// KindThread: post Payload (Text) into the thread of Subject, once its card stands.
	KindThread = "thread"
	// KindEphemeral: tell one user, Payload (Text, Team, User, Channel).
	KindEphemeral = "ephemeral"
)

// Message is one side effect to perform.
type Message struct {
	// ID orders messages; 0 until stored.
	ID    int64
	Topic string
	// Key is the ordering key: messages of one key leave one at a time, oldest first.
	Key     string
	Kind    string
	Subject string
	// Payload is what the deliverer needs beside Subject; JSON, at most 64 KiB.
	Payload json.RawMessage
	// Coalesce lets a newer undelivered message of the same Topic, Key, Kind and Subject replace this one.
	Coalesce bool
	// Attempts so far, and the reason of the last failure.
	Attempts  int
	LastError string
	CreatedAt time.Time
	// NotBefore holds the whole key back until then.
	NotBefore time.Time
}

// Card asks for the card of a subject to be brought up to date. Cards have a key
// of their own: an edit must not wait behind thread lines, which Slack takes at
// about one a second.
func Card(subject string) Message {
	return Message{Topic: TopicChat, Key: "card:" + subject, Kind: KindCard, Subject: subject, Coalesce: true}
}

// Text is the payload of KindThread and KindEphemeral.
type Text struct {
	Text    string `json:"text"`
	Team    string `json:"team,omitempty"`
	User    string `json:"user,omitempty"`
	Channel string `json:"channel,omitempty"`
}
