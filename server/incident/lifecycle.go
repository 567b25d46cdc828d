package incident

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"holdfast/server/outbox"
)

// ActorSystem is the actor of what holdfast does by itself.
const ActorSystem = "system"

const touchTopic = "incidents"

// Subject names an incident in outbox, audit and buttons.
func Subject(id string) string { return "incident:" + id }

// LockKey is the key under which everything that decides about the incidents of
// a group is serialised.
func LockKey(groupKey string) string { return "group:" + groupKey }

// Open stores a new incident made from draft (Title, Severity, GroupKey, …) and
// asks for its card. The caller holds LockKey of its group and has seen that no
// other one of it is unresolved.
func Open(tx Tx, draft Incident, text string) (Incident, error) {
	in := draft
	in.ID = strings.ToLower(rand.Text())
	in.Status = StatusOpen
	in.OpenedAt = tx.Now()
	if err := tx.InsertIncident(&in); err != nil {
		return Incident{}, fmt.Errorf("open incident: %w", err)
	}
	if err := record(tx, in.ID, EntryOpened, ActorSystem, text); err != nil {
		return Incident{}, err
	}
	return in, RefreshCard(tx, in.ID)
}

// Reopen makes a resolved incident open again; nobody has it in hand any more.
// Save stores it, together with whatever else the caller changes.
func Reopen(tx Tx, in *Incident, text string) error {
	in.Status = StatusOpen
	in.ResolvedAt, in.AckedAt, in.AckedBy = zeroTime, zeroTime, ""
	if err := record(tx, in.ID, EntryReopened, ActorSystem, text); err != nil {
		return err
	}
	return Tell(tx, in.ID, "Reopened. "+text)
}

// AutoResolve ends an incident whose alerts are all over. It refuses with
// ErrStillFiring while one fires or while the source left alerts out (C20).
// Save stores it.
func AutoResolve(tx Tx, in *Incident, text string) error {
	if in.Firing > 0 || in.Truncated > 0 {
		return fmt.Errorf("incident %d: %w", in.Number, ErrStillFiring)
	}
	in.Status = StatusResolved
	in.ResolvedAt = tx.Now()
	if err := record(tx, in.ID, EntryResolved, ActorSystem, text); err != nil {
		return err
	}
	return Tell(tx, in.ID, "Resolved. "+text)
}

// AlertsChanged notes that alerts joined or ended, in timeline and thread.
func AlertsChanged(tx Tx, id, text string) error {
	if err := record(tx, id, EntryAlert, ActorSystem, text); err != nil {
		return err
	}
	return Tell(tx, id, text)
}

// Save stores the incident and asks for its card.
func Save(tx Tx, in *Incident) error {
	if err := tx.SaveIncident(in); err != nil {
		return fmt.Errorf("save incident %d: %w", in.Number, err)
	}
	return RefreshCard(tx, in.ID)
}

// RefreshCard asks for the card to be brought up to date. Requests coalesce, so
// that a storm of changes is one edit.
func RefreshCard(tx Tx, id string) error {
	tx.Touch(touchTopic, id)
	return tx.Enqueue(outbox.Card(Subject(id)))
}

// Tell posts one line into the incident's thread.
func Tell(tx Tx, id, text string) error {
	payload, err := json.Marshal(outbox.Text{Text: shorten(text, maxThreadText)})
	if err != nil {
		return fmt.Errorf("thread line: %w", err)
	}
	return tx.Enqueue(outbox.Message{
		Topic: outbox.TopicChat, Key: Subject(id), Kind: outbox.KindThread,
		Subject: Subject(id), Payload: payload,
	})
}

func record(tx Tx, id string, kind EntryKind, actor, text string) error {
	tx.Touch(touchTopic, id)
	err := tx.AddEntry(Entry{IncidentID: id, At: tx.Now(), Kind: kind, Actor: actor, Text: shorten(text, maxEntryText)})
	if err != nil {
		return fmt.Errorf("timeline: %w", err)
	}
	return nil
}

// lockedIncident reads an incident under the lock of its group.
func lockedIncident(tx Tx, id string) (Incident, error) {
	in, err := tx.Incident(id)
	if err != nil {
		return in, err
	}
	if err := tx.Lock(LockKey(in.GroupKey)); err != nil {
		return in, err
	}
	return tx.Incident(id)
}

var errNothingToDo = errors.New("nothing to do")
