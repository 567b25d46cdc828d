package gateway

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"holdfast/gpuguard/internal/gateway/scan"
	"holdfast/gpuguard/policy"
)

// bufferBytes is the buffer of one relayed answer, and the longest answer that
// is judged as a whole before any of it is passed on.
const bufferBytes = 32 << 10

var buffers = sync.Pool{New: func() any { return new([bufferBytes]byte) }}

// relay passes the answer on unchanged. Nothing is sent before the first byte
// came and, where the answer is judged, before its first event or, when it
// fits the buffer, all of it was seen: only then can a failure inside a 200
// still be told by the status (C54).
type relay struct {
	x     *exchange
	w     *watch
	resp  *http.Response
	judge *judge
	buf   *[bufferBytes]byte
	held  int // bytes of buf not written yet
	// told: the outcome went out with the header; otherwise a trailer follows.
	told bool
}

func (x *exchange) relay(w *watch, resp *http.Response, began time.Time) {
	rl := &relay{x: x, w: w, resp: resp, judge: newJudge(resp, x.r.Method, x.to.expectJSON)}
	if resp.StatusCode < http.StatusOK {
		x.refuse(failed(policy.OutcomeUpstreamError, "unexpected interim answer"))
		return
	}
	if rl.judge.events {
		x.stream = true
		w.becomeStream()
	}
	if o, why := rl.judge.byStatus(); o == policy.OutcomeUpstreamMisconfigured && rl.refuseMisconfigured(why) {
		return
	}
	rl.buf = buffers.Get().(*[bufferBytes]byte)
	defer buffers.Put(rl.buf)
	rl.run(began)
}

func (rl *relay) run(began time.Time) {
	for {
		n, err := rl.resp.Body.Read(rl.buf[rl.held:])
		if n > 0 {
			rl.w.progress()
			rl.judge.write(rl.buf[rl.held : rl.held+n])
			rl.held += n
		}
		ended := errors.Is(err, io.EOF)
		if rl.x.record.FirstByte == 0 && (n > 0 || ended) {
			rl.x.record.FirstByte = max(1, rl.x.gateway.opts.Clock().Sub(began))
		}
		if err != nil && !ended {
			rl.broken(err)
			return
		}
		if !rl.step(ended) || ended {
			return
		}
	}
}

// step handles what was read; false ends the relay before the answer ended.
func (rl *relay) step(ended bool) bool {
	if !rl.x.committed {
		if rl.judge.failedEarly() {
			rl.x.refuse(failed(policy.OutcomeUpstreamError, "the first event is an error"))
			return false
		}
		if !ended && rl.held < len(rl.buf) && (rl.held == 0 || !rl.judge.ready()) {
			return true
		}
		rl.judge.inspect(rl.buf[:rl.held])
		if !rl.commit(ended) {
			return false
		}
	}
	if werr := rl.push(); werr != nil {
		rl.x.outcome(policy.OutcomeClientCancelled, "the caller left or stopped reading")
		rl.x.abort = true
		return false
	}
	if ended {
		rl.finish()
	}
	return true
}

// commit sends the header. When all of the answer is there its outcome is
// known: a failure is told by the gateway's own status instead.
func (rl *relay) commit(whole bool) bool {
	x := rl.x
	o, why := rl.judge.byStatus()
	if whole {
		o, why = rl.judge.final()
	}
	switch {
	case o == policy.OutcomeUpstreamMisconfigured && rl.refuseMisconfigured(why):
		return false
	case o != "" && rl.judge.status < http.StatusBadRequest && o != policy.OutcomeOK:
		x.refuse(failed(o, why))
		return false
	}
	h := x.w.Header()
	copyResponseHeader(h, rl.resp.Header)
	if first(h, requestIDName) == "" {
		h[requestIDName] = []string{x.record.RequestID}
	}
	if o != "" {
		rl.told = true
		rl.settle(o, why)
		h.Set(outcomeHeader, string(o))
	} else {
		h.Set("Trailer", outcomeHeader)
		h.Del("Content-Length") // trailers need chunks
	}
	if whole && x.r.Method != http.MethodHead && bodyAllowed(rl.judge.status) {
		h.Set("Content-Length", strconv.Itoa(rl.held))
	}
	x.committed = true
	x.out.header(rl.judge.status)
	return true
}

func bodyAllowed(status int) bool {
	return status != http.StatusNoContent && status != http.StatusNotModified
}

// push writes what is held; streams are flushed at once.
func (rl *relay) push() error {
	return rl.w.write(func() error {
		err := rl.x.out.write(rl.buf[:rl.held])
		rl.held = 0
		if err == nil && !rl.told && (rl.judge.events || rl.resp.ContentLength < 0) {
			err = rl.x.out.flush()
		}
		return err
	})
}

// finish settles an answer that came to its end after its header was sent.
func (rl *relay) finish() {
	x := rl.x
	if rl.told {
		return
	}
	o, why := rl.judge.final()
	rl.settle(o, why)
	if o == policy.OutcomeUpstreamCut || o == policy.OutcomeUpstreamEmpty {
		x.abort = true // framed like an end, but none
		return
	}
	x.w.Header().Set(outcomeHeader, string(o))
}

// broken handles a failed read.
func (rl *relay) broken(err error) {
	x := rl.x
	if !x.committed {
		x.refuse(x.failure(rl.w, err))
		return
	}
	if werr := rl.push(); werr == nil && rl.judge.form == stream && rl.judge.sse.Terminal() {
		// All of the answer is delivered; what did not end is the connection.
		rl.finish()
		return
	}
	o, why := x.diagnose(rl.w, err)
	x.outcome(o, why)
	x.abort = true
}

// settle notes the outcome of an answer and what it says of the upstream.
func (rl *relay) settle(o policy.Outcome, why string) {
	x := rl.x
	x.outcome(o, why)
	d := x.to.pool.dependency
	switch o {
	case policy.OutcomeOK:
		if d.broken.Load() && d.broken.Swap(false) {
			x.series.Misconfigured(false)
		}
		if rl.judge.form == document && rl.judge.json.EmptyArray(scan.Choices) {
			x.series.EmptyChoices()
		}
	case policy.OutcomeUpstreamThrottled:
		x.holdBack(rl.resp)
	case policy.OutcomeUpstreamMisconfigured:
		if !d.broken.Swap(true) {
			x.series.Misconfigured(true)
			x.gateway.opts.Logger.Error("upstream refuses the gateway's credential or account", "dependency", d.name, "endpoint", x.endpoint.name, "status", rl.judge.status)
		}
	default:
	}
}

// refuseMisconfigured answers for an upstream that refuses our credential: its
// own words are not for the caller, who would take the key for his, and they
// may quote ours. Without a credential of ours the answer passes.
func (rl *relay) refuseMisconfigured(why string) bool {
	if rl.x.to.pool.secretHeader == "" {
		return false
	}
	rl.settle(policy.OutcomeUpstreamMisconfigured, why)
	rl.x.refuse(failed(policy.OutcomeUpstreamMisconfigured, why))
	return true
}
