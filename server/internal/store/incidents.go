package store

import (
	"holdfast/server/incident"
)

// maxIncidents is the largest page (incident.Filter.Limit).
const maxIncidents = 200

// unresolved is word for word the condition of the indexes over open incidents.
const unresolved = "status <> 'resolved'"

type incidentRow struct {
	ID          string `gorm:"primaryKey"`
	Number      int64
	Title       string
	Severity    string
	Status      string
	GroupKey    string
	Service     string
	Environment string
	RunbookURL  string
	SourceURL   string
	Summary     string
	Firing      int
	Resolved    int
	Truncated   int
	OpenedAt    stamp
	AckedAt     stamp
	AckedBy     string
	ResolvedAt  stamp
	Version     int64
}

// TableName is the table.
func (incidentRow) TableName() string { return "incidents" }

func (r incidentRow) incident() incident.Incident {
	return incident.Incident{
		ID: r.ID, Number: r.Number, Title: r.Title, Severity: incident.Severity(r.Severity),
		Status: incident.Status(r.Status), GroupKey: r.GroupKey, Service: r.Service,
		Environment: r.Environment, RunbookURL: r.RunbookURL, SourceURL: r.SourceURL,
		Summary: r.Summary, Firing: r.Firing, Resolved: r.Resolved, Truncated: r.Truncated,
		OpenedAt: r.OpenedAt.t, AckedAt: r.AckedAt.t, AckedBy: r.AckedBy,
		ResolvedAt: r.ResolvedAt.t, Version: r.Version,
	}
}

func (tx *Tx) incidentRow(i incident.Incident) incidentRow {
	return incidentRow{
		ID: i.ID, Number: i.Number, Title: i.Title, Severity: string(i.Severity),
		Status: string(i.Status), GroupKey: i.GroupKey, Service: i.Service,
		Environment: i.Environment, RunbookURL: i.RunbookURL, SourceURL: i.SourceURL,
		Summary: i.Summary, Firing: i.Firing, Resolved: i.Resolved, Truncated: i.Truncated,
		OpenedAt: tx.orNow(i.OpenedAt), AckedAt: at(i.AckedAt), AckedBy: i.AckedBy,
		ResolvedAt: at(i.ResolvedAt), Version: i.Version,
	}
}

// Incident finds by id.
func (tx *Tx) Incident(id string) (incident.Incident, error) {
	return tx.incidentWhere("id = ?", id)
}

// UnresolvedIncident finds the one of the group that is not resolved.
func (tx *Tx) UnresolvedIncident(groupKey string) (incident.Incident, error) {
	return tx.incidentWhere("group_key = ? AND "+unresolved, groupKey)
}

// LatestIncident finds the newest of the group, resolved or not.
func (tx *Tx) LatestIncident(groupKey string) (incident.Incident, error) {
	return tx.incidentWhere("group_key = ?", groupKey)
}

func (tx *Tx) incidentWhere(where string, args ...any) (incident.Incident, error) {
	query := tx.db.Where(where, args...).Order("number DESC")
	row, err := one[incidentRow](tx, "read an incident", query, incident.ErrNotFound)
	if err != nil {
		return incident.Incident{}, err
	}
	return row.incident(), nil
}

// Incidents lists, newest first.
func (tx *Tx) Incidents(f incident.Filter) ([]incident.Incident, error) {
	query := tx.db.Order("number DESC").Limit(bounded(f.Limit, maxIncidents))
	if f.Open {
		query = query.Where(unresolved)
	}
	if f.Before > 0 {
		query = query.Where("number < ?", f.Before)
	}
	return many(tx, "list incidents", query, incidentRow.incident)
}

// OpenCriticalIncidents lists unresolved critical incidents, newest first.
func (tx *Tx) OpenCriticalIncidents() ([]incident.Incident, error) {
	query := tx.db.Where(unresolved+" AND severity = ?", string(incident.SeverityCritical)).Order("number DESC")
	return many(tx, "list critical incidents", query, incidentRow.incident)
}

// InsertIncident gives it its Number and Version 1; ErrStale when the group has
// an unresolved incident already.
func (tx *Tx) InsertIncident(i *incident.Incident) error {
	number, err := tx.count("incident_number")
	if err != nil {
		return err
	}
	row := tx.incidentRow(*i)
	row.Number, row.Version = number, 1
	if err := tx.attempt(func() error { return tx.create("insert an incident", &row) }); err != nil {
		return err
	}
	*i = row.incident()
	return nil
}

// SaveIncident compares and sets on Version and raises it; ErrStale when lost.
func (tx *Tx) SaveIncident(i *incident.Incident) error {
	row := tx.incidentRow(*i)
	row.Version++
	err := tx.attempt(func() error {
		return tx.compareAndSet("save an incident", &row, i.ID, i.Version, incident.ErrStale, incident.ErrNotFound)
	})
	if err != nil {
		return err
	}
	i.Version = row.Version
	return nil
}

// count raises a counter and returns it. Its row stays locked until the end of
// the transaction, so that numbers rise in the order of commits.
func (tx *Tx) count(name string) (int64, error) {
	var values []int64
	result := tx.db.Raw("UPDATE counters SET value = value + 1 WHERE name = ? RETURNING value", name).Scan(&values)
	if err := tx.check("raise the counter "+name, result.Error); err != nil {
		return 0, err
	}
	if len(values) != 1 {
		return 0, tx.check("raise the counter "+name, errNoCounter)
	}
	return values[0], nil
}
