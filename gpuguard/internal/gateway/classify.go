package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"holdfast/gpuguard/internal/gateway/scan"
	"holdfast/gpuguard/policy"
)

// classify reads the body and learns from it what later stages decide on:
// whether a stream is asked for, how long the caller waits, how long the
// context is (bytes bound tokens from above).
func (x *exchange) classify() *refusal {
	if no := x.takeBody(); no != nil {
		return no
	}
	var doc scan.JSON
	if x.body != nil {
		if trimmed := bytes.TrimLeft(x.body.bytes, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '{' {
			doc.Write(trimmed)
		}
	}
	x.stream = doc.True(scan.Stream) || acceptsEvents(x.r.Header)
	return x.readPatience(&doc)
}

func acceptsEvents(h http.Header) bool {
	return strings.HasPrefix(strings.ToLower(strings.TrimSpace(h.Get("Accept"))), "text/event-stream")
}

// readPatience takes the caller's deadline from header or body.
func (x *exchange) readPatience(doc *scan.JSON) *refusal {
	if v := x.r.Header.Get("X-Request-Timeout"); v != "" {
		s, err := strconv.ParseFloat(v, 64)
		if err != nil || !(s > 0) || math.IsInf(s, 0) {
			return badRequest("invalid_timeout", "X-Request-Timeout wants seconds above 0, such as 30 or 0.5.")
		}
		x.patience = seconds(s)
	} else if s, ok := doc.Number(scan.Timeout); ok && s > 0 {
		x.patience = seconds(s)
	}
	return nil
}

// seconds converts with a bound no deadline needs to exceed.
func seconds(s float64) time.Duration {
	const day = 24 * time.Hour
	return time.Duration(min(s, day.Seconds()) * float64(time.Second))
}

// takeBody reads the whole body, within the route's cap and the body limit.
func (x *exchange) takeBody() *refusal {
	if x.r.Body == nil || x.r.Body == http.NoBody {
		return nil
	}
	most := x.to.maxBody
	if x.r.ContentLength > most {
		return tooLarge(most)
	}
	if x.r.Header.Get("Expect") != "" {
		// The interim answer is written by the first read; the write limit of
		// the connection's last answer may lie in the past.
		_ = x.out.control.SetWriteDeadline(time.Time{})
	}
	_ = x.out.control.SetReadDeadline(time.Now().Add(x.gateway.opts.BodyTimeout))
	b, err := readBody(x.r.Body, x.r.ContentLength, most)
	if err != nil {
		return x.bodyFailed(err, most)
	}
	// Without this the limit would later end the watch for the caller's departure.
	_ = x.out.control.SetReadDeadline(time.Time{})
	x.body = b
	x.record.RequestBytes = int64(len(b.bytes))
	return nil
}

func (x *exchange) bodyFailed(err error, most int64) *refusal {
	switch {
	case errors.Is(err, errTooLarge):
		return tooLarge(most)
	case errors.Is(err, os.ErrDeadlineExceeded):
		x.w.Header().Set("Connection", "close")
		return &refusal{
			outcome: policy.OutcomeBadRequest, status: http.StatusRequestTimeout,
			kind: timeoutError, code: "request_body_timeout", message: "The request body did not arrive in time.",
			reason: "slow body", noRetry: true,
		}
	case errors.Is(err, io.ErrUnexpectedEOF), x.r.Context().Err() != nil, errors.Is(err, context.Canceled):
		return &refusal{
			outcome: policy.OutcomeClientCancelled, status: statusClientGone,
			kind: invalidRequest, code: "incomplete_body", message: "The request body ended early.",
			reason: "caller left while sending", noRetry: true,
		}
	}
	return badRequest("invalid_body", "The request body could not be read: its framing is wrong.")
}

// statusClientGone is what callers that left would be told; the log shows it.
const statusClientGone = 499

func tooLarge(most int64) *refusal {
	return &refusal{
		outcome: policy.OutcomeBodyTooLarge, status: http.StatusRequestEntityTooLarge,
		kind: invalidRequest, code: "body_too_large",
		message: fmt.Sprintf("The request body is over this route's cap of %d bytes.", most),
		reason:  "over max_body_bytes", noRetry: true,
	}
}
