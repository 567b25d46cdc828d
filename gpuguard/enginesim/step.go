package enginesim

import (
	"slices"
	"time"
)

// beginStep forms the next batch: first the running sequences, then as many
// waiting ones as slots, KV blocks, scratch memory and the chunk budget allow.
func (m *model) beginStep(at time.Time) {
	m.step = step{}
	if m.restarting(at) {
		return
	}
	next := step{started: at}
	budget, preempted := m.profile.PrefillChunkTokens, m.preemptions
	for i := 0; i < len(m.running); i++ {
		s := m.running[i]
		tokens := m.schedule(s, &budget)
		// The youngest is last, so preemption never removes a sequence before i.
		if !m.grow(s, s.computed+tokens) {
			break
		}
		next.add(s, tokens)
	}
	// Admitting right after a preemption would take the blocks back at once.
	for len(m.waiting) > 0 && budget > 0 && m.preemptions == preempted {
		s := m.waiting[0]
		if !m.fits(s) {
			break
		}
		if m.outOfMemory(s) {
			m.crash(at)
			return
		}
		m.waiting = slices.Delete(m.waiting, 0, 1)
		m.admit(s, at)
		next.add(s, m.schedule(s, &budget))
	}
	m.blocked = len(m.waiting) > 0
	next.size = len(m.running)
	if next.size == 0 {
		return
	}
	next.ends = at.Add(max(time.Nanosecond, m.stepDuration(next)))
	m.step = next
}

func (st *step) add(s *sequence, tokens int) {
	st.members = append(st.members, stepMember{seq: s, tokens: tokens})
	if tokens > 1 || s.computed < s.prompt {
		st.prefill += tokens
	}
}

// schedule is how many tokens of s the step computes; prefill takes from the budget.
func (m *model) schedule(s *sequence, budget *int) int {
	pending := s.context() - s.computed
	if pending == 1 && s.computed >= s.prompt {
		return 1 // decode
	}
	tokens := min(pending, *budget)
	*budget -= tokens
	return tokens
}

// fits tells whether a waiting sequence can be admitted to the batch.
func (m *model) fits(s *sequence) bool {
	return len(m.running) < m.limit() && m.usedBlocks+blocksFor(s.context()) <= m.profile.KVBlocks
}

func (m *model) outOfMemory(s *sequence) bool {
	need := m.profile.prefillScratch(m.knobs, float64(s.context()))
	return need > m.profile.usableScratch(m.fragmentation())
}

// admit reserves the blocks of all tokens known so far.
func (m *model) admit(s *sequence, at time.Time) {
	s.state = stateRunning
	if s.admitted.IsZero() {
		s.admitted = at
	}
	m.running = append(m.running, s)
	m.hold(s, blocksFor(s.context()))
}

// grow gives s the blocks for so many tokens, preempting younger sequences if
// the pool is short. It returns false when s itself had to go.
func (m *model) grow(s *sequence, tokens int) bool {
	need := max(s.blocks, blocksFor(tokens))
	for m.usedBlocks-s.blocks+need > m.profile.KVBlocks {
		victim := m.running[len(m.running)-1]
		m.preempt(victim)
		if victim == s {
			return false
		}
	}
	m.hold(s, need)
	return true
}

// preempt sends a running sequence back to the head of the queue; all its
// tokens must be computed again.
func (m *model) preempt(s *sequence) {
	m.running = remove(m.running, s)
	m.release(s)
	s.computed = 0
	s.state = stateWaiting
	m.waiting = slices.Insert(m.waiting, 0, s)
	m.preemptions++
}

// endStep hands out the tokens of the finished batch.
func (m *model) endStep(at time.Time) {
	m.lastStep = at.Sub(m.step.started)
	members := m.step.members
	m.step = step{}
	for _, member := range members {
		s := member.seq
		// Cancelled while the step ran.
		if s.state != stateRunning {
			continue
		}
		s.computed += member.tokens
		if !s.prefilling() {
			m.produce(s, at)
		}
	}
}

// produce makes the next token of a sequence whose context is computed.
func (m *model) produce(s *sequence, at time.Time) {
	if s.made == 0 {
		if s.heldUntil.IsZero() {
			s.heldUntil = at.Add(m.knobs.firstTokenDelay())
		}
		if at.Before(s.heldUntil) {
			return
		}
		s.firstToken = at
	}
	if s.output > 0 {
		s.made++
		m.emit(event{seq: s, kind: eventToken, at: at})
		s.lastToken = at
	}
	if s.made >= s.output {
		m.running = remove(m.running, s)
		m.release(s)
		s.state = stateEnded
		m.emit(event{seq: s, kind: eventDone, at: at})
	}
}

// crash fails everything and keeps the engine down for RestartTime.
func (m *model) crash(at time.Time) {
	m.ooms++
	m.downUntil = at.Add(m.profile.RestartTime)
	m.step = step{}
	victims := slices.Concat(m.running, m.waiting)
	m.running, m.waiting, m.blocked = nil, nil, false
	for _, s := range victims {
		m.release(s)
		s.state = stateEnded
		m.emit(event{seq: s, kind: eventFailed, at: at})
	}
}

// stepDuration is s of the package comment.
func (m *model) stepDuration(st step) time.Duration {
	return m.profile.decodeStep(m.knobs, float64(st.size)) + time.Duration(st.prefill)*m.profile.PrefillPerToken
}
