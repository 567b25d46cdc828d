package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"holdfast/server/alert"
	"holdfast/server/incident"
	"holdfast/server/internal/store"
	"holdfast/server/internal/store/storetest"
)

func newIncident(id, group string) incident.Incident {
	return incident.Incident{
		ID: id, Title: "Error ratio high", Severity: incident.SeverityCritical, Status: incident.StatusOpen,
		GroupKey: group, Service: "llm", Environment: "prod", RunbookURL: "https://r", SourceURL: "https://s",
		Summary: "one\ntwo", Firing: 2, Resolved: 1, Truncated: 3, OpenedAt: t0,
	}
}

func TestIncidentRoundTripAndCompareAndSet(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		in := newIncident("i1", "g1")
		inTx(t, db, func(tx *store.Tx) {
			require.NoError(t, tx.InsertIncident(&in))
			require.EqualValues(t, 1, in.Number)
			require.EqualValues(t, 1, in.Version)
			got, err := tx.Incident("i1")
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(in, got))
		})
		stale := in
		in.Status, in.AckedAt, in.AckedBy, in.Truncated = incident.StatusAcknowledged, t0, "Alice", 0
		inTx(t, db, func(tx *store.Tx) {
			require.NoError(t, tx.SaveIncident(&in))
			require.EqualValues(t, 2, in.Version)
			require.ErrorIs(t, tx.SaveIncident(&stale), incident.ErrStale)
			require.EqualValues(t, 1, stale.Version, "a lost save changes nothing")
			unknown := newIncident("i9", "g9")
			require.ErrorIs(t, tx.SaveIncident(&unknown), incident.ErrNotFound)
			got, err := tx.Incident("i1")
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(in, got), "zero fields are written too")
		})
	})
}

func TestOneUnresolvedIncidentForAGroup(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		errs := parallel(8, func(i int) error {
			in := newIncident(name("i", i), "g")
			return db.InTx(t.Context(), func(tx *store.Tx) error { return tx.InsertIncident(&in) })
		})
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
				continue
			}
			require.ErrorIs(t, err, incident.ErrStale)
		}
		require.Equal(t, 1, won)

		inTx(t, db, func(tx *store.Tx) {
			first, err := tx.UnresolvedIncident("g")
			require.NoError(t, err)
			first.Status, first.ResolvedAt = incident.StatusResolved, t0
			require.NoError(t, tx.SaveIncident(&first))
			_, err = tx.UnresolvedIncident("g")
			require.ErrorIs(t, err, incident.ErrNotFound)
			latest, err := tx.LatestIncident("g")
			require.NoError(t, err)
			require.Equal(t, first.ID, latest.ID)

			second := newIncident("second", "g")
			require.NoError(t, tx.InsertIncident(&second))
			require.Greater(t, second.Number, first.Number)
			first.Status = incident.StatusOpen
			require.ErrorIs(t, tx.SaveIncident(&first), incident.ErrStale, "reopening beside an open one")
		})
	})
}

func TestIncidentPagesAndFilters(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		inTx(t, db, func(tx *store.Tx) {
			for i := range 5 {
				in := newIncident(name("i", i), name("g", i))
				if i == 1 {
					in.Status = incident.StatusResolved
				}
				if i == 2 {
					in.Severity = incident.SeverityWarning
				}
				require.NoError(t, tx.InsertIncident(&in))
			}
			require.Equal(t, []string{"i-04", "i-03"}, incidentIDs(tx.Incidents(incident.Filter{Limit: 2})))
			require.Equal(t, []string{"i-02", "i-01"}, incidentIDs(tx.Incidents(incident.Filter{Before: 4, Limit: 2})))
			require.Equal(t, []string{"i-02", "i-00"}, incidentIDs(tx.Incidents(incident.Filter{Open: true, Before: 4})))
			require.Equal(t, []string{"i-04", "i-03", "i-00"}, incidentIDs(tx.OpenCriticalIncidents()))
		})
	})
}

func incidentIDs(list []incident.Incident, err error) []string {
	if err != nil {
		return []string{err.Error()}
	}
	ids := make([]string, len(list))
	for i, in := range list {
		ids[i] = in.ID
	}
	return ids
}

func TestTimeline(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		err := db.InTx(t.Context(), func(tx *store.Tx) error {
			return tx.AddEntry(incident.Entry{IncidentID: "i1", Kind: incident.EntryNote})
		})
		require.ErrorIs(t, err, incident.ErrNotFound)
		inTx(t, db, func(tx *store.Tx) {
			in := newIncident("i1", "g1")
			require.NoError(t, tx.InsertIncident(&in))
			for _, text := range []string{"a", "b", "c"} {
				require.NoError(t, tx.AddEntry(incident.Entry{IncidentID: "i1", Kind: incident.EntryNote, Actor: "Alice", Text: text, Ref: "run:1"}))
			}
			page, err := tx.Timeline("i1", 0, 2)
			require.NoError(t, err)
			require.Len(t, page, 2)
			require.Empty(t, cmp.Diff(incident.Entry{
				ID: page[0].ID, IncidentID: "i1", At: t0, Kind: incident.EntryNote, Actor: "Alice", Text: "a", Ref: "run:1",
			}, page[0]))
			rest, err := tx.Timeline("i1", page[1].ID, 500)
			require.NoError(t, err)
			require.Len(t, rest, 1)
			require.Equal(t, "c", rest[0].Text)
		})
	})
}

func TestOccurrences(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		// Alertmanager writes nanoseconds; both databases keep microseconds.
		start := t0.Add(123_456_789 * time.Nanosecond)
		inTx(t, db, func(tx *store.Tx) {
			in := newIncident("i1", "g1")
			require.NoError(t, tx.InsertIncident(&in))
			o := alert.Occurrence{
				Fingerprint: "f1", StartsAt: start, Status: alert.StatusFiring, Severity: incident.SeverityError,
				Labels: map[string]string{"alertname": "A", "naïve": "\x00<b>"}, Annotations: map[string]string{},
				GeneratorURL: "http://g", GroupKey: "g1", Source: "am", FirstSeenAt: t0, LastReceivedAt: t0,
			}
			require.NoError(t, tx.SaveOccurrence(&o))
			require.Positive(t, o.ID)
			got, err := tx.Occurrence("f1", start)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(o, got))
			require.Equal(t, start.Truncate(time.Microsecond), got.StartsAt)
			require.Equal(t, "\x00<b>", got.Labels["naïve"])

			id := o.ID
			o.Status, o.EndsAt, o.IncidentID, o.Repeats = alert.StatusResolved, t0.Add(time.Minute), "i1", 4
			require.NoError(t, tx.SaveOccurrence(&o))
			require.Equal(t, id, o.ID, "an upsert keeps the id")
			got, err = tx.Occurrence("f1", start)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(o, got))

			later := alert.Occurrence{Fingerprint: "f1", StartsAt: start.Add(time.Hour), Status: alert.StatusFiring, IncidentID: "i1"}
			require.NoError(t, tx.SaveOccurrence(&later))
			newest := alert.Occurrence{Fingerprint: "f2", StartsAt: start.Add(2 * time.Hour), Status: alert.StatusResolved, IncidentID: "i1"}
			require.NoError(t, tx.SaveOccurrence(&newest))
			latest, err := tx.LatestOccurrence("f1")
			require.NoError(t, err)
			require.Equal(t, later.ID, latest.ID)
			_, err = tx.Occurrence("f1", t0)
			require.ErrorIs(t, err, alert.ErrNotFound)
			_, err = tx.LatestOccurrence("f9")
			require.ErrorIs(t, err, alert.ErrNotFound)

			members, err := tx.IncidentOccurrences("i1", 10)
			require.NoError(t, err)
			require.Equal(t, []int64{later.ID, newest.ID, o.ID}, occurrenceIDs(members), "firing first, newest first")
			firing, resolved, err := tx.CountOccurrences("i1")
			require.NoError(t, err)
			require.Equal(t, 1, firing)
			require.Equal(t, 2, resolved)

			page, err := tx.Alerts(0, 2)
			require.NoError(t, err)
			require.Equal(t, []int64{newest.ID, later.ID}, occurrenceIDs(page))
			page, err = tx.Alerts(later.ID, 2)
			require.NoError(t, err)
			require.Equal(t, []int64{o.ID}, occurrenceIDs(page))
		})
	})
}

func occurrenceIDs(list []alert.Occurrence) []int64 {
	ids := make([]int64, len(list))
	for i, o := range list {
		ids[i] = o.ID
	}
	return ids
}

func TestRawNotificationsAreKeptForAWhile(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		body := []byte(strings.Repeat(`{"alerts":[]}`, 100) + "\x00\xff")
		inTx(t, db, func(tx *store.Tx) { require.NoError(t, tx.SaveRaw("am", body)) })
		kept := func() (out [][]byte) {
			view(t, db, func(tx *store.Tx) {
				var err error
				out, err = tx.RawNotifications("am", 10)
				require.NoError(t, err)
			})
			return out
		}
		require.Equal(t, [][]byte{body}, kept())
		db.Advance(t, 7*24*time.Hour)
		require.NoError(t, db.Prune(t.Context(), store.Retention{}))
		require.Len(t, kept(), 1, "exactly as old as the retention")
		db.Advance(t, time.Microsecond)
		require.NoError(t, db.Prune(t.Context(), store.Retention{}))
		require.Empty(t, kept())
	})
}

// PostgreSQL takes neither NUL nor invalid UTF-8; a hostile alert must not
// become an error that repeats for ever.
func TestHostileTextIsStoredOnBothDatabasesAlike(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		in := newIncident("i1", "group\x00key\xff")
		in.Title = "\x00'); DROP TABLE incidents; --\xc3\x28"
		inTx(t, db, func(tx *store.Tx) {
			require.NoError(t, tx.InsertIncident(&in))
			got, err := tx.UnresolvedIncident("group\x00key\xff")
			require.NoError(t, err, "looked up by the same text")
			require.Equal(t, "\uFFFD'); DROP TABLE incidents; --\uFFFD(", got.Title)
		})
	})
}

func TestRollbackLeavesNothing(t *testing.T) {
	each(t, func(t *testing.T, db *storetest.DB) {
		wanted := errors.New("changed my mind")
		err := db.InTx(t.Context(), func(tx *store.Tx) error {
			in := newIncident("i1", "g1")
			require.NoError(t, tx.InsertIncident(&in))
			return wanted
		})
		require.ErrorIs(t, err, wanted)
		require.Panics(t, func() {
			_ = db.InTx(t.Context(), func(tx *store.Tx) error {
				in := newIncident("i2", "g2")
				require.NoError(t, tx.InsertIncident(&in))
				panic("a fault in the domain")
			})
		})
		view(t, db, func(tx *store.Tx) {
			require.Empty(t, incidentIDs(tx.Incidents(incident.Filter{})))
		})
	})
}
