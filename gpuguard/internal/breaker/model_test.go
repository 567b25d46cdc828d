package breaker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// model is the breaker written down as slowly and plainly as possible: it keeps
// every result and looks at all of them.
type model struct {
	cfg     Config
	now     time.Time
	state   State
	since   time.Time
	period  int // counts state changes
	results []modelResult
	row     int

	good       int       // probes that succeeded in this half-open period
	roundSince time.Time // of the newest probes
	round      int
	out        map[int]int // permits without a report by round
	late       uint64
}

type modelResult struct {
	at     time.Time
	failed bool
}

type modelPermit struct{ period, round int }

func (m *model) enter(s State) {
	m.state, m.since, m.roundSince = s, m.now, m.now
	m.period++
	m.row, m.good, m.round = 0, 0, 0
	m.out = map[int]int{}
	if s == Closed {
		m.results = nil
	}
}

func (m *model) acquire() (modelPermit, bool) {
	if m.cfg.Forced == ForceOpen {
		return modelPermit{}, false
	}
	if m.cfg.Forced == ForceClosed || m.state == Closed {
		return modelPermit{period: m.period}, true
	}
	if m.state == Open {
		if m.now.Before(m.since.Add(m.cfg.OpenFor)) {
			return modelPermit{}, false
		}
		m.enter(HalfOpen)
	}
	if !m.now.Before(m.roundSince.Add(m.cfg.HalfOpenFor)) {
		m.round++
		m.roundSince = m.now
	}
	if m.good+m.out[m.round] >= m.cfg.Probes {
		return modelPermit{}, false
	}
	m.out[m.round]++
	return modelPermit{m.period, m.round}, true
}

func (m *model) done(p modelPermit, r Result) {
	if p.period != m.period {
		m.late++
		return
	}
	if m.state == HalfOpen {
		m.out[p.round]--
		switch r {
		case Failure:
			m.enter(Open)
		case Success:
			if m.good++; m.good == m.cfg.Probes {
				m.enter(Closed)
			}
		case Ignored:
		}
		return
	}
	if r == Ignored {
		return
	}
	m.results = append(m.results, modelResult{m.now, r == Failure})
	m.row++
	if r == Success {
		m.row = 0
	}
	if m.state != Closed || m.cfg.Forced == ForceClosed {
		return
	}
	calls, failures := m.window()
	if m.row >= m.cfg.ConsecutiveFailures || calls >= m.cfg.MinimumCalls && float64(failures)/float64(calls) >= m.cfg.FailureRate {
		kept := m.results
		m.enter(Open)
		m.results = kept
	}
}

func (m *model) window() (calls, failures int) {
	in := m.results
	if m.cfg.WindowTime == 0 {
		in = in[max(0, len(in)-m.cfg.WindowCalls):]
	}
	for _, r := range in {
		if m.cfg.WindowTime > 0 && !m.inSlots(r.at) {
			continue
		}
		calls++
		if r.failed {
			failures++
		}
	}
	return calls, failures
}

// inSlots says whether a result lies in one of the last ten slots, which are
// counted from the window's first result.
func (m *model) inSlots(at time.Time) bool {
	slot, epoch := m.cfg.WindowTime/slots, m.results[0].at
	return int64(at.Sub(epoch)/slot) > int64(m.now.Sub(epoch)/slot)-slots
}

// force overlays the state as a policy swap does.
func (m *model) force(f Force) {
	m.cfg.Forced = f
	if f == ForceClosed && m.state != Closed {
		kept := m.results
		m.enter(Closed)
		m.results = kept
	}
}

func TestBreakerBehavesLikeTheModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{
			WindowCalls:         rapid.IntRange(1, 12).Draw(t, "window"),
			FailureRate:         rapid.SampledFrom([]float64{0.25, 0.5, 1}).Draw(t, "rate"),
			MinimumCalls:        rapid.IntRange(1, 8).Draw(t, "minimum"),
			ConsecutiveFailures: rapid.IntRange(1, 6).Draw(t, "row"),
			OpenFor:             time.Second,
			Probes:              rapid.IntRange(1, 3).Draw(t, "probes"),
			HalfOpenFor:         3 * time.Second,
		}
		if rapid.Bool().Draw(t, "by time") {
			cfg.WindowTime = time.Duration(rapid.IntRange(1, 5).Draw(t, "length")) * time.Second
		}
		b := New(start, cfg)
		m := &model{cfg: cfg, now: start, state: Closed, since: start, out: map[int]int{}}
		type pair struct {
			real  Permit
			model modelPermit
		}
		var held []pair
		t.Repeat(map[string]func(*rapid.T){
			"pass": func(t *rapid.T) {
				m.now = m.now.Add(time.Duration(rapid.IntRange(1, 1500).Draw(t, "ms")) * time.Millisecond)
			},
			"acquire": func(t *rapid.T) {
				want, wantOK := m.acquire()
				p, ok, _ := b.Acquire(m.now)
				require.Equal(t, wantOK, ok)
				if ok {
					held = append(held, pair{p, want})
				}
			},
			"done": func(t *rapid.T) {
				if len(held) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(held)-1).Draw(t, "which")
				r := rapid.SampledFrom([]Result{Success, Failure, Failure, Ignored}).Draw(t, "result")
				m.done(held[i].model, r)
				held[i].real.Done(m.now, r)
				held = append(held[:i], held[i+1:]...)
			},
			"force": func(t *rapid.T) {
				f := rapid.SampledFrom([]Force{NotForced, NotForced, ForceOpen, ForceClosed}).Draw(t, "force")
				m.force(f)
				cfg.Forced = f
				b.Configure(m.now, cfg)
			},
			"": func(t *rapid.T) {
				s := b.Status(m.now)
				want := m.state
				switch m.cfg.Forced {
				case ForceOpen:
					want = ForcedOpen
				case ForceClosed:
					want = ForcedClosed
				case NotForced:
				}
				require.Equal(t, want, s.State)
				require.Equal(t, m.late, s.Late)
				calls, failures := m.window()
				require.Equal(t, calls, s.Calls)
				if calls > 0 {
					require.InDelta(t, float64(failures)/float64(calls), s.FailureRate, 1e-12)
				}
			},
		})
	})
}
