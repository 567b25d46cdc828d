package alert

import (
	"fmt"
	"strings"

	"holdfast/server/incident"
)

// severityOf reads the label severity. Words in common use are mapped; what is
// not known becomes a warning, and note says so.
func severityOf(labels map[string]string) (s incident.Severity, note string) {
	given := labels["severity"]
	switch strings.ToLower(strings.TrimSpace(given)) {
	case "critical", "crit", "page", "fatal", "emergency", "disaster", "p1", "sev1":
		return incident.SeverityCritical, ""
	case "error", "err", "high", "major", "p2", "sev2":
		return incident.SeverityError, ""
	case "warning", "warn", "medium", "minor", "ticket", "p3", "sev3":
		return incident.SeverityWarning, ""
	case "info", "informational", "notice", "low", "none", "p4", "p5", "sev4", "sev5":
		return incident.SeverityInfo, ""
	case "":
		return incident.SeverityWarning, "No severity label; taken as warning."
	default:
		return incident.SeverityWarning, fmt.Sprintf("Severity %q is not known; taken as warning.", cut(given, 40))
	}
}

// firstLabel gives the first label of the names that is set.
func firstLabel(labels map[string]string, names ...string) string {
	for _, n := range names {
		if v := labels[n]; v != "" {
			return v
		}
	}
	return ""
}

// serviceOf and environmentOf place an alert; empty when it does not say.
func serviceOf(labels map[string]string) string {
	return firstLabel(labels, "service", "app", "dependency", "job")
}

func environmentOf(labels map[string]string) string {
	return firstLabel(labels, "environment", "env")
}
