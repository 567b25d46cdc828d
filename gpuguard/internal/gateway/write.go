package gateway

import (
	"net/http"
	"time"
)

// responseWriter writes to the caller and remembers what it was told. Each
// write has a limit, so that a caller who does not read cannot hold a slot.
type responseWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration
	armed   time.Time // when the write limit was last set
	status  int
	bytes   int64
}

func newResponseWriter(w http.ResponseWriter, timeout time.Duration) responseWriter {
	return responseWriter{w: w, control: http.NewResponseController(w), timeout: timeout}
}

// header sends the status line and header with the first write.
func (o *responseWriter) header(status int) {
	o.status = status
	o.arm()
	o.w.WriteHeader(status)
}

func (o *responseWriter) write(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	o.arm()
	n, err := o.w.Write(p) //nolint:gosec // the bytes are the upstream's answer or the policy's own text, sent with its own content type
	o.bytes += int64(n)
	return err
}

// flush pushes what was written to the network.
func (o *responseWriter) flush() error { return o.control.Flush() }

// arm moves the write limit on, not more than once a second because a stream
// writes far more often than that.
func (o *responseWriter) arm() {
	now := time.Now()
	if !o.armed.IsZero() && now.Sub(o.armed) < time.Second {
		return
	}
	o.armed = now
	// Writers without limits (tests, other servers) do without.
	_ = o.control.SetWriteDeadline(now.Add(o.timeout))
}
