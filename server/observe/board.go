package observe

import (
	"time"

	"holdfast/gpuguard/signals"
)

// ServiceSignals are the golden signals of one service in one environment.
type ServiceSignals struct {
	Service     string
	Environment string
	// Health is the worst of its signals and firing rules; no data counts only
	// when nothing else is known.
	Health  signals.Health
	Signals []Signal
	// Firing names the alert rules that fire for it now.
	Firing []string
}

// Signal is one golden signal now and over the last half hour.
type Signal struct {
	Name, Title, Help string
	// Unit is what Value counts; see signals.Definition.
	Unit string
	// Query is PromQL whose value this is.
	Query string
	// Value is nil when there is no data.
	Value  *float64
	At     time.Time
	Health signals.Health
	// Source is where the number comes from, such as "engine" or "gateway".
	Source string
	// Thresholds are nil where there is none.
	WarningAbove, CriticalAbove, WarningBelow, CriticalBelow *float64
	// Points are the last half hour, oldest first; NaN is no data.
	Points []signals.Point
}
