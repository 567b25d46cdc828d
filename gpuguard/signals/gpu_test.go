package signals_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/gpuguard/signals"
)

const (
	gib = 1 << 30
	mb  = 1e6
)

// healthyGPU is an A100 with a tenth in use.
func healthyGPU(at time.Duration) signals.GPUSample {
	return signals.GPUSample{
		ID: signals.GPUID{UUID: "GPU-1"}, At: t0.Add(at), Utilisation: new(40.0), XIDs: new(0.0),
		Memory: &signals.GPUMemory{API: signals.MemoryV2, Total: 40 * gib, Used: 4 * gib, Reserved: 904 * mb},
	}
}

func kinds(events []signals.GPUEvent) []signals.GPUEventKind {
	var out []signals.GPUEventKind
	for _, e := range events {
		out = append(out, e.Kind)
	}
	return out
}

func TestC90_MemoryWorksUnderMIGAndUtilisationDoesNot(t *testing.T) {
	t.Parallel()
	var m signals.GPUMonitor
	var all []signals.GPUEvent
	for poll := range 20 {
		var samples []signals.GPUSample
		for i := range 7 {
			samples = append(samples, signals.GPUSample{
				ID: signals.GPUID{UUID: "GPU-1", MIG: true, GPUInstance: i + 1}, At: t0.Add(time.Duration(poll) * 5 * time.Second),
				Memory: &signals.GPUMemory{API: signals.MemoryV2, Total: 42505273344, Used: 14987362304},
			})
		}
		all = append(all, m.Poll(t0, samples)...)
	}
	require.Equal(t, []signals.GPUEventKind{signals.GPUUtilisation}, kinds(all), "one line in all, not one for each poll")
	states := m.States()
	require.Len(t, states, 7)
	for _, s := range states {
		require.Nil(t, s.Last.Utilisation, "not available, not 0")
		ratio, ok := s.Last.Memory.UsedRatio()
		require.True(t, ok)
		require.InDelta(t, 0.35, ratio, 0.005)
		require.Equal(t, signals.AdmitNormal, s.Admission())
	}
}

func TestC92_BlankValuesAfterAnXID(t *testing.T) {
	t.Parallel()
	text, err := strconv.ParseFloat("9.223372036854776e+18", 64)
	require.NoError(t, err)
	for _, blank := range []float64{140737488355328, 140737488355330, 9223372036854775792, text} {
		require.True(t, signals.IsBlank(blank), blank)
		s := healthyGPU(0)
		s.Utilisation = new(blank)
		require.ErrorIs(t, s.Check(), signals.ErrInvalidSample)
		s = healthyGPU(0)
		s.Memory.Used = blank
		require.ErrorIs(t, s.Check(), signals.ErrInvalidSample)
		_, ok := s.Memory.UsedRatio()
		require.False(t, ok, "no division")
	}
	require.False(t, signals.IsBlank(80*gib))

	var m signals.GPUMonitor
	bad := func(at time.Duration, used float64) signals.GPUSample {
		s := healthyGPU(at)
		s.Memory.Used, s.XIDs = used, new(1.0)
		return s
	}
	require.Empty(t, m.Poll(t0, []signals.GPUSample{healthyGPU(0)}))
	require.Equal(t, []signals.GPUEventKind{signals.GPUXID}, kinds(m.Poll(t0, []signals.GPUSample{bad(5*time.Second, 140737488355328)})))
	require.Empty(t, m.Poll(t0, []signals.GPUSample{bad(10*time.Second, 9223372036854775792)}))
	state := m.States()[0]
	require.False(t, state.Lost, "two polls are a hiccup")
	require.InDelta(t, 4*gib, state.Last.Memory.Used, 0, "the last valid value stays")
	require.Equal(t, signals.AdmitNormal, state.Admission())

	lost := m.Poll(t0, []signals.GPUSample{bad(15*time.Second, text)})
	require.Equal(t, []signals.GPUEventKind{signals.GPUSignalLost}, kinds(lost))
	require.Contains(t, lost[0].Reason, "blank")
	require.Equal(t, signals.AdmitReduced, m.States()[0].Admission())
	for i := range 10 {
		require.Empty(t, m.Poll(t0, []signals.GPUSample{bad(time.Duration(20+5*i)*time.Second, text)}), "told once")
	}

	back := healthyGPU(2 * time.Minute)
	back.XIDs = new(1.0)
	require.Equal(t, []signals.GPUEventKind{signals.GPUSignalBack}, kinds(m.Poll(t0, []signals.GPUSample{back})))
	require.Equal(t, signals.AdmitNormal, m.States()[0].Admission())
}

func TestSamplesThatCannotBe(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*signals.GPUSample){
		"no UUID":            func(s *signals.GPUSample) { s.ID.UUID = "" },
		"no memory":          func(s *signals.GPUSample) { s.Memory = nil },
		"more than total":    func(s *signals.GPUSample) { s.Memory.Used = 41 * gib },
		"used and reserved":  func(s *signals.GPUSample) { s.Memory.Used = 40 * gib },
		"negative":           func(s *signals.GPUSample) { s.Memory.Used = -1 },
		"no total":           func(s *signals.GPUSample) { s.Memory = &signals.GPUMemory{} },
		"utilisation 101":    func(s *signals.GPUSample) { s.Utilisation = new(101.0) },
		"utilisation -1":     func(s *signals.GPUSample) { s.Utilisation = new(-1.0) },
		"32-bit blank share": func(s *signals.GPUSample) { s.Utilisation = new(2147483632.0) },
	} {
		s := healthyGPU(0)
		change(&s)
		require.ErrorIs(t, s.Check(), signals.ErrInvalidSample, name)
	}
	require.NoError(t, healthyGPU(0).Check())
}

func TestC94_TheSecondMemoryCallIsPreferred(t *testing.T) {
	t.Parallel()
	v1 := &signals.GPUMemory{Total: 40 * gib, Used: 912 * mb}
	v2 := &signals.GPUMemory{Total: 40 * gib, Reserved: 904.2 * mb, Used: 7.8 * mb}
	second, ok := signals.ChooseMemory(v1, v2)
	require.True(t, ok)
	require.Equal(t, signals.MemoryV2, second.API)
	first, ok := signals.ChooseMemory(v1, nil) // FUNCTION_NOT_FOUND
	require.True(t, ok)
	require.Equal(t, signals.MemoryV1, first.API)
	_, ok = signals.ChooseMemory(nil, nil)
	require.False(t, ok)
	// Thresholds are on used including reserved, so that both calls mean the same.
	require.InDelta(t, first.UsedWithReserved(), second.UsedWithReserved(), 1)
	a, _ := first.UsedRatio()
	b, _ := second.UsedRatio()
	require.InDelta(t, a, b, 1e-9)

	var m signals.GPUMonitor
	s := healthyGPU(0)
	s.Memory = &first
	require.Equal(t, []signals.GPUEventKind{signals.GPUNoMemoryV2}, kinds(m.Poll(t0, []signals.GPUSample{s})))
	require.Empty(t, m.Poll(t0, []signals.GPUSample{s}))
}

func TestC95_IdentityIsTheUUID(t *testing.T) {
	t.Parallel()
	var m signals.GPUMonitor
	for i, labels := range []map[string]string{{"pod": "a"}, nil, {"pod": "b"}} {
		s := healthyGPU(time.Duration(30*i) * time.Second)
		s.Labels = labels
		require.Empty(t, m.Poll(s.At, []signals.GPUSample{s}), "a changed label is a changed attribute")
		require.Len(t, m.States(), 1)
		require.Equal(t, labels, m.States()[0].Labels)
	}
	require.NotEqual(t, signals.GPUID{UUID: "GPU-1"}, signals.GPUID{UUID: "GPU-1", MIG: true, GPUInstance: 1})
	require.Equal(t, "GPU-1/3/0", signals.GPUID{UUID: "GPU-1", MIG: true, GPUInstance: 3}.String())
}

func TestAGPUThatVanishesIsLost(t *testing.T) {
	t.Parallel()
	var m signals.GPUMonitor
	m.Poll(t0, []signals.GPUSample{healthyGPU(0)})
	var all []signals.GPUEvent
	for i := range 10 {
		all = append(all, m.Poll(t0.Add(time.Duration(i)*time.Second), nil)...)
	}
	require.Equal(t, []signals.GPUEventKind{signals.GPUSignalLost}, kinds(all))
	m.Forget(signals.GPUID{UUID: "GPU-1"})
	require.Empty(t, m.States())
	require.Empty(t, m.Poll(t0, nil))
}

// Lost exactly while the last LostAfter polls or more were invalid; lost and back
// alternate, so nobody is told twice.
func TestMonitorAgreesWithItsModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var m signals.GPUMonitor
		invalid, lost := 0, false
		for i, good := range rapid.SliceOfN(rapid.Bool(), 1, 40).Draw(t, "polls") {
			s := healthyGPU(time.Duration(i) * time.Second)
			if !good {
				s.Memory.Used = number(t, "used") + 140737488355328
			}
			valid := s.Check() == nil
			var want []signals.GPUEventKind
			switch {
			case valid && lost:
				want = append(want, signals.GPUSignalBack)
			case !valid && invalid+1 == signals.LostAfter:
				want = append(want, signals.GPUSignalLost)
			}
			if invalid++; valid {
				invalid = 0
			}
			lost = invalid >= signals.LostAfter
			require.Equal(t, want, kinds(m.Poll(s.At, []signals.GPUSample{s})))
			require.Equal(t, lost, m.States()[0].Lost)
			require.Equal(t, lost, m.States()[0].Admission() == signals.AdmitReduced)
		}
	})
}
