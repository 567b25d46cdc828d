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
