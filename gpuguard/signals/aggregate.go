package signals

import "slices"

// Aggregation is how several values become one.
type Aggregation string

// Aggregations.
const (
	Sum  Aggregation = "sum"
	Mean Aggregation = "mean"
	Max  Aggregation = "max"
)

// of aggregates values, of which there must be one.
func (a Aggregation) of(values []float64) float64 {
	if a == Max {
		return slices.Max(values)
	}
	total := 0.0
	for _, v := range values {
		total += v
	}
	if a == Mean {
		return total / float64(len(values))
	}
	return total
}

// Pool makes one figure of the readings of a pool's pods. Pods without data are
// left out; when none has any, or the readings differ in unit or source, there is
// none. The sum of ratios or of times means nothing, so it is refused: two pods
// at 40 % are a pool at 40 % (C30).
func (a Aggregation) Pool(pods ...Reading) Reading {
	var r Reading
	if len(pods) == 0 {
		r.Why = "the pool has no pods"
		return r
	}
	r = Reading{Unit: pods[0].Unit, Source: pods[0].Source, Metric: pods[0].Metric, Why: "no pod has data"}
	if a == Sum && !r.Unit.adds() {
		r.Why = "a sum of " + string(r.Unit) + " means nothing"
		return r
	}
	var values []float64
	for _, p := range pods {
		if p.Unit != r.Unit || p.Source != r.Source {
			r.Why = "the pods differ in unit or source"
			return r
		}
		if p.Value != nil && IsData(*p.Value) {
			values = append(values, *p.Value)
		}
		if p.At.After(r.At) {
			r.At = p.At
		}
	}
	if len(values) > 0 {
		if r.Value = data(a.of(values)); r.Value != nil {
			r.Why = ""
		}
	}
	return r
}

// adds says whether the sum of two such values is one.
func (u Unit) adds() bool {
	return u == Requests || u == TokensPerSecond || u == RequestsPerSecond
}
