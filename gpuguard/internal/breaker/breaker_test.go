package breaker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var start = time.Date(2026, 7, 25, 12, 0, 0, 0, time.UTC)

// config opens at half of at least 4 calls, or 3 failures in a row, for 10 s.
func config() Config {
	return Config{
		WindowCalls: 8, FailureRate: 0.5, MinimumCalls: 4, ConsecutiveFailures: 3,
		OpenFor: 10 * time.Second, Probes: 3, HalfOpenFor: 30 * time.Second,
	}
}

// driver moves a breaker along its own time.
type driver struct {
	t   *testing.T
	b   *Breaker
	now time.Time
}

func drive(t *testing.T, cfg Config) *driver {
	return &driver{t: t, b: New(start, cfg), now: start}
}

func (d *driver) pass(t time.Duration) { d.now = d.now.Add(t) }

func (d *driver) acquire() Permit {
	d.t.Helper()
	p, ok, _ := d.b.Acquire(d.now)
	require.True(d.t, ok, "refused in state %s", d.state())
	return p
}

func (d *driver) refused() time.Duration {
	d.t.Helper()
	_, ok, wait := d.b.Acquire(d.now)
	require.False(d.t, ok)
	return wait
}

func (d *driver) call(results ...Result) {
	d.t.Helper()
	for _, r := range results {
		p := d.acquire()
		p.Done(d.now, r)
	}
}

func (d *driver) state() State { return d.b.Status(d.now).State }

func (d *driver) open() {
	d.t.Helper()
	d.call(Failure, Failure, Failure)
	require.Equal(d.t, Open, d.state())
}

func TestC44_OneFailureOutOfOneKeepsItClosed(t *testing.T) {
	t.Parallel()
	cfg := config()
	cfg.ConsecutiveFailures = 0
	d := drive(t, cfg)
	d.call(Failure)
	require.Equal(t, Status{State: Closed, FailureRate: 1, Calls: 1, Generation: 1}, d.b.Status(d.now))
	d.call(Failure, Failure)
	require.Equal(t, Closed, d.state(), "below the minimum of 4 calls")
	d.call(Success)
	require.Equal(t, Open, d.state(), "3 of 4")
}

func TestRules(t *testing.T) {
	t.Parallel()
	s, f, i := Success, Failure, Ignored
	tests := []struct {
		name    string
		results []Result
		want    State
	}{
		{"rate below", []Result{s, s, f, s, s}, Closed},
		{"rate reached exactly", []Result{s, f, s, f}, Open},
		{"in a row", []Result{f, f, f}, Open},
		{"a success ends the row", []Result{s, s, s, s, f, f, s, f, f}, Open}, // by rate
		{"ignored results are not judged", []Result{f, i, f, i, i, s, i}, Closed},
		{"ignored results do not end a row", []Result{f, i, f, i, f}, Open},
		{"old failures leave the window", []Result{f, f, s, s, s, s, s, s, s, s, f, f, s}, Closed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg := config()
			if tt.name == "old failures leave the window" {
				cfg.MinimumCalls = 8
			}
			d := drive(t, cfg)
			for _, r := range tt.results {
				if d.state() != Open {
					d.call(r)
				}
			}
			require.Equal(t, tt.want, d.state())
		})
	}
}

func TestTimeWindowForgets(t *testing.T) {
	t.Parallel()
	cfg := config()
	cfg.WindowTime, cfg.ConsecutiveFailures = 10*time.Second, 0
	d := drive(t, cfg)
	d.call(Failure, Failure, Failure)
	d.pass(9 * time.Second)
	require.Equal(t, 3, d.b.Status(d.now).Calls)
	d.pass(time.Second)
	require.Zero(t, d.b.Status(d.now).Calls)
	d.call(Failure, Success, Success, Success)
	require.Equal(t, Closed, d.state(), "1 of 4; with the old ones it would be 4 of 7")
}

func TestOpenRefusesWithTheRemainingTime(t *testing.T) {
	t.Parallel()
	d := drive(t, config())
	d.open()
	d.pass(3 * time.Second)
	require.Equal(t, 7*time.Second, d.refused())
	require.Equal(t, 7*time.Second, d.b.Status(d.now).RetryAfter)
	d.pass(7*time.Second - 1)
	require.Equal(t, time.Duration(1), d.refused())
}

func TestHalfOpenClosesAfterItsProbes(t *testing.T) {
	t.Parallel()
	d := drive(t, config())
	d.open()
	d.pass(10 * time.Second)
	d.call(Success, Success)
	require.Equal(t, HalfOpen, d.state())
	d.call(Success)
	require.Equal(t, Status{State: Closed, Generation: 4}, d.b.Status(d.now), "with a fresh window")
}

func TestHalfOpenReopensAtTheFirstFailure(t *testing.T) {
	t.Parallel()
	d := drive(t, config())
	d.open()
	d.pass(10 * time.Second)
	d.call(Success, Failure)
	require.Equal(t, Open, d.state())
	require.Equal(t, 10*time.Second, d.refused())
}

func TestC69_IgnoredProbeGivesItsPermitBack(t *testing.T) {
	t.Parallel()
	d := drive(t, config())
	d.open()
	d.pass(10 * time.Second)
	read := func() {
		for range 10 {
			require.Equal(t, HalfOpen, d.state())
		}
	}
	p := []Permit{d.acquire(), d.acquire(), d.acquire()}
	read()
	d.refused()
	p[0].Done(d.now, Success)
	read()
	p[1].Done(d.now, Success)
	d.refused()
	p[2].Done(d.now, Ignored)
	read()
	d.call(Success)
	require.Equal(t, Closed, d.state())
}

func TestC69_HalfOpenEndsAlsoWhenProbesHang(t *testing.T) {
	t.Parallel()
	d := drive(t, config())
	d.open()
	d.pass(10 * time.Second)
	hung := []Permit{d.acquire(), d.acquire(), d.acquire()}
	d.pass(30*time.Second - 1)
	d.refused()
	d.pass(1)
	// Three new probes, no more; the late ones still count, but free no place.
	fresh := []Permit{d.acquire(), d.acquire(), d.acquire()}
	d.refused()
	hung[0].Done(d.now, Success)
	hung[1].Done(d.now, Ignored)
	d.refused()
	fresh[0].Done(d.now, Success)
	require.Equal(t, HalfOpen, d.state())
	fresh[1].Done(d.now, Success)
	require.Equal(t, Closed, d.state())
	hung[2].Done(d.now, Failure)
	fresh[2].Done(d.now, Failure)
	require.Equal(t, Status{State: Closed, Generation: 4, Late: 2}, d.b.Status(d.now))
}

func TestC71_LateResultChangesNothing(t *testing.T) {
	t.Parallel()
	for _, late := range []Result{Success, Failure} {
		cfg := config()
		cfg.OpenFor = time.Second
		d := drive(t, cfg)
		old := d.acquire()
		d.pass(500 * time.Millisecond)
		d.open()
		d.pass(time.Second)
		probe := d.acquire()
		require.Equal(t, HalfOpen, d.state())
		d.pass(1500 * time.Millisecond)
		before := d.b.Status(d.now)
		old.Done(d.now, late)
		after := d.b.Status(d.now)
		require.EqualValues(t, 1, after.Late)
		after.Late = 0
		require.Equal(t, before, after)
		probe.Done(d.now, Success)
		d.call(Success, Success)
		require.Equal(t, Closed, d.state())
	}
}

func TestC72_ExactlyTheProbesPass(t *testing.T) {
	t.Parallel()
	d := drive(t, config())
	d.open()
	d.pass(10 * time.Second)
	var probes []Permit
	for range 500 {
		if p, ok, _ := d.b.Acquire(d.now); ok {
			probes = append(probes, p)
		}
	}
	require.Len(t, probes, 3)
	d.pass(2 * time.Second)
	for i := range probes {
		probes[i].Done(d.now, Failure)
	}
	require.Equal(t, Open, d.state())
	require.Equal(t, 10*time.Second, d.refused())
	require.EqualValues(t, 2, d.b.Status(d.now).Late)
}

func TestPermitReportsOnce(t *testing.T) {
	t.Parallel()
	d := drive(t, config())
	p := d.acquire()
	p.Done(d.now, Failure)
	p.Done(d.now, Failure)
	require.Equal(t, 1, d.b.Status(d.now).Calls)
	var zero Permit
	zero.Done(d.now, Failure)
}

func TestForcedStatesKeepTheWindow(t *testing.T) {
	t.Parallel()
	force := func(d *driver, f Force) {
		cfg := config()
		cfg.Forced = f
		d.b.Configure(d.now, cfg)
	}
	t.Run("open", func(t *testing.T) {
		t.Parallel()
		d := drive(t, config())
		d.call(Success, Failure)
		running := d.acquire()
		force(d, ForceOpen)
		require.Zero(t, d.refused())
		require.Equal(t, ForcedOpen, d.state())
		running.Done(d.now, Success)
		d.pass(time.Hour)
		d.refused()
		force(d, NotForced)
		require.Equal(t, Closed, d.state())
		require.Equal(t, 3, d.b.Status(d.now).Calls, "calls in flight were still counted")
		d.call(Failure)
		require.Equal(t, Open, d.state(), "2 of 4")
	})
	t.Run("closed", func(t *testing.T) {
		t.Parallel()
		d := drive(t, config())
		d.open()
		force(d, ForceClosed)
		d.call(Failure, Failure, Failure, Failure, Failure)
		require.Equal(t, ForcedClosed, d.state())
		force(d, NotForced)
		require.Equal(t, Closed, d.state())
		d.call(Failure)
		require.Equal(t, Open, d.state(), "the rule holds again from the next result on")
	})
	t.Run("open over open", func(t *testing.T) {
		t.Parallel()
		d := drive(t, config())
		d.open()
		force(d, ForceOpen)
		d.pass(time.Minute)
		force(d, NotForced)
		d.call(Success)
		require.Equal(t, HalfOpen, d.state(), "the automatic state went on underneath")
	})
}

func TestDisabledNeverOpens(t *testing.T) {
	t.Parallel()
	cfg := config()
	d := drive(t, cfg)
	d.open()
	cfg.Disabled = true
	d.b.Configure(d.now, cfg)
	for range 20 {
		d.call(Failure)
	}
	require.Equal(t, Closed, d.state())
	cfg.Forced = ForceOpen
	d.b.Configure(d.now, cfg)
	d.refused()
}

func TestResizingTheCountWindowKeepsTheNewest(t *testing.T) {
	t.Parallel()
	cfg := config()
	cfg.FailureRate, cfg.ConsecutiveFailures = 1, 0
	d := drive(t, cfg)
	d.call(Failure, Failure, Failure, Success, Success, Success, Failure, Success, Success, Failure) // window: the last 8
	cfg.WindowCalls = 4
	d.b.Configure(d.now, cfg)
	require.Equal(t, 4, d.b.Status(d.now).Calls)
	require.InDelta(t, 0.5, d.b.Status(d.now).FailureRate, 0)
	cfg.WindowCalls = 100
	d.b.Configure(d.now, cfg)
	require.Equal(t, 4, d.b.Status(d.now).Calls)
	d.call(Success)
	require.Equal(t, 5, d.b.Status(d.now).Calls)
	cfg.WindowTime = time.Second
	d.b.Configure(d.now, cfg)
	require.Zero(t, d.b.Status(d.now).Calls)
}

func TestClockThatGoesBackIsHarmless(t *testing.T) {
	t.Parallel()
	cfg := config()
	cfg.WindowTime = 10 * time.Second
	d := drive(t, cfg)
	d.pass(time.Minute)
	d.call(Failure)
	d.pass(-time.Hour)
	d.call(Failure, Failure)
	require.Equal(t, Open, d.state())
	require.Equal(t, 10*time.Second, d.refused())
}

func BenchmarkAcquireDone(b *testing.B) {
	for name, cfg := range map[string]Config{"count": config(), "time": {
		WindowTime: 10 * time.Second, FailureRate: 0.3, MinimumCalls: 10, OpenFor: time.Second, Probes: 3,
	}} {
		b.Run(name, func(b *testing.B) {
			br := New(start, cfg)
			b.ReportAllocs()
			now := start
			for b.Loop() {
				now = now.Add(time.Microsecond)
				p, _, _ := br.Acquire(now)
				p.Done(now, Success)
			}
		})
	}
}
