package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"holdfast/actions"
	"holdfast/gpuguard/policy"
	"holdfast/gpuguard/signals"
)

// forceBreaker holds the breaker of a dependency in one state. Trip and close
// set the same policy path, so that they exclude each other.
type forceBreaker struct {
	spec   actions.Spec
	forced policy.ForcedState
	// reported is how a gateway reports the state.
	reported string
	summary  string
	warn     func(dependency string, snap actions.Snapshot) []string
	// effect is what should be seen in the metrics.
	effect func(dependency string, snap actions.Snapshot) *signals.Criterion
}

type breakerParams struct {
	Dependency string `json:"dependency"`
}

func dependencyParam() actions.Param {
	return actions.Param{
		Name: "dependency", Kind: "dependency", Required: true,
		Help: "The dependency whose breaker is forced, as named in the policy.",
	}
}

// Spec describes the action.
func (f forceBreaker) Spec() actions.Spec { return f.spec }

// Plan checks that the dependency exists and gives the one layer it takes.
func (f forceBreaker) Plan(_ context.Context, params json.RawMessage, snap actions.Snapshot) (actions.Plan, error) {
	var p breakerParams
	if err := decode(params, &p); err != nil {
		return actions.Plan{}, err
	}
	known := snap.Effective.Dependencies
	d, ok := known[p.Dependency]
	switch {
	case p.Dependency == "":
		return actions.Plan{}, actions.InvalidParam("dependency", "is missing: name a dependency")
	case !ok:
		return actions.Plan{}, actions.InvalidParam("dependency", "%s", actions.NoSuch("dependency", p.Dependency, actions.Names(known)))
	}
	service := d.Service
	if service == "" {
		service = p.Dependency
	}
	return actions.Plan{
		Params:    encode(p),
		Summary:   fmt.Sprintf(f.summary, p.Dependency),
		Layers:    []actions.Layer{{Path: policy.BreakerForcedPath(p.Dependency), Value: encode(f.forced)}},
		Service:   service,
		Warnings:  f.warn(p.Dependency, snap),
		Criterion: f.effect(p.Dependency, snap),
	}, nil
}

// Verify is verified when every live gateway reports the forced state.
func (f forceBreaker) Verify(_ context.Context, run actions.Run, snap actions.Snapshot) (actions.Verification, error) {
	var p breakerParams
	if err := decode(run.Params, &p); err != nil {
		return actions.Verification{}, err
	}
	r := reportsOf(run, snap)
	var wrong []string
	for _, g := range r.current {
		state, known := g.State.Breakers[p.Dependency]
		switch {
		case !known:
			wrong = append(wrong, fmt.Sprintf("%s reports no breaker of %s", g.Name, p.Dependency))
		case state.State != f.reported:
			wrong = append(wrong, fmt.Sprintf("%s reports the breaker of %s as %s", g.Name, p.Dependency, state.State))
		}
	}
	return r.verdict(wrong, fmt.Sprintf("%s the breaker of %s as %s", reporting(len(r.current)), p.Dependency, f.reported)), nil
}

func reporting(n int) string {
	if n == 1 {
		return "1 gateway reports"
	}
	return fmt.Sprintf("%d gateways report", n)
}

// inState lists the live gateways whose breaker is in one of the states, with the worst failure rate among them.
func inState(dependency string, snap actions.Snapshot, states ...string) (names []string, worst float64) {
	for _, g := range snap.Gateways {
		b := g.State.Breakers[dependency]
		if g.Live && slices.Contains(states, b.State) {
			names = append(names, g.Name)
			worst = max(worst, b.FailureRate)
		}
	}
	slices.Sort(names)
	return names, worst
}

func listed(names []string) string { return strings.Join(names, ", ") }
