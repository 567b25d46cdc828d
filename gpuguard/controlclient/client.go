package controlclient

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"holdfast/gpuguard/policy"
)

// Timing of the link.
const (
	// heartbeatEvery renews the membership lease.
	heartbeatEvery = policy.HeartbeatEverySeconds * time.Second
	// silenceLimit ends a stream that stopped without a word: the server sends
	// at least a comment every 5 s, so this is three in a row missed.
	silenceLimit = 15 * time.Second
	// ackTimeout bounds one acknowledgement.
	ackTimeout = 5 * time.Second
)

// Client keeps one gateway in step with one server.
type Client struct {
	opts    Options
	http    *http.Client
	metrics *metrics
	store   store
	// kick asks the acknowledgement loop for a post at once.
	kick chan struct{}

	mu sync.Mutex
	// held is the update in force; nil when there is none.
	held *policy.Update
	// result, rejected and applied describe the last update handled.
	result   policy.AckResult
	rejected rejection
	applied  time.Duration
	status   Status
}

// rejection is the newest refused revision and why.
type rejection struct {
	revision int64
	reason   string
}

// New checks the options, makes StateDir when it is missing and registers
// metrics. It connects to nothing; Run does.
func New(o Options) (*Client, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	if o.Instance == "" {
		o.Instance = rand.Text()
	}
	if o.StateDir != "" {
		if err := os.MkdirAll(o.StateDir, 0o700); err != nil {
			return nil, fmt.Errorf("state folder: %w", err)
		}
	}
	c := &Client{
		opts:  o,
		http:  streamClient(o.HTTPClient),
		store: store{dir: o.StateDir},
		kick:  make(chan struct{}, 1),
	}
	if o.Held != nil {
		held := *o.Held
		c.held, c.result = &held, policy.AckApplied
		c.store.leases = len(held.Overrides)
		c.kick <- struct{}{}
	}
	var err error
	if c.metrics, err = newMetrics(o.Registerer, c); err != nil {
		return nil, err
	}
	return c, nil
}

// streamClient is a client without an overall time limit, which would cut the
// stream, and without redirects, which could carry the token elsewhere.
func streamClient(given *http.Client) *http.Client {
	c := &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
	if given != nil {
		*c = *given
	}
	c.Timeout = 0
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c
}

// Run holds stream and heartbeat until ctx ends, reconnecting for as long as it
// takes. When it returns, nothing of the client runs any more. It is called once.
func (c *Client) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { c.streamLoop(ctx) })
	wg.Go(func() { c.ackLoop(ctx) })
	wg.Wait()
	if c.opts.HTTPClient == nil {
		c.http.CloseIdleConnections()
	}
}

// Status is a snapshot; it may be called at any time.
func (c *Client) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.status
	if c.held != nil {
		s.Lineage, s.Revision = c.held.Lineage, c.held.Revision
	}
	s.RejectedRevision, s.RejectedReason = c.rejected.revision, c.rejected.reason
	return s
}

// setStatus changes the status under the lock.
func (c *Client) setStatus(change func(*Status)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.status)
}

// current is the update in force; nil when there is none. It is never changed
// in place, so that it may be read without the lock.
func (c *Client) current() *policy.Update {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held
}

// kickAck asks for an acknowledgement at once; one pending request is enough.
func (c *Client) kickAck() {
	select {
	case c.kick <- struct{}{}:
	default:
	}
}
