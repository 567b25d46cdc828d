package signals

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// LostAfter is the number of polls in a row without a valid sample after which a
// GPU's signal is lost. With a poll each 5 s that is 15 s: longer than a driver's
// hiccup, shorter than it takes memory to fill (INCIDENTS C: 45 → 72 % in 30 s).
const LostAfter = 3

// Admission is what the GPU's state allows.
type Admission string

// Admissions.
const (
	// AdmitNormal: the signal is there; rules on its value apply.
	AdmitNormal Admission = "normal"
	// AdmitReduced: the signal is lost. Going on as if it were good risks the
	// memory, stopping lets a monitoring fault become an outage: admission goes on
	// under a lower limit.
	AdmitReduced Admission = "reduce"
)

// GPUState is what is known of one GPU.
type GPUState struct {
	ID GPUID
	// Last is the last valid sample; nil when there was none yet.
	Last *GPUSample
	// Lost says that the signal is lost; Invalid counts the polls in a row
	// without a valid sample, Reason says what was wrong with the last of them.
	Lost    bool
	Invalid int
	Reason  string
	// Labels are the attributes of the last sample.
	Labels map[string]string

	xids *float64
}

// Admission is AdmitReduced while the signal is lost.
func (g GPUState) Admission() Admission {
	if g.Lost {
		return AdmitReduced
	}
	return AdmitNormal
}

// GPUEventKind is a change worth a log line.
type GPUEventKind string

// GPU events. Each is told when it happens and not again for as long as it lasts.
const (
	GPUSignalLost  GPUEventKind = "signal lost"
	GPUSignalBack  GPUEventKind = "signal back"
	GPUXID         GPUEventKind = "xid"
	GPUNoMemoryV2  GPUEventKind = "memory v1 only"
	GPUUtilisation GPUEventKind = "utilisation not available"
)

// GPUEvent is one change.
type GPUEvent struct {
	Kind   GPUEventKind
	ID     GPUID
	At     time.Time
	Reason string
}

// GPUMonitor follows the GPUs of one node over its polls. The zero value is ready.
// It is pure: whoever polls calls Poll, from one goroutine.
type GPUMonitor struct {
	gpus map[GPUID]*GPUState
	// told are the kinds that are a property of driver and mode: once in all.
	told map[GPUEventKind]bool
}

// Poll takes the samples of one poll and gives what changed. A known GPU without
// a sample counts as an invalid one. An invalid sample changes no value: no
// division, no trip (C92).
func (m *GPUMonitor) Poll(at time.Time, samples []GPUSample) []GPUEvent {
	if m.gpus == nil {
		m.gpus, m.told = map[GPUID]*GPUState{}, map[GPUEventKind]bool{}
	}
	var events []GPUEvent
	seen := map[GPUID]bool{}
	for _, s := range samples {
		if s.ID.UUID == "" || seen[s.ID] {
			continue
		}
		seen[s.ID] = true
		events = append(events, m.take(s)...)
	}
	for _, id := range m.ids() {
		if !seen[id] {
			events = append(events, m.gpus[id].invalid(at, "the poll had no sample of it")...)
		}
	}
	return events
}

func (m *GPUMonitor) take(s GPUSample) []GPUEvent {
	g := m.gpus[s.ID]
	if g == nil {
		g = &GPUState{ID: s.ID}
		m.gpus[s.ID] = g
	}
	g.Labels = s.Labels
	events := g.xid(s)
	if err := s.Check(); err != nil {
		return append(events, g.invalid(s.At, err.Error())...)
	}
	events = append(events, m.properties(s)...)
	if g.Lost {
		events = append(events, GPUEvent{GPUSignalBack, s.ID, s.At, ""})
	}
	g.Last, g.Lost, g.Invalid, g.Reason = &s, false, 0, ""
	return events
}

// xid tells that the driver's error counter rose, in valid samples and others.
func (g *GPUState) xid(s GPUSample) []GPUEvent {
	if s.XIDs == nil || !IsData(*s.XIDs) || IsBlank(*s.XIDs) {
		return nil
	}
	before := g.xids
	g.xids = s.XIDs
	if before == nil || *s.XIDs <= *before {
		return nil
	}
	return []GPUEvent{{GPUXID, s.ID, s.At, "the driver reported an error"}}
}

// properties tells what driver and mode do not have, once in all (C90, C94).
func (m *GPUMonitor) properties(s GPUSample) []GPUEvent {
	var events []GPUEvent
	once := func(kind GPUEventKind, reason string) {
		if !m.told[kind] {
			m.told[kind] = true
			events = append(events, GPUEvent{kind, s.ID, s.At, reason})
		}
	}
	if s.Utilisation == nil {
		once(GPUUtilisation, "the driver does not give it, as under MIG")
	}
	if s.Memory.API == MemoryV1 {
		once(GPUNoMemoryV2, "used memory includes what the driver reserves")
	}
	return events
}

// invalid counts a poll without a valid sample.
func (g *GPUState) invalid(at time.Time, reason string) []GPUEvent {
	g.Invalid++
	g.Reason = reason
	if g.Lost || g.Invalid < LostAfter {
		return nil
	}
	g.Lost = true
	return []GPUEvent{{GPUSignalLost, g.ID, at, reason}}
}

// States are all GPUs seen so far, by id.
func (m *GPUMonitor) States() []GPUState {
	out := make([]GPUState, 0, len(m.gpus))
	for _, id := range m.ids() {
		out = append(out, *m.gpus[id])
	}
	return out
}

// Forget drops GPUs that were taken away on purpose, such as MIG devices after
// the mode was changed.
func (m *GPUMonitor) Forget(id GPUID) { delete(m.gpus, id) }

func (m *GPUMonitor) ids() []GPUID {
	return slices.SortedFunc(maps.Keys(m.gpus), func(a, b GPUID) int { return strings.Compare(a.String(), b.String()) })
}
