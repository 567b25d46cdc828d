package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"holdfast/actions"
	"holdfast/runbooks"
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

// RecordRunbookEvent writes what happened to a runbook run to every place that
// shows it: the audit always; timeline and card when it belongs to an incident,
// which must exist (incident.ErrNotFound); and the thread when the event says so.
func (tx *Tx) RecordRunbookEvent(e runbooks.Event) error {
	if err := tx.Audit(runbookAudit(e)); err != nil {
		return err
	}
	if e.Run.ID != "" {
		tx.Touch("runbook-runs", e.Run.ID)
	}
	if e.Run.IncidentID == "" {
		return nil
	}
	_, err := tx.Incident(e.Run.IncidentID)
	if e.Kind == runbooks.EventDenied && errors.Is(err, incident.ErrNotFound) {
		// A refusal is audited whatever nonsense was asked.
		return nil
	}
	if err != nil {
		return err
	}
	tx.Touch("incidents", e.Run.IncidentID)
	err = tx.AddEntry(incident.Entry{
		IncidentID: e.Run.IncidentID, Kind: incident.EntryRunbook, Actor: e.Actor.Name,
		Text: e.Text, Ref: runbookRef(e.Run),
	})
	if err != nil {
		return err
	}
	if !e.Thread {
		return tx.tellIncident(e.Run.IncidentID, "")
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

// runbookAudit is the audit row of an event of a runbook run. Its version says
// exactly which text was followed.
func runbookAudit(e runbooks.Event) audit.Entry {
	entry := audit.Entry{
		ActorID: e.Actor.PersonID, ActorName: e.Actor.Name, Channel: e.Actor.Channel,
		Verb: "runbook." + string(e.Kind), Subject: runbookRef(e.Run), Decision: audit.Allowed,
		Reason: e.Reason, Details: runbookDetails(e),
	}
	if entry.Subject == "" {
		// Denied before there was a run.
		entry.Subject = "runbook:" + e.Run.Runbook.ID
	}
	if e.Kind == runbooks.EventDenied {
		entry.Decision = audit.Denied
	}
	if entry.Reason == "" {
		entry.Reason = e.Text
	}
	return entry
}

func runbookRef(r runbooks.Run) string {
	if r.ID == "" {
		return ""
	}
	return "runbook-run:" + r.ID
}

func runbookDetails(e runbooks.Event) map[string]string {
	r := e.Run
	details := map[string]string{"runbook": r.Runbook.ID}
	add := func(name, value string) {
		if value != "" {
			details[name] = value
		}
	}
	add("version", r.Runbook.Version)
	add("incident", r.IncidentID)
	add("status", string(r.Status))
	add("step", e.Step)
	i := slices.IndexFunc(r.Runbook.Steps, func(s runbooks.Step) bool { return s.ID == e.Step })
	if i < 0 || i >= len(r.Steps) {
		return details
	}
	state := r.Steps[i]
	add("step_status", string(state.Status))
	add("choice", state.Choice)
	add("action_run", state.ActionRun)
	if state.Attempt > 0 {
		details["attempt"] = strconv.Itoa(state.Attempt)
	}
	return details
}
