package story

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestTallyCountsWholeSecondsOnly(t *testing.T) {
	t.Parallel()
	begun := time.Date(2026, 3, 1, 14, 0, 0, 0, time.UTC)
	c := newTally(begun)
	for s := range 20 {
		at := begun.Add(time.Duration(s) * time.Second)
		c.finish(at, good, 1)
		c.finish(at, failed, 3)
	}
	s := c.window(begun.Add(20*time.Second), 10*time.Second)
	require.Equal(t, Share{Calls: 20, GoodPerSecond: 1, FailedRatio: 0.5, AttemptsPerCall: 2}, s)
	require.Equal(t, s, c.window(begun.Add(20500*time.Millisecond), 10*time.Second), "the second in progress does not count")
	require.Zero(t, c.window(begun.Add(40*time.Second), 10*time.Second).Calls, "what is long ago is forgotten")
}

// TestTallyLosesNothing compares a window over everything with what was counted.
func TestTallyLosesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		begun := time.Date(2026, 3, 1, 14, 0, 0, 0, time.UTC)
		c := newTally(begun)
		calls := rapid.SliceOfN(rapid.IntRange(0, 200_000), 0, 200).Draw(rt, "milliseconds")
		for _, ms := range calls {
			c.finish(begun.Add(time.Duration(ms)*time.Millisecond), result(ms%int(results)), 1)
		}
		require.Equal(rt, len(calls), c.window(begun.Add(201*time.Second), 250*time.Second).Calls)
	})
}

func TestJudgeAnswersAsACallerWould(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		status int
		header http.Header
		body   string
		err    error
		stream bool
		want   result
		again  bool
	}{
		{name: "whole answer", status: 200, body: `{"choices":[]}`, want: good},
		{name: "whole stream", status: 200, body: "data: {}\n\ndata: [DONE]\n\n", stream: true, want: good},
		{name: "stream without an end", status: 200, body: "data: {}\n\n", stream: true, want: failed},
		{name: "empty 200", status: 200, body: " \n", want: failed},
		{name: "cut body", status: 200, body: "{", err: io.ErrUnexpectedEOF, want: failed},
		{name: "fallback", status: 200, header: http.Header{"X-Degraded": {"static"}}, body: "{}", want: degraded},
		{name: "limit that wants no retry", status: 429, header: http.Header{"X-Should-Retry": {"false"}}, want: refused},
		{name: "limit", status: 429, want: refused, again: true},
		{name: "timeout at the gateway", status: 504, want: failed, again: true},
		{name: "breaker without fallback", status: 503, header: http.Header{"X-Should-Retry": {"false"}}, want: failed},
		{name: "bad request", status: 400, want: failed},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			header := c.header
			if header == nil {
				header = http.Header{}
			}
			r, again := judge(&http.Response{StatusCode: c.status, Header: header, Body: io.NopCloser(strings.NewReader(""))}, []byte(c.body), c.err, c.stream)
			require.Equal(t, c.want, r)
			require.Equal(t, c.again, again)
		})
	}
}

// TestProfileCanBeOverloaded holds the figures that the story rests on.
func TestProfileCanBeOverloaded(t *testing.T) {
	t.Parallel()
	load := enginesimLoad()
	healthy, slow := capacity(0, load), capacity(1, load)
	require.Greater(t, healthy, 1.15*callRate, "the healthy engine has room")
	require.Less(t, slow, 0.5*callRate, "the slow one does not")
}
