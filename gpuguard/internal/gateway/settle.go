package gateway

import (
	"context"
	"log/slog"
	"net/http"

	"holdfast/gpuguard/internal/breaker"
	"holdfast/gpuguard/policy"
)

// end runs exactly once for each request, also when a stage panicked: it gives
// back what the request took and reports its outcome.
func (x *exchange) end() {
	fault := recover()
	if fault != nil {
		x.fault(fault)
	}
	x.dropBody()
	now := x.gateway.opts.Clock()
	if x.endpoint != nil {
		x.endpoint.slot.inFlight.Add(-1)
	}
	if s, changed := x.permit.Done(now, x.result); changed {
		x.gateway.breakerChanged(x.to.pool.dependency.name, s)
	}
	if !x.called {
		// A call that was never made uses nothing up (C77).
		for _, g := range x.taken {
			g.bucket.Return(now)
		}
	}
	x.record.Took = now.Sub(x.start)
	x.record.Status = x.out.status
	x.record.ResponseBytes = x.out.bytes
	x.record.Stream = x.stream
	x.series.Finished(x.record.Outcome, x.record.Took, x.record.FirstByte)
	x.record.Log(x.r.Context(), x.gateway.opts.AccessLog)
	if x.abort {
		// The server closes the connection without the end mark, so that the
		// caller cannot take a part for the whole.
		panic(http.ErrAbortHandler) //nolint:forbidigo // net/http's documented way to cut a response
	}
}

// breakerChanged says in the log what operators want to see there.
func (g *Gateway) breakerChanged(dependency string, s breaker.State) {
	level := slog.LevelInfo
	if s == breaker.Open {
		level = slog.LevelWarn
	}
	g.opts.Logger.Log(context.Background(), level, "breaker changed", "dependency", dependency, "state", string(s))
}

// fault ends a request whose stage panicked.
func (x *exchange) fault(v any) {
	x.gateway.metrics.Panicked()
	x.gateway.opts.Logger.Error("request handling failed", "fault", faultText(v), "request_id", x.record.RequestID)
	x.outcome(policy.OutcomeInternal, "fault in the gateway")
	if x.committed {
		x.abort = true
		return
	}
	x.refuse(&refusal{
		outcome: policy.OutcomeInternal, status: http.StatusInternalServerError,
		kind: serverError, code: "internal_error", message: "The gateway failed. Its log has the request id.",
		noRetry: true,
	})
}

// faultText describes a panic without the values that code may have put into it.
func faultText(v any) string {
	if err, ok := v.(interface{ RuntimeError() }); ok {
		return err.(error).Error()
	}
	return "panic"
}
