package builtin

import (
	"fmt"

	"holdfast/gpuguard/signals"
)

// goodErrorRatio is the share of failed requests at which the bleeding has
// stopped: 23 % had become 5 % five minutes after the measures of INCIDENTS A.
const goodErrorRatio = 0.05

// fewErrors wants the callers of a dependency to get their answers. The series
// is recorded by deploy/prometheus/rules.
func fewErrors(dependency string) *signals.Criterion {
	return &signals.Criterion{
		Title: "errors of " + dependency,
		Query: fmt.Sprintf("max(service:errors:ratio_rate1m{dependency=%q})", dependency),
		Is:    signals.Below, Value: goodErrorRatio, Unit: "ratio",
	}
}
