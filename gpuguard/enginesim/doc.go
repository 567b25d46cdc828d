// Package enginesim is a simulated LLM inference engine. It speaks the
// OpenAI-compatible HTTP protocol, exports vLLM v1 metric names and fails on
// command, so that demos, drills and tests need no GPU. Only the answers are
// invented: queueing, batching, KV blocks, preemption, out-of-memory crashes
// and lost clients follow the model below.
//
// # Model
//
// The engine runs in steps, as continuous-batching engines do. In one step
// each decoding sequence gets one token and up to PrefillChunkTokens prompt
// tokens of newly admitted sequences are computed. The step takes
//
//	s = d(n) + prefill tokens of the step × p          (seconds)
//	d(n) = DecodeBase × decode_multiplier × (1 + BatchPenalty × n/Slots)
//
// where n is the number of running sequences and p is PrefillPerToken. A
// sequence holds one slot and ceil(tokens/16) KV blocks. When blocks run out,
// the youngest sequence is preempted: its blocks are freed, it goes back to
// the head of the queue and its tokens are computed again.
//
// # Memory
//
// Weights and the KV pool are allocated once. Activations live in the
// remaining scratch memory R (ScratchBytes), of which the share f is lost to
// fragmentation:
//
//	f = min(0.99, fragmentation_ratio + LongContextFragmentation × share of the
//	    KV pool held by sequences longer than LongContextTokens)
//
// f is relative to memory that is neither weights nor KV pool, because at real
// out-of-memory errors the ratio to all reserved memory was only 0.8–5 %. Two
// things follow from it:
//
//   - concurrency: every running sequence needs SequenceScratchBytes, so
//     R × (1−f) / (SequenceScratchBytes × scratch_multiplier) sequences fit.
//     The queue grows while the engine looks idle (INCIDENTS A).
//   - out of memory: the prefill of one request needs one contiguous piece of
//     (PrefillScratchBytes + prompt × PromptScratchBytesPerToken) ×
//     scratch_multiplier bytes. When that exceeds R × (1−f) the engine crashes:
//     all requests fail and nothing is admitted for RestartTime (INCIDENTS C).
//
// # Surviving capacity
//
// [Estimate] gives the request rate the engine can sustain. With mean prompt P
// and mean output O (tokens), concurrency
//
//	N = min(Slots, floor(KVBlocks / ceil((P+O)/16)), floor(R×(1−f) / per-sequence scratch))
//
// extra first-token latency X (seconds) and chunk size C (tokens), a request
// takes T = max(0, O−1) + max(1, P/C) steps, shared with its batch, and P × p
// seconds of exclusive prefill. Little's law, N = λ × (T×d(N)/(1−λPp) + X),
// solved for λ gives
//
//	B             = T×d(N) + X + N×P×p
//	λ_slots       = 2N / (B + sqrt(B² − 4×X×P×p×N))     (requests/s; N/B when X = 0)
//	λ_prefill     = C / (P × (d(min(N, T×C/P)) + C×p))   (requests/s; every step is full of prompt tokens)
//	sustainable   = min(λ_slots, λ_prefill)
//	surviving     = sustainable × (1−hang)(1−fail)(1−empty)(1−error_in_200)(1−cut)
//
// Surviving capacity is thus the rate of good answers when requests arrive at
// the sustainable rate. It is 0 when a request of mean size runs out of memory
// or does not fit the KV pool. The cut ratio counts in full, as if all requests
// were streams.
//
// # Time
//
// TimeScale runs the model faster than the wall clock. All durations in
// metrics, state and formula are model time. Clients see model time divided by
// TimeScale.
package enginesim
