// Package chat is what happens between a person and a card: buttons with opaque
// ids, clicks that are committed before anything is done, and the content of
// cards. It knows no Slack; slackapp draws and delivers (DESIGN mechanism 9).
package chat

import (
	"encoding/json"
	"errors"
	"time"

	"holdfast/actions"
	"holdfast/runbooks"
	"holdfast/server/change"
	"holdfast/server/incident"
)

// ButtonKind says what a button does.
type ButtonKind string

// Button kinds.
const (
	ButtonAck     ButtonKind = "ack"
	ButtonAction  ButtonKind = "action"
	ButtonMore    ButtonKind = "more"
	ButtonRevert  ButtonKind = "revert"
	ButtonRenew   ButtonKind = "renew"
	ButtonConfirm ButtonKind = "change_confirm"
	ButtonReject  ButtonKind = "change_reject"
)

// Button is one pressable thing on one card. Only its id travels.
type Button struct {
	// ID is opaque and random, 26 characters.
	ID   string
	Kind ButtonKind
	// Subject is "incident:<id>", "run:<id>" or "change:<id>".
	Subject string
	// Slot makes it stable across redraws: one live button per (Subject, Slot).
	Slot  string
	Label string
	// Style is "primary", "danger" or empty.
	Style string
	// Confirm asks before sending when not empty; display only.
	Confirm string
	// Action and Params are for ButtonAction.
	Action string
	Params json.RawMessage
	// Hash binds an approval to the exact parameters (change_confirm).
	Hash      string
	CreatedAt time.Time
	ExpiresAt time.Time
	// UsedAt, UsedBy: single use. RetiredAt: redrawn away.
	UsedAt    time.Time
	UsedBy    string
	RetiredAt time.Time
}

// ClickStatus is how far a click got.
type ClickStatus string

// Click statuses.
const (
	// ClickAccepted is committed: it will take effect exactly once.
	ClickAccepted ClickStatus = "accepted"
	ClickDone     ClickStatus = "done"
	ClickRefused  ClickStatus = "refused"
)

// Click is one committed press.
type Click struct {
	ID       string
	ButtonID string
	// PersonID is who pressed, by the link table, never by name.
	PersonID   string
	PersonName string
	// Team, User, Channel, MessageTS are Slack's, for replies.
	Team      string
	User      string
	Channel   string
	MessageTS string
	Status    ClickStatus
	// Detail is the typed reason of a form until it is done; then what became of it.
	Detail     string
	ReceivedAt time.Time
	DoneAt     time.Time
	// NextAt is when it is due; Attempts counts tries.
	NextAt   time.Time
	Attempts int
}

// Press is a press as it comes in, verified and parsed.
type Press struct {
	ButtonID  string
	Team      string
	User      string
	Channel   string
	MessageTS string
}

// Answer is what the presser is told at once, privately; empty Text says nothing.
type Answer struct {
	// Accepted is true when the click was committed.
	Accepted bool
	// Duplicate is true when the button was already used.
	Duplicate bool
	Text      string
	// OpenForm asks the surface to show the form of all actions for Subject (ButtonMore).
	OpenForm bool
	Subject  string
}

// MessageRef is where a card stands.
type MessageRef struct {
	// Subject is "incident:<id>" or "change:<id>".
	Subject string
	Channel string
	TS      string
	// PostKey is our id in the message's metadata, claimed before posting so that a lost reply does not post twice.
	PostKey   string
	UpdatedAt time.Time
}

// IncidentCard is the content of an incident's card.
type IncidentCard struct {
	Incident incident.Incident
	// Alerts are a few of the members as "label=value …" lines, untrusted text.
	Alerts []string
	// Runs are the live runs, and those that ended within the last hour, newest first.
	Runs []actions.Run
	// Pending are accepted clicks not done yet.
	Pending []Click
	// Buttons are at most four, by state.
	Buttons []Button
	// RunbookRuns are the live runbook runs, newest first.
	RunbookRuns []RunbookRun
	// Runbooks are proposed for the incident and do not run.
	Runbooks []RunbookLink
	// RunButtons are revert and renew of the live runs, at most five.
	RunButtons []Button
	// URL leads to the incident in the console.
	URL string
	Now time.Time
}

// RunbookRun is a live run of a runbook; URL leads to it in the console.
type RunbookRun struct {
	Run runbooks.Run
	URL string
}

// RunbookLink leads to a runbook with what the alerts fill in, in the console.
type RunbookLink struct {
	Title string
	URL   string
}

// ChangeCard is the content of the card of a held change.
type ChangeCard struct {
	Change   change.Change
	Blockers []change.Change
	Buttons  []Button
	URL      string
	Now      time.Time
}

// Sentinels.
var (
	ErrNotFound = errors.New("not found")
	// ErrUnknownPerson: the Slack user is linked to nobody.
	ErrUnknownPerson = errors.New("this chat user is not linked to a person")
)
