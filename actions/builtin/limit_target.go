package builtin

import (
	"fmt"
	"strings"

	"holdfast/actions"
	"holdfast/gpuguard/policy"
)

// limitTarget is what a limit is laid on.
type limitTarget struct {
	// kind is "global", "route" or "tenant"; name is empty for global.
	kind, name string
	path       string
}

// targetOf reads "global", "route:<name>" or "tenant:<name>"; problem says what is wrong.
func targetOf(text string, doc policy.Document) (t limitTarget, problem string) {
	kind, name, _ := strings.Cut(text, ":")
	switch {
	case text == "":
		return t, `is missing: want "global", "route:<name>" or "tenant:<name>"`
	case text == "global":
		return limitTarget{kind: "global", path: policy.GlobalLimitPath}, ""
	case kind == "route" && name != "":
		if _, ok := doc.Routes[name]; !ok {
			return t, actions.NoSuch("route", name, actions.Names(doc.Routes))
		}
		return limitTarget{kind: kind, name: name, path: policy.RouteLimitPath(name)}, ""
	case kind == "tenant" && name != "":
		if _, ok := doc.Tenants[name]; !ok {
			return t, actions.NoSuch("tenant", name, actions.Names(doc.Tenants))
		}
		return limitTarget{kind: kind, name: name, path: policy.TenantLimitPath(name)}, ""
	default:
		return t, actions.NoSuch("target", text, actions.LimitTargets(doc))
	}
}

func (t limitTarget) text() string {
	if t.kind == "global" {
		return "all routes together"
	}
	return t.kind + " " + t.name
}

// dependency is where the target's requests go, when that is one place only.
func (t limitTarget) dependency(doc policy.Document) string {
	switch {
	case t.kind == "route":
		return doc.Pools[doc.Routes[t.name].Pool].Dependency
	case len(doc.Dependencies) == 1:
		return actions.Names(doc.Dependencies)[0]
	default:
		return ""
	}
}

// service is the catalogue service the limit touches; empty when there are several.
func (t limitTarget) service(doc policy.Document) string {
	name := t.dependency(doc)
	if service := doc.Dependencies[name].Service; service != "" {
		return service
	}
	return name
}

// current is the limit in force on the target, nil when there is none.
func (t limitTarget) current(doc policy.Document) *policy.Limit {
	switch t.kind {
	case "route":
		return doc.Routes[t.name].Limit
	case "tenant":
		return doc.Tenants[t.name].Limit
	default:
		return doc.Limits.Global
	}
}

// measured is the rate that came to the target in the last minute (requests/s);
// false when the gateways do not count it apart.
func (t limitTarget) measured(snap actions.Snapshot) (float64, bool) {
	traffic, ok := actions.Measure(snap)
	if !ok {
		return 0, false
	}
	switch t.kind {
	case "global":
		return traffic.Total.PerSecond, true
	case "route":
		dependency := t.dependency(snap.Effective)
		if len(actions.RoutesOf(snap.Effective, dependency)) != 1 {
			return 0, false
		}
		return traffic.Dependencies[dependency].PerSecond, true
	default:
		return 0, false
	}
}

func limitWarnings(t limitTarget, limit policy.Limit, snap actions.Snapshot) []string {
	var warnings []string
	if before := t.current(snap.Effective); before != nil && before.RequestsPerSecond < limit.RequestsPerSecond {
		warnings = append(warnings, fmt.Sprintf("This raises the limit in force, %s requests/s.", figure(before.RequestsPerSecond)))
	}
	if limit.RequestsPerSecond == 0 {
		warnings = append(warnings, fmt.Sprintf("A rate of 0 refuses every request of %s.", t.text()))
	}
	rate, known := t.measured(snap)
	switch {
	case !known:
		warnings = append(warnings, fmt.Sprintf("The rate of %s is not measured: how much this refuses is not known.", t.text()))
	case rate <= limit.RequestsPerSecond:
		warnings = append(warnings, fmt.Sprintf("At the measured %s requests/s a limit of %s refuses nothing.", figure(rate), figure(limit.RequestsPerSecond)))
	default:
		warnings = append(warnings, fmt.Sprintf(
			"Limits sit behind the cache: of the measured %s requests/s, %s will reach the engine and about %s (%s) will be refused.",
			figure(rate), figure(limit.RequestsPerSecond), figure(rate-limit.RequestsPerSecond), percent(1-limit.RequestsPerSecond/rate)))
	}
	return warnings
}
