package signals

import (
	"fmt"
	"strconv"
	"strings"
)

// Unit is what a value counts.
type Unit string

// Units.
const (
	Requests          Unit = "requests"
	SecondsPerToken   Unit = "seconds_per_token"
	TokensPerSecond   Unit = "tokens_per_second"
	TokensPerRequest  Unit = "tokens_per_request"
	Ratio             Unit = "ratio" // 0 to 1
	Seconds           Unit = "seconds"
	RequestsPerSecond Unit = "requests_per_second"
)

// Sources of numbers. One never stands in for another unseen.
const (
	// SourceEngine is an engine's own metrics.
	SourceEngine = "engine"
	// SourceGateway is what the gateways count of requests.
	SourceGateway = "gateway"
	// SourceAllocator is a caching allocator's view of memory, such as PyTorch's.
	SourceAllocator = "allocator"
	// SourceEngineKV is the pressure on a paged KV pool, which stands for
	// fragmentation by name: such a pool does not fragment.
	SourceEngineKV = "engine-kv"
	// SourceNVML is what the driver sees of memory. It cannot tell fragmentation.
	SourceNVML = "nvml-estimate"
)

// Names of the golden signals; alerts carry them in their label "signal".
const (
	Queue         = "queue"
	Decode        = "decode"
	Tokens        = "tokens"
	Fragmentation = "fragmentation"
	RequestRate   = "requests"
	Errors        = "errors"
	P95           = "p95"
	Empty         = "empty"
	KVUse         = "kv_use"
)

// Definition is one golden signal: its name, its unit, where the number comes
// from and what is good.
type Definition struct {
	Name string
	// Title is for headings, Help says in a sentence what is counted.
	Title, Help string
	Unit        Unit
	// Series is the recorded series in deploy/prometheus/rules.
	Series string
	// Source is where the number comes from. A label "source" of the answer, as
	// fragmentation has it, says it more exactly.
	Source string
	// Thresholds are those of the alert rules.
	Thresholds
	// Usual makes thresholds move with what is usual for the service; nil for fixed ones.
	Usual *Usual

	// join is the aggregation over a service's dependencies.
	join string
}

// Usual says how thresholds follow a service's own history.
type Usual struct {
	// Series is the recorded series of what is usual, in the signal's unit.
	Series string
	// WarningTimes and CriticalTimes are the multiples of it that are too much.
	WarningTimes, CriticalTimes float64
	// OnlyRaises keeps the fixed thresholds as the least ones.
	OnlyRaises bool
}

// Golden are the golden four that call a person (INCIDENTS A: queue, decode time
// per token, tokens/s, fragmentation), and the signals that stand beside them.
// The thresholds agree with deploy/prometheus/rules, which say where they are from.
func Golden() []Definition {
	return []Definition{
		{
			Name: Queue, Title: "Queue", Help: "Requests that wait in the engines; healthy is 3 to 5.",
			Unit: Requests, Series: "service:queue:requests", Source: SourceEngine, join: "max",
			Thresholds: above(20, 100),
		},
		{
			Name: Decode, Title: "Decode time", Help: "Time between two tokens of an answer, weighted by tokens, against what is usual.",
			Unit: SecondsPerToken, Series: "service:decode:seconds_per_token", Source: SourceEngine, join: "max",
			// 1.5 and 2 times the healthy 30 ms, until the service has a history.
			Thresholds: above(0.045, 0.06),
			Usual:      &Usual{Series: "service:decode_baseline:seconds_per_token", WarningTimes: 1.5, CriticalTimes: 2},
		},
		{
			Name: Tokens, Title: "Output", Help: "Tokens generated per second. It falls with traffic too: only with a queue, or with as many running as usual, capacity is lost.",
			Unit: TokensPerSecond, Series: "service:output:tokens_rate1m", Source: SourceEngine, join: "max",
		},
		{
			Name: Fragmentation, Title: "Fragmentation", Help: "Free but unusable share of the memory that is neither weights nor KV pool, or the share of sequences that a paged pool preempts: the source says which.",
			Unit: Ratio, Series: "service:fragmentation:ratio", Source: SourceAllocator,
			Thresholds: above(0.15, 0.25),
		},
		{
			Name: RequestRate, Title: "Requests", Help: "Requests finished at the gateways per second.",
			Unit: RequestsPerSecond, Series: "service:requests:rate1m", Source: SourceGateway, join: "sum",
		},
		{
			Name: Errors, Title: "Errors", Help: "Share of callers that got no useful answer; answers of a degrade path are useful.",
			Unit: Ratio, Series: "service:errors:ratio_rate1m", Source: SourceGateway, join: "max",
			Thresholds: above(0.02, 0.05),
		},
		{
			Name: P95, Title: "P95", Help: "Time within which 95 % of requests end.",
			Unit: Seconds, Series: "service:latency_seconds:p95_1m", Source: SourceGateway, join: "max",
			Thresholds: above(4, 8),
			Usual:      &Usual{Series: "service:latency_baseline_seconds:p95", WarningTimes: 2, CriticalTimes: 4, OnlyRaises: true},
		},
		{
			Name: Empty, Title: "Empty answers", Help: "Share of answers with status 200 that have no body or no choice.",
			Unit: Ratio, Series: "service:empty:ratio_rate1m", Source: SourceGateway, join: "max",
			Thresholds: above(0.01, 0.05),
		},
		{
			// A full pool is how engines work: only preemption makes it a fault.
			Name: KVUse, Title: "KV use", Help: "Use of the fullest KV pool. Full is no fault; full and preempting is.",
			Unit: Ratio, Series: "service:kv_use:ratio", Source: SourceEngine, join: "max",
		},
	}
}

func above(warning, critical float64) Thresholds {
	return Thresholds{WarningAbove: &warning, CriticalAbove: &critical}
}

// Query is PromQL for the signal of one service in one environment: at most one
// value. Over several dependencies it is the worst, for rates the sum. An
// allocator's fragmentation comes before a paged pool's; the label source tells.
func (d Definition) Query(service, environment string) string {
	if d.Name == Fragmentation {
		return fmt.Sprintf("max by (source) (%s) or on () max by (source) (%s)",
			selector(d.Series, service, environment, SourceAllocator), selector(d.Series, service, environment, SourceEngineKV))
	}
	return fmt.Sprintf("%s(%s)", d.join, selector(d.Series, service, environment, ""))
}

// UsualQuery is PromQL for what is usual; empty where thresholds are fixed.
func (d Definition) UsualQuery(service, environment string) string {
	if d.Usual == nil {
		return ""
	}
	return fmt.Sprintf("max(%s)", selector(d.Usual.Series, service, environment, ""))
}

// Against gives the definition with the thresholds that follow from what is
// usual. What is no data or not above 0 changes nothing.
func (d Definition) Against(usual float64) Definition {
	if d.Usual == nil || !IsData(usual) || usual <= 0 {
		return d
	}
	warning, critical := usual*d.Usual.WarningTimes, usual*d.Usual.CriticalTimes
	if d.Usual.OnlyRaises {
		warning, critical = max(warning, *d.WarningAbove), max(critical, *d.CriticalAbove)
	}
	d.Thresholds = above(warning, critical)
	return d
}

// selector writes a series with its labels; values are quoted, so that nothing
// in a name can change the query.
func selector(series, service, environment, source string) string {
	matchers := []string{"service=" + quoted(service), "environment=" + quoted(environment)}
	if source != "" {
		matchers = append(matchers, "source="+quoted(source))
	}
	return series + "{" + strings.Join(matchers, ",") + "}"
}

// quoted writes a PromQL string: Go's escapes are PromQL's. What is not UTF-8
// becomes U+FFFD, which PromQL takes in its escaped form only.
func quoted(s string) string {
	return strings.ReplaceAll(strconv.Quote(strings.ToValidUTF8(s, "\uFFFD")), "\uFFFD", `\ufffd`)
}
