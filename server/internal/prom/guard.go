package prom

import (
	"errors"
	"io"
	"net/http"
)

// errAnswerTooLong ends an answer beyond RemoteOptions.MaxAnswer.
var errAnswerTooLong = errors.New("the answer is longer than is taken: ask for less")

// guard adds the credentials and bounds the answers.
type guard struct {
	next   http.RoundTripper
	limit  int64
	header string // of Authorization; empty: none
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	if g.header != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", g.header)
	}
	answer, err := g.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answer.Body = &bounded{ReadCloser: answer.Body, left: g.limit}
	return answer, nil
}

// CloseIdleConnections is found by http.Client.
func (g *guard) CloseIdleConnections() {
	if c, ok := g.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// bounded fails instead of ending silently: half an answer is not an answer.
type bounded struct {
	io.ReadCloser
	left int64
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errAnswerTooLong
	}
	return n, err
}
