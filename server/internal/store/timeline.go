package store

import "holdfast/server/incident"

// maxEntries is the largest page of a timeline.
const maxEntries = 500

type entryRow struct {
	ID         int64 `gorm:"primaryKey;autoIncrement"`
	IncidentID string
	At         stamp
	Kind       string
	Actor      string
	Text       string
	Ref        string
}

// TableName is the table.
func (entryRow) TableName() string { return "timeline_entries" }

func (r entryRow) entry() incident.Entry {
	return incident.Entry{
		ID: r.ID, IncidentID: r.IncidentID, At: r.At.t, Kind: incident.EntryKind(r.Kind),
		Actor: r.Actor, Text: r.Text, Ref: r.Ref,
	}
}

// AddEntry appends to the timeline; At is set to Now when zero. ErrNotFound for an unknown incident.
func (tx *Tx) AddEntry(e incident.Entry) error {
	err := tx.create("add a timeline entry", &entryRow{
		IncidentID: e.IncidentID, At: tx.orNow(e.At), Kind: string(e.Kind),
		Actor: e.Actor, Text: e.Text, Ref: e.Ref,
	})
	return ofParent(err, incident.ErrNotFound)
}

// Timeline lists entries with ID > after, oldest first.
func (tx *Tx) Timeline(incidentID string, after int64, limit int) ([]incident.Entry, error) {
	query := tx.db.Where("incident_id = ? AND id > ?", incidentID, after).
		Order("id").Limit(bounded(limit, maxEntries))
	return many(tx, "read a timeline", query, entryRow.entry)
}
