package enginesim

import (
	"errors"
	"slices"
	"time"
)

// Errors of the model. The engine turns them into HTTP answers.
var (
	errQueueFull      = errors.New("the waiting queue is full")
	errRestarting     = errors.New("the engine is restarting after running out of memory")
	errContextTooLong = errors.New("prompt and output exceed the longest context")
)

// model is the engine of the package comment. It is single-threaded and pure:
// it knows only the times it is given, which must not decrease.
type model struct {
	profile Profile
	knobs   Knobs
	emit    func(event)

	waiting []*sequence // preempted sequences first
	running []*sequence // oldest admission first

	usedBlocks int
	longBlocks int // KV blocks held by sequences beyond LongContextTokens

	step      step
	blocked   bool      // the last batch left somebody waiting
	downUntil time.Time // end of a restart

	preemptions uint64
	ooms        uint64
	lastStep    time.Duration // duration of the last finished step
}

// step is the batch being computed; the zero value is none.
type step struct {
	started time.Time
	ends    time.Time
	members []stepMember
	prefill int // prompt tokens computed in this step
	size    int // running sequences
}

type stepMember struct {
	seq    *sequence
	tokens int // tokens whose KV entries this step computes
}

func (s step) inProgress() bool { return !s.ends.IsZero() }

func newModel(p Profile, k Knobs, emit func(event)) *model {
	return &model{profile: p, knobs: k, emit: emit}
}

// submit puts a sequence into the queue. The caller must have advanced the
// model to now.
func (m *model) submit(now time.Time, prompt, output int, owner any) (*sequence, error) {
	switch {
	case m.restarting(now):
		return nil, errRestarting
	case prompt+output > m.profile.MaxContextTokens:
		return nil, errContextTooLong
	case m.step.inProgress() && len(m.waiting) >= m.profile.QueueLimit+m.room():
		return nil, errQueueFull
	}
	s := &sequence{prompt: max(1, prompt), output: output, arrived: now, owner: owner}
	m.waiting = append(m.waiting, s)
	if !m.step.inProgress() {
		m.beginStep(now)
	}
	return s, nil
}

// room is how many arrivals only wait for the step in progress to end: they get
// a free slot and do not count against QueueLimit.
func (m *model) room() int {
	if m.blocked {
		return 0
	}
	return max(0, m.limit()-len(m.running))
}

// cancel frees what a sequence holds, at once. It is a no-op for one that has ended.
func (m *model) cancel(s *sequence) {
	switch s.state {
	case stateWaiting:
		m.waiting = remove(m.waiting, s)
	case stateRunning:
		m.running = remove(m.running, s)
		m.release(s)
	case stateEnded:
		return
	}
	s.state = stateEnded
}

// advance runs all steps that end by now.
func (m *model) advance(now time.Time) {
	for m.step.inProgress() && !m.step.ends.After(now) {
		at := m.step.ends
		m.endStep(at)
		m.beginStep(at)
	}
}

// next is when advance has something to do; false when the model is idle.
func (m *model) next() (time.Time, bool) { return m.step.ends, m.step.inProgress() }

// setKnobs changes the knobs; the rest of the step in progress is done at the new speed.
func (m *model) setKnobs(now time.Time, k Knobs) {
	before := m.stepDuration(m.step)
	m.knobs = k
	if m.step.inProgress() && before > 0 {
		ratio := float64(m.stepDuration(m.step)) / float64(before)
		m.step.ends = now.Add(time.Duration(float64(m.step.ends.Sub(now)) * ratio))
	}
}

func (m *model) restarting(now time.Time) bool { return now.Before(m.downUntil) }

// release returns a sequence's KV blocks.
func (m *model) release(s *sequence) { m.hold(s, 0) }

// hold sets the number of KV blocks a sequence has.
func (m *model) hold(s *sequence, blocks int) {
	m.usedBlocks += blocks - s.blocks
	m.longBlocks += m.longShare(blocks) - m.longShare(s.blocks)
	s.blocks = blocks
}

// longShare is the part of so many blocks of one sequence that counts as long context.
func (m *model) longShare(blocks int) int {
	if blocks > blocksFor(m.profile.LongContextTokens) {
		return blocks
	}
	return 0
}

// fragmentation is f, 0 to 0.99.
func (m *model) fragmentation() float64 {
	grown := m.profile.LongContextFragmentation * float64(m.longBlocks) / float64(m.profile.KVBlocks)
	return min(maxFragmentation, m.knobs.FragmentationRatio+grown)
}

// limit is how many sequences may run now. At least one may, so that a lone
// request meets the memory check instead of waiting for ever.
func (m *model) limit() int {
	return min(m.profile.Slots, max(1, m.profile.scratchSlots(m.knobs, m.fragmentation())))
}

// stop ends everything and returns what had not ended.
func (m *model) stop() []*sequence {
	left := slices.Concat(m.running, m.waiting)
	for _, s := range left {
		m.cancel(s)
	}
	m.step = step{}
	return left
}

func remove(list []*sequence, s *sequence) []*sequence {
	if i := slices.Index(list, s); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}
