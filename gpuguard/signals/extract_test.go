package signals_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/gpuguard/signals"
)

var t0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func known(t *testing.T) *signals.Aliases {
	t.Helper()
	a, err := signals.Known()
	require.NoError(t, err)
	return a
}

// series is a sample of a metric; labels are pairs of name and value.
func series(name string, value float64, labels ...string) signals.Sample {
	l := map[string]string{"__name__": name}
	for i := 0; i < len(labels); i += 2 {
		l[labels[i]] = labels[i+1]
	}
	return signals.Sample{Labels: l, Value: value}
}

func scrape(at time.Duration, samples ...signals.Sample) signals.Scrape {
	return signals.Scrape{At: t0.Add(at), Samples: samples}
}

func value(t *testing.T, r signals.Reading) float64 {
	t.Helper()
	require.NotNil(t, r.Value, r.Why)
	require.Empty(t, r.Why)
	return *r.Value
}

func TestExtract(t *testing.T) {
	t.Parallel()
	before := scrape(
		0,
		series("vllm:inter_token_latency_seconds_sum", 30), series("vllm:inter_token_latency_seconds_count", 1000),
		series("vllm:generation_tokens_total", 1000), series("vllm:num_preemptions_total", 1),
		series("vllm:request_generation_tokens_sum", 400), series("vllm:request_generation_tokens_count", 10),
		series("vllm:request_success_total", 10, "finished_reason", "stop"), series("vllm:request_success_total", 0, "finished_reason", "abort"),
		series("vllm:request_queue_time_seconds_sum", 0), series("vllm:request_queue_time_seconds_count", 0),
	)
	now := scrape(
		10*time.Second,
		series("vllm:num_requests_waiting", 3, "engine", "0"), series("vllm:num_requests_waiting", 4, "engine", "1"),
		series("vllm:num_requests_running", 40),
		series("vllm:inter_token_latency_seconds_sum", 60), series("vllm:inter_token_latency_seconds_count", 1250),
		series("vllm:generation_tokens_total", 1250), series("vllm:num_preemptions_total", 6),
		series("vllm:request_generation_tokens_sum", 960), series("vllm:request_generation_tokens_count", 23),
		series("vllm:request_success_total", 23, "finished_reason", "stop"), series("vllm:request_success_total", 2, "finished_reason", "abort"),
		series("vllm:request_queue_time_seconds_sum", 30), series("vllm:request_queue_time_seconds_count", 15),
		series("vllm:kv_cache_usage_perc", 0.4, "engine", "0"), series("vllm:kv_cache_usage_perc", 0.6, "engine", "1"),
		series("allocator_reserved_bytes", 80e9), series("allocator_static_bytes", 70e9), series("allocator_fragmented_bytes", 2.7e9),
	)
	got := known(t).Extract(before, now)
	for name, want := range map[string]struct {
		value          float64
		unit           signals.Unit
		source, metric string
	}{
		signals.Queue:         {7, signals.Requests, "engine", "vllm:num_requests_waiting"},
		signals.Running:       {40, signals.Requests, "engine", "vllm:num_requests_running"},
		signals.QueueTime:     {2, signals.Seconds, "engine", "vllm:request_queue_time_seconds"},
		signals.Decode:        {0.12, signals.SecondsPerToken, "engine", "vllm:inter_token_latency_seconds"},
		signals.Tokens:        {25, signals.TokensPerSecond, "engine", "vllm:generation_tokens_total"},
		signals.Answer:        {560.0 / 13, signals.TokensPerRequest, "engine", "vllm:request_generation_tokens"},
		signals.KVUse:         {0.6, signals.Ratio, "engine", "vllm:kv_cache_usage_perc"},
		signals.Preemptions:   {0.5, signals.RequestsPerSecond, "engine", "vllm:num_preemptions_total"},
		signals.Finished:      {1.5, signals.RequestsPerSecond, "engine", "vllm:request_success_total"},
		signals.Fragmentation: {0.27, signals.Ratio, "allocator", "allocator_fragmented_bytes"},
		signals.Preempted:     {0.25, signals.Ratio, "engine-kv", "vllm:num_preemptions_total"},
	} {
		r := got[name]
		require.InDelta(t, want.value, value(t, r), 1e-9, name)
		require.Equal(t, want.unit, r.Unit, name)
		require.Equal(t, want.source, r.Source, name)
		require.Equal(t, want.metric, r.Metric, name)
		require.Equal(t, now.At, r.At, name)
	}
	require.Empty(t, got.Missing())
}

func TestUnitsAreConverted(t *testing.T) {
	t.Parallel()
	got := known(t).Extract(
		scrape(0, series("nv_inference_queue_duration_us", 0), series("nv_inference_request_success", 0)),
		scrape(time.Second, series("nv_inference_queue_duration_us", 5e6), series("nv_inference_request_success", 2)),
	)
	require.InDelta(t, 2.5, value(t, got[signals.QueueTime]), 1e-9)
}

func TestC30_RenamedMetrics(t *testing.T) {
	t.Parallel()
	latency := func(name string, sum, count float64) []signals.Sample {
		return []signals.Sample{series(name+"_sum", sum), series(name+"_count", count)}
	}
	const oldLatency, newLatency = "vllm:time_per_output_token_seconds", "vllm:inter_token_latency_seconds"
	t.Run("C30 A only the old names", func(t *testing.T) {
		t.Parallel()
		got := known(t).Extract(
			scrape(0, latency(oldLatency, 0, 0)...),
			scrape(time.Second, append(latency(oldLatency, 3, 100), series("vllm:gpu_cache_usage_perc", 0.4))...),
		)
		require.InDelta(t, 0.4, value(t, got[signals.KVUse]), 0)
		require.Equal(t, "vllm:gpu_cache_usage_perc", got[signals.KVUse].Metric)
		require.InDelta(t, 0.03, value(t, got[signals.Decode]), 1e-9)
	})
	t.Run("C30 B only the new names", func(t *testing.T) {
		t.Parallel()
		got := known(t).Extract(
			scrape(0, latency(newLatency, 0, 0)...),
			scrape(time.Second, append(latency(newLatency, 3, 100), series("vllm:kv_cache_usage_perc", 0.4))...),
		)
		require.InDelta(t, 0.4, value(t, got[signals.KVUse]), 0)
		require.Equal(t, "vllm:kv_cache_usage_perc", got[signals.KVUse].Metric)
		require.InDelta(t, 0.03, value(t, got[signals.Decode]), 1e-9)
	})
	t.Run("C30 both names are not added up", func(t *testing.T) {
		t.Parallel()
		got := known(t).Extract(
			scrape(0, append(latency(oldLatency, 0, 0), latency(newLatency, 0, 0)...)...),
			scrape(time.Second, append(append(latency(oldLatency, 6, 100), latency(newLatency, 3, 100)...),
				series("vllm:gpu_cache_usage_perc", 0.4), series("vllm:kv_cache_usage_perc", 0.4))...),
		)
		require.InDelta(t, 0.4, value(t, got[signals.KVUse]), 0)
		require.InDelta(t, 0.03, value(t, got[signals.Decode]), 1e-9)
	})
	t.Run("C30 C neither", func(t *testing.T) {
		t.Parallel()
		got := known(t).Extract(scrape(0, series("vllm:kv_pool_fullness", 0.99)), scrape(time.Second, series("vllm:kv_pool_fullness", 0.99)))
		require.True(t, got.Nothing())
		require.Len(t, got.Missing(), len(got))
		for name, r := range got {
			require.Nil(t, r.Value, "%s: missing is never zero", name)
			require.NotEmpty(t, r.Why, name)
		}
	})
	t.Run("C30 two pods at 40 % are a pool at 40 %", func(t *testing.T) {
		t.Parallel()
		pod := known(t).Extract(signals.Scrape{}, scrape(0, series("vllm:kv_cache_usage_perc", 0.4)))[signals.KVUse]
		require.InDelta(t, 0.4, value(t, signals.Mean.Pool(pod, pod)), 1e-9)
		require.InDelta(t, 0.4, value(t, signals.Max.Pool(pod, pod)), 1e-9)
		sum := signals.Sum.Pool(pod, pod)
		require.Nil(t, sum.Value)
		require.Equal(t, "a sum of ratio means nothing", sum.Why)
	})
}

func TestPools(t *testing.T) {
	t.Parallel()
	queue := func(v float64, at time.Duration) signals.Reading {
		return signals.Reading{Value: &v, Unit: signals.Requests, Source: signals.SourceEngine, Metric: "q", At: t0.Add(at)}
	}
	blind := signals.Reading{Unit: signals.Requests, Source: signals.SourceEngine, Why: "no known name"}
	nan := queue(math.NaN(), 0)
	got := signals.Sum.Pool(queue(3, 0), queue(4, time.Second), blind, nan)
	require.InDelta(t, 7, value(t, got), 0)
	require.Equal(t, t0.Add(time.Second), got.At)
	require.Nil(t, signals.Mean.Pool(blind, nan).Value)
	require.Nil(t, signals.Mean.Pool().Value)
	// An allocator's figure and a paged pool's are not made into one number.
	ratio := 0.2
	got = signals.Max.Pool(
		signals.Reading{Value: &ratio, Unit: signals.Ratio, Source: signals.SourceAllocator},
		signals.Reading{Value: &ratio, Unit: signals.Ratio, Source: signals.SourceEngineKV},
	)
	require.Nil(t, got.Value)
	require.Equal(t, "the pods differ in unit or source", got.Why)
}

func TestC27_SamplesThatAreNoData(t *testing.T) {
	t.Parallel()
	ok := func(name string) []signals.Sample { return []signals.Sample{series(name, 10)} }
	tests := []struct {
		name        string
		before, now signals.Scrape
		signal, why string
	}{
		{"NaN", signals.Scrape{}, scrape(0, series("vllm:num_requests_waiting", math.NaN())), signals.Queue, "not a number that can be"},
		{"infinite", signals.Scrape{}, scrape(0, series("vllm:num_requests_waiting", math.Inf(1))), signals.Queue, "not a number that can be"},
		{"the largest float", signals.Scrape{}, scrape(0, series("vllm:num_requests_waiting", math.MaxFloat64)), signals.Queue, "not a number that can be"},
		{"negative", signals.Scrape{}, scrape(0, series("vllm:num_requests_waiting", -1)), signals.Queue, "not a number that can be"},
		{"a share above 1", signals.Scrape{}, scrape(0, series("vllm:kv_cache_usage_perc", 40)), signals.KVUse, "not a number that can be"},
		{"no earlier scrape", signals.Scrape{}, scrape(0, ok("vllm:generation_tokens_total")...), signals.Tokens, "no comparable scrape before"},
		{"the earlier scrape is too old", scrape(-time.Hour, ok("vllm:generation_tokens_total")...), scrape(0, ok("vllm:generation_tokens_total")...), signals.Tokens, "no comparable scrape before"},
		{"scrapes in the wrong order", scrape(time.Second, ok("vllm:generation_tokens_total")...), scrape(0, ok("vllm:generation_tokens_total")...), signals.Tokens, "no comparable scrape before"},
		{"counter reset", scrape(0, series("vllm:generation_tokens_total", 1000)), scrape(time.Second, series("vllm:generation_tokens_total", 5)), signals.Tokens, "the counter was reset"},
		{"one of two counters reset", scrape(0, series("vllm:generation_tokens_total", 1000, "engine", "0"), series("vllm:generation_tokens_total", 1, "engine", "1")), scrape(time.Second, series("vllm:generation_tokens_total", 5, "engine", "0"), series("vllm:generation_tokens_total", 9, "engine", "1")), signals.Tokens, "the counter was reset"},
		{"counter is NaN", scrape(0, series("vllm:generation_tokens_total", 1000)), scrape(time.Second, series("vllm:generation_tokens_total", math.NaN())), signals.Tokens, "not a number that can be"},
		{
			"0/0: no token in between",
			scrape(0, series("vllm:inter_token_latency_seconds_sum", 3), series("vllm:inter_token_latency_seconds_count", 100)),
			scrape(time.Second, series("vllm:inter_token_latency_seconds_sum", 3), series("vllm:inter_token_latency_seconds_count", 100)),
			signals.Decode, "nothing happened between the scrapes",
		},
		{"nothing but weights", signals.Scrape{}, scrape(0, series("allocator_reserved_bytes", 7), series("allocator_static_bytes", 7), series("allocator_fragmented_bytes", 0)), signals.Fragmentation, "not a number that can be"},
		{"nothing ran", scrape(0, series("vllm:num_preemptions_total", 1), series("vllm:request_success_total", 1)), scrape(time.Second, series("vllm:num_preemptions_total", 1), series("vllm:request_success_total", 1)), signals.Preempted, "nothing ran"},
	}
	for _, tt := range tests {
		t.Run("C27 "+tt.name, func(t *testing.T) {
			t.Parallel()
			r := known(t).Extract(tt.before, tt.now)[tt.signal]
			require.Nil(t, r.Value)
			require.Equal(t, tt.why, r.Why)
		})
	}
}

func TestFragmentationIsNotReplacedByPreemption(t *testing.T) {
	t.Parallel()
	got := known(t).Extract(
		scrape(0, series("vllm:num_preemptions_total", 0), series("vllm:request_success_total", 0)),
		scrape(time.Second, series("vllm:num_preemptions_total", 5), series("vllm:request_success_total", 5)),
	)
	require.Nil(t, got[signals.Fragmentation].Value)
	require.InDelta(t, 0.5, value(t, got[signals.Preempted]), 0)
	require.Equal(t, signals.SourceEngineKV, got[signals.Preempted].Source)
}

func TestLabelsOfAnAliasSelect(t *testing.T) {
	t.Parallel()
	got := known(t).Extract(signals.Scrape{}, scrape(
		0,
		series("nv_trt_llm_request_metrics", 7, "request_type", "waiting"), series("nv_trt_llm_request_metrics", 32, "request_type", "active"),
		series("nv_trt_llm_request_metrics", 512, "request_type", "max"), series("nv_trt_llm_kv_cache_block_metrics", 1000, "kv_cache_block_type", "used"),
		series("nv_trt_llm_kv_cache_block_metrics", 0.7, "kv_cache_block_type", "fraction"),
	))
	require.InDelta(t, 7, value(t, got[signals.Queue]), 0)
	require.InDelta(t, 32, value(t, got[signals.Running]), 0)
	require.InDelta(t, 0.7, value(t, got[signals.KVUse]), 0)
}

// Whatever a target says, a reading is a number within its bounds or none.
func TestReadingsAreNumbersOrNone(t *testing.T) {
	t.Parallel()
	a := known(t)
	var names []string
	for _, list := range a.Signals {
		for _, alias := range list {
			names = append(names, alias.Metrics()...)
		}
	}
	slices.Sort(names)
	sample := rapid.Custom(func(t *rapid.T) signals.Sample {
		return series(rapid.SampledFrom(names).Draw(t, "name"), number(t, "value"), "engine", rapid.SampledFrom([]string{"0", "1"}).Draw(t, "engine"),
			"request_type", rapid.SampledFrom([]string{"waiting", "active"}).Draw(t, "type"), "kv_cache_block_type", "fraction")
	})
	rapid.Check(t, func(t *rapid.T) {
		samples := rapid.SliceOfN(sample, 0, 30)
		apart := time.Duration(rapid.Int64Range(-5, 5).Draw(t, "apart")) * time.Second
		got := a.Extract(scrape(0, samples.Draw(t, "before")...), scrape(apart, samples.Draw(t, "now")...))
		for name, r := range got {
			if r.Value == nil {
				require.NotEmpty(t, r.Why, name)
				continue
			}
			require.True(t, signals.IsData(*r.Value), name)
			require.GreaterOrEqual(t, *r.Value, 0.0, name)
			if r.Unit == signals.Ratio {
				require.LessOrEqual(t, *r.Value, 1.0, name)
			}
			require.NotEmpty(t, r.Metric, name)
		}
	})
}

func FuzzExtract(f *testing.F) {
	f.Add("vllm:num_requests_waiting", 3.0, 4.0, int64(1))
	f.Add("vllm:generation_tokens_total", 3.0, math.Inf(1), int64(0))
	f.Add("vllm:inter_token_latency_seconds_sum", math.NaN(), 0.0, int64(math.MaxInt64))
	f.Add("", -1.0, 9.223372036854776e+18, int64(math.MinInt64))
	a, err := signals.Known()
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, name string, before, now float64, apart int64) {
		s := func(v float64) []signals.Sample {
			return []signals.Sample{series(name, v), series(name+"_count", v), series(name+"_sum", v), {Value: v}}
		}
		for signal, r := range a.Extract(scrape(0, s(before)...), scrape(time.Duration(apart), s(now)...)) {
			if r.Value != nil && !signals.IsData(*r.Value) {
				t.Errorf("%s is %v", signal, *r.Value)
			}
		}
	})
}

func TestAliasesAreSound(t *testing.T) {
	t.Parallel()
	a := known(t)
	for _, name := range []string{signals.Queue, signals.Decode, signals.Tokens, signals.KVUse, signals.Fragmentation} {
		require.NotEmpty(t, a.Signals[name], name)
	}
	// Names are read for one signal only, or the label tells them apart.
	seen := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(a.Signals)) {
		for _, alias := range a.Signals[name] {
			key := fmt.Sprint(alias.Metric, alias.Labels)
			require.Empty(t, seen[key], key)
			seen[key] = name
		}
	}
}

func TestParseAliases(t *testing.T) {
	t.Parallel()
	file := func(aliases string) string { return `{"version":1,"signals":{"queue":[` + aliases + `]}}` }
	good := `{"engine":"vllm","metric":"vllm:n","type":"gauge"}`
	_, err := signals.ParseAliases([]byte(file(good)))
	require.NoError(t, err)
	for name, tt := range map[string]struct{ file, want string }{
		"not JSON":           {`{`, "signal aliases"},
		"unknown key":        {file(`{"engine":"vllm","metric":"vllm:n","type":"gauge","scael":1}`), "signals.queue[0].scael"},
		"another version":    {`{"version":2,"signals":{}}`, "version: is 2, want 1"},
		"no such signal":     {`{"version":1,"signals":{"qeue":[]}}`, "signals.qeue: is no signal"},
		"no such type":       {file(`{"engine":"vllm","metric":"vllm:n","type":"summary"}`), "signals.queue[0].type"},
		"no metric":          {file(`{"engine":"vllm","type":"gauge"}`), "signals.queue[0].metric"},
		"bad metric":         {file(`{"engine":"vllm","metric":"a-b","type":"gauge"}`), "signals.queue[0].metric"},
		"bad engine":         {file(`{"engine":"v LLM","metric":"a","type":"gauge"}`), "signals.queue[0].engine"},
		"twice":              {file(good + "," + good), "signals.queue[1].metric: vllm:n is there twice"},
		"mean without":       {file(`{"engine":"vllm","metric":"a","type":"mean"}`), "signals.queue[0].count"},
		"gauge with count":   {file(`{"engine":"vllm","metric":"a","type":"gauge","count":"b"}`), "signals.queue[0].count"},
		"share without":      {file(`{"engine":"vllm","metric":"a","type":"share","of":"b"}`), "signals.queue[0].less"},
		"negative scale":     {file(`{"engine":"vllm","metric":"a","type":"gauge","scale":-1}`), "signals.queue[0].scale"},
		"label without name": {file(`{"engine":"vllm","metric":"a","type":"gauge","labels":{"__name__":"x"}}`), "signals.queue[0].labels"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := signals.ParseAliases([]byte(tt.file))
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func FuzzParseAliases(f *testing.F) {
	f.Add([]byte(`{"version":1,"signals":{"queue":[{"engine":"e","metric":"m","type":"mean","count":"c","labels":{"a":"b"},"scale":1e-6}]}}`))
	f.Add([]byte(`{"version":1,"signals":{"fragmentation":[{"engine":"e","metric":"m","type":"share","of":"o","less":"l"}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := signals.ParseAliases(data)
		if err != nil {
			return
		}
		var samples []signals.Sample
		for _, list := range a.Signals {
			for _, alias := range list {
				for _, name := range alias.Metrics() {
					samples = append(samples, signals.Sample{Labels: map[string]string{"__name__": name}, Value: 0.5})
				}
			}
		}
		for signal, r := range a.Extract(scrape(0, samples...), scrape(time.Second, samples...)) {
			if r.Value != nil && !signals.IsData(*r.Value) {
				t.Errorf("%s is %v", signal, *r.Value)
			}
		}
	})
}
