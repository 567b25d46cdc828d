package store

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"time"

	"holdfast/server/alert"
	"holdfast/server/incident"
)

// maxAlerts is the largest page of occurrences.
const maxAlerts = 500

type occurrenceRow struct {
	ID             int64 `gorm:"primaryKey;autoIncrement"`
	Fingerprint    string
	StartsAt       stamp
	EndsAt         stamp
	Status         string
	Severity       string
	Labels         map[string]string `gorm:"serializer:json"`
	Annotations    map[string]string `gorm:"serializer:json"`
	GeneratorURL   string
	GroupKey       string
	IncidentID     *string
	Source         string
	FirstSeenAt    stamp
	LastReceivedAt stamp
	Repeats        int
}

// TableName is the table.
func (occurrenceRow) TableName() string { return "occurrences" }

func (r occurrenceRow) occurrence() alert.Occurrence {
	o := alert.Occurrence{
		ID: r.ID, Fingerprint: r.Fingerprint, StartsAt: r.StartsAt.t, EndsAt: r.EndsAt.t,
		Status: alert.Status(r.Status), Severity: incident.Severity(r.Severity), Labels: r.Labels,
		Annotations: r.Annotations, GeneratorURL: r.GeneratorURL, GroupKey: r.GroupKey,
		Source: r.Source, FirstSeenAt: r.FirstSeenAt.t, LastReceivedAt: r.LastReceivedAt.t,
		Repeats: r.Repeats,
	}
	if r.IncidentID != nil {
		o.IncidentID = *r.IncidentID
	}
	return o
}

// Occurrence finds by fingerprint and start, which is compared in microseconds.
func (tx *Tx) Occurrence(fingerprint string, startsAt time.Time) (alert.Occurrence, error) {
	return tx.occurrence(fingerprint, " AND starts_at = ?", at(startsAt))
}

// LatestOccurrence finds the newest start of a fingerprint.
func (tx *Tx) LatestOccurrence(fingerprint string) (alert.Occurrence, error) {
	return tx.occurrence(fingerprint, "")
}

func (tx *Tx) occurrence(fingerprint, where string, args ...any) (alert.Occurrence, error) {
	query := tx.db.Where("fingerprint = ?"+where, append([]any{fingerprint}, args...)...).Order("starts_at DESC")
	row, err := one[occurrenceRow](tx, "read an occurrence", query, alert.ErrNotFound)
	if err != nil {
		return alert.Occurrence{}, err
	}
	return row.occurrence(), nil
}

// SaveOccurrence upserts on (Fingerprint, StartsAt) and sets ID.
func (tx *Tx) SaveOccurrence(o *alert.Occurrence) error {
	row := occurrenceRow{
		Fingerprint: o.Fingerprint, StartsAt: at(o.StartsAt), EndsAt: at(o.EndsAt),
		Status: string(o.Status), Severity: string(o.Severity), Labels: o.Labels,
		Annotations: o.Annotations, GeneratorURL: o.GeneratorURL, GroupKey: o.GroupKey,
		Source: o.Source, FirstSeenAt: tx.orNow(o.FirstSeenAt),
		LastReceivedAt: tx.orNow(o.LastReceivedAt), Repeats: o.Repeats,
	}
	if o.IncidentID != "" {
		row.IncidentID = &o.IncidentID
	}
	if err := tx.upsert("save an occurrence", &row, "fingerprint", "starts_at"); err != nil {
		return err
	}
	*o = row.occurrence()
	return nil
}

// IncidentOccurrences lists the members of an incident, firing first, newest first.
func (tx *Tx) IncidentOccurrences(incidentID string, limit int) ([]alert.Occurrence, error) {
	query := tx.db.Where("incident_id = ?", incidentID).
		Order("CASE status WHEN 'firing' THEN 0 ELSE 1 END, starts_at DESC, id DESC").
		Limit(bounded(limit, maxAlerts))
	return many(tx, "list the alerts of an incident", query, occurrenceRow.occurrence)
}

// CountOccurrences counts members by status.
func (tx *Tx) CountOccurrences(incidentID string) (firing, resolved int, err error) {
	var counts []struct {
		Status string
		N      int
	}
	result := tx.db.Raw("SELECT status, count(*) AS n FROM occurrences WHERE incident_id = ? GROUP BY status",
		incidentID).Scan(&counts)
	if err := tx.check("count the alerts of an incident", result.Error); err != nil {
		return 0, 0, err
	}
	for _, c := range counts {
		switch alert.Status(c.Status) {
		case alert.StatusFiring:
			firing = c.N
		case alert.StatusResolved:
			resolved = c.N
		}
	}
	return firing, resolved, nil
}

// Alerts lists occurrences with ID < before (0: from the newest), newest first.
func (tx *Tx) Alerts(before int64, limit int) ([]alert.Occurrence, error) {
	query := tx.db.Order("id DESC").Limit(bounded(limit, maxAlerts))
	if before > 0 {
		query = query.Where("id < ?", before)
	}
	return many(tx, "list alerts", query, occurrenceRow.occurrence)
}

type rawRow struct {
	ID         int64 `gorm:"primaryKey;autoIncrement"`
	Source     string
	ReceivedAt stamp
	Body       []byte
}

// TableName is the table.
func (rawRow) TableName() string { return "raw_notifications" }

// SaveRaw keeps the body as received, compressed, until Prune removes it.
func (tx *Tx) SaveRaw(source string, body []byte) error {
	var compressed bytes.Buffer
	w := gzip.NewWriter(&compressed)
	_, err := w.Write(body)
	if err := errors.Join(err, w.Close()); err != nil {
		return fmt.Errorf("store: compress a notification: %w", err)
	}
	return tx.create("keep a notification", &rawRow{
		Source: source, ReceivedAt: at(tx.now), Body: compressed.Bytes(),
	})
}

// RawNotifications returns the newest bodies kept of a source, newest first, as
// they were received.
func (tx *Tx) RawNotifications(source string, limit int) ([][]byte, error) {
	query := tx.db.Where("source = ?", source).Order("id DESC").Limit(bounded(limit, maxAlerts))
	rows, err := many(tx, "read kept notifications", query, func(r rawRow) []byte { return r.Body })
	if err != nil {
		return nil, err
	}
	for i, body := range rows {
		r, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return nil, fmt.Errorf("store: a kept notification is damaged: %w", err)
		}
		if rows[i], err = io.ReadAll(r); err != nil {
			return nil, fmt.Errorf("store: a kept notification is damaged: %w", err)
		}
	}
	return rows, nil
}
