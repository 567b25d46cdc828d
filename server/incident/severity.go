package incident

// rank orders severities, worst highest; unknown strings rank lowest.
func (s Severity) rank() int {
	switch s {
	case SeverityCritical:
		return 4
	case SeverityError:
		return 3
	case SeverityWarning:
		return 2
	case SeverityInfo:
		return 1
	default:
		return 0
	}
}

// Worse gives the worse of two severities.
func Worse(a, b Severity) Severity {
	if b.rank() > a.rank() {
		return b
	}
	return a
}
