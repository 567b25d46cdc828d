package signals

// Health is what a value means.
type Health string

// Healths. HealthNoData is a state of its own: neither good nor bad.
const (
	OK           Health = "ok"
	Warning      Health = "warning"
	Critical     Health = "critical"
	HealthNoData Health = "no_data"
)

// rank orders healths; no data counts only where nothing else is known.
func (h Health) rank() int {
	switch h {
	case OK:
		return 1
	case Warning:
		return 2
	case Critical:
		return 3
	case HealthNoData:
		return 0
	default:
		return 0
	}
}

// Worst is the worst of what is known; HealthNoData when nothing is.
func Worst(all ...Health) Health {
	worst := HealthNoData
	for _, h := range all {
		if h.rank() > worst.rank() {
			worst = h
		}
	}
	return worst
}

// Thresholds divide good from bad; nil where there is none. A value at a
// threshold has not passed it.
type Thresholds struct {
	WarningAbove, CriticalAbove *float64
	WarningBelow, CriticalBelow *float64
}

// Judge says what a value means: HealthNoData for NaN and infinite values, OK
// where there is no threshold.
func (t Thresholds) Judge(v float64) Health {
	switch {
	case !IsData(v):
		return HealthNoData
	case passes(v, t.CriticalAbove, t.CriticalBelow):
		return Critical
	case passes(v, t.WarningAbove, t.WarningBelow):
		return Warning
	default:
		return OK
	}
}

func passes(v float64, above, below *float64) bool {
	return above != nil && v > *above || below != nil && v < *below
}
