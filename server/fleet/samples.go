package fleet

import (
	"sync"
	"time"

	"holdfast/gpuguard/policy"
)

// priorAge is how much older than State the Prior state should be.
const priorAge = time.Minute

// samples remembers the reports of the last minute, so that rates come from
// two readings a minute apart and not from two neighbouring heartbeats. After a
// restart of the server the stored prior state stands in until enough is known.
type samples struct {
	mu     sync.Mutex
	byName map[string][]sample
}

type sample struct {
	instance string
	at       time.Time
	state    policy.State
}

func newSamples() *samples { return &samples{byName: map[string][]sample{}} }

// add remembers a report and forgets those that are older than needed.
func (s *samples) add(g Gateway) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.byName[g.Name]
	if n := len(list); n > 0 && !list[n-1].at.Before(g.StateAt) {
		return
	}
	list = append(list, sample{g.Instance, g.StateAt, g.State})
	drop := 0
	for drop+1 < len(list) && g.StateAt.Sub(list[drop+1].at) >= priorAge {
		drop++
	}
	s.byName[g.Name] = append([]sample(nil), list[drop:]...)
}

// prior is the state about a minute before the one of after, of the same
// process: counters start again with each process. Zero when there is none.
func (s *samples) prior(after, before Gateway) (policy.State, time.Time) {
	best := sample{}
	take := func(instance string, at time.Time, state policy.State) {
		age := after.StateAt.Sub(at)
		if at.IsZero() || instance != after.Instance || age <= 0 || age > 2*priorAge {
			return
		}
		if best.at.IsZero() || distance(age) < distance(after.StateAt.Sub(best.at)) {
			best = sample{instance, at, state}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, known := range s.byName[after.Name] {
		take(known.instance, known.at, known.state)
	}
	take(before.Instance, before.StateAt, before.State)
	take(before.Instance, before.PriorAt, before.Prior)
	return best.state, best.at
}

// distance is how far an age is from the one wanted.
func distance(age time.Duration) time.Duration { return (age - priorAge).Abs() }

// forget drops gateways that are no longer known.
func (s *samples) forget(known []Gateway) {
	keep := map[string]bool{}
	for _, g := range known {
		keep[g.Name] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.byName {
		if !keep[name] {
			delete(s.byName, name)
		}
	}
}
