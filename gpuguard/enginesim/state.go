package enginesim

import "time"

// Status is whether the engine answers.
type Status string

// The two states of an engine.
const (
	StatusReady      Status = "ready"
	StatusRestarting Status = "restarting" // after running out of memory
)

// State is a snapshot of the engine. Times are model time.
type State struct {
	Model  string `json:"model"`
	Status Status `json:"status"`
	// RestartSecondsLeft is the rest of a restart in seconds, 0 when ready.
	RestartSecondsLeft float64 `json:"restart_seconds_left"`
	// Waiting, Running and Hung count requests. Hung ones are held by a knob and cost no slot.
	Waiting int `json:"waiting"`
	Running int `json:"running"`
	Hung    int `json:"hung"`
	// Slots is the configured batch size; UsableSlots what scratch memory leaves of it.
	Slots       int `json:"slots"`
	UsableSlots int `json:"usable_slots"`
	QueueLimit  int `json:"queue_limit"`
	// StepSeconds is the duration of the last step: one output token per decoding sequence.
	StepSeconds float64  `json:"step_seconds"`
	KV          KVState  `json:"kv"`
	Memory      Memory   `json:"memory"`
	Capacity    Capacity `json:"capacity"`
	// HealthyCapacity is Capacity with default knobs and no long contexts.
	HealthyCapacity Capacity `json:"healthy_capacity"`
	// Load is the recent mean size of requests, which both capacities are for.
	Load        Load   `json:"load"`
	Preemptions uint64 `json:"preemptions_total"`
	OOMs        uint64 `json:"ooms_total"`
}

// KVState is the use of the KV pool.
type KVState struct {
	BlocksTotal int `json:"blocks_total"`
	BlocksUsed  int `json:"blocks_used"`
	// UsageRatio is BlocksUsed / BlocksTotal, 0 to 1.
	UsageRatio float64 `json:"usage_ratio"`
}

// Memory is the view of a caching allocator, in bytes.
type Memory struct {
	// ReservedBytes were taken from the driver: weights, KV pool and scratch memory.
	ReservedBytes int64 `json:"reserved_bytes"`
	// AllocatedBytes are in use by weights, KV pool and running sequences.
	AllocatedBytes int64 `json:"allocated_bytes"`
	// FreeBytes are scratch memory that a new sequence can use.
	FreeBytes int64 `json:"free_bytes"`
	// FragmentedBytes are free but in pieces too small to use.
	FragmentedBytes int64 `json:"fragmented_bytes"`
	// LargestFreeBytes is the largest contiguous piece a prefill can get.
	LargestFreeBytes int64 `json:"largest_free_bytes"`
	// FragmentationRatio is the share of scratch memory that is fragmented, 0 to 0.99.
	FragmentationRatio float64 `json:"fragmentation_ratio"`
}

// memory is the allocator's view of the running batch.
func (m *model) memory() Memory {
	p := m.profile
	f := m.fragmentation()
	usable := p.usableScratch(f)
	perSequence := float64(p.SequenceScratchBytes) * m.knobs.ScratchMultiplier
	used := min(usable, int64(float64(len(m.running))*perSequence))
	static := p.WeightBytes + int64(p.KVBlocks)*BlockTokens*p.KVBytesPerToken
	return Memory{
		ReservedBytes:      static + p.ScratchBytes,
		AllocatedBytes:     static + used,
		FreeBytes:          usable - used,
		FragmentedBytes:    p.ScratchBytes - usable,
		LargestFreeBytes:   usable,
		FragmentationRatio: f,
	}
}

// state is the model's part of State.
func (m *model) state(now time.Time, load Load) State {
	s := State{
		Status:      StatusReady,
		Waiting:     len(m.waiting),
		Running:     len(m.running),
		Slots:       m.profile.Slots,
		UsableSlots: m.limit(),
		QueueLimit:  m.profile.QueueLimit,
		StepSeconds: m.lastStep.Seconds(),
		KV: KVState{
			BlocksTotal: m.profile.KVBlocks,
			BlocksUsed:  m.usedBlocks,
			UsageRatio:  float64(m.usedBlocks) / float64(m.profile.KVBlocks),
		},
		Memory:          m.memory(),
		HealthyCapacity: Estimate(m.profile, DefaultKnobs(), load),
		Load:            load,
		Preemptions:     m.preemptions,
		OOMs:            m.ooms,
	}
	if m.restarting(now) {
		s.Status = StatusRestarting
		s.RestartSecondsLeft = m.downUntil.Sub(now).Seconds()
		return s
	}
	knobs := m.knobs
	knobs.FragmentationRatio = s.Memory.FragmentationRatio
	s.Capacity = Estimate(m.profile, knobs, load)
	return s
}
