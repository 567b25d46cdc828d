package enginesim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// small is an engine whose numbers are easy to follow: 10 ms per step whatever
// the batch, prefill free.
func small() Profile {
	p := DefaultProfile()
	p.Slots, p.QueueLimit = 2, 1
	p.DecodeBase, p.BatchPenalty, p.PrefillPerToken = 10*time.Millisecond, 0, 0
	p.KVBlocks, p.MaxContextTokens = 8, 128
	return p
}

// bench runs a model by hand.
type bench struct {
	*model
	now    time.Time
	tokens map[*sequence]int
	ended  map[*sequence]time.Duration
	failed map[*sequence]bool
}

func newBench(p Profile, k Knobs) *bench {
	b := &bench{
		now: epoch, tokens: map[*sequence]int{},
		ended: map[*sequence]time.Duration{}, failed: map[*sequence]bool{},
	}
	b.model = newModel(p, k, func(ev event) {
		switch ev.kind {
		case eventToken:
			b.tokens[ev.seq]++
		case eventDone:
			b.ended[ev.seq] = ev.at.Sub(epoch)
		case eventFailed:
			b.failed[ev.seq] = true
		}
	})
	return b
}

func (b *bench) at(d time.Duration) {
	b.now = epoch.Add(d)
	b.advance(b.now)
}

func (b *bench) add(t require.TestingT, prompt, output int) *sequence {
	s, err := b.submit(b.now, prompt, output, nil)
	require.NoError(t, err)
	return s
}

func TestModelOneTokenPerStep(t *testing.T) {
	t.Parallel()
	b := newBench(small(), DefaultKnobs())
	s := b.add(t, 16, 3)
	b.at(9 * time.Millisecond)
	require.Zero(t, b.tokens[s])
	b.at(10 * time.Millisecond)
	require.Equal(t, 1, b.tokens[s])
	b.at(time.Hour)
	require.Equal(t, 3, b.tokens[s])
	require.Equal(t, 30*time.Millisecond, b.ended[s])
	require.Zero(t, b.usedBlocks)
	_, busy := b.next()
	require.False(t, busy, "an idle engine needs no timer")
}

func TestModelQueueIsBoundedAndOrdered(t *testing.T) {
	t.Parallel()
	b := newBench(small(), DefaultKnobs())
	first := b.add(t, 1, 1)  // in the step at once
	second := b.add(t, 1, 1) // free slot, joins the next step
	third := b.add(t, 1, 1)  // the one place in the queue
	_, err := b.submit(b.now, 1, 1, nil)
	require.ErrorIs(t, err, errQueueFull)
	b.at(time.Second)
	require.Equal(t, 10*time.Millisecond, b.ended[first])
	require.Equal(t, 20*time.Millisecond, b.ended[second])
	require.Equal(t, 20*time.Millisecond, b.ended[third])
}

func TestModelQueueBoundHoldsWhenKVIsShort(t *testing.T) {
	t.Parallel()
	p := small()
	p.Slots = 100
	b := newBench(p, DefaultKnobs())
	b.add(t, 100, 20) // 7 of 8 blocks
	b.add(t, 30, 1)
	b.at(10 * time.Millisecond) // the second one is blocked by KV, not by slots
	_, err := b.submit(b.now, 30, 1, nil)
	require.ErrorIs(t, err, errQueueFull)
}

func TestModelBatchAndKnobSlowDecode(t *testing.T) {
	t.Parallel()
	p := small()
	p.BatchPenalty = 1
	b := newBench(p, DefaultKnobs())
	require.Equal(t, 20*time.Millisecond, p.decodeStep(b.knobs, 2))
	s := b.add(t, 1, 2) // 15 ms per step alone
	b.at(10 * time.Millisecond)
	k := DefaultKnobs()
	k.DecodeMultiplier = 4
	b.setKnobs(b.now, k) // 5 ms left become 20 ms
	b.at(29 * time.Millisecond)
	require.Zero(t, b.tokens[s])
	b.at(time.Second)
	require.Equal(t, (10+20+60)*time.Millisecond, b.ended[s])
}

func TestModelPrefillIsChunkedAndDelaysDecode(t *testing.T) {
	t.Parallel()
	p := small()
	p.PrefillPerToken, p.PrefillChunkTokens = time.Millisecond, 40
	b := newBench(p, DefaultKnobs())
	long := b.add(t, 100, 1) // 40 + 40 + 20 tokens
	b.at(0)
	short := b.add(t, 1, 1) // must wait until the budget has room
	b.at(time.Minute)
	require.Equal(t, (3*10+100+1)*time.Millisecond, b.ended[long])
	require.Equal(t, b.ended[long], b.ended[short])
}

func TestModelFirstTokenDelayKeepsTheSlot(t *testing.T) {
	t.Parallel()
	k := DefaultKnobs()
	k.FirstTokenDelayMS = 95
	b := newBench(small(), k)
	s := b.add(t, 1, 2)
	b.at(100 * time.Millisecond)
	require.Zero(t, b.tokens[s])
	require.Len(t, b.running, 1)
	b.at(time.Second)
	require.Equal(t, (10+100+10)*time.Millisecond, b.ended[s], "the delay is rounded up to whole steps")
}

func TestModelPreemptsTheYoungestAndComputesAgain(t *testing.T) {
	t.Parallel()
	b := newBench(small(), DefaultKnobs())
	old := b.add(t, 64, 40)
	young := b.add(t, 48, 16)
	b.at(200 * time.Millisecond)
	require.EqualValues(t, 1, b.preemptions)
	require.Equal(t, stateWaiting, young.state)
	require.Zero(t, young.blocks)
	require.Positive(t, b.tokens[young])
	b.at(time.Minute)
	require.Equal(t, 40, b.tokens[old], "the older one is never disturbed")
	require.Equal(t, 400*time.Millisecond, b.ended[old])
	require.Equal(t, 16, b.tokens[young], "no token is made twice")
	require.Greater(t, b.ended[young], 400*time.Millisecond)
	require.Zero(t, b.usedBlocks)
}

func TestModelCancelFreesAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(small(), DefaultKnobs())
	s := b.add(t, 64, 40)
	b.at(50 * time.Millisecond)
	require.Equal(t, 5, b.usedBlocks)
	b.cancel(s)
	require.Zero(t, b.usedBlocks)
	require.Empty(t, b.running)
	b.cancel(s) // twice is harmless
	made := b.tokens[s]
	b.at(time.Minute)
	require.Equal(t, made, b.tokens[s])
}

func TestModelFragmentationStarvesAnIdleEngine(t *testing.T) {
	t.Parallel()
	p := DefaultProfile()
	k := DefaultKnobs()
	k.FragmentationRatio = 0.9 // 38 of 256 sequences fit
	b := newBench(p, k)
	for range 200 {
		b.add(t, 16, 100)
	}
	b.at(time.Second)
	require.Len(t, b.running, 38)
	require.Len(t, b.waiting, 162)
}

// The cascade of INCIDENTS C: long contexts fragment the allocator until a 32k
// prompt finds no contiguous piece.
func TestModelLongContextsRunOutOfMemory(t *testing.T) {
	t.Parallel()
	p := DefaultProfile()
	b := newBench(p, DefaultKnobs())
	bystander := b.add(t, 16, 32000)
	var long []*sequence
	for i := 0; b.ooms == 0; i++ {
		require.Less(t, i, 14, "the KV pool must not fill up before the memory runs out")
		s, err := b.submit(b.now, 32000, 700, nil)
		require.NoError(t, err)
		long = append(long, s)
		b.at(b.now.Sub(epoch) + 2*time.Second)
	}
	require.InDelta(t, 0.63, float64(len(long)-1)*2000/29184, 0.08, "share of long contexts at the crash")
	require.True(t, b.failed[bystander], "everybody in the engine is lost")
	require.Zero(t, b.usedBlocks)
	require.True(t, b.restarting(b.now))
	_, err := b.submit(b.now, 1, 1, nil)
	require.ErrorIs(t, err, errRestarting)
	b.at(b.now.Sub(epoch) + p.RestartTime)
	b.add(t, 32000, 1) // the restarted engine is not fragmented
	require.EqualValues(t, 1, b.ooms)
}

func TestModelRefusesTooLongContext(t *testing.T) {
	t.Parallel()
	b := newBench(small(), DefaultKnobs())
	_, err := b.submit(b.now, 120, 9, nil)
	require.ErrorIs(t, err, errContextTooLong)
	b.add(t, 120, 8)
}

// Under any sequence of arrivals, departures and knob changes blocks are neither
// lost nor invented, bounds hold, and the engine always comes to rest.
func TestModelInvariants(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := drawProfile(t)
		p.Slots = min(p.Slots, 20)
		b := newBench(p, drawKnobs(t))
		var alive []*sequence
		check := func() {
			held := 0
			for _, s := range b.running {
				held += s.blocks
				require.Equal(t, stateRunning, s.state)
			}
			require.Equal(t, held, b.usedBlocks)
			require.LessOrEqual(t, b.usedBlocks, p.KVBlocks)
			require.LessOrEqual(t, len(b.running), p.Slots)
			require.GreaterOrEqual(t, b.longBlocks, 0)
			require.LessOrEqual(t, b.longBlocks, b.usedBlocks)
			for _, s := range b.waiting {
				require.Zero(t, s.blocks)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) { check() },
			"submit": func(t *rapid.T) {
				prompt := rapid.IntRange(0, min(p.MaxContextTokens, 3000)).Draw(t, "prompt")
				s, err := b.submit(b.now, prompt, rapid.IntRange(0, 40).Draw(t, "output"), nil)
				if err == nil {
					alive = append(alive, s)
				}
			},
			"cancel": func(t *rapid.T) {
				if len(alive) == 0 {
					t.Skip("nothing to cancel")
				}
				b.cancel(alive[rapid.IntRange(0, len(alive)-1).Draw(t, "which")])
			},
			"wait": func(t *rapid.T) {
				b.at(b.now.Sub(epoch) + time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms"))*time.Millisecond)
			},
			"knobs": func(t *rapid.T) { b.setKnobs(b.now, drawKnobs(t)) },
		})
		b.setKnobs(b.now, DefaultKnobs())
		b.at(b.now.Sub(epoch) + 1000*time.Hour)
		check()
		require.Empty(t, b.running)
		require.Empty(t, b.waiting)
		for _, s := range alive {
			if _, done := b.ended[s]; done {
				require.Equal(t, s.output, b.tokens[s])
			}
		}
	})
}

// The formula is honest: a saturated model completes what it predicts.
func TestModelMeetsTheEstimate(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		knobs func(*Knobs)
		load  Load
	}{
		{"healthy", func(*Knobs) {}, Load{64, 24}},
		{"slow decode", func(k *Knobs) { k.DecodeMultiplier = 4 }, Load{64, 24}},
		{"late first token", func(k *Knobs) { k.FirstTokenDelayMS = 2000 }, Load{64, 24}},
		{"fragmented", func(k *Knobs) { k.FragmentationRatio = 0.75 }, Load{64, 24}},
		{"bigger scratch, INCIDENTS A", func(k *Knobs) { k.ScratchMultiplier = 1.3; k.FragmentationRatio = 0.5 }, Load{64, 64}},
		{"long answers", func(*Knobs) {}, Load{200, 400}},
		{"prefill bound", func(*Knobs) {}, Load{2000, 4}},
		{"long context", func(*Knobs) {}, Load{8000, 200}},
		{"embeddings", func(*Knobs) {}, Load{100, 0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			k := DefaultKnobs()
			tt.knobs(&k)
			p := DefaultProfile()
			p.QueueLimit = 1 << 20
			want := Estimate(p, k, tt.load).SustainableRPS
			got := measureThroughput(t, p, k, tt.load)
			t.Logf("formula %.2f/s, model %.2f/s", want, got)
			require.InDelta(t, want, got, 0.05*want)
		})
	}
}

// measureThroughput keeps the queue full and counts completions per second.
func measureThroughput(t *testing.T, p Profile, k Knobs, l Load) float64 {
	b := newBench(p, k)
	const warm, count = 1500, 3000
	for range 2 * p.Slots {
		b.add(t, int(l.PromptTokens), int(l.OutputTokens))
	}
	var start time.Time
	for len(b.ended) < warm+count {
		next, busy := b.next()
		require.True(t, busy)
		before := len(b.ended)
		b.now = next
		b.advance(next)
		for range len(b.ended) - before {
			b.add(t, int(l.PromptTokens), int(l.OutputTokens))
		}
		if before < warm && len(b.ended) >= warm {
			start = next
		}
	}
	require.Zero(t, b.ooms)
	return float64(count) / b.now.Sub(start).Seconds()
}
