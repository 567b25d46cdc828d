package builtin

import (
	"encoding/json"
	"fmt"
	"time"

	"holdfast/actions"
	"holdfast/gpuguard/policy"
	"holdfast/gpuguard/signals"
)

type tripBreaker struct{ forceBreaker }

// TripBreaker forces the breaker of a dependency open: its requests get the
// fallback at once (INCIDENTS A and B).
func TripBreaker() actions.Action {
	return tripBreaker{forceBreaker{
		spec: actions.Spec{
			Name: "trip_breaker", Title: "Trip breaker",
			Summary:   "Force the breaker of a dependency open: nothing reaches it, callers get the degraded answer at once.",
			Role:      "responder",
			Dangerous: true,
			Params:    []actions.Param{dependencyParam()},
			// Long enough to find a cause; whoever needs longer renews and is seen to.
			DefaultTTL: 15 * time.Minute, MaxTTL: 4 * time.Hour,
		},
		forced: policy.ForcedOpen, reported: "forced_open",
		summary: "Force the breaker of %s open",
		warn:    tripWarnings,
		effect:  tripEffect,
	}}
}

// Suggest proposes the dependency itself.
func (tripBreaker) Suggest(dependency string, _ actions.Snapshot) (json.RawMessage, string, bool) {
	return encode(breakerParams{dependency}), "tripping gives callers the degraded answer at once", true
}

func tripWarnings(dependency string, snap actions.Snapshot) []string {
	var warnings []string
	if open, worst := inState(dependency, snap, "open", "half_open"); len(open) > 0 {
		warnings = append(warnings, fmt.Sprintf("The breaker has opened by its own rule already on %s (failure rate up to %s); tripping holds it open without probes.", listed(open), percent(worst)))
	}
	for _, route := range actions.RoutesOf(snap.Effective, dependency) {
		if snap.Effective.Routes[route].Fallback == nil {
			warnings = append(warnings, fmt.Sprintf("Route %s has no fallback: its callers get 503.", route))
		}
	}
	if len(actions.RoutesOf(snap.Effective, dependency)) == 0 {
		warnings = append(warnings, fmt.Sprintf("No route leads to %s: tripping its breaker changes nothing for callers.", dependency))
	}
	return warnings
}

// tripEffect: callers get an answer again. Where a route has no fallback they
// get 503 instead, and only the gateways' reports are judged.
func tripEffect(dependency string, snap actions.Snapshot) *signals.Criterion {
	routes := actions.RoutesOf(snap.Effective, dependency)
	for _, route := range routes {
		if snap.Effective.Routes[route].Fallback == nil {
			return nil
		}
	}
	if len(routes) == 0 {
		return nil
	}
	return fewErrors(dependency)
}
