package store

import "sync"

// Names of wakes. The outbox has one for each topic: outboxWake(topic).
const (
	wakePolicy   = "policy"
	wakeRuns     = "runs"
	wakeRunbooks = "runbooks"
	wakeClicks   = "clicks"
)

func outboxWake(topic string) string { return "outbox:" + topic }

// wakes signals goroutines of this process that there may be something to do. A
// signal is a hint: channels hold one, so that many signals become one.
type wakes struct {
	mu       sync.Mutex
	channels map[string][]chan struct{}
}

// subscribe makes a channel of its own for one listener.
func (w *wakes) subscribe(name string) <-chan struct{} {
	ch := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.channels == nil {
		w.channels = make(map[string][]chan struct{})
	}
	w.channels[name] = append(w.channels[name], ch)
	return ch
}

func (w *wakes) signal(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ch := range w.channels[name] {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

// listener is one subscription, made when it is first asked for.
type listener struct {
	once sync.Once
	ch   <-chan struct{}
}

func (l *listener) channel(w *wakes, name string) <-chan struct{} {
	l.once.Do(func() { l.ch = w.subscribe(name) })
	return l.ch
}
