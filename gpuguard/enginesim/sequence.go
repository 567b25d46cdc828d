package enginesim

import "time"

// eventKind is what happened to a sequence.
type eventKind int

const (
	eventToken  eventKind = iota // one more output token
	eventDone                    // all tokens were made
	eventFailed                  // the engine died under it
)

// event is one thing that happened to a sequence, in model time.
type event struct {
	seq  *sequence
	kind eventKind
	at   time.Time
}

// sequence is one prompt and its growing output inside the model.
type sequence struct {
	prompt int // tokens
	output int // tokens to make; 0 for embeddings

	made      int // output tokens so far
	computed  int // tokens whose KV entries exist; starts again after a preemption
	blocks    int // KV blocks held
	state     sequenceState
	heldUntil time.Time // the first token does not come before

	arrived    time.Time
	admitted   time.Time // first admission
	firstToken time.Time
	lastToken  time.Time

	owner any // the caller's own data
}

type sequenceState int

const (
	stateWaiting sequenceState = iota
	stateRunning
	stateEnded
)

// context is the number of tokens that must be in the KV pool.
func (s *sequence) context() int { return s.prompt + s.made }

// prefilling tells whether tokens remain to be computed before the next one.
func (s *sequence) prefilling() bool { return s.computed < s.context() }
