package builtin

import (
	"fmt"
	"time"

	"holdfast/actions"
	"holdfast/gpuguard/policy"
	"holdfast/gpuguard/signals"
)

// CloseBreaker forces the breaker of a dependency closed: every request goes
// through, whatever the failure rate.
func CloseBreaker() actions.Action {
	return forceBreaker{
		spec: actions.Spec{
			Name: "close_breaker", Title: "Close breaker",
			Summary:   "Force the breaker of a dependency closed: every request goes through, whatever fails.",
			Role:      "responder",
			Dangerous: true,
			Params:    []actions.Param{dependencyParam()},
			// Shorter than a trip: while it lasts nothing protects the dependency.
			DefaultTTL: 5 * time.Minute, MaxTTL: time.Hour,
		},
		forced: policy.ForcedClosed, reported: "forced_closed",
		summary: "Force the breaker of %s closed",
		warn:    closeWarnings,
		effect: func(dependency string, _ actions.Snapshot) *signals.Criterion {
			return fewErrors(dependency)
		},
	}
}

func closeWarnings(dependency string, snap actions.Snapshot) []string {
	warnings := []string{fmt.Sprintf("While it is forced closed nothing protects %s from its callers.", dependency)}
	if open, worst := inState(dependency, snap, "open", "half_open"); len(open) > 0 {
		warnings = append(warnings, fmt.Sprintf("The breaker is open by its own rule on %s (failure rate up to %s): closing sends the whole load there again.", listed(open), percent(worst)))
	}
	return warnings
}
