package actions

import (
	"maps"
	"slices"
	"strings"

	"holdfast/gpuguard/policy"
)

// Names are the sorted keys of a section of the policy.
func Names[V any](section map[string]V) []string {
	names := slices.Sorted(maps.Keys(section))
	if names == nil {
		return []string{}
	}
	return names
}

// LimitTargets are what a limit can be laid on: "global", "route:<name>" and "tenant:<name>".
func LimitTargets(doc policy.Document) []string {
	targets := []string{"global"}
	for _, name := range Names(doc.Routes) {
		targets = append(targets, "route:"+name)
	}
	for _, name := range Names(doc.Tenants) {
		targets = append(targets, "tenant:"+name)
	}
	return targets
}

// DependencyNamed finds the dependency that a label value means: by its own
// name, else by the service it belongs to when that is one dependency only.
func DependencyNamed(doc policy.Document, value string) (string, bool) {
	value = strings.TrimSpace(value)
	if value == "" {
		return "", false
	}
	if _, ok := doc.Dependencies[value]; ok {
		return value, true
	}
	found := ""
	for _, name := range Names(doc.Dependencies) {
		if doc.Dependencies[name].Service == value {
			if found != "" {
				return "", false
			}
			found = name
		}
	}
	return found, found != ""
}
