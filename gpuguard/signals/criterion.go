package signals

import (
	"fmt"
	"strconv"
)

// Comparison is how a criterion compares.
type Comparison string

// Comparisons.
const (
	Below   Comparison = "<"
	AtMost  Comparison = "<="
	Above   Comparison = ">"
	AtLeast Comparison = ">="
)

// Valid says whether c is one of the four.
func (c Comparison) Valid() bool {
	switch c {
	case Below, AtMost, Above, AtLeast:
		return true
	default:
		return false
	}
}

// holds says whether value stands in the relation to limit.
func (c Comparison) holds(value, limit float64) bool {
	switch c {
	case Below:
		return value < limit
	case AtMost:
		return value <= limit
	case Above:
		return value > limit
	case AtLeast:
		return value >= limit
	default:
		return false
	}
}

// Criterion is a query and what its answer must look like.
type Criterion struct {
	// Title says what is looked at, such as "errors of llm"; may be empty.
	Title string `json:"title,omitempty"`
	// Query is PromQL that gives one number or a vector.
	Query string `json:"query"`
	// Is compares each value with Value, in the query's own unit.
	Is    Comparison `json:"is"`
	Value float64    `json:"value"`
	// Unit is how the value is shown, such as "ratio", "s", "requests" or "tokens/s"; may be empty.
	Unit string `json:"unit,omitempty"`
}

// String shows it as "query < 0.05".
func (c Criterion) String() string {
	return fmt.Sprintf("%s %s %s", c.Query, c.Is, strconv.FormatFloat(c.Value, 'g', -1, 64))
}

// Verdict of a criterion.
type Verdict string

// Verdicts.
const (
	Pass Verdict = "pass"
	Fail Verdict = "fail"
	// NoData: there is no value, or one is NaN or infinite.
	NoData Verdict = "no_data"
)

// Judgement is a verdict with the value it rests on.
type Judgement struct {
	Verdict Verdict
	// Value is the worst value: the one that fails, or the one nearest to failing. Nil when there is no data.
	Value *float64
	// Labels are those of the worst value.
	Labels map[string]string
}

// Judge applies the criterion to the answer of its query: every series must
// hold. A value that fails outweighs missing data; otherwise one series without
// data makes the whole NoData, because what is not seen is not good.
func (c Criterion) Judge(answer []Sample) Judgement {
	if len(answer) == 0 {
		return Judgement{Verdict: NoData}
	}
	var worst *Sample
	blind := false
	for i := range answer {
		s := &answer[i]
		if !s.Valid() {
			blind = true
			continue
		}
		if worst == nil || c.worse(s.Value, worst.Value) {
			worst = s
		}
	}
	if worst == nil {
		return Judgement{Verdict: NoData}
	}
	j := Judgement{Value: &worst.Value, Labels: worst.Labels}
	switch {
	case !c.Is.holds(worst.Value, c.Value):
		j.Verdict = Fail
	case blind:
		j.Verdict = NoData
	default:
		j.Verdict = Pass
	}
	return j
}

// worse says whether a is further on the failing side than b.
func (c Criterion) worse(a, b float64) bool {
	if c.Is == Below || c.Is == AtMost {
		return a > b
	}
	return a < b
}
