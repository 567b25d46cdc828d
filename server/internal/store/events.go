package store

import (
	"sync"
	"time"
)

// Event says that something changed, for consoles to look again.
type Event struct {
	// ID rises by one with each event of this process. It begins at the start
	// time in microseconds, so that an ID of an earlier process is never taken for one of this.
	ID      int64
	Topic   string
	Subject string
}

const (
	// ringSize is how many events can be resumed.
	ringSize = 1024
	// subscriberBuffer is how many events a slow subscriber may fall behind.
	subscriberBuffer = 256
)

// Events broadcasts what was committed by this process. It promises nothing
// across processes: a console polls as well, only slower.
type Events struct {
	mu     sync.Mutex
	next   int64
	ring   []Event
	subs   map[chan Event]struct{}
	closed bool
}

func newEvents() *Events {
	return &Events{next: time.Now().UnixMicro(), subs: make(map[chan Event]struct{})}
}

// Events returns the broadcaster.
func (s *Store) Events() *Events { return s.events }

// Subscribe returns a channel of events from now on. It is closed by cancel, by
// Close of the store, and when the subscriber falls 256 events behind: then
// subscribe again and resume with Since.
func (e *Events) Subscribe() (events <-chan Event, cancel func()) {
	ch := make(chan Event, subscriberBuffer)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		close(ch)
		return ch, func() {}
	}
	e.subs[ch] = struct{}{}
	return ch, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.drop(ch)
	}
}

// Since returns the events after the given ID, oldest first. complete is false
// when some of them are gone, or the ID is not of this process: then reload.
func (e *Events) Since(id int64) (events []Event, complete bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, event := range e.ring {
		if event.ID > id {
			events = append(events, event)
		}
	}
	oldest := e.next - int64(len(e.ring))
	return events, id >= oldest-1 && id < e.next
}

func (e *Events) publish(topic, subject string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	event := Event{ID: e.next, Topic: topic, Subject: subject}
	e.next++
	if len(e.ring) == ringSize {
		copy(e.ring, e.ring[1:])
		e.ring = e.ring[:ringSize-1]
	}
	e.ring = append(e.ring, event)
	for ch := range e.subs {
		select {
		case ch <- event:
		default:
			e.drop(ch)
		}
	}
}

// drop closes a subscription once; the caller holds the lock.
func (e *Events) drop(ch chan Event) {
	if _, there := e.subs[ch]; there {
		delete(e.subs, ch)
		close(ch)
	}
}

func (e *Events) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	for ch := range e.subs {
		e.drop(ch)
	}
}
