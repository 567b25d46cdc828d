package enginesim

import "math"

// maxFragmentation keeps a sliver of scratch memory usable, so that the
// formulas never divide by zero.
const maxFragmentation = 0.99

// Load is the mean size of a request in tokens.
type Load struct {
	// PromptTokens is the mean prompt, at least 1.
	PromptTokens float64 `json:"prompt_tokens"`
	// OutputTokens is the mean output, at least 0.
	OutputTokens float64 `json:"output_tokens"`
}

// Capacity is what an engine can sustain under some load.
type Capacity struct {
	// Concurrency is the number of sequences that run at once.
	Concurrency int `json:"concurrency"`
	// DecodeSecondsPerToken is d(N): the decode time of a token with that many sequences.
	DecodeSecondsPerToken float64 `json:"decode_seconds_per_token"`
	// SustainableRPS is the request rate (1/s) at which the queue does not grow.
	SustainableRPS float64 `json:"sustainable_rps"`
	// SurvivingRPS is the rate (1/s) of good answers at SustainableRPS.
	SurvivingRPS float64 `json:"surviving_rps"`
}

// Estimate is the surviving-capacity formula of the package comment. It is
// pure. A load below one prompt token or below zero output tokens is raised to
// that.
func Estimate(p Profile, k Knobs, l Load) Capacity {
	prompt := math.Max(1, l.PromptTokens)
	output := math.Max(0, l.OutputTokens)
	fragmentation := math.Min(maxFragmentation, k.FragmentationRatio)
	if p.prefillScratch(k, prompt) > p.usableScratch(fragmentation) {
		return Capacity{}
	}
	n := concurrency(p, k, fragmentation, prompt+output)
	if n == 0 {
		return Capacity{}
	}
	steps := math.Max(0, output-1) + math.Max(1, prompt/float64(p.PrefillChunkTokens))
	sustainable := math.Min(
		slotRate(p, k, float64(n), steps, prompt),
		prefillRate(p, k, float64(n), steps, prompt),
	)
	return Capacity{
		Concurrency:           n,
		DecodeSecondsPerToken: p.decodeStep(k, float64(n)).Seconds(),
		SustainableRPS:        sustainable,
		SurvivingRPS:          sustainable * k.goodRatio(),
	}
}

// concurrency is N: the least of slots, KV pool and scratch memory.
func concurrency(p Profile, k Knobs, fragmentation, tokens float64) int {
	blocks := math.Ceil(tokens / BlockTokens)
	return min(p.Slots, int(float64(p.KVBlocks)/blocks), p.scratchSlots(k, fragmentation))
}

// slotRate is λ_slots: the rate at which n slots turn over.
func slotRate(p Profile, k Knobs, n, steps, prompt float64) float64 {
	shared := steps * p.decodeStep(k, n).Seconds()
	delay := k.firstTokenDelay().Seconds()
	exclusive := prompt * p.PrefillPerToken.Seconds()
	b := shared + delay + n*exclusive
	// Never negative in exact arithmetic: b² ≥ (delay + n·exclusive)² ≥ 4·delay·n·exclusive.
	root := math.Sqrt(math.Max(0, b*b-4*delay*exclusive*n))
	return 2 * n / (b + root)
}

// prefillRate is λ_prefill: the rate at which chunks of prompt tokens are
// computed. When that is the limit, fewer than n sequences run.
func prefillRate(p Profile, k Knobs, n, steps, prompt float64) float64 {
	chunk := float64(p.PrefillChunkTokens)
	running := math.Min(n, chunk/prompt*steps)
	return chunk / (prompt * (p.decodeStep(k, running).Seconds() + chunk*p.PrefillPerToken.Seconds()))
}
