package signals

import "fmt"

// QueryAll is Query for every service at once: one series for each service and
// environment, and for each source where the signal has several.
func (d Definition) QueryAll() string {
	if d.Name == Fragmentation {
		return fmt.Sprintf("max by (service, environment, source) (%s)", d.Series)
	}
	return fmt.Sprintf("%s by (service, environment) (%s)", d.join, d.Series)
}

// UsualQueryAll is UsualQuery for every service at once; empty where thresholds are fixed.
func (d Definition) UsualQueryAll() string {
	if d.Usual == nil {
		return ""
	}
	return fmt.Sprintf("max by (service, environment) (%s)", d.Usual.Series)
}
