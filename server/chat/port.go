package chat

import (
	"context"
	"encoding/json"
	"time"

	"holdfast/actions"
	"holdfast/runbooks"
	"holdfast/server/alert"
	"holdfast/server/change"
	"holdfast/server/identity"
)

// Store is what this package needs of the database.
type Store interface {
	InTx(ctx context.Context, fn func(Tx) error) error
	View(ctx context.Context, fn func(Tx) error) error
	// WakeClicks is signalled after a commit that accepted a click; a poll remains the fallback.
	WakeClicks() <-chan struct{}
}

// Tx is one transaction.
type Tx interface {
	alert.Tx
	PersonBySlack(team, user string) (identity.Person, error)
	Person(id string) (identity.Person, error)
	InsertLink(identity.Link) error

	// LiveButtons lists the buttons of a subject that are neither used, retired nor expired.
	LiveButtons(subject string) ([]Button, error)
	Button(id string) (Button, error)
	InsertButton(Button) error
	// RetireButton takes it off; UseButton marks it used and gives false when it was used before.
	RetireButton(id string) error
	UseButton(id, personName string) (bool, error)

	InsertClick(Click) error
	ClickByButton(buttonID string) (Click, error)
	// DueClicks locks and returns accepted clicks whose time has come, skipping those locked by another server.
	DueClicks(limit int) ([]Click, error)
	SaveClick(Click) error
	// PendingClicks lists accepted clicks on buttons of an incident or change card.
	PendingClicks(subject string) ([]Click, error)

	MessageRef(subject string) (MessageRef, error)
	SaveMessageRef(MessageRef) error

	IncidentRuns(incidentID string) ([]actions.Run, error)
	Run(id string) (actions.Run, error)
	RunbookRuns(f runbooks.Filter) ([]runbooks.Run, error)
	Change(id string) (change.Change, error)
}

// Runner is what clicks call of the action engine.
type Runner interface {
	Run(ctx context.Context, req actions.Request) (actions.Run, error)
	Revert(ctx context.Context, runID string, actor actions.Actor) (actions.Run, error)
	Renew(ctx context.Context, runID string, actor actions.Actor, extend time.Duration) (actions.Run, error)
	// Suggest proposes at most n actions with filled-in parameters for an alert's labels and annotations.
	Suggest(ctx context.Context, labels, annotations map[string]string, n int) ([]Suggestion, error)
	Specs() []actions.Spec
}

// Suggestion is an action proposed for an incident.
type Suggestion = actions.Suggestion

// Runbooks is what cards ask of the runbook engine.
type Runbooks interface {
	Suggest(labels, annotations map[string]string) []runbooks.Suggestion
}

// Changes is what clicks call of the calendar.
type Changes interface {
	Confirm(ctx context.Context, id, hash string) (change.Change, error)
	Reject(ctx context.Context, id string) (change.Change, error)
}

// Incidents is what clicks call of the incidents.
type Incidents interface {
	Acknowledge(ctx context.Context, id string) error
}

// FormSubmission is a filled-in action form.
type FormSubmission struct {
	// FormID is opaque, unique per opened form; it makes the submission idempotent.
	FormID  string
	Subject string
	Action  string
	Params  json.RawMessage
	Reason  string
	Team    string
	User    string
}
