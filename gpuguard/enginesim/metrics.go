package enginesim

import (
	"errors"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Reasons a request was not answered, the values of enginesim_requests_failed_total{reason}.
const (
	reasonOutOfMemory    = "out_of_memory"
	reasonQueueFull      = "queue_full"
	reasonRestarting     = "restarting"
	reasonContextTooLong = "context_too_long"
)

// Reasons a request ended, the values of vllm:request_success_total{finished_reason}.
const (
	finishStop   = "stop"
	finishLength = "length"
	finishAbort  = "abort"
)

// metrics are the counters and histograms of one engine. Durations are model time.
type metrics struct {
	promptTokens     prometheus.Counter
	generationTokens prometheus.Counter
	success          *prometheus.CounterVec
	failures         *prometheus.CounterVec
	faults           *prometheus.CounterVec

	firstToken     prometheus.Observer
	interToken     prometheus.Observer
	endToEnd       prometheus.Observer
	queueTime      prometheus.Observer
	prefillTime    prometheus.Observer
	decodeTime     prometheus.Observer
	perOutputToken prometheus.Observer
	promptSize     prometheus.Observer
	outputSize     prometheus.Observer
}

var (
	latencyBuckets = []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 20, 30, 60, 120, 240}
	firstBuckets   = []float64{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
	tokenBuckets   = []float64{0.005, 0.01, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05, 0.075, 0.1, 0.125, 0.15, 0.2, 0.3, 0.4, 0.5, 1, 2.5, 5, 10}
	sizeBuckets    = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 4000, 8000, 12000, 16000, 24000, 32000, 64000, 128000}
)

// newMetrics registers everything with the labels of vLLM v1: model_name and
// engine, the index of a data-parallel replica.
func newMetrics(registry *prometheus.Registry, e *Engine) *metrics {
	reg := prometheus.WrapRegistererWith(prometheus.Labels{"model_name": e.opts.Model, "engine": "0"}, registry)
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		reg.MustRegister(c)
		return c
	}
	histogram := func(name, help string, buckets []float64) prometheus.Observer {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
		reg.MustRegister(h)
		return h
	}
	m := &metrics{
		promptTokens:     counter("vllm:prompt_tokens_total", "Number of prefill tokens processed.").WithLabelValues(),
		generationTokens: counter("vllm:generation_tokens_total", "Number of generation tokens processed.").WithLabelValues(),
		success:          counter("vllm:request_success_total", "Count of processed requests.", "finished_reason"),
		failures:         counter("enginesim_requests_failed_total", "Requests the engine could not answer.", "reason"),
		faults:           counter("enginesim_faults_injected_total", "Requests hit by a fault knob.", "fault"),

		firstToken:     histogram("vllm:time_to_first_token_seconds", "Time to first token.", firstBuckets),
		interToken:     histogram("vllm:inter_token_latency_seconds", "Time between output tokens.", tokenBuckets),
		endToEnd:       histogram("vllm:e2e_request_latency_seconds", "End to end request latency.", latencyBuckets),
		queueTime:      histogram("vllm:request_queue_time_seconds", "Time spent in the waiting phase.", latencyBuckets),
		prefillTime:    histogram("vllm:request_prefill_time_seconds", "Time spent in the prefill phase.", latencyBuckets),
		decodeTime:     histogram("vllm:request_decode_time_seconds", "Time spent in the decode phase.", latencyBuckets),
		perOutputToken: histogram("vllm:request_time_per_output_token_seconds", "Mean time per output token of a request.", tokenBuckets),
		promptSize:     histogram("vllm:request_prompt_tokens", "Prefill tokens of a request.", sizeBuckets),
		outputSize:     histogram("vllm:request_generation_tokens", "Generation tokens of a request.", sizeBuckets),
	}
	// Series start at 0, so that rate() sees the first event.
	for _, reason := range []string{finishStop, finishLength, finishAbort} {
		m.success.WithLabelValues(reason)
	}
	for _, reason := range []string{reasonOutOfMemory, reasonQueueFull, reasonRestarting, reasonContextTooLong} {
		m.failures.WithLabelValues(reason)
	}
	for _, f := range injectedFaults {
		m.faults.WithLabelValues(string(f))
	}
	reg.MustRegister(newCollector(e))
	return m
}

func (m *metrics) token(ev event) {
	m.generationTokens.Inc()
	if ev.seq.made == 1 {
		m.promptTokens.Add(float64(ev.seq.prompt))
		m.firstToken.Observe(ev.at.Sub(ev.seq.arrived).Seconds())
		return
	}
	m.interToken.Observe(ev.at.Sub(ev.seq.lastToken).Seconds())
}

func (m *metrics) done(ev event) {
	s := ev.seq
	if s.output == 0 {
		m.promptTokens.Add(float64(s.prompt))
	}
	m.success.WithLabelValues(s.owner.(*call).finishReason).Inc()
	m.endToEnd.Observe(ev.at.Sub(s.arrived).Seconds())
	m.queueTime.Observe(s.admitted.Sub(s.arrived).Seconds())
	m.prefillTime.Observe(s.firstToken.Sub(s.admitted).Seconds())
	m.promptSize.Observe(float64(s.prompt))
	m.outputSize.Observe(float64(s.made))
	if s.made > 1 {
		decode := ev.at.Sub(s.firstToken)
		m.decodeTime.Observe(decode.Seconds())
		m.perOutputToken.Observe((decode / time.Duration(s.made-1)).Seconds())
	}
}

func (m *metrics) failed(event) { m.failures.WithLabelValues(reasonOutOfMemory).Inc() }

func (m *metrics) aborted() { m.success.WithLabelValues(finishAbort).Inc() }

func (m *metrics) rejected(err error) {
	switch {
	case errors.Is(err, errQueueFull):
		m.failures.WithLabelValues(reasonQueueFull).Inc()
	case errors.Is(err, errRestarting):
		m.failures.WithLabelValues(reasonRestarting).Inc()
	case errors.Is(err, errContextTooLong):
		m.failures.WithLabelValues(reasonContextTooLong).Inc()
	}
}

func (m *metrics) injected(f fault) {
	if f != faultNone {
		m.faults.WithLabelValues(string(f)).Inc()
	}
}

// collector reads one consistent State per scrape.
type collector struct {
	engine *Engine
	info   *prometheus.Desc
	gauges []stateMetric
}

type stateMetric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(State) float64
}

func newCollector(e *Engine) *collector {
	c := &collector{engine: e, info: prometheus.NewDesc("vllm:cache_config_info",
		"Information of the LLMEngine CacheConfig.", nil,
		prometheus.Labels{
			"block_size":     strconv.Itoa(BlockTokens),
			"num_gpu_blocks": strconv.Itoa(e.opts.Profile.KVBlocks),
		})}
	add := func(kind prometheus.ValueType, name, help string, value func(State) float64) {
		c.gauges = append(c.gauges, stateMetric{prometheus.NewDesc(name, help, nil, nil), kind, value})
	}
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue
	add(gauge, "vllm:num_requests_waiting", "Number of requests waiting to be processed.",
		func(s State) float64 { return float64(s.Waiting) })
	add(gauge, "vllm:num_requests_running", "Number of requests in the model execution batch.",
		func(s State) float64 { return float64(s.Running) })
	add(gauge, "vllm:kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.",
		func(s State) float64 { return s.KV.UsageRatio })
	add(counter, "vllm:num_preemptions_total", "Cumulative number of preemptions from the engine.",
		func(s State) float64 { return float64(s.Preemptions) })

	// No engine exports its allocator; these have names of our own.
	add(gauge, "enginesim_allocator_reserved_bytes", "Memory taken from the driver: weights, KV pool and scratch memory.",
		func(s State) float64 { return float64(s.Memory.ReservedBytes) })
	add(gauge, "enginesim_allocator_allocated_bytes", "Memory in use by weights, KV pool and running sequences.",
		func(s State) float64 { return float64(s.Memory.AllocatedBytes) })
	add(gauge, "enginesim_allocator_free_bytes", "Scratch memory that a new sequence can use.",
		func(s State) float64 { return float64(s.Memory.FreeBytes) })
	add(gauge, "enginesim_allocator_fragmented_bytes", "Scratch memory in pieces too small to use.",
		func(s State) float64 { return float64(s.Memory.FragmentedBytes) })
	add(gauge, "enginesim_allocator_largest_free_bytes", "Largest contiguous piece a prefill can get.",
		func(s State) float64 { return float64(s.Memory.LargestFreeBytes) })
	add(gauge, "enginesim_allocator_fragmentation_ratio", "Share of scratch memory (neither weights nor KV pool) that is fragmented, 0 to 1.",
		func(s State) float64 { return s.Memory.FragmentationRatio })
	add(counter, "enginesim_out_of_memory_total", "Crashes because a prefill found no contiguous memory.",
		func(s State) float64 { return float64(s.OOMs) })

	add(gauge, "enginesim_up", "1 when the engine answers, 0 while it restarts.",
		func(s State) float64 {
			if s.Status == StatusReady {
				return 1
			}
			return 0
		})
	add(gauge, "enginesim_slots", "Configured batch size in sequences.",
		func(s State) float64 { return float64(s.Slots) })
	add(gauge, "enginesim_usable_slots", "Batch size that scratch memory allows, in sequences.",
		func(s State) float64 { return float64(s.UsableSlots) })
	add(gauge, "enginesim_hung_requests", "Requests accepted and never answered because of a knob.",
		func(s State) float64 { return float64(s.Hung) })
	add(gauge, "enginesim_healthy_capacity_requests_per_second", "Sustainable request rate with all knobs at their defaults.",
		func(s State) float64 { return s.HealthyCapacity.SustainableRPS })
	add(gauge, "enginesim_sustainable_requests_per_second", "Request rate at which the queue does not grow.",
		func(s State) float64 { return s.Capacity.SustainableRPS })
	add(gauge, "enginesim_surviving_capacity_requests_per_second", "Rate of good answers at the sustainable request rate.",
		func(s State) float64 { return s.Capacity.SurvivingRPS })
	return c
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.info
	for _, g := range c.gauges {
		ch <- g.desc
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(c.info, prometheus.GaugeValue, 1)
	s := c.engine.State()
	for _, g := range c.gauges {
		ch <- prometheus.MustNewConstMetric(g.desc, g.kind, g.value(s))
	}
}
