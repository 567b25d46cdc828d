package identity

import (
	"sync"
	"time"
)

// failureLimit keeps one audit row per minute and subject: whoever has no valid
// token must not be able to fill the audit.
type failureLimit struct {
	mu   sync.Mutex
	last map[string]time.Time
}

const (
	failureEvery = time.Minute
	// failureSubjects bounds the memory; beyond it subjects share one key.
	failureSubjects = 1024
)

func newFailureLimit() *failureLimit { return &failureLimit{last: map[string]time.Time{}} }

// due says whether a failure of the subject is to be recorded now.
func (f *failureLimit) due(subject string, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.last[subject]; !known && len(f.last) >= failureSubjects {
		f.forget(now)
		if len(f.last) >= failureSubjects {
			subject = ""
		}
	}
	if at, known := f.last[subject]; known && now.Sub(at) < failureEvery {
		return false
	}
	f.last[subject] = now
	return true
}

func (f *failureLimit) forget(now time.Time) {
	for k, at := range f.last {
		if now.Sub(at) >= failureEvery {
			delete(f.last, k)
		}
	}
}
