package breaker

import "time"

// window remembers judged calls: the last so many, or those of the last so long.
type window interface {
	add(now time.Time, failed bool)
	// count returns what the window holds at now; it changes nothing a later count would see.
	count(now time.Time) (calls, failures int)
	clear()
	// resized returns the window for a new rule, keeping what still fits.
	resized(from, to Config) window
}

func newWindow(cfg Config) window {
	if cfg.WindowTime > 0 {
		return &timeWindow{slot: max(1, cfg.WindowTime/slots)}
	}
	return &countWindow{failed: make([]bool, max(1, cfg.WindowCalls))}
}

// countWindow is a ring of the last len(failed) calls.
type countWindow struct {
	failed   []bool
	next     int
	calls    int
	failures int
}

func (w *countWindow) add(_ time.Time, failed bool) {
	if w.calls == len(w.failed) {
		if w.failed[w.next] {
			w.failures--
		}
	} else {
		w.calls++
	}
	w.failed[w.next] = failed
	if failed {
		w.failures++
	}
	w.next = (w.next + 1) % len(w.failed)
}

func (w *countWindow) count(time.Time) (calls, failures int) { return w.calls, w.failures }

func (w *countWindow) clear() { w.next, w.calls, w.failures = 0, 0, 0 }

func (w *countWindow) resized(from, to Config) window {
	switch {
	case to.WindowTime > 0:
		return newWindow(to)
	case from.WindowCalls == to.WindowCalls:
		return w
	}
	n := newWindow(to)
	oldest := w.next - w.calls + len(w.failed)
	for i := range w.calls {
		n.add(time.Time{}, w.failed[(oldest+i)%len(w.failed)])
	}
	return n
}

// slots is the number of parts a time window moves by.
const slots = 10

// timeWindow counts calls per slot of time.
type timeWindow struct {
	slot  time.Duration
	epoch time.Time // begin of slot 0
	ring  [slots]slotCount
}

type slotCount struct {
	number          int64 // which slot since epoch
	calls, failures int
}

// number is the slot that now lies in.
func (w *timeWindow) number(now time.Time) int64 { return int64(now.Sub(w.epoch) / w.slot) }

func (w *timeWindow) add(now time.Time, failed bool) {
	if w.epoch.IsZero() {
		w.epoch = now
	}
	n := w.number(now)
	s := &w.ring[n%slots]
	if s.number != n {
		*s = slotCount{number: n}
	}
	s.calls++
	if failed {
		s.failures++
	}
}

func (w *timeWindow) count(now time.Time) (calls, failures int) {
	if w.epoch.IsZero() {
		return 0, 0
	}
	oldest := w.number(now) - slots + 1
	for _, s := range w.ring {
		if s.number >= oldest {
			calls += s.calls
			failures += s.failures
		}
	}
	return calls, failures
}

func (w *timeWindow) clear() {
	w.epoch = time.Time{}
	w.ring = [slots]slotCount{}
}

func (w *timeWindow) resized(from, to Config) window {
	if from.WindowTime == to.WindowTime {
		return w
	}
	return newWindow(to)
}
