package slackapp

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"holdfast/server/audit"
	"holdfast/server/chat"
	"holdfast/server/incident"
	"holdfast/server/outbox"
	"holdfast/server/slacksim"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	alice     = "U0000ALICE"
	eve       = "U000000EVE"
	incidents = "C0INCIDENTS"
	changes   = "C000CHANGES"
	card1     = "incident:1"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// fakeClock stands still until moved.
type fakeClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// fakeQueue keeps the contract of outbox.Queue in memory.
type fakeQueue struct {
	clock  *fakeClock
	mu     sync.Mutex
	list   []*queued
	buried []outbox.Message
	next   int64
	wake   chan struct{}
}

type queued struct {
	outbox.Message
	leased time.Time
}

func (q *fakeQueue) add(m outbox.Message) {
	q.mu.Lock()
	q.next++
	m.ID, m.CreatedAt = q.next, q.clock.Now()
	q.list = append(q.list, &queued{Message: m})
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *fakeQueue) Claim(_ context.Context, _ string, limit int, lease time.Duration) ([]outbox.Message, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.clock.Now()
	heads := map[string]bool{}
	var out []outbox.Message
	for _, m := range q.list {
		if heads[m.Key] {
			continue
		}
		heads[m.Key] = true
		if len(out) == limit || m.NotBefore.After(now) || m.leased.After(now) {
			continue
		}
		m.leased = now.Add(lease)
		m.Attempts++
		out = append(out, m.Message)
	}
	return out, nil
}

func (q *fakeQueue) take(id int64) outbox.Message {
	i := slices.IndexFunc(q.list, func(m *queued) bool { return m.ID == id })
	m := q.list[i].Message
	q.list = slices.Delete(q.list, i, i+1)
	return m
}

func (q *fakeQueue) Done(_ context.Context, id int64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.take(id)
	return nil
}

func (q *fakeQueue) Retry(_ context.Context, id int64, delay time.Duration, reason string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range q.list {
		if m.ID == id {
			m.leased, m.NotBefore, m.LastError = time.Time{}, q.clock.Now().Add(delay), reason
		}
	}
	return nil
}

func (q *fakeQueue) Bury(_ context.Context, id int64, reason string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	m := q.take(id)
	m.LastError = reason
	q.buried = append(q.buried, m)
	return nil
}

func (q *fakeQueue) Pending(context.Context, string) (int, time.Duration, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.list), 0, nil
}

func (q *fakeQueue) Wake(string) <-chan struct{} { return q.wake }

func (q *fakeQueue) waiting() []outbox.Message {
	q.mu.Lock()
	defer q.mu.Unlock()
	var out []outbox.Message
	for _, m := range q.list {
		out = append(out, m.Message)
	}
	return out
}

func (q *fakeQueue) set() []outbox.Message {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.buried)
}

// fakeDomain is Chat, Refs and Desk.
type fakeDomain struct {
	mu      sync.Mutex
	cards   map[string]chat.IncidentCard
	changes map[string]chat.ChangeCard
	refs    map[string]chat.MessageRef
	presses []chat.Press
	forms   []chat.FormSubmission
	denied  []audit.Entry
	open    []incident.Incident
	actions []FormAction
	accept  func(context.Context, chat.Press) (chat.Answer, error)
}

func (d *fakeDomain) IncidentCard(_ context.Context, id string) (chat.IncidentCard, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c, ok := d.cards[id]
	if !ok {
		return c, chat.ErrNotFound
	}
	return c, nil
}

func (d *fakeDomain) ChangeCard(_ context.Context, id string) (chat.ChangeCard, error) {
	c, ok := d.changes[id]
	if !ok {
		return c, chat.ErrNotFound
	}
	return c, nil
}

func (d *fakeDomain) Accept(ctx context.Context, p chat.Press) (chat.Answer, error) {
	if d.accept != nil {
		if ans, err := d.accept(ctx, p); err != nil || ans != (chat.Answer{}) {
			return ans, err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.presses = append(d.presses, p)
	return chat.Answer{Accepted: true, Text: "accepted"}, nil
}

func (d *fakeDomain) SubmitForm(_ context.Context, f chat.FormSubmission) (chat.Answer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forms = append(d.forms, f)
	return chat.Answer{Accepted: true, Text: "form accepted"}, nil
}

func (d *fakeDomain) MessageRef(_ context.Context, subject string) (chat.MessageRef, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r, ok := d.refs[subject]
	if !ok {
		return r, chat.ErrNotFound
	}
	return r, nil
}

func (d *fakeDomain) SaveMessageRef(_ context.Context, r chat.MessageRef) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refs[r.Subject] = r
	return nil
}

func (d *fakeDomain) FormActions(context.Context) ([]FormAction, error) { return d.actions, nil }

func (d *fakeDomain) OpenIncidents(context.Context) ([]incident.Incident, error) { return d.open, nil }

func (d *fakeDomain) Denied(_ context.Context, e audit.Entry) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.denied = append(d.denied, e)
	return nil
}

func (d *fakeDomain) count() (presses, forms, denied int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.presses), len(d.forms), len(d.denied)
}

// lockedBuffer takes logs of many goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// world is the app between a simulated Slack and a fake domain, all on one clock.
type world struct {
	*testing.T
	clock  *fakeClock
	sim    *slacksim.Sim
	domain *fakeDomain
	queue  *fakeQueue
	logs   *lockedBuffer
	reg    *prometheus.Registry
	app    *App
	url    string
}

type setup struct {
	rates bool
	sim   func(*slacksim.Options)
	app   func(*Options)
	// idle leaves the app unstarted: the test drives deliveries and jobs itself.
	idle bool
}

func newWorld(t *testing.T, s setup) *world {
	t.Helper()
	w := &world{T: t, clock: &fakeClock{now: noon}, logs: &lockedBuffer{}, reg: prometheus.NewRegistry()}
	so := slacksim.DefaultOptions()
	so.Clock, so.Rates.Off = w.clock, !s.rates
	if s.sim != nil {
		s.sim(&so)
	}
	var err error
	w.sim, err = slacksim.New(so)
	require.NoError(t, err)
	require.NoError(t, w.sim.Start(t.Context()))
	t.Cleanup(func() { stopWithin(t, w.sim.Stop) })

	w.domain = &fakeDomain{cards: map[string]chat.IncidentCard{"1": openCard()}, changes: map[string]chat.ChangeCard{}, refs: map[string]chat.MessageRef{}}
	w.queue = &fakeQueue{clock: w.clock, wake: make(chan struct{}, 1)}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	o := Options{
		BotToken: so.BotToken, SigningSecret: so.SigningSecret, APIURL: w.sim.APIURL(), TeamIDs: []string{so.TeamID}, AppID: so.AppID,
		Channel: incidents, PublicURL: "https://holdfast.example",
		Chat: w.domain, Refs: w.domain, Desk: w.domain, Queue: w.queue,
		Logger:     slog.New(slog.NewTextHandler(w.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Registerer: w.reg, HTTPClient: client, Now: w.clock.Now,
	}
	if s.app != nil {
		s.app(&o)
	}
	w.app, err = New(o)
	require.NoError(t, err)
	server := httptest.NewServer(w.app.Handler())
	t.Cleanup(server.Close)
	w.url = server.URL
	require.NoError(t, w.sim.SetInteractivityURL(w.url+"/slack/interactions"))
	require.NoError(t, w.sim.SetCommandsURL(w.url+"/slack/commands"))
	require.NoError(t, w.sim.SetEventsURL(w.url+"/slack/events"))
	if !s.idle {
		require.NoError(t, w.app.Start(t.Context()))
		t.Cleanup(func() { stopWithin(t, w.app.Stop) })
	}
	return w
}

func stopWithin(t *testing.T, stop func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	require.NoError(t, stop(ctx))
}

// settle waits until every accepted request and its replies are done.
func (w *world) settle() {
	w.app.jobs.drained()
	w.app.replies.drained()
}

// round delivers what is due now, once.
func (w *world) round() int {
	batch := w.app.claim(w.Context(), 100)
	for _, m := range batch {
		w.app.deliver(w.Context(), m)
	}
	return len(batch)
}

// posted puts the card of incident 1 up and returns it.
func (w *world) posted() slacksim.Message {
	w.Helper()
	w.queue.add(outbox.Card(card1))
	w.round()
	list := w.sim.Messages(incidents)
	require.NotEmpty(w, list, w.logs.String())
	return list[0]
}

func line(text string) outbox.Message {
	raw, _ := json.Marshal(outbox.Text{Text: text})
	return outbox.Message{Topic: outbox.TopicChat, Key: card1, Kind: outbox.KindThread, Subject: card1, Payload: raw}
}

func (w *world) press(t slacksim.Tamper) (slacksim.ClickResult, error) {
	return w.pressBy(alice, t)
}

func (w *world) pressBy(user string, t slacksim.Tamper) (slacksim.ClickResult, error) {
	m := w.sim.Messages(incidents)[0]
	return w.sim.Click(w.Context(), slacksim.ClickRequest{Channel: incidents, TS: m.TS, ActionID: actionPrefix + "ACKBUTTON", UserID: user, Tamper: t})
}

// counter reads a metric's value with the given label value.
func (w *world) counter(name, label string) float64 {
	w.Helper()
	families, err := w.reg.Gather()
	require.NoError(w, err)
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetValue() == label {
					return m.GetCounter().GetValue()
				}
			}
		}
	}
	return 0
}

func openIncident() incident.Incident {
	return incident.Incident{
		ID: "1", Number: 7, Title: "LLM backend down", Severity: incident.SeverityCritical, Status: incident.StatusOpen,
		Service: "chat-api", Environment: "prod", Summary: "5xx above 20 % for 5 minutes",
		RunbookURL: "https://runbooks.example/llm?a=1&b=2", SourceURL: "https://grafana.example/d/1",
		Firing: 2, OpenedAt: noon.Add(-3 * time.Minute),
	}
}

func openCard() chat.IncidentCard {
	return chat.IncidentCard{
		Incident: openIncident(), Alerts: []string{"BackendDown backend=llm-a", "BackendDown backend=llm-b"},
		Buttons: []chat.Button{
			{ID: "ACKBUTTON", Subject: card1, Label: "Acknowledge", Style: "primary"},
			{ID: "TRIPBUTTON", Subject: card1, Label: "Trip breaker: llm", Style: "danger", Confirm: "Forces the breaker of a dependency open."},
			{ID: "MOREBUTTON", Subject: card1, Label: "More…"},
		},
		URL: "https://holdfast.example/incidents/1", Now: noon,
	}
}
