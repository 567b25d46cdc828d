package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"holdfast/gpuguard/internal/upstream"
	"holdfast/gpuguard/policy"
)

// forward calls the upstream and relays its answer.
func (x *exchange) forward() {
	began := x.gateway.opts.Clock()
	w := newWatch(x.r.Context(), x.to.pool.dependency.timeouts, x.stream, x.patience, began.Sub(x.start))
	defer w.stop()
	resp, err := x.call(w)
	x.dropBody() // a stream may last for minutes
	if err != nil {
		x.refuse(x.failure(w, err))
		return
	}
	defer func() { _ = resp.Body.Close() }()
	x.relay(w, resp, began)
}

// call makes the call. The one retry there is goes to another endpoint, and
// only when no connection could be made, so that nothing was sent: repeating
// anything else would multiply the load of an upstream in trouble (INCIDENTS A).
func (x *exchange) call(w *watch) (*http.Response, error) {
	resp, err := x.attempt(w)
	var unreachable *upstream.ConnectError
	if err == nil || !errors.As(err, &unreachable) || w.ctx.Err() != nil {
		return resp, err
	}
	next := x.to.pool.pick(x.gateway.opts.Clock(), x.endpoint)
	if next == nil {
		return nil, err
	}
	x.take(next)
	x.series.Retried()
	return x.attempt(w)
}

func (x *exchange) attempt(w *watch) (*http.Response, error) {
	x.called = true
	x.record.Attempts++
	return x.to.pool.dependency.client.Do(x.upstreamRequest(w.traced()))
}

// upstreamRequest is built from the endpoint's address and the path and query
// of the caller's; its Host header is never used.
func (x *exchange) upstreamRequest(ctx context.Context) *http.Request {
	u := *x.endpoint.url
	if raw := x.r.URL.EscapedPath(); raw != x.r.URL.Path {
		u.RawPath = u.EscapedPath() + raw
	}
	u.Path += x.r.URL.Path
	u.RawQuery = x.r.URL.RawQuery
	r := &http.Request{
		Method: x.r.Method, URL: &u, Host: u.Host, Header: x.upstreamHeader(),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: http.NoBody,
	}
	if x.body != nil && len(x.body.bytes) > 0 {
		r.Body, r.ContentLength = x.body.reader(), int64(len(x.body.bytes))
	}
	return r.WithContext(ctx)
}

// failure turns a failed call or a failed read into the gateway's answer.
func (x *exchange) failure(w *watch, err error) *refusal {
	outcome, reason := x.diagnose(w, err)
	return failed(outcome, reason)
}

// diagnose says what ended a call: a limit, the caller, or the upstream.
func (x *exchange) diagnose(w *watch, err error) (policy.Outcome, string) {
	var unreachable *upstream.ConnectError
	cause := context.Cause(w.ctx)
	switch {
	case errors.Is(cause, errFirstByte):
		return policy.OutcomeTimeoutFirstByte, cause.Error()
	case errors.Is(cause, errIdle):
		return policy.OutcomeTimeoutIdle, cause.Error()
	case errors.Is(cause, errTotal):
		return policy.OutcomeTimeoutTotal, cause.Error()
	case errors.Is(cause, errPatience), errors.Is(cause, errReader):
		return policy.OutcomeClientCancelled, cause.Error()
	case x.r.Context().Err() != nil:
		return policy.OutcomeClientCancelled, "the caller left"
	case errors.As(err, &unreachable):
		return policy.OutcomeUpstreamUnreachable, unreachable.Error()
	default:
		return policy.OutcomeUpstreamCut, "the connection broke: " + err.Error()
	}
}

// failed is the answer for an outcome that left the caller without one.
func failed(o policy.Outcome, reason string) *refusal {
	no := &refusal{outcome: o, reason: reason, kind: serverError, code: string(o), status: http.StatusBadGateway}
	switch o {
	case policy.OutcomeTimeoutFirstByte, policy.OutcomeTimeoutIdle, policy.OutcomeTimeoutTotal:
		// A timeout is not repeated: whoever is slow is slow under load (INCIDENTS A).
		no.status, no.kind, no.noRetry = http.StatusGatewayTimeout, timeoutError, true
		no.message = "The upstream did not answer in time."
	case policy.OutcomeClientCancelled:
		no.status, no.kind, no.noRetry = statusClientGone, timeoutError, true
		no.message = "The caller left."
		if reason == errPatience.Error() {
			no.status = http.StatusRequestTimeout
			no.message = "The deadline of the request passed."
		}
	case policy.OutcomeUpstreamUnreachable:
		no.message = "No connection to the upstream could be made."
	case policy.OutcomeUpstreamCut:
		no.message = "The upstream's answer broke off."
	case policy.OutcomeUpstreamEmpty:
		no.message = "The upstream's answer was empty."
	case policy.OutcomeUpstreamMisconfigured:
		no.message, no.noRetry = "The upstream refused the gateway's credential or account. Its operator has to act.", true
	case policy.OutcomeUpstreamError:
		no.message = "The upstream answered with an error."
	default:
		no.message = fmt.Sprintf("The request ended as %s.", o)
	}
	return no
}

// holdBack keeps a throttled endpoint out of the choice for as long as it asked (C45).
func (x *exchange) holdBack(resp *http.Response) {
	const most = time.Minute
	now := x.gateway.opts.Clock()
	if wait, ok := upstream.RetryAfter(resp.Header.Get("Retry-After"), now, most); ok && wait > 0 {
		x.endpoint.slot.heldUntil.Store(now.Add(wait).UnixNano())
	}
}
