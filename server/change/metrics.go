package change

import "github.com/prometheus/client_golang/prometheus"

// newDecisions registers the counter of decisions about claims; with a nil
// registerer it counts for nobody.
func newDecisions(r prometheus.Registerer) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "holdfast_change_decisions_total",
		Help: "Decisions about claims by environment and verdict: allow, confirm or deny.",
	}, []string{"environment", "verdict"})
	if r != nil {
		r.MustRegister(c)
	}
	return c
}
