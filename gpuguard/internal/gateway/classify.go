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
	if no := x.readBody(); no != nil {
		return no
	}
	x.record.RequestBytes = int64(len(x.body))
	var doc scan.JSON
	if trimmed := bytes.TrimLeft(x.body, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '{' {
		doc.Write(trimmed)
	}
	x.askedStream = doc.True(scan.Stream) || acceptsOnlyEvents(x.r.Header)
	x.stream = x.askedStream
	return x.readPatience(&doc)
}

func acceptsOnlyEvents(h http.Header) bool {
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

// readBody reads the whole body, within the route's cap and the body limit.
func (x *exchange) readBody() *refusal {
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
	body, err := readUpTo(x.r.Body, x.r.ContentLength, most)
	if err != nil {
		return x.bodyFailed(err, most)
	}
	// Without this the limit would later end the watch for the caller's departure.
	_ = x.out.control.SetReadDeadline(time.Time{})
	x.body = body
	return nil
}

var errTooLarge = errors.New("body is over the cap")

// readUpTo reads to the end, or fails with errTooLarge once more than most
// bytes came. It allocates as bytes arrive, not as the length promises.
func readUpTo(r io.Reader, length, most int64) ([]byte, error) {
	const step = 64 << 10
	size := int64(step)
	if length >= 0 {
		size = min(length, step)
	}
	buf := make([]byte, 0, size+1)
	for {
		if len(buf) == cap(buf) {
			buf = grow(buf, length)
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case int64(len(buf)) > most:
			return nil, errTooLarge
		case err == io.EOF:
			return buf, nil
		case err != nil:
			return nil, err
		}
	}
}

// grow makes room: in large steps towards a promised length, by doubling without one.
func grow(buf []byte, length int64) []byte {
	const factor = 8
	size := 2 * cap(buf)
	if length > int64(len(buf)) {
		size = int(min(length+1, int64(factor*cap(buf))))
	}
	return append(make([]byte, 0, size), buf...)
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
