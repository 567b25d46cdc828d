package actions

import "context"

// ForIncident lists all runs of an incident, live or ended, newest first.
func (e *Engine) ForIncident(ctx context.Context, incidentID string) (runs []Run, err error) {
	err = e.store.View(ctx, func(tx Tx) error {
		runs, err = tx.IncidentRuns(incidentID)
		return err
	})
	return runs, err
}
