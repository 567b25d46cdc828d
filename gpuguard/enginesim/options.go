package enginesim

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
)

// Options configure an Engine. Start from DefaultOptions.
type Options struct {
	// Listen is the host:port of the OpenAI-compatible API; port 0 picks a free one.
	Listen string
	// AdminListen is the host:port of the admin API. When empty, the admin API
	// shares Listen and answers loopback clients only. A separate listener must
	// be a loopback address unless AllowRemoteAdmin is set.
	AdminListen string
	// AllowRemoteAdmin lets clients from other hosts turn the knobs.
	AllowRemoteAdmin bool
	// Model is the name the engine serves and puts on metrics as model_name.
	Model string
	// APIKey, when not empty, is the bearer token that /v1 requires.
	APIKey string
	// Profile is the size and speed of the engine.
	Profile Profile
	// Knobs are the faults to start with.
	Knobs Knobs
	// OutputTokens is the mean output of requests that set no limit; single
	// answers vary by ±50 %, repeatably. At least 1.
	OutputTokens int
	// PromptTokens is the mean prompt assumed for the capacity formula until
	// requests have been seen. At least 1.
	PromptTokens int
	// EmbeddingDimensions is the length of embedding vectors, at least 1.
	EmbeddingDimensions int
	// MaxBodyBytes is the largest request body accepted.
	MaxBodyBytes int64
	// TimeScale runs the model this many times faster than the wall clock,
	// 0.01 to 100000.
	TimeScale float64
	// Logger receives crashes and knob changes, never prompts. Nil discards.
	Logger *slog.Logger
}

// DefaultOptions is a healthy engine with model name demo-model on 127.0.0.1:9101.
func DefaultOptions() Options {
	return Options{
		Listen:              "127.0.0.1:9101",
		Model:               "demo-model",
		Profile:             DefaultProfile(),
		Knobs:               DefaultKnobs(),
		OutputTokens:        24,
		PromptTokens:        64,
		EmbeddingDimensions: 64,
		MaxBodyBytes:        4 << 20,
		TimeScale:           1,
	}
}

// Validate returns an error wrapping ErrInvalidOptions or ErrInvalidKnobs that
// names every bad field.
func (o Options) Validate() error {
	errs := []error{o.Profile.Validate(), o.Knobs.Validate()}
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrInvalidOptions}, args...)...))
		}
	}
	checkAddr := func(name, addr string) {
		_, _, err := net.SplitHostPort(addr)
		check(err == nil, "%s is %q, want host:port", name, addr)
	}
	checkAddr("Listen", o.Listen)
	if o.AdminListen != "" {
		checkAddr("AdminListen", o.AdminListen)
		check(o.AllowRemoteAdmin || loopbackAddr(o.AdminListen),
			"AdminListen %q is reachable from other hosts; use a loopback address or set AllowRemoteAdmin", o.AdminListen)
	}
	check(o.Model != "", "Model is empty, want the name to serve")
	check(o.OutputTokens >= 1, "OutputTokens is %d, want 1 or more", o.OutputTokens)
	check(o.PromptTokens >= 1, "PromptTokens is %d, want 1 or more", o.PromptTokens)
	check(o.EmbeddingDimensions >= 1 && o.EmbeddingDimensions <= 8192,
		"EmbeddingDimensions is %d, want 1 to 8192", o.EmbeddingDimensions)
	check(o.MaxBodyBytes >= 1, "MaxBodyBytes is %d, want 1 or more", o.MaxBodyBytes)
	check(o.TimeScale >= 0.01 && o.TimeScale <= 100000, "TimeScale is %v, want 0.01 to 100000", o.TimeScale)
	return errors.Join(errs...)
}

// loopbackAddr tells whether host:port can be reached from this host only.
func loopbackAddr(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
