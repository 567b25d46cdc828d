package actions

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"
)

// Bounds of a Spec.
const (
	maxTitle = 40
	// leastLease is the shortest lease: shorter ones end before they can be verified.
	leastLease = time.Second
)

// ErrInvalidSpec is returned by Register for a description that breaks the rules of Spec.
var ErrInvalidSpec = errors.New("invalid action")

// Registry holds the actions by name, in the order they were registered. It is
// safe for concurrent use; make one with NewRegistry.
type Registry struct {
	mu     sync.RWMutex
	byName map[string]Action
	order  []string
}

// NewRegistry makes a registry of the given actions; the first one that cannot
// be registered is the error.
func NewRegistry(all ...Action) (*Registry, error) {
	r := &Registry{byName: map[string]Action{}}
	for _, a := range all {
		if err := r.Register(a); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Register adds an action. ErrInvalidSpec when its Spec breaks a rule,
// ErrDuplicate when the name is taken.
func (r *Registry) Register(a Action) error {
	spec := a.Spec()
	if err := checkSpec(spec); err != nil {
		return fmt.Errorf("action %q: %w: %w", spec.Name, ErrInvalidSpec, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, taken := r.byName[spec.Name]; taken {
		return fmt.Errorf("action %q is registered twice: %w", spec.Name, ErrDuplicate)
	}
	r.byName[spec.Name] = a
	r.order = append(r.order, spec.Name)
	return nil
}

// Get finds an action; ErrUnknownAction names the ones there are.
func (r *Registry) Get(name string) (Action, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if a, ok := r.byName[name]; ok {
		return a, nil
	}
	return nil, fmt.Errorf("%w: %s", ErrUnknownAction, noSuch("action", name, r.order))
}

// Specs describes every action, in the order of registration.
func (r *Registry) Specs() []Spec {
	specs := make([]Spec, 0, len(r.order))
	for _, a := range r.all() {
		specs = append(specs, a.Spec())
	}
	return specs
}

func (r *Registry) all() []Action {
	r.mu.RLock()
	defer r.mu.RUnlock()
	list := make([]Action, len(r.order))
	for i, name := range r.order {
		list[i] = r.byName[name]
	}
	return list
}

func checkSpec(s Spec) error {
	switch {
	case !isIdentifier(s.Name):
		return errors.New("the name has 1 to 63 lower-case letters, digits and underscores and begins with a letter")
	case s.Title == "" || utf8.RuneCountInString(s.Title) > maxTitle:
		return fmt.Errorf("the title has 1 to %d characters", maxTitle)
	case s.Summary == "":
		return errors.New("the summary is missing")
	case s.Role != "responder" && s.Role != "approver" && s.Role != "admin":
		return fmt.Errorf("the role is %q: want responder, approver or admin", s.Role)
	case s.DefaultTTL < leastLease || s.MaxTTL < s.DefaultTTL:
		return fmt.Errorf("the lease is %s by default and at most %s: want %s ≤ default ≤ most", s.DefaultTTL, s.MaxTTL, leastLease)
	}
	seen := map[string]bool{}
	for _, p := range s.Params {
		if err := checkParam(p); err != nil {
			return fmt.Errorf("parameter %q %w", p.Name, err)
		}
		if seen[p.Name] {
			return fmt.Errorf("parameter %q is described twice", p.Name)
		}
		seen[p.Name] = true
	}
	return nil
}

func checkParam(p Param) error {
	switch {
	case !isIdentifier(p.Name):
		return errors.New("is no name: want lower-case letters, digits and underscores, beginning with a letter")
	case p.Help == "":
		return errors.New("has no help")
	case p.Default != nil && !json.Valid(p.Default):
		return errors.New("has a default that is not JSON")
	case p.Required && p.Default != nil:
		return errors.New("is required and has a default: only one of both makes sense")
	}
	switch p.Kind {
	case "text", "number", "integer", "dependency", "route", "tenant", "limit_target":
		return nil
	default:
		return fmt.Errorf("has the unknown kind %q", p.Kind)
	}
}

func isIdentifier(s string) bool {
	if s == "" || len(s) > 63 || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c != '_' && (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}
