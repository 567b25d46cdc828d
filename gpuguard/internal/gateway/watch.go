package gateway

import (
	"context"
	"errors"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"holdfast/gpuguard/policy"
)

// Causes for which a call is ended.
var (
	errFirstByte = errors.New("no first byte in time")
	errIdle      = errors.New("silent for too long")
	errTotal     = errors.New("not done in time")
	errPatience  = errors.New("the caller's own deadline passed")
	errReader    = errors.New("the caller read too slowly")
)

// watch bounds the phases of one call: first byte, then silence (streams only),
// and all of it. When a bound passes, the context is cancelled with its cause.
type watch struct {
	ctx      context.Context
	cancel   context.CancelCauseFunc
	limits   policy.Timeouts
	start    time.Time
	patience time.Duration
	stream   atomic.Bool
	phase    *time.Timer
	whole    *time.Timer
	waiting  atomic.Bool // for the first byte
	writing  atomic.Bool // to the caller: silence then says nothing of the upstream
	capped   atomic.Bool // whole is the caller's deadline
	// active is when bytes last came or went (time.Duration since start). The
	// timer looks at it when it fires: a stream is spared a reset per token.
	active atomic.Int64
}

// newWatch begins with the time for connecting, sending and the first byte
// together; traced narrows it. patience is the caller's own limit, 0 for none, of
// which waited is used up: the time a body took to arrive is the caller's, not
// the upstream's.
func newWatch(parent context.Context, limits policy.Timeouts, stream bool, patience, waited time.Duration) *watch {
	w := &watch{limits: limits, start: time.Now()}
	if patience > 0 {
		w.patience = max(1, patience-waited)
	}
	w.stream.Store(stream)
	w.ctx, w.cancel = context.WithCancelCause(parent)
	w.waiting.Store(true)
	w.phase = time.AfterFunc(2*limits.Connect.D()+limits.FirstByte.D(), w.phaseOver)
	w.whole = time.AfterFunc(w.wholeLeft(), w.wholeOver)
	return w
}

func (w *watch) phaseOver() {
	switch {
	case w.waiting.Load():
		w.cancel(errFirstByte)
	case !w.stream.Load():
	case w.writing.Load():
		w.phase.Reset(w.limits.Idle.D()) // it is the caller who holds things up
	default:
		if left := w.limits.Idle.D() - w.silent(); left > 0 {
			w.phase.Reset(left)
			return
		}
		w.cancel(errIdle)
	}
}

func (w *watch) wholeOver() {
	switch {
	case w.capped.Load():
		w.cancel(errPatience)
	case w.writing.Load() && w.silent() > stuckWrite:
		w.cancel(errReader)
	default:
		w.cancel(errTotal)
	}
}

// wholeLeft is the rest of the limit for the whole request: the caller's own
// deadline counts when it is the shorter one, and never extends anything.
func (w *watch) wholeLeft() time.Duration {
	most := w.limits.Total.D()
	if w.stream.Load() {
		most = w.limits.StreamTotal.D() // Total must not cut a healthy stream (C40)
	}
	w.capped.Store(w.patience > 0 && w.patience < most)
	if w.capped.Load() {
		most = w.patience
	}
	return max(0, most-time.Since(w.start))
}

// traced is the context of the upstream request; it tells when that was sent.
func (w *watch) traced() context.Context {
	return httptrace.WithClientTrace(w.ctx, &httptrace.ClientTrace{
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err == nil && w.waiting.Load() {
				w.phase.Reset(w.limits.FirstByte.D())
			}
		},
	})
}

// becomeStream widens the limits when the answer turns out to be a stream.
func (w *watch) becomeStream() {
	if !w.stream.Swap(true) {
		w.whole.Reset(w.wholeLeft())
	}
}

// progress notes that bytes came.
func (w *watch) progress() {
	w.touch()
	if w.waiting.Swap(false) {
		w.phase.Reset(w.limits.Idle.D())
	}
}

// stuckWrite is how long one write may take before the caller is to blame for
// an answer that did not end in time.
const stuckWrite = time.Second

// silent is the time since bytes last came or went.
func (w *watch) silent() time.Duration {
	return time.Since(w.start) - time.Duration(w.active.Load())
}

func (w *watch) touch() { w.active.Store(int64(time.Since(w.start))) }

// write runs f, which writes to the caller.
func (w *watch) write(f func() error) error {
	w.writing.Store(true)
	err := f()
	w.touch()
	w.writing.Store(false)
	return err
}

// stop ends the watch; the response body must have been closed.
func (w *watch) stop() {
	w.phase.Stop()
	w.whole.Stop()
	w.cancel(nil)
}
