// Package runbookstest has an in-memory runbooks.Store with a clock and roles
// that a test moves by hand, action and metric ports that answer as told, and
// faults at every call, so that tests can kill the engine between any two steps.
package runbookstest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"holdfast/actions"
	"holdfast/runbooks"
)

// Store is a runbooks.Store in memory: each transaction works on a copy that
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
	runs   map[string]runbooks.Run
	roles  map[string]string
	events []runbooks.Event
	saved  int
}

// NewStore makes an empty store. now may be nil: a fixed time that only Advance moves.
func NewStore(now func() time.Time) *Store {
	if now == nil {
		start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		now = func() time.Time { return start }
	}
	return &Store{
		now: now, wake: make(chan struct{}, 1),
		state: state{runs: map[string]runbooks.Run{}, roles: map[string]string{}},
	}
}

func (s state) clone() state {
	s.runs, s.roles, s.events = maps.Clone(s.runs), maps.Clone(s.roles), slices.Clone(s.events)
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
// "run:<id>": an error stands for a kill at that moment. "commit" comes before a
// commit, "committed" after it, when the caller no longer hears of its success. Nil ends it.
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

// Events are what was recorded, in order.
func (s *Store) Events() []runbooks.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.state.events)
}

// Kinds are the kinds of the events of a run, in order.
func (s *Store) Kinds(runID string) []runbooks.EventKind {
	var kinds []runbooks.EventKind
	for _, e := range s.Events() {
		if e.Run.ID == runID {
			kinds = append(kinds, e.Kind)
		}
	}
	return kinds
}

// Saves is how often a run was saved.
func (s *Store) Saves() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.saved
}

// Signal wakes the engine, as the move of an action run does.
func (s *Store) Signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Wake is signalled after commits of runs that are due, and by Signal.
func (s *Store) Wake() <-chan struct{} { return s.wake }

// View runs fn on the state as it is.
func (s *Store) View(ctx context.Context, fn func(runbooks.Tx) error) error {
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
func (s *Store) InTx(ctx context.Context, fn func(runbooks.Tx) error) error {
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
		s.Signal()
	}
	return s.fails("committed")
}

// tx is one transaction; the store is locked while it runs.
type tx struct {
	store    *Store
	state    *state
	readOnly bool
	// moved says that a run may be able to move on after the commit.
	moved bool
}

var errReadOnly = errors.New("runbookstest: written in a View")

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

func (t *tx) InsertRunbookRun(r *runbooks.Run) error {
	if err := t.write("insert run"); err != nil {
		return err
	}
	if _, err := t.RunbookRunByKey(r.Key); err == nil {
		return runbooks.ErrDuplicate
	}
	r.Version, t.moved = 1, true
	t.state.runs[r.ID] = copied(*r)
	return nil
}

// copied shares nothing that a later transition could write to.
func copied(r runbooks.Run) runbooks.Run {
	r.Steps, r.Params = slices.Clone(r.Steps), maps.Clone(r.Params)
	return r
}

func (t *tx) RunbookRunByKey(key string) (runbooks.Run, error) {
	for _, r := range t.state.runs {
		if r.Key == key {
			return copied(r), nil
		}
	}
	return runbooks.Run{}, runbooks.ErrNotFound
}

func (t *tx) RunbookRun(id string) (runbooks.Run, error) {
	r, ok := t.state.runs[id]
	if !ok {
		return runbooks.Run{}, runbooks.ErrNotFound
	}
	return copied(r), t.store.fails("run:" + id)
}

func (t *tx) SaveRunbookRun(r *runbooks.Run) error {
	if err := t.write("save run"); err != nil {
		return err
	}
	if t.state.runs[r.ID].Version != r.Version {
		return runbooks.ErrStale
	}
	r.Version++
	t.state.saved++
	t.moved = !r.NextAt.IsZero() && !r.NextAt.After(t.Now())
	t.state.runs[r.ID] = copied(*r)
	return nil
}

func (t *tx) sorted(keep func(runbooks.Run) bool) []runbooks.Run {
	out := []runbooks.Run{}
	for _, r := range t.state.runs {
		if keep(r) {
			out = append(out, copied(r))
		}
	}
	slices.SortFunc(out, func(a, b runbooks.Run) int {
		if c := b.StartedAt.Compare(a.StartedAt); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return out
}

func (t *tx) DueRunbookRuns(limit int) ([]runbooks.Run, error) {
	if err := t.write("due runs"); err != nil {
		return nil, err
	}
	due := t.sorted(func(r runbooks.Run) bool { return !r.NextAt.IsZero() && !r.NextAt.After(t.Now()) })
	return due[:min(limit, len(due))], nil
}

func (t *tx) RunbookRuns(f runbooks.Filter) ([]runbooks.Run, error) {
	list := t.sorted(func(r runbooks.Run) bool {
		return (f.IncidentID == "" || r.IncidentID == f.IncidentID) && (!f.Live || r.Live()) &&
			(f.Before.IsZero() || r.StartedAt.Before(f.Before))
	})
	return list[:min(f.Limit, len(list))], nil
}

func (t *tx) RecordRunbookEvent(e runbooks.Event) error {
	e.Run = copied(e.Run)
	t.state.events = append(t.state.events, e)
	return t.write("record event")
}
