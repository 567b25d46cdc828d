package store

import (
	"encoding/json"
	"errors"
	"fmt"

	"holdfast/actions"
	"holdfast/server/audit"
	"holdfast/server/incident"
	"holdfast/server/outbox"
)

// RecordEvent writes what happened to a run to every place that shows it: the
// audit always; timeline, card and thread when it belongs to an incident, which
// must exist (incident.ErrNotFound).
func (tx *Tx) RecordEvent(e actions.Event) error {
	if err := tx.Audit(runAudit(e)); err != nil {
		return err
	}
	if e.Kind == actions.EventRenewed {
		if err := tx.extendEmergencyChange(e.Run); err != nil {
			return err
		}
	}
	if e.Run.ID != "" {
		tx.Touch("runs", e.Run.ID)
	}
	if e.Run.IncidentID == "" {
		return nil
	}
	_, err := tx.Incident(e.Run.IncidentID)
	if e.Kind == actions.EventDenied && errors.Is(err, incident.ErrNotFound) {
		// A refusal is audited whatever nonsense was asked.
		return nil
	}
	if err != nil {
		return err
	}
	tx.Touch("incidents", e.Run.IncidentID)
	err = tx.AddEntry(incident.Entry{
		IncidentID: e.Run.IncidentID, Kind: incident.EntryAction, Actor: e.Actor.Name,
		Text: e.Text, Ref: runRef(e.Run),
	})
	if err != nil {
		return err
	}
	return tx.tellIncident(e.Run.IncidentID, e.Text)
}

// tellIncident refreshes the card of an incident and adds a line to its thread.
func (tx *Tx) tellIncident(incidentID, text string) error {
	subject := "incident:" + incidentID
	err := tx.Enqueue(outbox.Card(subject))
	if err != nil || text == "" {
		return err
	}
	payload, err := json.Marshal(outbox.Text{Text: text})
	if err != nil {
		return fmt.Errorf("store: write a thread line: %w", err)
	}
	return tx.Enqueue(outbox.Message{
		Topic: outbox.TopicChat, Key: subject, Kind: outbox.KindThread, Subject: subject, Payload: payload,
	})
}

// runAudit is the audit row of an event. Parameters are named by their hash.
func runAudit(e actions.Event) audit.Entry {
	entry := audit.Entry{
		ActorID: e.Actor.PersonID, ActorName: e.Actor.Name, Channel: e.Actor.Channel,
		Verb: "action." + string(e.Kind), Subject: runRef(e.Run), Decision: audit.Allowed,
		Reason: e.Reason, Details: runDetails(e.Run),
	}
	if entry.Subject == "" {
		// Denied before there was a run.
		entry.Subject = "action:" + e.Run.Action
	}
	if e.Kind == actions.EventDenied {
		entry.Decision = audit.Denied
	}
	if entry.Reason == "" {
		entry.Reason = e.Text
	}
	return entry
}

func runRef(r actions.Run) string {
	if r.ID == "" {
		return ""
	}
	return "run:" + r.ID
}

func runDetails(r actions.Run) map[string]string {
	details := map[string]string{"action": r.Action}
	add := func(name, value string) {
		if value != "" {
			details[name] = value
		}
	}
	add("incident", r.IncidentID)
	add("params_hash", r.ParamsHash)
	add("status", string(r.Status))
	add("request_reason", r.Reason)
	add("end_reason", string(r.EndReason))
	add("verdict", string(r.Verification.Verdict))
	if r.Revision > 0 {
		add("revision", fmt.Sprintf("%s:%d", r.Lineage, r.Revision))
	}
	if r.RevertRevision > 0 {
		add("revert_revision", fmt.Sprintf("%s:%d", r.Lineage, r.RevertRevision))
	}
	return details
}
