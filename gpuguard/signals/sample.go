package signals

import (
	"math"
	"time"
)

// Sample is one value of one series at one time.
type Sample struct {
	Labels map[string]string
	Value  float64
	At     time.Time
}

// Valid says whether the value is a number one can judge: neither NaN nor infinite.
func (s Sample) Valid() bool { return IsData(s.Value) }

// IsData says whether v is a number one can judge: neither NaN nor infinite.
func IsData(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Point is one value of a Series. Value may be NaN or infinite: no data.
type Point struct {
	At    time.Time
	Value float64
}

// Series is one series over time, oldest point first.
type Series struct {
	Labels map[string]string
	Points []Point
}
