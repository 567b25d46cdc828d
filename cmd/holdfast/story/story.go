// Package story plays an outage on a running demo and tells what happens: the
// engine gets its fault, callers suffer and retry, and from then on the product
// and the person in front of it do the rest. It only watches.
package story

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"holdfast/gpuguard/enginesim"
	"holdfast/server/api/client"
)

// SlowModel is outage A: a new model version decodes four times slower.
const SlowModel = "slow-model"

// Names are the stories there are.
func Names() []string { return []string{SlowModel} }

// Options say where the demo is.
type Options struct {
	// Name is one of Names; Seed fixes arrivals and faults.
	Name string
	Seed uint64
	// Gateways are base URLs, Key a tenant's key.
	Gateways []string
	Key      string
	// Engine is the one that gets the fault.
	Engine *enginesim.Engine
	// Server is the API's base URL, Login a one-time link of a viewer, CIToken a
	// pipeline's token.
	Server, Login, CIToken string
	// Card says when the first card since a time was posted; false when there is none yet.
	Card func(since time.Time) (time.Time, bool)
	// Slack and Console are shown in cues.
	Slack, Console string
	// Warmup is the healthy time before the fault, Hold the time between calm and
	// the rollback of the model.
	Warmup, Hold time.Duration
	// Out gets the cues for people, Events one JSON object per line; Events may be nil.
	Out    io.Writer
	Events io.Writer
}

// ReadTimeout is the gateway's on the day, shorter than what a slow model needs (INCIDENTS A).
const ReadTimeout = 5 * time.Second

// Profile is the story's engine: a small one, so that one machine can overload
// it. It sustains about 34 requests/s of 32 output tokens, and about 8.6 when
// decode is four times slower.
func Profile() enginesim.Profile {
	p := enginesim.DefaultProfile()
	p.Slots = 32
	return p
}

const (
	// callRate is the offered load (calls/s), what the healthy engine sustains with a little room.
	callRate = 28
	// calmRatio is the share of failed calls at which the bleeding has stopped (INCIDENTS A: 23 % became 5 %).
	calmRatio = 0.05
	// lookBack is the window of the told figures.
	lookBack = 10 * time.Second
	// lookEvery is how often the story looks.
	lookEvery = 250 * time.Millisecond
	// remindEvery is how often a person who does nothing is told what could be done.
	remindEvery = 45 * time.Second
	// patience bounds the wait for the product's own steps, such as the alert.
	patience = 5 * time.Minute
	// service and environment are the demo's.
	service, environment = "llm", "prod"
)

// slowKnobs are the faulty version of INCIDENTS A: 30 → 120 ms/token, scratch
// buffers 30 % bigger, some fragmentation, and a few answers empty. (There 3 of
// 20 were empty, under overload; here the share is the version's own.)
func slowKnobs(seed uint64) enginesim.Knobs {
	k := enginesim.DefaultKnobs()
	k.Seed, k.DecodeMultiplier, k.ScratchMultiplier, k.FragmentationRatio, k.EmptyRatio = seed, 4, 1.3, 0.18, 0.02
	return k
}

// Event is one thing that happened.
type Event struct {
	At time.Time `json:"at"`
	// SinceFault is in seconds; negative before the fault.
	SinceFault float64 `json:"since_fault_seconds"`
	Kind       string  `json:"event"`
	Text       string  `json:"text"`
	// Callers is what callers saw in the last ten seconds.
	Callers Share `json:"callers"`
}

// player is a story being played.
type player struct {
	Options
	callers *callers
	watch   viewer
	fault   time.Time
}

// Play plays the story to its end or until ctx ends; then the error is ctx's.
func Play(ctx context.Context, o Options) error {
	if o.Name != SlowModel {
		return fmt.Errorf("unknown story %q: there is %v", o.Name, Names())
	}
	watch, err := login(ctx, o.Server, o.Login)
	if err != nil {
		return fmt.Errorf("story: %w", err)
	}
	p := &player{Options: o, callers: newCallers(o.Gateways, o.Key, callRate), watch: watch}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { defer close(done); p.callers.run(ctx, o.Seed) }()
	defer func() { cancel(); <-done }()
	return p.slowModel(ctx)
}

// tell prints a cue and writes the event.
func (p *player) tell(kind, format string, args ...any) {
	e := Event{At: time.Now(), Kind: kind, Text: fmt.Sprintf(format, args...), Callers: p.callers.tally.window(time.Now(), lookBack)}
	mark := "      "
	if !p.fault.IsZero() {
		e.SinceFault = e.At.Sub(p.fault).Seconds()
		mark = fmt.Sprintf("%+5.0fs", e.SinceFault)
	}
	fmt.Fprintf(p.Out, "  %s  %s\n", mark, e.Text)
	if p.Events == nil {
		return
	}
	if line, err := json.Marshal(e); err == nil {
		_, _ = fmt.Fprintf(p.Events, "%s\n", line)
	}
}

// until looks again and again until look says true; every says how often it is
// reminded, with what remind tells. A limit of 0 waits for ever.
func (p *player) until(ctx context.Context, limit time.Duration, look func() (bool, error), remind func()) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	begun := time.Now()
	reminded := begun
	for {
		ok, err := look()
		if ok {
			return nil
		}
		if err != nil && limit > 0 && time.Since(begun) > limit {
			return err
		}
		if limit > 0 && time.Since(begun) > limit {
			return errLate
		}
		if remind != nil && time.Since(reminded) > remindEvery {
			reminded = time.Now()
			remind()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// errLate says that the product did not do its part in time.
var errLate = errors.New("nothing happened in time")

func (p *player) wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

func value[T any](v *T) (out T) {
	if v != nil {
		out = *v
	}
	return out
}

func live(r client.ActionRun) bool {
	return r.Status == client.ActionRunStatusActive || r.Status == client.ActionRunStatusExecuting || r.Status == client.ActionRunStatusAccepted
}
