package incident_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/server/audit"
	"holdfast/server/identity"
	"holdfast/server/incident"
	"holdfast/server/internal/store/storetest"
	"holdfast/server/outbox"
)

var ten = time.Date(2026, 2, 3, 10, 0, 0, 0, time.UTC)

type world struct {
	*incident.Service
	db *storetest.DB
}

func each(t *testing.T, fn func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		db.Freeze(t, ten)
		fn(t, &world{Service: incident.New(incident.Options{Store: db.Incidents()}), db: db})
	})
}

func as(ctx context.Context, name string, role identity.Role) context.Context {
	return identity.WithPrincipal(ctx, identity.Of(identity.Person{ID: "p-" + name, Name: name, Role: role}, identity.ChannelConsole))
}

// open makes an incident with members counted as given.
func (w *world) open(t *testing.T, group string, firing, truncated int) incident.Incident {
	t.Helper()
	var in incident.Incident
	require.NoError(t, w.db.Incidents().InTx(t.Context(), func(tx incident.Tx) (err error) {
		in, err = incident.Open(tx, incident.Incident{
			Title: "Model slow", Severity: incident.SeverityError, GroupKey: group, Firing: firing, Truncated: truncated,
		}, "Opened by 1 alert.")
		return err
	}))
	return in
}

func (w *world) audited(t *testing.T, verb string, decision audit.Decision) int {
	t.Helper()
	_, err := w.db.ChainPending(t.Context(), 1000)
	require.NoError(t, err)
	rows, err := w.db.AuditEntries(t.Context(), 0, 200)
	require.NoError(t, err)
	n := 0
	for _, r := range rows {
		if r.Verb == verb && r.Decision == decision {
			n++
		}
	}
	return n
}

func TestAcknowledge(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		in := w.open(t, "g", 1, 0)
		require.ErrorIs(t, w.Acknowledge(t.Context(), in.ID), identity.ErrUnauthenticated)
		require.ErrorIs(t, w.Acknowledge(as(t.Context(), "vic", identity.RoleViewer), in.ID), identity.ErrForbidden)
		alice := as(t.Context(), "alice", identity.RoleResponder)
		require.ErrorIs(t, w.Acknowledge(alice, "nothing"), incident.ErrNotFound)

		const clicks = 8
		errs := make([]error, clicks)
		var done sync.WaitGroup
		for i := range clicks {
			done.Go(func() { errs[i] = w.Acknowledge(alice, in.ID) })
		}
		done.Wait()
		require.NoError(t, errors.Join(errs...), "everybody who clicks at once is served")
		got, err := w.Get(alice, in.ID)
		require.NoError(t, err)
		require.Equal(t, incident.StatusAcknowledged, got.Status)
		require.Equal(t, "alice", got.AckedBy)
		require.Equal(t, ten, got.AckedAt.UTC())
		entries, err := w.Timeline(alice, in.ID, 0, 0)
		require.NoError(t, err)
		require.Len(t, entries, 2, "it is acknowledged once")
		require.Equal(t, incident.EntryAcknowledged, entries[1].Kind)
		require.Equal(t, 1, w.audited(t, "incident.acknowledge", audit.Allowed))
		require.Equal(t, 2, w.audited(t, "incident.acknowledge", audit.Denied))
	})
}

func TestResolve(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		alice := as(t.Context(), "alice", identity.RoleResponder)
		firing, truncated, quiet := w.open(t, "a", 2, 0), w.open(t, "b", 0, 7), w.open(t, "c", 0, 0)
		require.ErrorContains(t, w.Resolve(alice, firing.ID, incident.Resolution{}), "2 firing")
		require.ErrorIs(t, w.Resolve(alice, truncated.ID, incident.Resolution{}), incident.ErrStillFiring)
		require.ErrorIs(t, w.Resolve(alice, firing.ID, incident.Resolution{Force: true, Reason: " "}), incident.ErrInvalid)
		require.ErrorIs(t, w.Resolve(alice, firing.ID, incident.Resolution{Reason: strings.Repeat("x", 5000)}), incident.ErrInvalid)
		require.NoError(t, w.Resolve(alice, firing.ID, incident.Resolution{Force: true, Reason: "false alarm"}))
		require.NoError(t, w.Resolve(alice, quiet.ID, incident.Resolution{}))
		require.ErrorIs(t, w.Resolve(alice, quiet.ID, incident.Resolution{}), incident.ErrResolved)
		require.ErrorIs(t, w.Acknowledge(alice, quiet.ID), incident.ErrResolved)

		entries, err := w.Timeline(alice, firing.ID, 0, 0)
		require.NoError(t, err)
		require.Equal(t, "Resolved by force with 2 firing. Reason: false alarm", entries[len(entries)-1].Text)
		list, err := w.List(alice, incident.Filter{Open: true})
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.Equal(t, truncated.ID, list[0].ID)
		require.Equal(t, 3, w.audited(t, "incident.resolve", audit.Denied))
		require.Equal(t, 2, w.audited(t, "incident.resolve", audit.Allowed))
	})
}

func TestNote(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		alice := as(t.Context(), "alice", identity.RoleResponder)
		in := w.open(t, "g", 1, 0)
		for _, bad := range []string{"", "  ", strings.Repeat("é", 4001), "a\x00b", "\xff"} {
			require.ErrorIs(t, w.AddNote(alice, in.ID, bad), incident.ErrInvalid)
		}
		require.NoError(t, w.AddNote(alice, in.ID, strings.Repeat("é", 4000)))
		require.ErrorIs(t, w.AddNote(alice, "nothing", "x"), incident.ErrNotFound)
		require.ErrorIs(t, w.AddNote(as(t.Context(), "vic", identity.RoleViewer), in.ID, "x"), identity.ErrForbidden)
		entries, err := w.Timeline(alice, in.ID, 0, 0)
		require.NoError(t, err)
		require.Equal(t, incident.EntryNote, entries[1].Kind)
		require.Equal(t, "alice", entries[1].Actor)
		later, err := w.Timeline(alice, in.ID, entries[0].ID, 1)
		require.NoError(t, err)
		require.Equal(t, entries[1:], later)
		_, err = w.Timeline(alice, "nothing", 0, 0)
		require.ErrorIs(t, err, incident.ErrNotFound)
	})
}

func TestCardRequestsCoalesceAndThreadLinesKeepTheirOrder(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		in := w.open(t, "g", 1, 0)
		require.NoError(t, w.db.Incidents().InTx(t.Context(), func(tx incident.Tx) error {
			for range 5 {
				if err := incident.RefreshCard(tx, in.ID); err != nil {
					return err
				}
			}
			return errors.Join(incident.Tell(tx, in.ID, "first"), incident.Tell(tx, in.ID, "second"))
		}))
		var cards, lines []string
		for {
			list, err := w.db.Outbox().Claim(t.Context(), outbox.TopicChat, 10, time.Minute)
			require.NoError(t, err)
			if len(list) == 0 {
				break
			}
			for _, m := range list {
				require.Equal(t, "incident:"+in.ID, m.Subject)
				if m.Kind == outbox.KindCard {
					cards = append(cards, m.Key)
				} else {
					require.Equal(t, "incident:"+in.ID, m.Key)
					lines = append(lines, string(m.Payload))
				}
				require.NoError(t, w.db.Outbox().Done(t.Context(), m.ID))
			}
		}
		require.Len(t, cards, 1)
		require.Len(t, lines, 2)
		require.Contains(t, lines[0], "first")
		require.Contains(t, lines[1], "second")
	})
}

func TestWorse(t *testing.T) {
	t.Parallel()
	require.Equal(t, incident.SeverityCritical, incident.Worse(incident.SeverityError, incident.SeverityCritical))
	require.Equal(t, incident.SeverityError, incident.Worse(incident.SeverityError, incident.SeverityInfo))
	require.Equal(t, incident.SeverityInfo, incident.Worse("odd", incident.SeverityInfo))
}
