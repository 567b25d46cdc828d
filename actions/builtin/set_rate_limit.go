package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"holdfast/actions"
	"holdfast/gpuguard/policy"
	"holdfast/gpuguard/signals"
	"holdfast/strict"
)

// maxRate is the largest rate and burst a policy takes.
const maxRate = 1e9

type setRateLimit struct{}

// SetRateLimit lays a leased limit on everything, a route or a tenant
// (INCIDENTS A: 2000 → 500 requests/s).
func SetRateLimit() actions.Action { return setRateLimit{} }

type limitParams struct {
	Target            string   `json:"target"`
	RequestsPerSecond *float64 `json:"requests_per_second"`
	Burst             *float64 `json:"burst"`
}

// Spec describes the action.
func (setRateLimit) Spec() actions.Spec {
	return actions.Spec{
		Name: "set_rate_limit", Title: "Set rate limit",
		Summary:   "Limit the requests that may reach the engines, for the whole fleet. The limit sits behind the cache.",
		Role:      "responder",
		Dangerous: true,
		Params: []actions.Param{
			{Name: "target", Kind: "limit_target", Required: true, Help: `What is limited: "global", "route:<name>" or "tenant:<name>".`},
			{Name: "requests_per_second", Kind: "number", Required: true, Unit: "requests/s", Help: "The sustained rate of all gateways together; 0 refuses everything."},
			{Name: "burst", Kind: "number", Unit: "requests", Help: "The bucket size, 1 or more; one second's worth when left out."},
		},
		DefaultTTL: 15 * time.Minute, MaxTTL: 4 * time.Hour,
	}
}

// Plan checks target and figures, and compares the limit with the measured rate.
func (setRateLimit) Plan(_ context.Context, params json.RawMessage, snap actions.Snapshot) (actions.Plan, error) {
	var p limitParams
	if err := decode(params, &p); err != nil {
		return actions.Plan{}, err
	}
	target, err := p.check(snap.Effective)
	if err != nil {
		return actions.Plan{}, err
	}
	limit := policy.Limit{RequestsPerSecond: *p.RequestsPerSecond, Burst: *p.Burst}
	return actions.Plan{
		Params:    encode(p),
		Summary:   fmt.Sprintf("Limit %s to %s requests/s", target.text(), figure(limit.RequestsPerSecond)),
		Layers:    []actions.Layer{{Path: target.path, Value: encode(limit)}},
		Service:   target.service(snap.Effective),
		Warnings:  limitWarnings(target, limit, snap),
		Criterion: limitEffect(target, snap.Effective),
	}, nil
}

// limitEffect: who is let through gets an answer. A limit that spans several
// dependencies says nothing about one of them.
func limitEffect(t limitTarget, doc policy.Document) *signals.Criterion {
	if dependency := t.dependency(doc); dependency != "" {
		return fewErrors(dependency)
	}
	return nil
}

// check validates, fills the burst in, and gives the target.
func (p *limitParams) check(doc policy.Document) (limitTarget, error) {
	var errs strict.Errors
	target, problem := targetOf(p.Target, doc)
	if problem != "" {
		errs.Addf("target", "%s", problem)
	}
	switch rate := p.RequestsPerSecond; {
	case rate == nil:
		errs.Addf("requests_per_second", "is missing: 0 refuses everything")
	case math.IsNaN(*rate) || *rate < 0 || *rate > maxRate:
		errs.Addf("requests_per_second", "is %g: want 0 to %g", *rate, float64(maxRate))
	case p.Burst == nil:
		burst := max(1, *rate)
		p.Burst = &burst
	}
	if p.Burst != nil && (math.IsNaN(*p.Burst) || *p.Burst < 1 || *p.Burst > maxRate) {
		errs.Addf("burst", "is %g: want 1 to %g requests", *p.Burst, float64(maxRate))
	}
	return target, actions.InvalidParams(errs)
}

// Verify is verified when every live gateway enforces its share and all shares
// together are no more than the limit.
func (setRateLimit) Verify(_ context.Context, run actions.Run, snap actions.Snapshot) (actions.Verification, error) {
	var p limitParams
	if err := decode(run.Params, &p); err != nil {
		return actions.Verification{}, err
	}
	target, err := p.check(snap.Effective)
	if err != nil {
		return actions.Verification{}, err
	}
	r := reportsOf(run, snap)
	rate, sum := *p.RequestsPerSecond, 0.0
	var wrong []string
	for _, g := range r.current {
		limit, known := g.State.Limits[target.path]
		switch {
		case !known:
			wrong = append(wrong, fmt.Sprintf("%s reports no limit on %s", g.Name, target.text()))
		case limit.RequestsPerSecond > rate*tolerance:
			wrong = append(wrong, fmt.Sprintf("%s reports %s requests/s, more than the whole limit of %s", g.Name, figure(limit.RequestsPerSecond), figure(rate)))
		default:
			sum += limit.RequestsPerSecond
		}
	}
	if len(wrong) == 0 && sum > rate*tolerance {
		wrong = append(wrong, fmt.Sprintf("%s allow %s requests/s together, more than %s", count(len(r.current), "gateway"), figure(sum), figure(rate)))
	}
	return r.verdict(wrong, fmt.Sprintf("%s %s requests/s on %s", enforcing(len(r.current)), figure(sum), target.text())), nil
}

// tolerance is for the rounding of shares.
const tolerance = 1.001

func enforcing(n int) string {
	if n == 1 {
		return "1 gateway enforces"
	}
	return fmt.Sprintf("%d gateways enforce", n)
}

// Suggest proposes half of the measured rate on the dependency's route, or on
// everything when it has several.
func (setRateLimit) Suggest(dependency string, snap actions.Snapshot) (json.RawMessage, string, bool) {
	target := "global"
	if routes := actions.RoutesOf(snap.Effective, dependency); len(routes) == 1 {
		target = "route:" + routes[0]
	}
	t, problem := targetOf(target, snap.Effective)
	rate, known := t.measured(snap)
	if problem != "" || !known || rate < 2 {
		return nil, "", false
	}
	half := roundedDown(rate / 2)
	return encode(map[string]any{"target": target, "requests_per_second": half}),
		fmt.Sprintf("%s is about half of the %s requests/s measured now", figure(half), figure(rate)), true
}

// roundedDown keeps two significant digits.
func roundedDown(v float64) float64 {
	// Dividing last keeps 4.1 from becoming 4.1000000000000005.
	perStep := math.Pow(10, 1-math.Floor(math.Log10(v)))
	return math.Max(1, math.Floor(v*perStep)/perStep)
}

// figure writes a rate without needless digits.
func figure(v float64) string {
	if v >= 100 {
		return strconv.FormatFloat(math.Round(v), 'f', -1, 64)
	}
	return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(v, 'f', 2, 64), "0"), ".")
}
