package observe

import (
	"cmp"
	"fmt"
	"time"
)

// MaxQueryBytes is the longest query a Source takes: far more than a person or a
// rule writes, and too little to exhaust the stack of a recursive parser.
const MaxQueryBytes = 16 << 10

// Years that a Source answers for: what lies outside overflows milliseconds.
const (
	firstYear = 1970
	lastYear  = 2200
)

// CheckQuery refuses what no Source evaluates: an empty or an overlong query, or
// a time outside 1970 to 2200. The zero time is fine, it means now. The error
// wraps ErrBadQuery.
func CheckQuery(query string, at time.Time) error {
	switch {
	case query == "":
		return fmt.Errorf("%w: the query is empty", ErrBadQuery)
	case len(query) > MaxQueryBytes:
		return fmt.Errorf("%w: the query has %d bytes, at most %d are taken", ErrBadQuery, len(query), MaxQueryBytes)
	case !at.IsZero() && !answerable(at):
		return fmt.Errorf("%w: the time is in the year %d, want %d to %d", ErrBadQuery, at.Year(), firstYear, lastYear)
	}
	return nil
}

// Check refuses a range that runs backwards, stands still, lies outside 1970 to
// 2200 or has more than MaxPoints points. The error wraps ErrBadQuery.
func (r Range) Check() error {
	switch {
	case !answerable(r.Start) || !answerable(r.End):
		return fmt.Errorf("%w: the range needs a start and an end between %d and %d", ErrBadQuery, firstYear, lastYear)
	case r.End.Before(r.Start):
		return fmt.Errorf("%w: the range ends before it starts", ErrBadQuery)
	case r.Step < time.Millisecond:
		return fmt.Errorf("%w: the step is %s, want at least 1 ms", ErrBadQuery, r.Step)
	}
	if n := r.Points(); n > MaxPoints {
		return fmt.Errorf("%w: the range has %d points per series, at most %d are taken: use a longer step or a shorter range",
			ErrBadQuery, n, MaxPoints)
	}
	return nil
}

// Points is how many points each series of the range has at most.
func (r Range) Points() int64 {
	if r.Step <= 0 || r.End.Before(r.Start) {
		return 0
	}
	return int64(r.End.Sub(r.Start)/r.Step) + 1
}

func answerable(t time.Time) bool {
	year := t.UTC().Year()
	return year >= firstYear && year <= lastYear
}

// CompareTargets orders targets by job and address, for slices.SortFunc.
func CompareTargets(a, b Target) int {
	return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.URL, b.URL))
}
