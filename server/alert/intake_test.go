package alert_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"holdfast/server/alert"
	"holdfast/server/identity"
	"holdfast/server/incident"
	"holdfast/server/internal/store/storetest"
	"holdfast/server/outbox"
)

var ten = time.Date(2026, 2, 3, 10, 0, 0, 0, time.UTC)

// world is an intake over a real database.
type world struct {
	*alert.Intake
	incidents *incident.Service
	db        *storetest.DB
	registry  *prometheus.Registry
}

func each(t *testing.T, fn func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		db.Freeze(t, ten)
		registry := prometheus.NewRegistry()
		fn(t, &world{
			Intake:    alert.New(alert.Options{Store: db.Alerts(), Registerer: registry}),
			incidents: incident.New(incident.Options{Store: db.Incidents()}),
			db:        db, registry: registry,
		})
	})
}

func hook(ctx context.Context) context.Context {
	return identity.WithPrincipal(ctx, identity.Principal{
		Kind: identity.PrincipalToken, TokenKind: identity.TokenHook, TokenID: "am", Name: "am", Channel: identity.ChannelAPI,
	})
}

func responder(ctx context.Context) context.Context {
	return identity.WithPrincipal(ctx, identity.Of(identity.Person{ID: "p-alice", Name: "Alice", Role: identity.RoleResponder}, identity.ChannelConsole))
}

// one is an alert named A of the service llm in prod, told apart by pod.
func one(pod string, status alert.Status, start, end time.Time) alert.Incoming {
	return alert.Incoming{
		Fingerprint: fmt.Sprintf("%016x", []byte(pod)), Status: status, StartsAt: start, EndsAt: end,
		Labels:      map[string]string{"alertname": "ModelSlow", "pod": pod, "severity": "page", "service": "llm", "env": "prod"},
		Annotations: map[string]string{"summary": "Decode is slow", "runbook_url": "https://runbooks.example/slow"},
	}
}

func fires(pod string, start time.Time) alert.Incoming {
	return one(pod, alert.StatusFiring, start, time.Time{})
}

func ends(pod string, start, end time.Time) alert.Incoming {
	return one(pod, alert.StatusResolved, start, end)
}

func group(alerts ...alert.Incoming) alert.Notification {
	return alert.Notification{
		Source: "am", GroupKey: "g", GroupLabels: map[string]string{"alertname": "ModelSlow"},
		CommonLabels: map[string]string{"alertname": "ModelSlow", "service": "llm", "env": "prod", "severity": "page"},
		Alerts:       alerts, Raw: []byte(`{"version":"4"}`),
	}
}

func (w *world) accept(t *testing.T, n alert.Notification) alert.Receipt {
	t.Helper()
	r, err := w.Accept(hook(t.Context()), n)
	require.NoError(t, err)
	return r
}

func (w *world) all(t *testing.T) []incident.Incident {
	t.Helper()
	list, err := w.incidents.List(responder(t.Context()), incident.Filter{})
	require.NoError(t, err)
	return list
}

// only is the one incident there is.
func (w *world) only(t *testing.T) incident.Incident {
	t.Helper()
	list := w.all(t)
	require.Len(t, list, 1)
	return list[0]
}

func (w *world) kinds(t *testing.T, id string) []incident.EntryKind {
	t.Helper()
	entries, err := w.incidents.Timeline(responder(t.Context()), id, 0, 0)
	require.NoError(t, err)
	kinds := make([]incident.EntryKind, len(entries))
	for i, e := range entries {
		kinds[i] = e.Kind
	}
	return kinds
}

// sent takes everything out of the outbox: the kinds and texts in order.
func (w *world) sent(t *testing.T) []string {
	t.Helper()
	var out []string
	for {
		list, err := w.db.Outbox().Claim(t.Context(), outbox.TopicChat, 100, time.Minute)
		require.NoError(t, err)
		if len(list) == 0 {
			return out
		}
		for _, m := range list {
			line := m.Kind
			if m.Kind == outbox.KindThread {
				var text outbox.Text
				require.NoError(t, json.Unmarshal(m.Payload, &text))
				line += " " + text.Text
			}
			out = append(out, line)
			require.NoError(t, w.db.Outbox().Done(t.Context(), m.ID))
		}
	}
}

func TestC19_StatusOfEachAlertCounts(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		body, err := os.ReadFile("testdata/c19.json")
		require.NoError(t, err)
		n, err := alert.ParseAlertmanager(body, "am")
		require.NoError(t, err)
		receipt := w.accept(t, n)
		in := w.only(t)
		require.Equal(t, incident.StatusOpen, in.Status)
		require.Equal(t, 1, in.Firing)
		require.Equal(t, 1, in.Resolved)
		require.Equal(t, "ServerStop (env=prod)", in.Title)
		require.Equal(t, "A server stopped", in.Summary)
		require.Equal(t, "https://runbooks.example/server-stop", in.RunbookURL)
		require.Equal(t, alert.Receipt{Incident: in.ID, Number: in.Number, New: 1, Resolved: 1}, receipt)
		members, err := w.Members(responder(t.Context()), in.ID, 0)
		require.NoError(t, err)
		require.Len(t, members, 2)
		require.Equal(t, "resolved", members[1].Labels["status"])
		require.Positive(t, members[1].EndsAt.Sub(members[1].StartsAt))
	})
}

func TestC20_TruncatedIncidentIsNeverResolvedByItself(t *testing.T) {
	each(t, func(t *testing.T, w *world) { truncated(t, w) })
}

func TestR27_TruncatedIncidentIsFlaggedIncomplete(t *testing.T) {
	each(t, func(t *testing.T, w *world) { truncated(t, w) })
}

func truncated(t *testing.T, w *world) {
	t.Helper()
	var begin, over []alert.Incoming
	for i := range 5 {
		pod := fmt.Sprint(i)
		begin = append(begin, fires(pod, ten))
		over = append(over, ends(pod, ten, ten.Add(time.Minute)))
	}
	w.accept(t, group(begin...))
	n := group(over...)
	n.Truncated = 19_995
	w.accept(t, n)
	in := w.only(t)
	require.Equal(t, incident.StatusOpen, in.Status, "what was not seen may still fire")
	require.Equal(t, 19_995, in.Truncated)
	require.Zero(t, in.Firing)
	require.Contains(t, strings.Join(w.sent(t), "\n"), "5 of 20000 shown")
	err := w.incidents.Resolve(responder(t.Context()), in.ID, incident.Resolution{})
	require.ErrorIs(t, err, incident.ErrStillFiring)
	require.ErrorContains(t, err, "19995 not shown by the source")

	w.accept(t, group(over...))
	require.Equal(t, incident.StatusResolved, w.only(t).Status, "a complete delivery ends it")
}

func TestC23_FireResolveFireResolveFromReplicas(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		closing := ten.Add(100 * time.Second)
		for _, step := range []struct {
			wait  time.Duration
			alert alert.Incoming
			want  alert.Receipt
		}{
			{0, fires("a", ten), alert.Receipt{New: 1}},
			{100 * time.Second, ends("a", ten, closing), alert.Receipt{Resolved: 1}},
			{50 * time.Second, fires("a", ten), alert.Receipt{Stale: 1}},
			{10 * time.Second, ends("a", ten, closing), alert.Receipt{Duplicate: 1}},
		} {
			w.db.Advance(t, step.wait)
			got := w.accept(t, group(step.alert))
			in := w.only(t)
			step.want.Incident, step.want.Number = in.ID, in.Number
			require.Equal(t, step.want, got)
		}
		in := w.only(t)
		require.Equal(t, incident.StatusResolved, in.Status)
		require.Equal(t, closing, in.ResolvedAt.UTC())
		require.Equal(t, []incident.EntryKind{incident.EntryOpened, incident.EntryResolved}, w.kinds(t, in.ID))

		w.db.Advance(t, 8*time.Minute)
		w.accept(t, group(fires("a", ten.Add(10*time.Minute))))
		in = w.only(t)
		require.Equal(t, incident.StatusOpen, in.Status, "a new start reopens")
		require.Equal(t, 1, in.Firing)
		require.Equal(t, incident.EntryReopened, w.kinds(t, in.ID)[2])
	})
}

func TestR25_OneIncidentOneOpeningOneClosing(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		sequence := []alert.Incoming{
			fires("a", ten), ends("a", ten, ten.Add(time.Minute)), fires("a", ten), ends("a", ten, ten.Add(time.Minute)),
		}
		var sent [][]string
		for _, in := range sequence {
			w.accept(t, group(in))
			sent = append(sent, w.sent(t))
		}
		require.Equal(t, []string{outbox.KindCard}, sent[0])
		require.Len(t, sent[1], 2)
		require.Contains(t, strings.Join(sent[1], "\n"), "Resolved.")
		require.Empty(t, sent[2], "a stale firing tells nobody")
		require.Empty(t, sent[3])
		w.only(t)
	})
}

func TestR26_ResolvedBeforeFiringPagesNobody(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.accept(t, group(ends("a", ten, ten.Add(time.Minute))))
		w.db.Advance(t, time.Minute)
		got := w.accept(t, group(fires("a", ten)))
		require.Equal(t, alert.Receipt{Stale: 1}, got)
		got = w.accept(t, group(fires("a", ten.Add(-time.Minute))))
		require.Equal(t, alert.Receipt{Stale: 1}, got, "an older start stays closed")
		require.Empty(t, w.all(t))
		require.Empty(t, w.sent(t))
		list, err := w.Alerts(responder(t.Context()), 0, 0)
		require.NoError(t, err)
		require.Len(t, list, 2)
		for _, o := range list {
			require.Equal(t, alert.StatusResolved, o.Status)
			require.Empty(t, o.IncidentID)
		}
	})
}

func TestC25_SameSummaryDifferentPodsAreTwoMembers(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.accept(t, group(fires("a", ten), fires("b", ten)))
		changed := fires("a", ten)
		changed.Annotations = map[string]string{"value": "6"}
		require.Equal(t, 1, w.accept(t, group(changed)).Updated)
		members, err := w.Members(responder(t.Context()), w.only(t).ID, 0)
		require.NoError(t, err)
		require.Len(t, members, 2)
		require.ElementsMatch(t, []string{"a", "b"}, []string{members[0].Labels["pod"], members[1].Labels["pod"]})
	})
}

func TestC26_RepeatsRefreshAndDoNotEditTheCard(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.accept(t, group(fires("a", ten)))
		require.Len(t, w.sent(t), 1)
		version := w.only(t).Version
		for range 20 {
			w.db.Advance(t, 30*time.Second)
			require.Equal(t, 1, w.accept(t, group(fires("a", ten))).Duplicate)
		}
		require.Empty(t, w.sent(t))
		in := w.only(t)
		require.Equal(t, version, in.Version)
		members, err := w.Members(responder(t.Context()), in.ID, 0)
		require.NoError(t, err)
		require.Equal(t, 20, members[0].Repeats)
		require.Equal(t, ten.Add(10*time.Minute), members[0].LastReceivedAt.UTC())
	})
}

func TestIncidentFollowsItsMembers(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		first := fires("a", ten)
		first.Labels["severity"] = "warning"
		w.accept(t, group(first))
		in := w.only(t)
		require.Equal(t, incident.SeverityWarning, in.Severity)
		require.Equal(t, "ModelSlow (llm, prod)", in.Title)
		require.Equal(t, "llm", in.Service)
		require.Equal(t, "prod", in.Environment)
		require.NoError(t, w.incidents.Acknowledge(responder(t.Context()), in.ID))
		w.sent(t)

		w.accept(t, group(first, fires("b", ten)))
		in = w.only(t)
		require.Equal(t, incident.SeverityCritical, in.Severity, "severity only gets worse while open")
		require.Equal(t, incident.StatusAcknowledged, in.Status)
		require.Equal(t, 2, in.Firing)
		require.Contains(t, strings.Join(w.sent(t), "\n"), "1 alert started: ModelSlow pod=b")

		w.accept(t, group(ends("b", ten, ten.Add(time.Minute)), first))
		in = w.only(t)
		require.Equal(t, 1, in.Firing)
		require.Equal(t, 1, in.Resolved)
		require.Contains(t, strings.Join(w.sent(t), "\n"), "1 alert ended: ModelSlow pod=b")
	})
}

func TestReopenWithinTenMinutesElseANewIncident(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.accept(t, group(fires("a", ten)))
		w.accept(t, group(ends("a", ten, ten.Add(time.Second))))
		w.db.Advance(t, 10*time.Minute-time.Second)
		w.accept(t, group(fires("b", ten.Add(9*time.Minute))))
		require.Equal(t, incident.StatusOpen, w.only(t).Status)
		w.accept(t, group(ends("b", ten.Add(9*time.Minute), ten.Add(10*time.Minute))))
		w.db.Advance(t, 10*time.Minute)
		w.accept(t, group(fires("c", ten.Add(19*time.Minute))))
		list := w.all(t)
		require.Len(t, list, 2)
		require.Equal(t, incident.StatusOpen, list[0].Status)
		require.Equal(t, int64(2), list[0].Number)
		require.Equal(t, incident.StatusResolved, list[1].Status)
	})
}

func TestMissedEndIsMadeGoodByTheNextEpisode(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.accept(t, group(fires("a", ten)))
		w.db.Advance(t, time.Hour)
		w.accept(t, group(fires("a", ten.Add(time.Hour))))
		in := w.only(t)
		require.Equal(t, 1, in.Firing, "one alert fires once")
		require.Equal(t, 1, in.Resolved)
		w.accept(t, group(ends("a", ten.Add(time.Hour), ten.Add(2*time.Hour))))
		require.Equal(t, incident.StatusResolved, w.only(t).Status)
	})
}

func TestForcedEndIsNotUndoneByRepeats(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ctx := responder(t.Context())
		w.accept(t, group(fires("a", ten)))
		in := w.only(t)
		require.ErrorIs(t, w.incidents.Resolve(ctx, in.ID, incident.Resolution{}), incident.ErrStillFiring)
		require.ErrorIs(t, w.incidents.Resolve(ctx, in.ID, incident.Resolution{Force: true}), incident.ErrInvalid)
		require.NoError(t, w.incidents.Resolve(ctx, in.ID, incident.Resolution{Force: true, Reason: "known, replaced tonight"}))
		require.ErrorIs(t, w.incidents.Resolve(ctx, in.ID, incident.Resolution{}), incident.ErrResolved)
		w.accept(t, group(fires("a", ten)))
		require.Equal(t, incident.StatusResolved, w.only(t).Status)
		w.accept(t, group(ends("a", ten, ten.Add(time.Minute))))
		in = w.only(t)
		require.Zero(t, in.Firing)
		require.Equal(t, incident.StatusResolved, in.Status)
	})
}

func TestOneAlertOfTwoRoutesPagesOnce(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.accept(t, group(fires("a", ten)))
		other := group(fires("a", ten))
		other.GroupKey = "another route"
		require.Equal(t, 1, w.accept(t, other).Duplicate)
		in := w.only(t)
		require.Equal(t, "g", in.GroupKey)
		other.Alerts = []alert.Incoming{ends("a", ten, ten.Add(time.Minute))}
		w.accept(t, other)
		require.Equal(t, incident.StatusResolved, w.only(t).Status, "its end may come by either route")
	})
}

func TestParallelDeliveriesOfOneGroupMakeOneIncident(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		const replicas = 12
		errs := make([]error, replicas)
		ctx := hook(t.Context())
		var done sync.WaitGroup
		for i := range replicas {
			done.Go(func() { _, errs[i] = w.Accept(ctx, group(fires("a", ten), fires(fmt.Sprint(i), ten))) })
		}
		done.Wait()
		require.NoError(t, errors.Join(errs...))
		in := w.only(t)
		require.Equal(t, replicas+1, in.Firing)
		members, err := w.Members(responder(t.Context()), in.ID, 0)
		require.NoError(t, err)
		require.Len(t, members, replicas+1)
		require.InDelta(t, replicas, w.accepted(t), 0)
	})
}

func TestParallelRoutesOfTheSameNewAlertsPageOnce(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		const deliveries = 12
		errs := make([]error, deliveries)
		ctx := hook(t.Context())
		var done sync.WaitGroup
		for i := range deliveries {
			n := group(fires("a", ten), fires("b", ten), fires("c", ten))
			n.GroupKey = fmt.Sprint("route ", i%3)
			done.Go(func() { _, errs[i] = w.Accept(ctx, n) })
		}
		done.Wait()
		require.NoError(t, errors.Join(errs...))
		require.Equal(t, 3, w.only(t).Firing)
	})
}

// accepted is how many deliveries were counted as accepted.
func (w *world) accepted(t *testing.T) float64 {
	t.Helper()
	families, err := w.registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "holdfast_alert_deliveries_total" && m.GetLabel()[0].GetValue() == "accepted" {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

func TestWhoMayDeliver(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		_, err := w.Accept(t.Context(), group(fires("a", ten)))
		require.ErrorIs(t, err, identity.ErrUnauthenticated)
		_, err = w.Accept(responder(t.Context()), group(fires("a", ten)))
		require.ErrorIs(t, err, identity.ErrForbidden)
		_, err = w.Accept(identity.WithPrincipal(t.Context(), identity.System()), group(fires("a", ten)))
		require.NoError(t, err)
		_, err = w.Accept(hook(t.Context()), alert.Notification{GroupKey: "g"})
		require.ErrorIs(t, err, alert.ErrInvalid)
		_, err = w.Accept(hook(t.Context()), alert.Notification{Alerts: group(fires("a", ten)).Alerts})
		require.ErrorIs(t, err, alert.ErrInvalid)
		_, err = w.Alerts(hook(t.Context()), 0, 0)
		require.ErrorIs(t, err, identity.ErrForbidden)
		_, err = w.Members(responder(t.Context()), "nothing", 0)
		require.ErrorIs(t, err, incident.ErrNotFound)
	})
}

// stuck is a store whose transactions wait until they are let go.
type stuck struct {
	alert.Store
	free chan struct{}
}

func (s stuck) InTx(context.Context, func(alert.Tx) error) error {
	<-s.free
	return nil
}

func TestOverloadIsRefusedAndTheBoundIsExact(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := stuck{free: make(chan struct{})}
		intake := alert.New(alert.Options{Store: s, Concurrent: 2, Waiting: 1})
		errs := make(chan error, 2)
		deliver := func(ctx context.Context, out chan<- error) {
			_, err := intake.Accept(hook(ctx), group(fires("a", ten)))
			out <- err
		}
		go deliver(t.Context(), errs)
		go deliver(t.Context(), errs)
		synctest.Wait()
		patience, giveUp := context.WithCancel(t.Context())
		waiting := make(chan error, 1)
		go deliver(patience, waiting)
		synctest.Wait()

		refused := make(chan error, 1)
		deliver(t.Context(), refused)
		require.ErrorIs(t, <-refused, alert.ErrOverloaded, "two at work, one waits, no more")
		giveUp()
		require.ErrorIs(t, <-waiting, alert.ErrOverloaded, "it gives up when its caller does")
		close(s.free)
		require.NoError(t, <-errs)
		require.NoError(t, <-errs)
		deliver(t.Context(), errs)
		require.NoError(t, <-errs, "places are given back")
	})
}

func TestOverloadCountsBytes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := stuck{free: make(chan struct{})}
		intake := alert.New(alert.Options{Store: s, Concurrent: 1, WaitingBytes: 100})
		done := make(chan error, 2)
		deliver := func(size int) error {
			n := group(fires("a", ten))
			n.Raw = make([]byte, size)
			_, err := intake.Accept(hook(t.Context()), n)
			return err
		}
		go func() { done <- deliver(200) }()
		synctest.Wait()
		require.ErrorIs(t, deliver(1), alert.ErrOverloaded, "a body that is alone is let in, whatever its size, and then no other")
		close(s.free)
		require.NoError(t, <-done)
		require.NoError(t, deliver(60))
	})
}

// BenchmarkAccept takes in one group of 1,000 alerts: new, then repeated.
func BenchmarkAccept(b *testing.B) {
	for _, kind := range []storetest.Kind{storetest.SQLite, storetest.Postgres} {
		b.Run(string(kind), func(b *testing.B) {
			db := storetest.Open(b, kind)
			intake := alert.New(alert.Options{Store: db.Alerts()})
			const size = 1000
			i := 0
			for ; b.Loop(); i++ {
				n := group()
				n.GroupKey = fmt.Sprint("group ", i/2)
				for j := range size {
					n.Alerts = append(n.Alerts, fires(fmt.Sprint(i/2, "-", j), ten))
				}
				if _, err := intake.Accept(hook(b.Context()), n); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(i*size)/b.Elapsed().Seconds(), "alerts/s")
		})
	}
}
