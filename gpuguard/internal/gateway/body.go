package gateway

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"sync/atomic"
)

const (
	// smallBody is allocated for each request; larger bodies take a buffer of
	// the pool.
	smallBody = 4 << 10
	// firstStep is the size of a pooled buffer, grown while a longer body comes.
	firstStep = 64 << 10
	// keptBody is the largest buffer that goes back to the pool.
	keptBody = 1 << 20
)

var bodies = sync.Pool{New: func() any {
	b := make([]byte, 0, firstStep)
	return &b
}}

// body is a request body in memory. The transport may go on reading it after
// the call returned, so its buffer is reused only when every reader closed and
// the exchange let go of it.
type body struct {
	bytes   []byte
	pooled  *[]byte
	holders atomic.Int32
}

// reader returns the body for one attempt.
func (b *body) reader() io.ReadCloser {
	b.holders.Add(1)
	return &bodyReader{Reader: *bytes.NewReader(b.bytes), of: b}
}

// release is called once by each holder.
func (b *body) release() {
	if b.holders.Add(-1) > 0 || b.pooled == nil {
		return
	}
	if cap(b.bytes) <= keptBody {
		*b.pooled = b.bytes[:0]
		bodies.Put(b.pooled)
	}
	b.bytes, b.pooled = nil, nil
}

type bodyReader struct {
	bytes.Reader
	of     *body
	closed atomic.Bool
}

// Close implements io.Closer; the transport may close more than once.
func (r *bodyReader) Close() error {
	if !r.closed.Swap(true) {
		r.of.release()
	}
	return nil
}

var errTooLarge = errors.New("body is over the cap")

// readBody reads to the end, or fails with errTooLarge once more than most
// bytes came. Memory is taken as bytes arrive, not as the length promises;
// length is -1 when it is not known.
func readBody(r io.Reader, length, most int64) (*body, error) {
	b := &body{}
	b.holders.Store(1)
	if length >= 0 && length <= smallBody {
		b.bytes = make([]byte, 0, length+1) // one more to see the end without growing
	} else {
		b.pooled = bodies.Get().(*[]byte)
		b.bytes = *b.pooled
	}
	for {
		if len(b.bytes) == cap(b.bytes) {
			b.bytes = grow(b.bytes, length)
		}
		n, err := r.Read(b.bytes[len(b.bytes):cap(b.bytes)])
		b.bytes = b.bytes[:len(b.bytes)+n]
		switch {
		case int64(len(b.bytes)) > most:
			err = errTooLarge
		case err == io.EOF:
			return b, nil
		}
		if err != nil {
			b.release()
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
