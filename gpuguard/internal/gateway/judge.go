package gateway

import (
	"bytes"
	"net/http"
	"strings"

	"holdfast/gpuguard/internal/gateway/scan"
	"holdfast/gpuguard/policy"
)

// judge looks at an answer while it passes and says what it was.
type judge struct {
	status int
	form   form
	due    bool // a judged body must come
	events bool // text/event-stream, judged or not
	hold   bool // keep the answer back until it ended or the buffer is full
	bytes  int64
	json   scan.JSON
	sse    scan.Events
	// accountFault: the text of a 4xx speaks of our account (C45).
	accountFault bool
}

// form is how the body is judged.
type form byte

const (
	opaque   form = iota // only whether there is one
	document             // one JSON document
	stream               // server-sent events
)

func newJudge(resp *http.Response, method string, expectJSON bool) *judge {
	j := &judge{status: resp.StatusCode, events: isEventStream(resp.Header.Get("Content-Type"))}
	j.due = expectJSON && method != http.MethodHead && bodyExpected(resp.StatusCode)
	encoding := resp.Header.Get("Content-Encoding")
	switch plain := encoding == "" || encoding == "identity"; {
	case !j.due || !plain:
	case j.events:
		j.form = stream
	default:
		j.form = document
	}
	short := resp.ContentLength >= 0 && resp.ContentLength <= bufferBytes
	j.hold = j.form == document || j.status >= http.StatusBadRequest || short && !j.events
	return j
}

func bodyExpected(status int) bool {
	return status >= http.StatusOK && status < http.StatusMultipleChoices &&
		status != http.StatusNoContent && status != http.StatusResetContent
}

func isEventStream(contentType string) bool {
	const kind = "text/event-stream"
	return len(contentType) >= len(kind) && strings.EqualFold(contentType[:len(kind)], kind)
}

// write takes the next bytes of the body.
func (j *judge) write(p []byte) {
	j.bytes += int64(len(p))
	switch j.form {
	case document:
		j.json.Write(p)
	case stream:
		j.sse.Write(p)
	case opaque:
	}
}

// inspect looks at the held begin of an answer before it is passed on.
func (j *judge) inspect(held []byte) {
	if j.status >= http.StatusBadRequest && j.status < http.StatusInternalServerError {
		j.accountFault = speaksOfAccount(held)
	}
}

// accountTexts are phrases of well-known APIs for an account without money.
var accountTexts = [][]byte{
	[]byte("insufficient_quota"), []byte("billing_hard_limit_reached"), []byte("billing_not_active"),
	[]byte("credit balance"), []byte("account_deactivated"),
}

func speaksOfAccount(p []byte) bool {
	lower := bytes.ToLower(p)
	for _, t := range accountTexts {
		if bytes.Contains(lower, t) {
			return true
		}
	}
	return false
}

// ready says that the header may go to the caller before the body ended.
func (j *judge) ready() bool {
	if j.form == stream {
		return j.sse.Decided()
	}
	return !j.hold
}

// failedEarly says that the answer is known to be a failure while nothing was sent.
func (j *judge) failedEarly() bool { return j.form == stream && j.sse.FirstFailed() }

// byStatus is the outcome that the status alone decides; "" when the body counts.
func (j *judge) byStatus() (policy.Outcome, string) {
	switch s := j.status; {
	case s == http.StatusUnauthorized, s == http.StatusForbidden, s == http.StatusPaymentRequired:
		return policy.OutcomeUpstreamMisconfigured, "upstream status " + http.StatusText(s)
	case s >= http.StatusBadRequest && s < http.StatusInternalServerError && j.accountFault:
		return policy.OutcomeUpstreamMisconfigured, "upstream refuses the account"
	case s == http.StatusTooManyRequests:
		return policy.OutcomeUpstreamThrottled, ""
	case s >= http.StatusInternalServerError:
		return policy.OutcomeUpstreamError, "upstream status " + http.StatusText(s)
	case s >= http.StatusBadRequest:
		return policy.OutcomeClientFault, ""
	}
	return "", ""
}

// final is the outcome of an answer that came to the end of its framing.
func (j *judge) final() (policy.Outcome, string) {
	if o, why := j.byStatus(); o != "" {
		return o, why
	}
	if !j.due {
		return policy.OutcomeOK, ""
	}
	if j.bytes == 0 {
		return policy.OutcomeUpstreamEmpty, "no body"
	}
	switch j.form {
	case document:
		return j.finalDocument()
	case stream:
		return j.finalStream()
	case opaque:
	}
	return policy.OutcomeOK, ""
}

func (j *judge) finalDocument() (policy.Outcome, string) {
	switch top := j.json.Top(); {
	case top == scan.Absent:
		return policy.OutcomeUpstreamEmpty, "nothing but white space"
	case top == scan.Invalid:
		return policy.OutcomeUpstreamError, "not JSON"
	case j.json.Set(scan.Error):
		return policy.OutcomeUpstreamError, "error inside a success"
	case !j.json.Whole():
		return policy.OutcomeUpstreamCut, "the document has no end"
	}
	return policy.OutcomeOK, ""
}

func (j *judge) finalStream() (policy.Outcome, string) {
	j.sse.End()
	switch {
	case j.sse.Failed():
		return policy.OutcomeUpstreamError, "error event"
	case j.sse.Seen() == 0:
		return policy.OutcomeUpstreamEmpty, "no event"
	case !j.sse.Terminal():
		return policy.OutcomeUpstreamCut, "the stream has no end mark"
	}
	return policy.OutcomeOK, ""
}
