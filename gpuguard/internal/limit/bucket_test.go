package limit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var start = time.Date(2026, 7, 25, 12, 0, 0, 0, time.UTC)

func take(b *Bucket, now time.Time, calls int) int {
	n := 0
	for range calls {
		if ok, _ := b.Take(now); ok {
			n++
		}
	}
	return n
}

func TestBucket(t *testing.T) {
	t.Parallel()
	b := New(start, Rate{PerSecond: 10, Burst: 5})
	require.Equal(t, 5, take(b, start, 100))
	ok, wait := b.Take(start)
	require.False(t, ok)
	require.Equal(t, 100*time.Millisecond, wait)
	require.Equal(t, 1, take(b, start.Add(wait), 100), "the wait it named suffices")
	require.Equal(t, 5, take(b, start.Add(time.Hour), 100))
	require.EqualValues(t, 95+1+99+95, b.Status(start).Refused)
}

func TestRateZeroRefusesEverything(t *testing.T) {
	t.Parallel()
	b := New(start, Rate{PerSecond: 0, Burst: 5})
	ok, wait := b.Take(start)
	require.False(t, ok)
	require.Equal(t, Never, wait)
	b.Set(start, Rate{PerSecond: 1e-300, Burst: 1})
	require.Equal(t, 1, take(b, start, 5))
	_, wait = b.Take(start)
	require.Equal(t, Never, wait, "saturates")
}

func TestShareIsDividedByTheLiveGateways(t *testing.T) {
	t.Parallel()
	r := Rate{PerSecond: 100, Burst: 10}
	require.Equal(t, Rate{PerSecond: 25, Burst: 2.5}, r.Share(4))
	require.Equal(t, Rate{PerSecond: 1, Burst: 1}, r.Share(100), "never below one call")
	require.Equal(t, r, r.Share(0))
}

func TestC75_LoweringTheLimitTakesTheOldBurst(t *testing.T) {
	t.Parallel()
	b := New(start, Rate{PerSecond: 2000, Burst: 2000})
	now := start.Add(2 * time.Second)
	b.Set(now, Rate{PerSecond: 500, Burst: 50})
	passed := 0
	for i := range 2000 { // over the first second
		passed += take(b, now.Add(time.Duration(i)*500*time.Microsecond), 1)
	}
	require.LessOrEqual(t, passed, 550)
	require.GreaterOrEqual(t, passed, 540)
}

func TestRaisingTheLimitGivesNothingAtOnce(t *testing.T) {
	t.Parallel()
	b := New(start, Rate{PerSecond: 10, Burst: 1})
	require.Equal(t, 1, take(b, start, 10))
	b.Set(start, Rate{PerSecond: 1000, Burst: 1000})
	require.Zero(t, take(b, start, 10))
	require.Equal(t, 100, take(b, start.Add(100*time.Millisecond), 1000))
}

func TestC77_RefusedAndReturnedCallsUseNothingUp(t *testing.T) {
	t.Parallel()
	b := New(start, Rate{PerSecond: 100, Burst: 10})
	now := start
	for range 10_000 { // callers that give up at once, and calls that are never made
		now = now.Add(100 * time.Microsecond)
		if ok, _ := b.Take(now); ok {
			b.Return(now)
		}
	}
	require.Equal(t, 10, take(b, now.Add(100*time.Millisecond), 10), "polite callers are admitted")
}

func TestReturnNeverOverfills(t *testing.T) {
	t.Parallel()
	b := New(start, Rate{PerSecond: 1, Burst: 3})
	for range 10 {
		b.Return(start)
	}
	require.Equal(t, 3, take(b, start, 10))
}

func TestAdmitsAtMostRateTimesTimePlusBurst(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := Rate{
			PerSecond: rapid.Float64Range(0.01, 5000).Draw(t, "rate"),
			Burst:     float64(rapid.IntRange(1, 500).Draw(t, "burst")),
		}
		now, latest := start, start // readings may go back, time does not
		b := New(now, r)
		var admitted []time.Time
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(-50, 400).Draw(t, "ms")) * time.Millisecond)
			if now.After(latest) {
				latest = now
			}
			for range take(b, now, rapid.IntRange(0, 60).Draw(t, "calls")) {
				admitted = append(admitted, latest)
			}
			for i, from := range admitted { // between any two moments
				seconds := latest.Sub(from).Seconds()
				if n := float64(len(admitted) - i); n > r.PerSecond*seconds+r.Burst+1e-6 {
					t.Fatalf("%v calls in %v s at %+v", n, seconds, r)
				}
			}
			if ok, wait := b.Take(latest); !ok {
				probe := New(latest, r)
				probe.tokens = b.tokens
				if ok, _ := probe.Take(latest.Add(wait)); !ok {
					t.Fatalf("the wait of %v does not suffice", wait)
				}
			} else {
				b.Return(now)
			}
		}
	})
}

func BenchmarkTake(b *testing.B) {
	bucket := New(start, Rate{PerSecond: 1e9, Burst: 1e6})
	now := start
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Microsecond)
		bucket.Take(now)
	}
}
