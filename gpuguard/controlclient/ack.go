package controlclient

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"holdfast/gpuguard/policy"
)

// ackLoop posts an acknowledgement after each update and every heartbeatEvery.
// It is apart from the stream: a gateway whose stream is being reopened is
// still a member. A post that failed is tried again before the next heartbeat.
func (c *Client) ackLoop(ctx context.Context) {
	var wait backoff
	timer := time.NewTimer(heartbeatEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.kick:
		case <-timer.C:
			c.refresh()
		}
		next := heartbeatEvery
		err := c.postAck(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			next = wait.next()
			c.ackFailed(err)
		default:
			wait.reset()
			c.setStatus(func(s *Status) { s.AckError = "" })
		}
		timer.Reset(next)
	}
}

// refresh rewrites the last-known-good file while leases run, so that the time
// that passed is on disk and no clock that went back gives it to a lease again.
func (c *Client) refresh() {
	if c.store.holdsLeases() {
		c.save()
	}
}

func (c *Client) ackFailed(err error) {
	c.setStatus(func(s *Status) { s.AckError = err.Error() })
	c.metrics.ackFailed()
	c.opts.Logger.Warn("acknowledgement was not taken", "error", err)
}

// postAck sends the present state; before the first update there is nothing to acknowledge.
func (c *Client) postAck(ctx context.Context) error {
	ack, ok := c.ack()
	if !ok {
		return nil
	}
	body, err := json.Marshal(ack)
	if err != nil {
		return fmt.Errorf("acknowledgement: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, ackTimeout)
	defer cancel()
	req, err := c.request(ctx, http.MethodPost, "policy/ack", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return statusError(resp)
	}
	// Read what is left, so that the connection can be used again.
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	return nil
}

func (c *Client) ack() (policy.Ack, bool) {
	state := c.opts.State()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.result == "" {
		return policy.Ack{}, false
	}
	ack := policy.Ack{
		Gateway:  c.opts.Gateway,
		Instance: c.opts.Instance,
		Version:  c.opts.Version,
		Result:   c.result,
		State:    state,
	}
	if c.held != nil {
		ack.Lineage, ack.Revision, ack.ApplySeconds = c.held.Lineage, c.held.Revision, c.applied.Seconds()
	}
	if c.result == policy.AckRejected {
		ack.Error, ack.RejectedRevision = c.rejected.reason, c.rejected.revision
	}
	return ack, true
}
