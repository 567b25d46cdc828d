package slacksim

import "sync"

// hub tells waiting goroutines that the workspace changed. It keeps no
// queue: a waiter looks at the state again, so missed steps do not matter.
type hub struct {
	mu      sync.Mutex
	version uint64
	ch      chan struct{}
}

func newHub() *hub { return &hub{ch: make(chan struct{})} }

// changed wakes every waiter.
func (h *hub) changed() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.version++
	close(h.ch)
	h.ch = make(chan struct{})
}

// wait returns the current version and a channel closed at the next change.
func (h *hub) wait() (uint64, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.version, h.ch
}
