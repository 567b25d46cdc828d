package chat

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"holdfast/actions"
	"holdfast/actions/actionstest"
	"holdfast/actions/builtin"
	"holdfast/internal/testenv"
	"holdfast/runbooks"
	"holdfast/server/alert"
	"holdfast/server/audit"
	"holdfast/server/change"
	"holdfast/server/identity"
	"holdfast/server/incident"
	"holdfast/server/outbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.Cleanup(testenv.Exit)) }

// memory is a Store whose transactions are copies. Runs come from the engine.
type memory struct {
	mu     sync.Mutex
	now    func() time.Time
	engine *actions.Engine
	state  memoryState
	wake   chan struct{}
	fault  func(op string) error
}

type memoryState struct {
	people      map[string]identity.Person
	links       []identity.Link
	incidents   map[string]incident.Incident
	occurrences []alert.Occurrence
	runbookRuns []runbooks.Run
	changes     map[string]change.Change
	buttons     map[string]Button
	clicks      map[string]Click
	audit       []audit.Entry
	outbox      []outbox.Message
}

func (m *memory) WakeClicks() <-chan struct{}                     { return m.wake }
func (m *memory) View(_ context.Context, fn func(Tx) error) error { return m.tx(fn, false) }
func (m *memory) InTx(ctx context.Context, fn func(Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return m.tx(fn, true)
}

func (m *memory) fails(op string) error {
	if m.fault == nil {
		return nil
	}
	return m.fault(op)
}

func (m *memory) tx(fn func(Tx) error, write bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.fails("begin"); err != nil {
		return err
	}
	s := m.state
	s.buttons, s.clicks, s.people = maps.Clone(s.buttons), maps.Clone(s.clicks), maps.Clone(s.people)
	s.audit, s.outbox, s.links = slices.Clone(s.audit), slices.Clone(s.outbox), slices.Clone(s.links)
	if err := fn(&memoryTx{m: m, s: &s}); err != nil || !write {
		return err
	}
	if err := m.fails("commit"); err != nil {
		return err
	}
	if len(s.clicks) > len(m.state.clicks) {
		select {
		case m.wake <- struct{}{}:
		default:
		}
	}
	m.state = s
	return m.fails("committed")
}

func (m *memory) read() memoryState {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state
}

// edit changes the state behind the back of the service.
func (m *memory) edit(fn func(*memoryState)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	fn(&m.state)
}

type memoryTx struct {
	alert.Tx // what is not used here
	m        *memory
	s        *memoryState
}

func (t *memoryTx) Now() time.Time            { return t.m.now() }
func (t *memoryTx) Lock(string) error         { return nil }
func (t *memoryTx) Touch(string, string)      {}
func (t *memoryTx) Audit(e audit.Entry) error { t.s.audit = append(t.s.audit, e); return nil }

func (t *memoryTx) InsertLink(l identity.Link) error { t.s.links = append(t.s.links, l); return nil }

func (t *memoryTx) Enqueue(o outbox.Message) error { t.s.outbox = append(t.s.outbox, o); return nil }

func (t *memoryTx) Incident(id string) (incident.Incident, error) {
	in, ok := t.s.incidents[id]
	if !ok {
		return in, incident.ErrNotFound
	}
	return in, nil
}

func (t *memoryTx) IncidentOccurrences(_ string, limit int) ([]alert.Occurrence, error) {
	return t.s.occurrences[:min(limit, len(t.s.occurrences))], nil
}

func (t *memoryTx) PersonBySlack(team, user string) (identity.Person, error) {
	for _, p := range t.s.people {
		if p.SlackTeam == team && p.SlackUser == user {
			return p, nil
		}
	}
	return identity.Person{}, identity.ErrNotFound
}

func (t *memoryTx) Person(id string) (identity.Person, error) {
	p, ok := t.s.people[id]
	if !ok {
		return p, identity.ErrNotFound
	}
	return p, nil
}

func (t *memoryTx) LiveButtons(subject string) ([]Button, error) {
	var out []Button
	for _, b := range t.s.buttons {
		if b.Subject == subject && b.UsedAt.IsZero() && b.RetiredAt.IsZero() && b.ExpiresAt.After(t.Now()) {
			out = append(out, b)
		}
	}
	return out, nil
}

func (t *memoryTx) Button(id string) (Button, error) {
	b, ok := t.s.buttons[id]
	if !ok {
		return b, ErrNotFound
	}
	return b, t.m.fails("button")
}

var errSlotTaken = errors.New("two live buttons in one slot")

func (t *memoryTx) InsertButton(b Button) error {
	live, _ := t.LiveButtons(b.Subject)
	for _, other := range live {
		if other.Slot == b.Slot {
			return errSlotTaken
		}
	}
	t.s.buttons[b.ID] = b
	return nil
}

func (t *memoryTx) RetireButton(id string) error {
	b := t.s.buttons[id]
	b.RetiredAt = t.Now()
	t.s.buttons[id] = b
	return nil
}

func (t *memoryTx) UseButton(id, name string) (bool, error) {
	b := t.s.buttons[id]
	if !b.UsedAt.IsZero() {
		return false, nil
	}
	b.UsedAt, b.UsedBy = t.Now(), name
	t.s.buttons[id] = b
	return true, nil
}

func (t *memoryTx) InsertClick(c Click) error { t.s.clicks[c.ID] = c; return nil }

func (t *memoryTx) SaveClick(c Click) error { t.s.clicks[c.ID] = c; return t.m.fails("save click") }

func (t *memoryTx) ClickByButton(id string) (Click, error) {
	for _, c := range t.s.clicks {
		if c.ButtonID == id {
			return c, nil
		}
	}
	return Click{}, ErrNotFound
}

func (t *memoryTx) DueClicks(limit int) ([]Click, error) {
	var due []Click
	for _, c := range t.s.clicks {
		if c.Status == ClickAccepted && !c.NextAt.After(t.Now()) {
			due = append(due, c)
		}
	}
	slices.SortFunc(due, func(a, b Click) int { return a.NextAt.Compare(b.NextAt) })
	return due[:min(limit, len(due))], nil
}

func (t *memoryTx) PendingClicks(subject string) ([]Click, error) {
	var out []Click
	for _, c := range t.s.clicks {
		at, err := placeOf(t, t.s.buttons[c.ButtonID].Subject)
		if err != nil {
			return nil, err
		}
		if c.Status == ClickAccepted && at.card == subject {
			out = append(out, c)
		}
	}
	return out, nil
}

func (t *memoryTx) MessageRef(string) (MessageRef, error) { return MessageRef{}, ErrNotFound }
func (t *memoryTx) SaveMessageRef(MessageRef) error       { return nil }

func (t *memoryTx) IncidentRuns(id string) ([]actions.Run, error) {
	all, err := t.m.engine.List(context.Background(), time.Time{}, 100)
	return slices.DeleteFunc(all, func(r actions.Run) bool { return r.IncidentID != id }), err
}

func (t *memoryTx) RunbookRuns(f runbooks.Filter) ([]runbooks.Run, error) {
	var out []runbooks.Run
	for _, r := range t.s.runbookRuns {
		if r.IncidentID == f.IncidentID && r.Live() {
			out = append(out, r)
		}
	}
	return out[:min(f.Limit, len(out))], nil
}

func (t *memoryTx) Run(id string) (actions.Run, error) {
	return t.m.engine.Find(context.Background(), id)
}

func (t *memoryTx) Change(id string) (change.Change, error) {
	c, ok := t.s.changes[id]
	if !ok {
		return c, change.ErrNotFound
	}
	return c, nil
}

// calendar and desk are the other sides of a click.
type calendar struct {
	mu    sync.Mutex
	calls []string
	err   error
}

func (c *calendar) note(ctx context.Context, what string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, _ := identity.From(ctx)
	c.calls = append(c.calls, what+" by "+p.Name+" on "+string(p.Channel))
	return c.err
}

func (c *calendar) Confirm(ctx context.Context, id, hash string) (change.Change, error) {
	return change.Change{}, c.note(ctx, "confirm "+id+" "+hash)
}

func (c *calendar) Reject(ctx context.Context, id string) (change.Change, error) {
	return change.Change{}, c.note(ctx, "reject "+id)
}

func (c *calendar) Acknowledge(ctx context.Context, id string) error {
	return c.note(ctx, "acknowledge "+id)
}

// shelf proposes the runbooks that an alert names.
type shelf struct{}

func (shelf) Suggest(_, annotations map[string]string) []runbooks.Suggestion {
	var out []runbooks.Suggestion
	for id := range strings.SplitSeq(annotations["runbook"], ",") {
		if id != "" {
			out = append(out, runbooks.Suggestion{Runbook: id, Title: "The " + id})
		}
	}
	return out
}

// fixture is a chat service over memory and a real engine over its own memory.
type fixture struct {
	t     testing.TB
	m     *memory
	runs  *actionstest.Store
	calls *calendar
	s     *Service
}

const (
	team = "T1"
	day  = 24 * time.Hour
)

// newFixture has incident inc1 about llm, Alice (U1) and Bob (U2) as responders,
// Vera (U3) as viewer, Dan (U4) disabled, Ada (U5) as approver, and a held change ch1.
func newFixture(t testing.TB, now func() time.Time) *fixture {
	t.Helper()
	f := &fixture{t: t, calls: &calendar{}, runs: actionstest.NewStore(actionstest.Document(), now)}
	f.m = &memory{now: f.runs.Now, wake: make(chan struct{}, 1), state: memoryState{
		people: map[string]identity.Person{},
		incidents: map[string]incident.Incident{
			"inc1": {ID: "inc1", Number: 3, Title: "Model slow", Status: incident.StatusOpen, Severity: incident.SeverityCritical},
		},
		occurrences: []alert.Occurrence{{Labels: map[string]string{"dependency": "llm", "alertname": "ModelSlow"}, Status: alert.StatusFiring}},
		changes: map[string]change.Change{
			"ch1": {ID: "ch1", Service: "recall", Environment: "prod", Kind: change.KindDeploy, Status: change.StatusHeld, ParamsHash: "h1", Blockers: []string{"ch0", "gone"}, ConfirmBy: f.runs.Now().Add(time.Hour)},
			"ch0": {ID: "ch0", Service: "recall", Status: change.StatusClaimed},
		},
		buttons: map[string]Button{}, clicks: map[string]Click{},
	}}
	for user, p := range map[string]identity.Person{
		"U1": {Name: "Alice", Role: identity.RoleResponder}, "U2": {Name: "Bob", Role: identity.RoleResponder},
		"U3": {Name: "Vera", Role: identity.RoleViewer}, "U4": {Name: "Dan", Role: identity.RoleAdmin, Disabled: true},
		"U5": {Name: "Ada", Role: identity.RoleApprover},
	} {
		p.ID, p.SlackTeam, p.SlackUser = "p-"+user, team, user
		f.m.state.people[p.ID] = p
		f.runs.SetRole(p.ID, string(p.Role))
	}
	f.runs.Apply("gw-1")
	f.restart()
	return f
}

// restart is a new process over the same databases.
func (f *fixture) restart() {
	f.t.Helper()
	registry, err := actions.NewRegistry(builtin.All()...)
	require.NoError(f.t, err)
	engine, err := actions.NewEngine(actions.Options{Store: f.runs, Registry: registry})
	require.NoError(f.t, err)
	f.m.engine = engine
	f.s, err = New(Options{Store: f.m, Runner: engine, Runbooks: shelf{}, Changes: f.calls, Incidents: f.calls, PublicURL: "https://holdfast.example/"})
	require.NoError(f.t, err)
}

func (f *fixture) card() IncidentCard {
	f.t.Helper()
	c, err := f.s.IncidentCard(context.Background(), "inc1")
	require.NoError(f.t, err)
	return c
}

func (f *fixture) button(kind ButtonKind) Button {
	f.t.Helper()
	c := f.card()
	for _, b := range slices.Concat(c.Buttons, c.RunButtons) {
		if b.Kind == kind {
			return b
		}
	}
	f.t.Fatalf("no %s button on the card", kind)
	return Button{}
}

func (f *fixture) press(user, id string) Answer {
	f.t.Helper()
	a, err := f.s.Accept(context.Background(), Press{ButtonID: id, Team: team, User: user, Channel: "C1", MessageTS: "1.2"})
	require.NoError(f.t, err)
	return a
}

func (f *fixture) process() {
	f.t.Helper()
	_, err := f.s.Process(context.Background())
	require.NoError(f.t, err)
}

// settle works clicks off and brings runs into force.
func (f *fixture) settle() {
	f.t.Helper()
	f.process()
	for range 2 {
		_, err := f.m.engine.Tick(context.Background())
		require.NoError(f.t, err)
		f.runs.Apply("gw-1")
	}
}

func (f *fixture) allRuns() []actions.Run {
	f.t.Helper()
	runs, err := f.m.engine.List(context.Background(), time.Time{}, 100)
	require.NoError(f.t, err)
	return runs
}

// sent are the texts of a kind in the outbox.
func (f *fixture) sent(kind string) []string {
	var texts []string
	for _, m := range f.m.read().outbox {
		if m.Kind == kind {
			var t outbox.Text
			_ = json.Unmarshal(m.Payload, &t)
			texts = append(texts, t.Text)
		}
	}
	return texts
}

func (f *fixture) denials() []string {
	var reasons []string
	for _, e := range f.m.read().audit {
		if e.Decision == audit.Denied {
			reasons = append(reasons, e.ActorName+": "+e.Reason)
		}
	}
	return reasons
}

func labels(buttons []Button) string {
	var out []string
	for _, b := range buttons {
		out = append(out, b.Label)
	}
	return strings.Join(out, " | ")
}
