package enginesim

import (
	"errors"
	"fmt"
	"time"
)

// BlockTokens is the number of tokens in one KV block, vLLM's default.
const BlockTokens = 16

const (
	kib int64 = 1 << 10
	mib int64 = 1 << 20
	gib int64 = 1 << 30
)

// ErrInvalidOptions is wrapped by every error about a bad Options or Profile value.
var ErrInvalidOptions = errors.New("invalid engine options")

// Profile is the fixed size and speed of an engine: what a model on a GPU can
// do when nothing is wrong. Knobs change its behaviour at run time.
type Profile struct {
	// Slots is the largest number of sequences in the batch, at least 1.
	Slots int
	// QueueLimit is the largest number of waiting sequences; 0 lets none wait.
	// Preempted sequences return to the queue even when it is full.
	QueueLimit int
	// DecodeBase is the time of one token in an empty batch, above 0.
	DecodeBase time.Duration
	// BatchPenalty is the relative slowdown of decode in a full batch: 1 means
	// that a token takes twice DecodeBase. At least 0.
	BatchPenalty float64
	// PrefillPerToken is the exclusive compute time of one prompt token, at least 0.
	PrefillPerToken time.Duration
	// PrefillChunkTokens is the largest number of prompt tokens in one step, at least 1.
	PrefillChunkTokens int
	// KVBlocks is the size of the KV pool in blocks of BlockTokens tokens.
	KVBlocks int
	// KVBytesPerToken is the KV memory of one token in bytes.
	KVBytesPerToken int64
	// MaxContextTokens is the longest prompt plus output in tokens. It must fit the KV pool.
	MaxContextTokens int
	// WeightBytes is the memory of the model's weights.
	WeightBytes int64
	// ScratchBytes is the memory for activations: neither weights nor KV pool.
	ScratchBytes int64
	// SequenceScratchBytes is the scratch memory of one running sequence.
	SequenceScratchBytes int64
	// PrefillScratchBytes is the contiguous scratch memory of any prefill.
	PrefillScratchBytes int64
	// PromptScratchBytesPerToken is the contiguous scratch memory that each
	// prompt token adds to a prefill.
	PromptScratchBytesPerToken int64
	// LongContextTokens is the context beyond which sequences fragment the
	// allocator.
	LongContextTokens int
	// LongContextFragmentation is the fragmentation ratio reached when long
	// sequences hold the whole KV pool, 0 to 1.
	LongContextFragmentation float64
	// RestartTime is how long the engine is down after running out of memory.
	RestartTime time.Duration
}

// DefaultProfile is an 8-billion-parameter model on one 80 GiB GPU. It sustains
// about 200 requests/s of 64 prompt and 24 output tokens, and about 70 when
// decode is four times slower.
func DefaultProfile() Profile {
	return Profile{
		Slots:      256, // vLLM's max_num_seqs
		QueueLimit: 1024,
		// 15 ms doubled by a full batch is the healthy 30 ms/token of INCIDENTS A.
		DecodeBase:   15 * time.Millisecond,
		BatchPenalty: 1,
		// 32k tokens in about 980 ms, INCIDENTS C.
		PrefillPerToken:    30 * time.Microsecond,
		PrefillChunkTokens: 2048, // vLLM's max_num_batched_tokens

		KVBlocks:         29184, // 57 GiB
		KVBytesPerToken:  128 * kib,
		MaxContextTokens: 32768,
		WeightBytes:      16 * gib,

		ScratchBytes:         6 * gib,
		SequenceScratchBytes: 16 * mib,
		PrefillScratchBytes:  512 * mib,
		// Chosen so that a 32k prompt no longer fits at 27 % fragmentation, INCIDENTS C.
		PromptScratchBytesPerToken: 128 * kib,
		// Fragmentation grows steeply beyond 12k tokens and was 27 % with 63 %
		// long contexts: 0.27 / 0.63, INCIDENTS C.
		LongContextTokens:        12000,
		LongContextFragmentation: 0.43,
		RestartTime:              20 * time.Second,
	}
}

// Validate returns an error wrapping ErrInvalidOptions that names every bad field.
func (p Profile) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrInvalidOptions}, args...)...))
		}
	}
	check(p.Slots >= 1 && p.Slots <= 1<<20, "Slots is %d, want 1 to %d", p.Slots, 1<<20)
	check(p.QueueLimit >= 0, "QueueLimit is %d, want 0 or more", p.QueueLimit)
	check(p.DecodeBase > 0, "DecodeBase is %v, want more than 0", p.DecodeBase)
	check(p.BatchPenalty >= 0 && p.BatchPenalty <= 1000, "BatchPenalty is %v, want 0 to 1000", p.BatchPenalty)
	check(p.PrefillPerToken >= 0, "PrefillPerToken is %v, want 0 or more", p.PrefillPerToken)
	check(p.PrefillChunkTokens >= 1, "PrefillChunkTokens is %d, want 1 or more", p.PrefillChunkTokens)
	check(p.KVBlocks >= 1, "KVBlocks is %d, want 1 or more", p.KVBlocks)
	check(p.MaxContextTokens >= 2, "MaxContextTokens is %d, want 2 or more", p.MaxContextTokens)
	check(blocksFor(p.MaxContextTokens) <= p.KVBlocks,
		"MaxContextTokens is %d, which needs %d KV blocks of %d tokens, but KVBlocks is %d",
		p.MaxContextTokens, blocksFor(p.MaxContextTokens), BlockTokens, p.KVBlocks)
	check(p.LongContextTokens >= 1, "LongContextTokens is %d, want 1 or more", p.LongContextTokens)
	check(p.LongContextFragmentation >= 0 && p.LongContextFragmentation <= 1,
		"LongContextFragmentation is %v, want 0 to 1", p.LongContextFragmentation)
	check(p.RestartTime >= 0, "RestartTime is %v, want 0 or more", p.RestartTime)
	for _, b := range []struct {
		name  string
		value int64
		least int64
	}{
		{"KVBytesPerToken", p.KVBytesPerToken, 1},
		{"WeightBytes", p.WeightBytes, 0},
		{"ScratchBytes", p.ScratchBytes, 1},
		{"SequenceScratchBytes", p.SequenceScratchBytes, 1},
		{"PrefillScratchBytes", p.PrefillScratchBytes, 0},
		{"PromptScratchBytesPerToken", p.PromptScratchBytesPerToken, 0},
	} {
		check(b.value >= b.least, "%s is %d, want %d or more", b.name, b.value, b.least)
	}
	return errors.Join(errs...)
}

// decodeStep is the time of one decode step with n running sequences.
func (p Profile) decodeStep(k Knobs, n float64) time.Duration {
	occupancy := n / float64(p.Slots)
	return time.Duration(float64(p.DecodeBase) * k.DecodeMultiplier * (1 + p.BatchPenalty*occupancy))
}

// usableScratch is the scratch memory left by fragmentation, in bytes. It is
// also the largest contiguous piece.
func (p Profile) usableScratch(fragmentation float64) int64 {
	return int64(float64(p.ScratchBytes) * (1 - fragmentation))
}

// prefillScratch is the contiguous memory that the prefill of a prompt needs, in bytes.
func (p Profile) prefillScratch(k Knobs, promptTokens float64) int64 {
	return int64((float64(p.PrefillScratchBytes) + promptTokens*float64(p.PromptScratchBytesPerToken)) * k.ScratchMultiplier)
}

// scratchSlots is how many sequences fit into the scratch memory.
func (p Profile) scratchSlots(k Knobs, fragmentation float64) int {
	return int(float64(p.usableScratch(fragmentation)) / (float64(p.SequenceScratchBytes) * k.ScratchMultiplier))
}

// blocksFor is the number of KV blocks that hold so many tokens.
func blocksFor(tokens int) int { return (tokens + BlockTokens - 1) / BlockTokens }
