package telemetry

import (
	"context"
	"log/slog"
	"time"

	"holdfast/gpuguard/policy"
)

// Record is what the log says of one request. It holds names and numbers:
// no path, query, header or body of the caller's.
type Record struct {
	RequestID  string
	Route      string
	Dependency string
	Tenant     string
	Class      string
	Endpoint   string
	Method     string
	// Outcome and Status: what happened and what the caller was told. Status is
	// 0 when the caller was told nothing.
	Outcome policy.Outcome
	Status  int
	// Reason says more about outcomes other than ok; it never quotes bodies.
	Reason string
	// Degraded is the kind of degrade path that answered, empty when none did.
	Degraded string
	Stream   bool
	Attempts int
	// RequestBytes and ResponseBytes count bodies.
	RequestBytes  int64
	ResponseBytes int64
	Took          time.Duration
	// FirstByte is the time from calling the upstream to its first body byte, 0 when none came.
	FirstByte time.Duration
}

// Log writes the record as one line.
func (r *Record) Log(ctx context.Context, log *slog.Logger) {
	if !log.Enabled(ctx, slog.LevelInfo) {
		return
	}
	attrs := make([]slog.Attr, 0, 17)
	text := func(key, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(key, value))
		}
	}
	attrs = append(attrs, slog.String("outcome", string(r.Outcome)), slog.Int("status", r.Status))
	text("route", r.Route)
	text("dependency", r.Dependency)
	text("tenant", r.Tenant)
	text("class", r.Class)
	text("endpoint", r.Endpoint)
	text("method", r.Method)
	text("reason", r.Reason)
	text("degraded", r.Degraded)
	attrs = append(attrs,
		slog.Bool("stream", r.Stream), slog.Int("attempts", r.Attempts),
		slog.Int64("request_bytes", r.RequestBytes), slog.Int64("response_bytes", r.ResponseBytes),
		slog.Float64("seconds", r.Took.Seconds()))
	if r.FirstByte > 0 {
		attrs = append(attrs, slog.Float64("first_byte_seconds", r.FirstByte.Seconds()))
	}
	text("request_id", r.RequestID)
	log.LogAttrs(ctx, slog.LevelInfo, "request", attrs...)
}
