package slackapp

import (
	"context"
	"sync"
)

// jobQueue is a bounded queue that can be closed while others still offer.
type jobQueue struct {
	jobs    chan func(context.Context)
	pending sync.WaitGroup

	mu     sync.Mutex
	closed bool
}

func newJobQueue(size int) *jobQueue {
	return &jobQueue{jobs: make(chan func(context.Context), size)}
}

// offer is false when the queue is full or closed.
func (q *jobQueue) offer(job func(context.Context)) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.pending.Add(1)
	select {
	case q.jobs <- job:
		return true
	default:
		q.pending.Done()
		return false
	}
}

// close takes no more jobs; those in the queue are still done.
func (q *jobQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.closed = true
		close(q.jobs)
	}
}

// drained waits until every job is done; call it after close.
func (q *jobQueue) drained() { q.pending.Wait() }
