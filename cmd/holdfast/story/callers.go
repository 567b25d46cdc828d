package story

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

const (
	// callDeadline is how long a caller waits for one attempt, a little more than
	// the gateway's read timeout on the day of INCIDENTS A.
	callDeadline = 7 * time.Second
	// callRetries is how often a caller tries again, as the usual SDKs do (INCIDENTS A).
	callRetries = 2
	// maxOpen bounds the calls that are open at once.
	maxOpen = 512
)

// callers send chat requests at a steady mean rate and count what becomes of them.
type callers struct {
	gateways []string
	key      string
	rate     float64
	tally    *tally
	client   *http.Client
}

func newCallers(gateways []string, key string, rate float64) *callers {
	return &callers{
		gateways: gateways, key: key, rate: rate, tally: newTally(time.Now()),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: maxOpen}},
	}
}

// run sends until ctx ends and waits for what is open. The seed fixes arrivals,
// gateways and request kinds.
func (c *callers) run(ctx context.Context, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	var open sync.WaitGroup
	slots := make(chan struct{}, maxOpen)
	defer c.client.CloseIdleConnections()
	defer open.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	due := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		gateway, stream, jitter := c.gateways[rng.IntN(len(c.gateways))], rng.IntN(3) == 0, rng.Float64()
		select {
		case slots <- struct{}{}:
			open.Go(func() {
				defer func() { <-slots }()
				c.call(ctx, gateway, stream, jitter)
			})
		default: // every caller is waiting already
		}
		// Poisson arrivals; what is late is made up for.
		due = due.Add(time.Duration(rng.ExpFloat64() / c.rate * float64(time.Second)))
		timer.Reset(time.Until(due))
	}
}

// call is one caller with its retries.
func (c *callers) call(ctx context.Context, gateway string, stream bool, jitter float64) {
	pause := 500 * time.Millisecond
	for attempt := 1; ; attempt++ {
		r, again := c.attempt(ctx, gateway, stream)
		if ctx.Err() != nil {
			return // the story is over; this call says nothing
		}
		if !again || attempt > callRetries {
			c.tally.finish(time.Now(), r, attempt)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(float64(pause) * (0.75 + 0.5*jitter))):
		}
		pause *= 2
	}
}

// attempt makes one request; again says whether an SDK would retry it.
func (c *callers) attempt(ctx context.Context, gateway string, stream bool) (r result, again bool) {
	ctx, cancel := context.WithTimeout(ctx, callDeadline)
	defer cancel()
	body := fmt.Sprintf(`{"model":"demo-model","max_tokens":32,"stream":%t,"messages":[{"role":"user","content":"Where is my order?"}]}`, stream)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, gateway+"/v1/chat/completions", bytes.NewReader([]byte(body)))
	if err != nil {
		return failed, false
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+c.key)
	resp, err := c.client.Do(req)
	if err != nil {
		return failed, true
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return judge(resp, answer, err, stream)
}

// judge says what an answer is worth, as a caller would.
func judge(resp *http.Response, answer []byte, err error, stream bool) (r result, again bool) {
	retried := resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= http.StatusInternalServerError
	if resp.Header.Get("X-Should-Retry") == "false" {
		retried = false
	}
	switch {
	case resp.Header.Get("X-Degraded") != "" && resp.StatusCode == http.StatusOK:
		return degraded, false
	case resp.StatusCode == http.StatusTooManyRequests:
		return refused, retried
	case resp.StatusCode != http.StatusOK:
		return failed, retried
	case err != nil, len(bytes.TrimSpace(answer)) == 0, stream && !bytes.Contains(answer, []byte("[DONE]")):
		return failed, false
	default:
		return good, false
	}
}
