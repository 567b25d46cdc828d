package enginesim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestEstimate(t *testing.T) {
	t.Parallel()
	short := Load{PromptTokens: 64, OutputTokens: 24}
	tests := []struct {
		name        string
		knobs       func(*Knobs)
		load        Load
		concurrency int
		sustainable float64
		surviving   float64
	}{
		// A = 24 × 30 ms; N·P·p = 256 × 64 × 30 µs; 256 / (0.72 + 0.49152).
		{"healthy", func(*Knobs) {}, short, 256, 211.30, 211.30},
		{"four times slower, INCIDENTS A", func(k *Knobs) { k.DecodeMultiplier = 4 }, short, 256, 75.93, 75.93},
		{"first token 2 s late", func(k *Knobs) { k.FirstTokenDelayMS = 2000 }, short, 256, 88.56, 88.56},
		{"half the answers empty", func(k *Knobs) { k.EmptyRatio = 0.5 }, short, 256, 211.30, 105.65},
		{"all fail", func(k *Knobs) { k.FailRatio = 1 }, short, 256, 211.30, 0},
		// 6 GiB × 0.25 / 16 MiB = 96 sequences; 96 / (24 × 20.625 ms + 96 × 1.92 ms).
		{"fragmented", func(k *Knobs) { k.FragmentationRatio = 0.75 }, short, 96, 141.32, 141.32},
		{"fragmented until every prefill fails", func(k *Knobs) { k.FragmentationRatio = 0.95 }, short, 0, 0, 0},
		// 32k prompts: 512 MiB + 32000 × 128 KiB no longer fits 6 GiB × 0.73, INCIDENTS C.
		{"32k at 27 % fragmentation", func(k *Knobs) { k.FragmentationRatio = 0.27 }, Load{32000, 200}, 0, 0, 0},
		// 29184 blocks / 2013 per sequence; prefill bound: 2048 / (32000 × (15.80 ms + 61.44 ms)).
		{"32k", func(*Knobs) {}, Load{32000, 200}, 14, 0.8285, 0.8285},
		// Prefill bound with 20.48 sequences running: 2048 / (100 × (16.2 ms + 61.44 ms)).
		{"embeddings", func(*Knobs) {}, Load{100, 0}, 256, 263.78, 263.78},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			k := DefaultKnobs()
			tt.knobs(&k)
			got := Estimate(DefaultProfile(), k, tt.load)
			require.Equal(t, tt.concurrency, got.Concurrency)
			require.InDelta(t, tt.sustainable, got.SustainableRPS, 0.01*tt.sustainable+1e-9)
			require.InDelta(t, tt.surviving, got.SurvivingRPS, 0.01*tt.surviving+1e-9)
		})
	}
}

// drawProfile makes a valid engine of any size.
func drawProfile(t *rapid.T) Profile {
	p := DefaultProfile()
	p.Slots = rapid.IntRange(1, 600).Draw(t, "slots")
	p.QueueLimit = rapid.IntRange(0, 50).Draw(t, "queue")
	p.DecodeBase = time.Duration(rapid.IntRange(100, 200000).Draw(t, "decode_us")) * time.Microsecond
	p.BatchPenalty = rapid.Float64Range(0, 5).Draw(t, "penalty")
	p.PrefillPerToken = time.Duration(rapid.IntRange(0, 500).Draw(t, "prefill_us")) * time.Microsecond
	p.PrefillChunkTokens = rapid.IntRange(1, 8192).Draw(t, "chunk")
	p.KVBlocks = rapid.IntRange(20, 30000).Draw(t, "blocks")
	p.MaxContextTokens = rapid.IntRange(2, p.KVBlocks*BlockTokens).Draw(t, "context")
	p.LongContextTokens = rapid.IntRange(1, 20000).Draw(t, "long")
	return p
}

func drawKnobs(t *rapid.T) Knobs {
	ratio := rapid.Float64Range(0, 1)
	k := DefaultKnobs()
	k.Seed = rapid.Uint64().Draw(t, "seed")
	k.DecodeMultiplier = rapid.Float64Range(0.1, 20).Draw(t, "slow")
	k.FirstTokenDelayMS = rapid.Int64Range(0, 5000).Draw(t, "delay")
	k.FailRatio = ratio.Draw(t, "fail")
	k.EmptyRatio = ratio.Draw(t, "empty")
	k.CutRatio = ratio.Draw(t, "cut")
	k.HangRatio = ratio.Draw(t, "hang")
	k.ErrorIn200Ratio = ratio.Draw(t, "error")
	k.FragmentationRatio = rapid.Float64Range(0, maxFragmentation).Draw(t, "fragmentation")
	k.ScratchMultiplier = rapid.Float64Range(0.1, 5).Draw(t, "scratch")
	return k
}

func drawLoad(t *rapid.T) Load {
	return Load{
		PromptTokens: rapid.Float64Range(1, 30000).Draw(t, "prompt"),
		OutputTokens: rapid.Float64Range(0, 4000).Draw(t, "output"),
	}
}

// Whatever gets worse, capacity does not rise.
func TestEstimateIsMonotone(t *testing.T) {
	t.Parallel()
	type engine struct {
		p Profile
		k Knobs
		l Load
	}
	more := func(t *rapid.T) float64 { return rapid.Float64Range(1, 4).Draw(t, "factor") }
	toward := func(t *rapid.T, v, most float64) float64 { return rapid.Float64Range(v, most).Draw(t, "worse") }
	worse := map[string]func(*rapid.T, *engine){
		"slower decode":      func(t *rapid.T, e *engine) { e.k.DecodeMultiplier *= more(t) },
		"later first token":  func(t *rapid.T, e *engine) { e.k.FirstTokenDelayMS += rapid.Int64Range(0, 10000).Draw(t, "ms") },
		"more failures":      func(t *rapid.T, e *engine) { e.k.FailRatio = toward(t, e.k.FailRatio, 1) },
		"more empty answers": func(t *rapid.T, e *engine) { e.k.EmptyRatio = toward(t, e.k.EmptyRatio, 1) },
		"more cuts":          func(t *rapid.T, e *engine) { e.k.CutRatio = toward(t, e.k.CutRatio, 1) },
		"more hangs":         func(t *rapid.T, e *engine) { e.k.HangRatio = toward(t, e.k.HangRatio, 1) },
		"more errors in 200": func(t *rapid.T, e *engine) { e.k.ErrorIn200Ratio = toward(t, e.k.ErrorIn200Ratio, 1) },
		"more fragmentation": func(t *rapid.T, e *engine) {
			e.k.FragmentationRatio = toward(t, e.k.FragmentationRatio, maxFragmentation)
		},
		"bigger scratch":      func(t *rapid.T, e *engine) { e.k.ScratchMultiplier *= more(t) },
		"longer answers":      func(t *rapid.T, e *engine) { e.l.OutputTokens *= more(t) },
		"longer prompts":      func(t *rapid.T, e *engine) { e.l.PromptTokens *= more(t) },
		"slower prefill":      func(t *rapid.T, e *engine) { e.p.PrefillPerToken *= 2 },
		"steeper batch":       func(t *rapid.T, e *engine) { e.p.BatchPenalty += more(t) },
		"fewer KV blocks":     func(t *rapid.T, e *engine) { e.p.KVBlocks = 1 + e.p.KVBlocks/2 },
		"fewer slots":         func(t *rapid.T, e *engine) { e.p.Slots = rapid.IntRange(1, e.p.Slots).Draw(t, "slots2") },
		"less scratch memory": func(t *rapid.T, e *engine) { e.p.ScratchBytes /= 2 },
	}
	for name, worsen := range worse {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				before := engine{drawProfile(t), drawKnobs(t), drawLoad(t)}
				after := before
				worsen(t, &after)
				good := Estimate(before.p, before.k, before.l)
				bad := Estimate(after.p, after.k, after.l)
				const rounding = 1e-9
				require.LessOrEqual(t, bad.SurvivingRPS, good.SurvivingRPS*(1+1e-6)+rounding)
				require.LessOrEqual(t, bad.SustainableRPS, good.SustainableRPS*(1+1e-6)+rounding)
			})
		})
	}
}

func TestEstimateIsFiniteAndBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p, k := drawProfile(t), drawKnobs(t)
		got := Estimate(p, k, drawLoad(t))
		require.GreaterOrEqual(t, got.SustainableRPS, 0.0)
		require.Less(t, got.SustainableRPS, 1e9)
		require.LessOrEqual(t, got.SurvivingRPS, got.SustainableRPS)
		require.LessOrEqual(t, got.Concurrency, p.Slots)
	})
}
