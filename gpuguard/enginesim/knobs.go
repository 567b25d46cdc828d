package enginesim

import (
	"errors"
	"fmt"
	"time"
)

// ErrInvalidKnobs is wrapped by every error about a bad knob value.
var ErrInvalidKnobs = errors.New("invalid knobs")

// Knobs make the engine misbehave. Ratios are shares of requests, 0 to 1. One
// request suffers at most one fault; when several would hit it, the first in
// the order hang, fail, empty, error_in_200, cut wins. Which requests are hit
// depends only on Seed and on the number of the request since the knobs were
// last set.
type Knobs struct {
	// Seed selects which requests are hit.
	Seed uint64 `json:"seed"`
	// DecodeMultiplier slows decode: 4 turns 30 ms/token into 120 ms/token, INCIDENTS A. 0.1 to 1000.
	DecodeMultiplier float64 `json:"decode_multiplier"`
	// FirstTokenDelayMS holds the first token back while the slot stays taken,
	// in milliseconds. 0 to 600000.
	FirstTokenDelayMS int64 `json:"first_token_delay_ms"`
	// FailRatio of requests are answered with FailStatus at once and cost no slot.
	FailRatio float64 `json:"fail_ratio"`
	// FailStatus is the HTTP status of failed requests, 400 to 599.
	FailStatus int `json:"fail_status"`
	// EmptyRatio of requests get HTTP 200 with an empty body, after the full
	// work was done (INCIDENTS A: 3 of 20 probes).
	EmptyRatio float64 `json:"empty_ratio"`
	// CutRatio of streams lose their connection after CutAfterEvents events.
	CutRatio float64 `json:"cut_ratio"`
	// CutAfterEvents is the number of SSE events before the cut. A shorter
	// stream is cut before its [DONE]. 0 cuts before the first event. 0 to 1000000.
	CutAfterEvents int `json:"cut_after_events"`
	// HangRatio of requests are accepted and never answered. They cost no slot
	// and end only when the client leaves or the engine stops.
	HangRatio float64 `json:"hang_ratio"`
	// ErrorIn200Ratio of requests get HTTP 200 with an error object as body or
	// as stream event, after the full work was done.
	ErrorIn200Ratio float64 `json:"error_in_200_ratio"`
	// FragmentationRatio of the scratch memory is lost, 0 to 0.99.
	FragmentationRatio float64 `json:"fragmentation_ratio"`
	// ScratchMultiplier enlarges all scratch buffers: 1.3 is the faulty version
	// of INCIDENTS A. 0.1 to 1000.
	ScratchMultiplier float64 `json:"scratch_multiplier"`
}

// DefaultKnobs is a healthy engine.
func DefaultKnobs() Knobs {
	return Knobs{Seed: 1, DecodeMultiplier: 1, FailStatus: 500, CutAfterEvents: 3, ScratchMultiplier: 1}
}

// Validate returns an error wrapping ErrInvalidKnobs that names every bad knob
// by its JSON name.
func (k Knobs) Validate() error {
	var errs []error
	between := func(name string, v, lo, hi float64) {
		// Written so that NaN fails too.
		if !(v >= lo && v <= hi) {
			errs = append(errs, fmt.Errorf("%w: %s is %v, want %v to %v", ErrInvalidKnobs, name, v, lo, hi))
		}
	}
	between("decode_multiplier", k.DecodeMultiplier, 0.1, 1000)
	between("first_token_delay_ms", float64(k.FirstTokenDelayMS), 0, 600000)
	between("fail_ratio", k.FailRatio, 0, 1)
	between("fail_status", float64(k.FailStatus), 400, 599)
	between("empty_ratio", k.EmptyRatio, 0, 1)
	between("cut_ratio", k.CutRatio, 0, 1)
	between("cut_after_events", float64(k.CutAfterEvents), 0, 1000000)
	between("hang_ratio", k.HangRatio, 0, 1)
	between("error_in_200_ratio", k.ErrorIn200Ratio, 0, 1)
	between("fragmentation_ratio", k.FragmentationRatio, 0, maxFragmentation)
	between("scratch_multiplier", k.ScratchMultiplier, 0.1, 1000)
	return errors.Join(errs...)
}

func (k Knobs) firstTokenDelay() time.Duration {
	return time.Duration(k.FirstTokenDelayMS) * time.Millisecond
}

// goodRatio is the share of requests that get a good answer, 0 to 1.
func (k Knobs) goodRatio() float64 {
	return (1 - k.HangRatio) * (1 - k.FailRatio) * (1 - k.EmptyRatio) * (1 - k.ErrorIn200Ratio) * (1 - k.CutRatio)
}
