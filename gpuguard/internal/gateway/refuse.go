package gateway

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"

	"holdfast/gpuguard/internal/telemetry"
	"holdfast/gpuguard/policy"
)

// Error types of the OpenAI error shape.
const (
	invalidRequest = "invalid_request_error"
	authentication = "authentication_error"
	rateLimit      = "rate_limit_error"
	serverError    = "server_error"
	timeoutError   = "timeout_error"
)

// Headers the gateway adds to answers.
const (
	outcomeHeader  = "X-Gpuguard-Outcome"
	degradedHeader = "X-Degraded"
	retryHeader    = "X-Should-Retry"
	requestIDName  = "X-Request-Id"
)

// refusal is an answer of the gateway's own.
type refusal struct {
	outcome policy.Outcome
	status  int
	kind    string // error type
	code    string
	message string
	reason  string // for the log
	// retryAfter is sent, rounded up to whole seconds ≥ 1, with 429 and 503.
	retryAfter time.Duration
	// noRetry asks client libraries not to repeat the request by themselves.
	noRetry bool
	// degradable refusals are replaced by the route's fallback, when it has one.
	degradable bool
	allow      string // Allow header of a 405
}

type errorBody struct {
	Error errorDetail `json:"error"`
}

type errorDetail struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    string  `json:"code"`
}

// refuse writes the refusal, or the fallback in its place.
func (x *exchange) refuse(no *refusal) {
	x.outcome(no.outcome, no.reason)
	h := x.w.Header()
	h.Set("Cache-Control", "no-store")
	if no.status == http.StatusTooManyRequests || no.status == http.StatusServiceUnavailable {
		h.Set("Retry-After", retryAfterValue(no.retryAfter))
	}
	if no.noRetry {
		h.Set(retryHeader, "false")
	}
	if no.allow != "" {
		h.Set("Allow", no.allow)
	}
	if no.status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	if no.degradable && x.to != nil && x.to.fallback != nil {
		x.degrade(x.to.fallback)
		return
	}
	body, err := json.Marshal(errorBody{errorDetail{Message: no.message, Type: no.kind, Code: no.code}})
	if err != nil { // strings always marshal
		body = nil
	}
	x.answer(no.status, "application/json", append(body, '\n'))
}

// degrade answers with the route's static text, as a stream to whom asked for one.
func (x *exchange) degrade(f *fallback) {
	x.w.Header().Set(degradedHeader, telemetry.KindStatic)
	x.record.Degraded = telemetry.KindStatic
	x.series.Degraded(f.status)
	if x.stream && f.events != nil {
		x.answer(f.status, "text/event-stream", f.events)
		return
	}
	x.answer(f.status, f.contentType, f.body)
}

// answer writes a whole response of the gateway's own.
func (x *exchange) answer(status int, contentType string, body []byte) {
	h := x.w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set(outcomeHeader, string(x.record.Outcome))
	h[requestIDName] = []string{x.record.RequestID}
	x.committed = true
	x.out.header(status)
	if err := x.out.write(body); err != nil {
		x.abort = true
	}
}

// retryAfterValue is whole seconds, at least 1, as every client understands them.
func retryAfterValue(d time.Duration) string {
	s := math.Ceil(d.Seconds())
	return strconv.FormatInt(int64(min(max(1, s), maxRetryAfter.Seconds())), 10)
}

// maxRetryAfter is told where no end is known, and bounds long leases: whoever
// waits longer than this should ask again.
const maxRetryAfter = time.Hour
