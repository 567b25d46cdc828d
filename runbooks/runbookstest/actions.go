package runbookstest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"holdfast/actions"
)

// Actions is a runbooks.Actions whose runs go where a test puts them. Like the
// real engine it makes one run for a key.
type Actions struct {
	mu      sync.Mutex
	specs   []actions.Spec
	now     func() time.Time
	runs    map[string]actions.Run
	keys    map[string]string
	refuse  error
	fault   func(op string) error
	started []actions.Request
}

// NewActions has the given specs; now is the time of its runs.
func NewActions(now func() time.Time, specs ...actions.Spec) *Actions {
	return &Actions{specs: specs, now: now, runs: map[string]actions.Run{}, keys: map[string]string{}}
}

// Refuse lets every new request be refused with err, such as a
// *actions.LeasedError; nil accepts again.
func (a *Actions) Refuse(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refuse = err
}

// SetFault makes fn decide about every call: "run" before a request is looked
// at, "ran" after it was taken, when the caller no longer hears of it, and "find".
func (a *Actions) SetFault(fn func(op string) error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fault = fn
}

func (a *Actions) fails(op string) error {
	if a.fault == nil {
		return nil
	}
	return a.fault(op)
}

// Started are the requests that made a run, in order.
func (a *Actions) Started() []actions.Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.started)
}

// Change changes a run, such as its status or verification.
func (a *Actions) Change(id string, change func(*actions.Run)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r := a.runs[id]
	change(&r)
	a.runs[id] = r
}

// Verify brings a run into force and verifies it.
func (a *Actions) Verify(id string) {
	a.Change(id, func(r *actions.Run) {
		r.Status = actions.StatusActive
		r.Verification = actions.Verification{Verdict: actions.Verified, Detail: "1 gateway enforces it"}
	})
}

// IDs are the ids of all runs, in the order of their names.
func (a *Actions) IDs() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Sorted(maps.Keys(a.runs))
}

// Specs are those given to NewActions.
func (a *Actions) Specs() []actions.Spec { return a.specs }

// Plan says nothing but the name.
func (a *Actions) Plan(_ context.Context, action string, params json.RawMessage, ttl time.Duration) (actions.Plan, error) {
	if !slices.ContainsFunc(a.specs, func(s actions.Spec) bool { return s.Name == action }) {
		return actions.Plan{}, actions.ErrUnknownAction
	}
	return actions.Plan{Action: action, Params: params, Summary: action + " " + string(params), TTLSeconds: ttl.Seconds()}, nil
}

// Run accepts a request once for each key.
func (a *Actions) Run(ctx context.Context, r actions.Request) (actions.Run, error) {
	if err := ctx.Err(); err != nil {
		return actions.Run{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.fails("run"); err != nil {
		return actions.Run{}, err
	}
	if id, known := a.keys[r.Key]; known {
		return a.runs[id], fmt.Errorf("%w by %s", actions.ErrDuplicate, a.runs[id].Requester.Name)
	}
	if a.refuse != nil {
		return actions.Run{}, a.refuse
	}
	run := actions.Run{
		ID: fmt.Sprintf("action%03d", len(a.runs)+1), Key: r.Key, Action: r.Action, Params: r.Params,
		Plan:       actions.Plan{Action: r.Action, Summary: strings.ReplaceAll(r.Action, "_", " ")},
		IncidentID: r.IncidentID, Requester: r.Actor, Reason: r.Reason, Status: actions.StatusAccepted, TTL: r.TTL, AcceptedAt: a.now(),
	}
	a.runs[run.ID], a.keys[r.Key] = run, run.ID
	a.started = append(a.started, r)
	return run, a.fails("ran")
}

// Find reads one run.
func (a *Actions) Find(ctx context.Context, id string) (actions.Run, error) {
	if err := ctx.Err(); err != nil {
		return actions.Run{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	run, ok := a.runs[id]
	if !ok {
		return actions.Run{}, actions.ErrNotFound
	}
	return run, a.fails("find")
}
