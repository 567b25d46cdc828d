package observe_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/server/observe"
)

func TestCheckQuery(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		query string
		at    time.Time
		want  string
	}{
		"now":       {"up", time.Time{}, ""},
		"a time":    {"up", time.Unix(1, 0), ""},
		"empty":     {"", time.Time{}, "empty"},
		"overlong":  {strings.Repeat("(", observe.MaxQueryBytes+1), time.Time{}, "at most 16384"},
		"before":    {"up", time.Unix(-1, 0), "1969"},
		"far later": {"up", time.Unix(1<<60, 0), "want 1970 to 2200"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := observe.CheckQuery(tt.query, tt.at)
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, observe.ErrBadQuery)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestRangeCheck(t *testing.T) {
	t.Parallel()
	start := time.Unix(1_800_000_000, 0)
	for name, tt := range map[string]struct {
		r    observe.Range
		want string
	}{
		"one point":    {observe.Range{Start: start, End: start, Step: time.Second}, ""},
		"most points":  {observe.Range{Start: start, End: start.Add((observe.MaxPoints - 1) * time.Second), Step: time.Second}, ""},
		"too many":     {observe.Range{Start: start, End: start.Add(observe.MaxPoints * time.Second), Step: time.Second}, "11001 points"},
		"backwards":    {observe.Range{Start: start, End: start.Add(-1), Step: time.Second}, "ends before"},
		"no step":      {observe.Range{Start: start, End: start}, "the step"},
		"no start":     {observe.Range{End: start, Step: time.Second}, "needs a start"},
		"no end":       {observe.Range{Start: start, Step: time.Second}, "needs a start and an end"},
		"minus a step": {observe.Range{Start: start, End: start, Step: -time.Second}, "the step"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := tt.r.Check()
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, observe.ErrBadQuery)
			require.ErrorContains(t, err, tt.want)
		})
	}
}
