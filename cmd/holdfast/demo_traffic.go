package main

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

const (
	// maxTraffic bounds the demo's load: it is company for the buttons, not a load test.
	maxTraffic = 500
	// maxInFlight bounds what piles up while an engine is slow.
	maxInFlight = 256
	// demoDeadline is how long the demo's callers wait.
	demoDeadline = 30 * time.Second
)

// call is one kind of background request.
type call struct {
	path, key, body string
}

var calls = []call{
	{"/v1/chat/completions", demoKeyAcme, `{"model":"demo-model","max_tokens":24,"messages":[{"role":"user","content":"Where is my order?"}]}`},
	{"/v1/chat/completions", demoKeyRetail, `{"model":"demo-model","max_tokens":48,"stream":true,"messages":[{"role":"user","content":"Suggest a gift for a climber."}]}`},
	{"/v1/embeddings", demoKeyAcme, `{"model":"demo-embeddings","input":"red climbing rope 60 m"}`},
}

// startTraffic sends requests at a steady rate, spread over the gateways, until ctx ends.
func (d *demoRun) startTraffic(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	client := &http.Client{Timeout: demoDeadline, Transport: &http.Transport{MaxIdleConnsPerHost: maxInFlight}}
	var wg sync.WaitGroup
	slots := make(chan struct{}, maxInFlight)
	wg.Go(func() {
		tick := time.NewTicker(time.Duration(float64(time.Second) / d.flags.traffic))
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			select {
			case slots <- struct{}{}:
				url := "http://" + d.guards[rand.IntN(len(d.guards))].Addr()
				wg.Go(func() {
					defer func() { <-slots }()
					send(ctx, client, url, calls[rand.IntN(len(calls))])
				})
			default: // the callers are all waiting
			}
		}
	})
	d.stops = append(d.stops, func(context.Context) error {
		cancel()
		wg.Wait()
		client.CloseIdleConnections()
		return nil
	})
}

// send makes one request; what becomes of it shows in the gateway's outcomes.
func send(ctx context.Context, client *http.Client, url string, c call) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+c.path, bytes.NewReader([]byte(c.body)))
	if err != nil {
		return
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+c.key)
	resp, err := client.Do(req)
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
}
