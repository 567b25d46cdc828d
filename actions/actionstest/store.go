// Package actionstest has an in-memory actions.Store with a clock, roles and
// gateways that a test moves by hand, and faults at every call, so that tests
// can kill the engine between any two steps.
package actionstest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"holdfast/actions"
	"holdfast/gpuguard/policy"
)

// Lineage is the lineage of a new Store.
const Lineage = "lineage1"

// Store is an actions.Store in memory: each transaction works on a copy that
// replaces the state when it commits.
type Store struct {
	mu    sync.Mutex
	state state
	now   func() time.Time
	// ahead is added to now.
	ahead time.Duration
	fault func(op string) error
	wake  chan struct{}
}

type state struct {
	lineage   string
	revision  int64
	base      policy.Document
	runs      map[string]actions.Run
	overrides []policy.Override
	gateways  map[string]actions.Gateway
	roles     map[string]string
	events    []actions.Event
	causes    []string
	inserted  map[string]int
	opened    map[string]int
	closed    map[string]int
}

// NewStore makes a store with revision 1 of the base document. now may be nil: a
// fixed time that only Advance moves.
func NewStore(base policy.Document, now func() time.Time) *Store {
	if now == nil {
		start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		now = func() time.Time { return start }
	}
	return &Store{
		now: now, wake: make(chan struct{}, 1),
		state: state{
			lineage: Lineage, revision: 1, base: base,
			runs: map[string]actions.Run{}, gateways: map[string]actions.Gateway{}, roles: map[string]string{},
			inserted: map[string]int{}, opened: map[string]int{}, closed: map[string]int{},
		},
	}
}

func (s state) clone() state {
	s.runs, s.gateways, s.roles = maps.Clone(s.runs), maps.Clone(s.gateways), maps.Clone(s.roles)
	s.inserted, s.opened, s.closed = maps.Clone(s.inserted), maps.Clone(s.opened), maps.Clone(s.closed)
	s.overrides, s.events, s.causes = slices.Clone(s.overrides), slices.Clone(s.events), slices.Clone(s.causes)
	return s
}

// Advance moves the clock forward.
func (s *Store) Advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead += d
}

// Now is the store's time.
func (s *Store) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.time()
}

func (s *Store) time() time.Time { return s.now().Add(s.ahead) }

// SetFault makes fn decide about every call, by its name, such as "save run" or
// "run:<id>": an error stands for a kill at that moment. "commit" comes before a commit, "committed" after it,
// when the caller no longer hears of its success. Nil ends it.
func (s *Store) SetFault(fn func(op string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = fn
}

func (s *Store) fails(op string) error {
	if s.fault == nil {
		return nil
	}
	return s.fault(op)
}

// SetRole gives a person a role; empty takes it away.
func (s *Store) SetRole(personID, role string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.roles[personID] = role
}

// SetGateway puts a gateway in and wakes the engine.
func (s *Store) SetGateway(g actions.Gateway) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.gateways[g.Name] = g
	s.signal()
}

// RemoveGateway forgets a gateway and wakes the engine.
func (s *Store) RemoveGateway(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.state.gateways, name)
	s.signal()
}

// Apply lets a gateway take the newest revision and report it truly, with its
// share of the limits.
func (s *Store) Apply(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.state.gateways[name]
	g.Name, g.Live, g.Lineage, g.Revision = name, true, s.state.lineage, s.state.revision
	s.state.gateways[name] = g
	live := 0
	for _, other := range s.state.gateways {
		if other.Live {
			live++
		}
	}
	g.State, g.StateAt = report(s.effective(), policy.Live(s.state.overrides, s.time()), live), s.time()
	s.state.gateways[name] = g
	s.signal()
}

// report is what a gateway that enforces doc says of itself.
func report(doc policy.Document, overrides []policy.Override, live int) policy.State {
	st := policy.State{Breakers: map[string]policy.BreakerState{}, Limits: map[string]policy.Limit{}}
	for name, d := range doc.Dependencies {
		word := map[policy.ForcedState]string{policy.ForcedOpen: "forced_open", policy.ForcedClosed: "forced_closed"}[d.Breaker.Forced]
		if word == "" {
			word = "closed"
		}
		st.Breakers[name] = policy.BreakerState{State: word}
	}
	share := func(path string, l *policy.Limit) {
		if l != nil {
			st.Limits[path] = policy.Limit{RequestsPerSecond: l.RequestsPerSecond / float64(live), Burst: l.Burst / float64(live)}
		}
	}
	share(policy.GlobalLimitPath, doc.Limits.Global)
	for name, r := range doc.Routes {
		share(policy.RouteLimitPath(name), r.Limit)
	}
	for name, t := range doc.Tenants {
		share(policy.TenantLimitPath(name), t.Limit)
	}
	for _, o := range overrides {
		st.ActiveOverrides = append(st.ActiveOverrides, o.ID)
	}
	return st
}

// Reject lets a gateway refuse the newest revision.
func (s *Store) Reject(name, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.state.gateways[name]
	g.Name, g.Live, g.Lineage = name, true, s.state.lineage
	g.RejectedRevision, g.Error = s.state.revision, reason
	s.state.gateways[name] = g
	s.signal()
}

// Restore starts a new lineage, as a restored database does.
func (s *Store) Restore(lineage string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.lineage, s.state.revision = lineage, 1
}

// SetBase replaces the base document with a new revision.
func (s *Store) SetBase(base policy.Document) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.base = base
	s.state.revision++
	s.state.causes = append(s.state.causes, "base edit")
}

// InsertOverride puts a layer in that belongs to no run.
func (s *Store) InsertOverride(o policy.Override) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.overrides = append(s.state.overrides, o)
}

// Events are what was recorded, in order.
func (s *Store) Events() []actions.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.state.events)
}

// Kinds are the kinds of the events of a run, in order.
func (s *Store) Kinds(runID string) []actions.EventKind {
	var kinds []actions.EventKind
	for _, e := range s.Events() {
		if e.Run.ID == runID {
			kinds = append(kinds, e.Kind)
		}
	}
	return kinds
}

// Overrides are the layers there are, ended ones too.
func (s *Store) Overrides() []policy.Override {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.state.overrides)
}

// Revision is the newest revision; Causes say what made each after the first.
func (s *Store) Revision() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.revision
}

// Causes say what made each revision after the first.
func (s *Store) Causes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.state.causes)
}

// Inserted is how often a layer was put into force.
func (s *Store) Inserted(layerID string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.inserted[layerID]
}

// Calendar is how often the emergency change of a run was opened and closed.
func (s *Store) Calendar(runID string) (opened, closed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.opened[runID], s.state.closed[runID]
}

func (s *Store) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Wake is signalled after commits of runs that are due and moves of gateways.
func (s *Store) Wake() <-chan struct{} { return s.wake }

// View runs fn on the state as it is.
func (s *Store) View(ctx context.Context, fn func(actions.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fails("view"); err != nil {
		return err
	}
	copied := s.state.clone()
	return fn(&tx{store: s, state: &copied, readOnly: true})
}

// InTx runs fn on a copy, which becomes the state when fn returns nil.
func (s *Store) InTx(ctx context.Context, fn func(actions.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fails("begin"); err != nil {
		return err
	}
	copied := s.state.clone()
	t := &tx{store: s, state: &copied}
	if err := fn(t); err != nil {
		return err
	}
	if err := s.fails("commit"); err != nil {
		return err
	}
	s.state = copied
	if t.moved {
		s.signal()
	}
	return s.fails("committed")
}

func (s *Store) effective() policy.Document {
	doc, err := policy.Merge(s.state.base, s.state.overrides, s.time())
	if err != nil {
		return s.state.base
	}
	return doc
}

// tx is one transaction; the store is locked while it runs.
type tx struct {
	store    *Store
	state    *state
	readOnly bool
	// moved says that a run may be able to move on after the commit.
	moved bool
}

var errReadOnly = errors.New("actionstest: written in a View")

func (t *tx) write(op string) error {
	if t.readOnly {
		return fmt.Errorf("%w: %s", errReadOnly, op)
	}
	return t.store.fails(op)
}

func (t *tx) Now() time.Time    { return t.store.time() }
func (t *tx) Lock(string) error { return t.write("lock") }

func (t *tx) Allowed(actor actions.Actor, role string) (bool, error) {
	rank := map[string]int{"viewer": 1, "responder": 2, "approver": 3, "admin": 4}
	if actor.PersonID == "" {
		return actor.Channel == "system", nil
	}
	return rank[role] > 0 && rank[t.state.roles[actor.PersonID]] >= rank[role], t.store.fails("allowed")
}

func (t *tx) InsertRun(r *actions.Run) error {
	if err := t.write("insert run"); err != nil {
		return err
	}
	if _, err := t.RunByKey(r.Key); err == nil {
		return actions.ErrDuplicate
	}
	r.Version, t.moved = 1, true
	t.state.runs[r.ID] = *r
	return nil
}

func (t *tx) RunByKey(key string) (actions.Run, error) {
	for _, r := range t.state.runs {
		if r.Key == key {
			return r, nil
		}
	}
	return actions.Run{}, actions.ErrNotFound
}

func (t *tx) Run(id string) (actions.Run, error) {
	r, ok := t.state.runs[id]
	if !ok {
		return actions.Run{}, actions.ErrNotFound
	}
	return r, t.store.fails("run:" + id)
}

func (t *tx) SaveRun(r *actions.Run) error {
	if err := t.write("save run"); err != nil {
		return err
	}
	if t.state.runs[r.ID].Version != r.Version {
		return actions.ErrStale
	}
	r.Version++
	t.moved = !r.NextAt.IsZero() && !r.NextAt.After(t.Now())
	t.state.runs[r.ID] = *r
	return nil
}

func (t *tx) sorted(keep func(actions.Run) bool) []actions.Run {
	var out []actions.Run
	for _, r := range t.state.runs {
		if keep(r) {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b actions.Run) int {
		if c := b.AcceptedAt.Compare(a.AcceptedAt); c != 0 {
			return c
		}
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return out
}

func (t *tx) DueRuns(limit int) ([]actions.Run, error) {
	if err := t.write("due runs"); err != nil {
		return nil, err
	}
	due := t.sorted(func(r actions.Run) bool { return !r.NextAt.IsZero() && !r.NextAt.After(t.Now()) })
	return due[:min(limit, len(due))], nil
}

func (t *tx) LiveRuns(incidentID string) ([]actions.Run, error) {
	return t.sorted(func(r actions.Run) bool { return r.Live() && (incidentID == "" || r.IncidentID == incidentID) }), nil
}

func (t *tx) Runs(before time.Time, limit int) ([]actions.Run, error) {
	list := t.sorted(func(r actions.Run) bool { return before.IsZero() || r.AcceptedAt.Before(before) })
	return list[:min(limit, len(list))], nil
}

func (t *tx) IncidentRuns(incidentID string) ([]actions.Run, error) {
	return t.sorted(func(r actions.Run) bool { return r.IncidentID == incidentID }), nil
}

func (t *tx) PolicySnapshot() (actions.Snapshot, error) {
	if err := t.store.fails("snapshot"); err != nil {
		return actions.Snapshot{}, err
	}
	effective, err := policy.Merge(t.state.base, t.state.overrides, t.Now())
	if err != nil {
		return actions.Snapshot{}, err
	}
	snap := actions.Snapshot{
		Now: t.Now(), Lineage: t.state.lineage, Revision: t.state.revision, Base: t.state.base,
		Overrides: slices.Clone(t.state.overrides), Effective: effective,
	}
	for _, name := range slices.Sorted(maps.Keys(t.state.gateways)) {
		snap.Gateways = append(snap.Gateways, t.state.gateways[name])
	}
	return snap, nil
}

func (t *tx) InsertOverride(o policy.Override) error {
	if err := t.write("insert override"); err != nil {
		return err
	}
	if err := o.Validate(); err != nil {
		return err
	}
	for _, other := range t.state.overrides {
		if other.ID == o.ID {
			return fmt.Errorf("override %s exists", o.ID)
		}
		if policy.PathsConflict(other.Path, o.Path) {
			return &actions.LeasedError{Lease: actions.LeaseRef{RunID: other.ID, Path: other.Path, Owner: other.Owner, Expires: other.Expires}}
		}
	}
	o.Value = append(json.RawMessage(nil), o.Value...)
	t.state.overrides = append(t.state.overrides, o)
	t.state.inserted[o.ID]++
	return nil
}

func (t *tx) ExtendOverride(id string, expires time.Time) error {
	if err := t.write("extend override"); err != nil {
		return err
	}
	for i := range t.state.overrides {
		if t.state.overrides[i].ID == id {
			t.state.overrides[i].Expires = expires
			return nil
		}
	}
	return actions.ErrNotFound
}

func (t *tx) DeleteOverride(id string) (bool, error) {
	if err := t.write("delete override"); err != nil {
		return false, err
	}
	before := len(t.state.overrides)
	t.state.overrides = slices.DeleteFunc(t.state.overrides, func(o policy.Override) bool { return o.ID == id })
	return len(t.state.overrides) < before, nil
}

func (t *tx) BumpRevision(cause, _ string) (int64, error) {
	if err := t.write("bump revision"); err != nil {
		return 0, err
	}
	t.state.revision++
	t.state.causes = append(t.state.causes, cause)
	return t.state.revision, nil
}

func (t *tx) OpenEmergencyChange(r actions.Run) error {
	t.state.opened[r.ID]++
	return t.write("open change")
}

func (t *tx) CloseEmergencyChange(r actions.Run) error {
	t.state.closed[r.ID]++
	return t.write("close change")
}

func (t *tx) RecordEvent(e actions.Event) error {
	t.state.events = append(t.state.events, e)
	return t.write("record event")
}
