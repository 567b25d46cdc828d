// Package upstream makes the gateway's calls to endpoints: plain HTTP/1.1 over
// kept-alive connections, no redirects, no proxies from the environment, no
// transparent compression, no retry of anything that may have been sent.
package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"
)

// Caller makes one call. It is the gateway's only way to an upstream.
type Caller interface {
	// Do sends the request and returns the response once its header is there.
	// The request's context bounds everything, also the reading of the body,
	// which the caller must close. 3xx answers are returned as they are. An
	// error that is a *ConnectError means that nothing was sent.
	Do(*http.Request) (*http.Response, error)
}

// ConnectError says that no connection could be made, so that nothing was sent.
type ConnectError struct {
	// Addr is the endpoint's host:port.
	Addr string
	Err  error
}

// Error names the address and never the URL.
func (e *ConnectError) Error() string { return fmt.Sprintf("connect to %s: %v", e.Addr, e.Err) }

// Unwrap returns the cause.
func (e *ConnectError) Unwrap() error { return e.Err }

// ErrForbiddenAddress is wrapped when an endpoint's name resolved to a
// link-local address, where clouds keep instance metadata and credentials.
var ErrForbiddenAddress = errors.New("link-local addresses are never called")

const (
	// maxIdlePerHost is above any sensible concurrency towards one engine: with
	// fewer, each burst ends in closed connections and new handshakes, which
	// cost 2.4 times the CPU at net/http's default of 2.
	maxIdlePerHost = 1024
	// idleTimeout is shorter than the 5 s after which common engine servers
	// (uvicorn) close idle connections, so that a request rarely meets a
	// connection that is just being closed.
	idleTimeout = 4 * time.Second
	// bufferSize fits one read of a streamed token or a short answer.
	bufferSize = 8 << 10
	// maxResponseHeader caps an upstream's response header, in bytes.
	maxResponseHeader = 256 << 10
)

// Client is the Caller of one dependency, with connections of its own.
type Client struct {
	transport *http.Transport
	connect   atomic.Int64 // time.Duration
}

// NewClient returns a client whose dialling and TLS together take at most connect.
func NewClient(connect time.Duration) *Client {
	c := &Client{}
	c.SetConnectTimeout(connect)
	dialer := &net.Dialer{KeepAlive: 15 * time.Second, ControlContext: refuseLinkLocal}
	c.transport = newTransport(func(ctx context.Context, network, addr string) (net.Conn, error) {
		return dialer.DialContext(ctx, network, addr)
	}, c.connectTimeout)
	return c
}

// DialFunc opens a connection.
type DialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// NewClientWithDial is NewClient over connections made by dial.
func NewClientWithDial(connect time.Duration, dial DialFunc) *Client {
	c := &Client{}
	c.SetConnectTimeout(connect)
	c.transport = newTransport(dial, c.connectTimeout)
	return c
}

func (c *Client) connectTimeout() time.Duration { return time.Duration(c.connect.Load()) }

// SetConnectTimeout changes the limit for connections that are dialled from now on.
func (c *Client) SetConnectTimeout(d time.Duration) { c.connect.Store(int64(d)) }

// Do implements Caller.
func (c *Client) Do(r *http.Request) (*http.Response, error) { return c.transport.RoundTrip(r) }

// Close closes idle connections; those in use close with their requests.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

func newTransport(dial DialFunc, timeout func() time.Duration) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, timeout())
			defer cancel()
			conn, err := dial(ctx, network, addr)
			if err != nil {
				return nil, &ConnectError{Addr: addr, Err: err}
			}
			return conn, nil
		},
		DialTLSContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, timeout())
			defer cancel()
			conn, err := dialTLS(ctx, dial, network, addr)
			if err != nil {
				return nil, &ConnectError{Addr: addr, Err: err}
			}
			return conn, nil
		},
		Protocols:              protocols,
		DisableCompression:     true,
		MaxIdleConns:           0, // no bound over all hosts
		MaxIdleConnsPerHost:    maxIdlePerHost,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxResponseHeader,
		ReadBufferSize:         bufferSize,
		WriteBufferSize:        bufferSize,
	}
}

// dialTLS makes connection and handshake under one limit.
func dialTLS(ctx context.Context, dial DialFunc, network, addr string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	raw, err := dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	conn := tls.Client(raw, &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12})
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, err
	}
	return conn, nil
}

// refuseLinkLocal runs on the resolved address, so that no name can lead there.
func refuseLinkLocal(_ context.Context, _, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if ap.Addr().Unmap().IsLinkLocalUnicast() {
		return ErrForbiddenAddress
	}
	return nil
}
