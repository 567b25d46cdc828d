package story

import "holdfast/gpuguard/enginesim"

// enginesimLoad is the mean size of the story's requests.
func enginesimLoad() enginesim.Load { return enginesim.Load{PromptTokens: 8, OutputTokens: 32} }

// capacity is what the story's engine sustains (requests/s), healthy or with the fault of a seed.
func capacity(seed uint64, load enginesim.Load) float64 {
	k := enginesim.DefaultKnobs()
	if seed > 0 {
		k = slowKnobs(seed)
	}
	return enginesim.Estimate(Profile(), k, load).SustainableRPS
}
