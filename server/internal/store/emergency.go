package store

import (
	"errors"
	"time"

	"holdfast/actions"
	"holdfast/server/change"
	"holdfast/server/incident"
)

// emergencyID is the change of a run; one for each, whatever is repeated.
func emergencyID(run actions.Run) string { return "action-" + run.ID }

// OpenEmergencyChange enters the run in the calendar as a change that never
// conflicts and that CI sees (DESIGN mechanism 5). Repeating it is harmless.
func (tx *Tx) OpenEmergencyChange(run actions.Run) error {
	_, err := tx.Change(emergencyID(run))
	if err == nil {
		return tx.extendEmergencyChange(run)
	}
	if !errors.Is(err, change.ErrNotFound) {
		return err
	}
	environment, err := tx.incidentEnvironment(run)
	if err != nil {
		return err
	}
	c := change.Change{
		ID: emergencyID(run), Service: run.Plan.Service, Environment: environment, Kind: change.KindEmergency,
		Status: change.StatusRunning, Start: tx.now, End: tx.leaseEnd(run), RunID: run.ID,
		Summary: run.Plan.Summary, RequesterID: run.Requester.PersonID,
		RequesterName: run.Requester.Name, ActionRunID: run.ID, ParamsHash: run.ParamsHash,
	}
	if err := tx.InsertChange(&c); err != nil {
		return err
	}
	tx.Touch("changes", c.ID)
	return tx.putEmergencyHold(c)
}

// incidentEnvironment is where the run's incident is; empty when there is none
// or it names no environment, which counts as everywhere.
func (tx *Tx) incidentEnvironment(run actions.Run) (string, error) {
	if run.IncidentID == "" {
		return "", nil
	}
	in, err := tx.Incident(run.IncidentID)
	if errors.Is(err, incident.ErrNotFound) {
		return "", nil
	}
	return in.Environment, err
}

// leaseEnd is the end of the run's lease, never before now.
func (tx *Tx) leaseEnd(run actions.Run) time.Time {
	end := run.ExpiresAt
	if end.IsZero() {
		end = tx.now.Add(run.TTL)
	}
	if end.Before(tx.now) {
		return tx.now
	}
	return end
}

// extendEmergencyChange moves its end with the lease; nothing when it has ended or never was.
func (tx *Tx) extendEmergencyChange(run actions.Run) error {
	c, err := tx.Change(emergencyID(run))
	if errors.Is(err, change.ErrNotFound) || err == nil && !c.FinishedAt.IsZero() {
		return nil
	}
	if err != nil {
		return err
	}
	c.End = tx.leaseEnd(run)
	return tx.saveEmergency(c)
}

// CloseEmergencyChange ends it now; nothing when it has ended or never was.
func (tx *Tx) CloseEmergencyChange(run actions.Run) error {
	c, err := tx.Change(emergencyID(run))
	if errors.Is(err, change.ErrNotFound) || err == nil && !c.FinishedAt.IsZero() {
		return nil
	}
	if err != nil {
		return err
	}
	c.Status = change.StatusSucceeded
	if run.Status == actions.StatusFailed {
		c.Status = change.StatusFailed
	}
	c.End, c.FinishedAt = tx.now, tx.now
	return tx.saveEmergency(c)
}

func (tx *Tx) saveEmergency(c change.Change) error {
	if err := tx.SaveChange(&c); err != nil {
		return err
	}
	tx.Touch("changes", c.ID)
	return tx.putEmergencyHold(c)
}

func (tx *Tx) putEmergencyHold(c change.Change) error {
	return tx.PutHold(change.Hold{
		ChangeID: c.ID, Start: c.Start, End: c.End, Exempt: true,
		Resources: []change.Resource{{Key: "env/" + c.Environment + "/svc/" + c.Service, Shared: true}},
	})
}
