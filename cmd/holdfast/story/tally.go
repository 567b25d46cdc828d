package story

import (
	"sync"
	"time"
)

// result is what became of one call, retries included.
type result int

const (
	// good: a whole answer of the model.
	good result = iota
	// degraded: the fallback answered.
	degraded
	// refused: a limit said to come back later.
	refused
	// failed: an error, a timeout, an empty or cut answer.
	failed
	results
)

// tallySeconds is how far back a tally remembers.
const tallySeconds = 300

// tally counts finished calls by second.
type tally struct {
	mu      sync.Mutex
	begun   time.Time
	seconds [tallySeconds]second
}

type second struct {
	number   int64
	finished [results]int
	attempts int
}

// Share is what happened in a window.
type Share struct {
	// Calls is the number of calls that finished in it.
	Calls int `json:"calls"`
	// GoodPerSecond counts whole answers of the model (goodput, calls/s).
	GoodPerSecond     float64 `json:"good_per_second"`
	DegradedPerSecond float64 `json:"degraded_per_second"`
	RefusedPerSecond  float64 `json:"refused_per_second"`
	// FailedRatio is the share of failed calls among those that were let in (0–1), as the rules count.
	FailedRatio float64 `json:"failed_ratio"`
	// AttemptsPerCall shows how much retries amplify.
	AttemptsPerCall float64 `json:"attempts_per_call"`
}

func newTally(now time.Time) *tally { return &tally{begun: now} }

// at gives the counters of a moment; mu is held.
func (t *tally) at(now time.Time) *second {
	n := int64(now.Sub(t.begun) / time.Second)
	s := &t.seconds[n%tallySeconds]
	if s.number != n {
		*s = second{number: n}
	}
	return s
}

// finish counts a call with its attempts.
func (t *tally) finish(now time.Time, r result, attempts int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.at(now)
	s.finished[r]++
	s.attempts += attempts
}

// window sums the last whole seconds before now; the current one is left out,
// because it is not over.
func (t *tally) window(now time.Time, length time.Duration) Share {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := int64(now.Sub(t.begun) / time.Second)
	span := int64(length / time.Second)
	span = max(1, min(span, n, tallySeconds-1))
	var sum [results]int
	attempts := 0
	for i := n - span; i < n; i++ {
		if i < 0 {
			continue
		}
		s := &t.seconds[i%tallySeconds]
		if s.number != i {
			continue
		}
		for r, count := range s.finished {
			sum[r] += count
		}
		attempts += s.attempts
	}
	return shareOf(sum, attempts, float64(span))
}

func shareOf(sum [results]int, attempts int, seconds float64) Share {
	calls := sum[good] + sum[degraded] + sum[refused] + sum[failed]
	s := Share{
		Calls: calls, GoodPerSecond: float64(sum[good]) / seconds,
		DegradedPerSecond: float64(sum[degraded]) / seconds, RefusedPerSecond: float64(sum[refused]) / seconds,
	}
	if judged := calls - sum[refused]; judged > 0 {
		s.FailedRatio = float64(sum[failed]) / float64(judged)
	}
	if calls > 0 {
		s.AttemptsPerCall = float64(attempts) / float64(calls)
	}
	return s
}
