package signals_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/gpuguard/signals"
)

func definition(t *testing.T, name string) signals.Definition {
	t.Helper()
	for _, d := range signals.Golden() {
		if d.Name == name {
			return d
		}
	}
	t.Fatalf("there is no signal %q", name)
	return signals.Definition{}
}

func TestGoldenSignalsAreComplete(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, d := range signals.Golden() {
		require.NotEmpty(t, d.Title, d.Name)
		require.NotEmpty(t, d.Help, d.Name)
		require.NotEmpty(t, d.Source, d.Name)
		require.NotEmpty(t, d.Series, d.Name)
		require.False(t, names[d.Name], d.Name)
		names[d.Name] = true
	}
	for i, name := range []string{signals.Queue, signals.Decode, signals.Tokens, signals.Fragmentation} {
		require.Equal(t, name, signals.Golden()[i].Name, "the golden four come first (INCIDENTS A)")
	}
}

func TestQueries(t *testing.T) {
	t.Parallel()
	require.Equal(t, `max(service:queue:requests{service="llm",environment="prod"})`, definition(t, signals.Queue).Query("llm", "prod"))
	require.Equal(t, `sum(service:requests:rate1m{service="llm",environment="prod"})`, definition(t, signals.RequestRate).Query("llm", "prod"))
	require.Equal(t, `max by (source) (service:fragmentation:ratio{service="llm",environment="prod",source="allocator"})`+
		` or on () max by (source) (service:fragmentation:ratio{service="llm",environment="prod",source="engine-kv"})`,
		definition(t, signals.Fragmentation).Query("llm", "prod"))
	require.Equal(t, `max(service:decode_baseline:seconds_per_token{service="llm",environment="prod"})`, definition(t, signals.Decode).UsualQuery("llm", "prod"))
	require.Empty(t, definition(t, signals.Queue).UsualQuery("llm", "prod"))
}

func TestNamesCannotChangeAQuery(t *testing.T) {
	t.Parallel()
	got := definition(t, signals.Queue).Query(`a"} or vector(1) or x{b="`, "p\\\n\xff")
	require.Equal(t, `max(service:queue:requests{service="a\"} or vector(1) or x{b=\"",environment="p\\\n\ufffd"})`, got)
	require.NotContains(t, got, "\n")
}

func TestThresholds(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		v    float64
		want signals.Health
	}{
		{signals.Queue, 4, signals.OK},
		{signals.Queue, 20, signals.OK},
		{signals.Queue, 21, signals.Warning},
		{signals.Queue, 100, signals.Warning},
		{signals.Queue, 300, signals.Critical},
		{signals.Decode, 0.03, signals.OK},
		{signals.Decode, 0.05, signals.Warning},
		{signals.Decode, 0.12, signals.Critical},
		{signals.Tokens, 0, signals.OK}, // less traffic is no fault
		{signals.Errors, 0.003, signals.OK},
		{signals.Errors, 0.05, signals.Warning},
		{signals.Errors, 0.23, signals.Critical},
		{signals.P95, 12, signals.Critical},
		{signals.Empty, 0.15, signals.Critical},
		{signals.KVUse, 0.99, signals.OK}, // full is how engines work
		{signals.Fragmentation, 0.27, signals.Critical},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, definition(t, tt.name).Judge(tt.v), "%s %v", tt.name, tt.v)
	}
}

func TestC27_NoDataIsAStateOfItsOwn(t *testing.T) {
	t.Parallel()
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for _, d := range signals.Golden() {
			require.Equal(t, signals.HealthNoData, d.Judge(v), d.Name)
			require.Equal(t, d, d.Against(v), "nothing is learned from it")
		}
		c := signals.Criterion{Query: "x", Is: signals.Below, Value: 1}
		require.Equal(t, signals.NoData, c.Judge([]signals.Sample{{Value: v}}).Verdict)
		require.Equal(t, signals.NoData, c.Judge([]signals.Sample{{Value: 0}, {Value: v}}).Verdict, "what is not seen is not good")
		require.Equal(t, signals.Fail, c.Judge([]signals.Sample{{Value: 2}, {Value: v}}).Verdict)
	}
	require.Equal(t, signals.HealthNoData, signals.Worst())
	require.Equal(t, signals.OK, signals.Worst(signals.HealthNoData, signals.OK))
	require.Equal(t, signals.Critical, signals.Worst(signals.Warning, signals.Critical, signals.HealthNoData))
	// The largest float, which a minimum over only NaN once became, is a number like any other.
	require.Equal(t, signals.Critical, definition(t, signals.Queue).Judge(math.MaxFloat64))
}

func TestThresholdsFollowWhatIsUsual(t *testing.T) {
	t.Parallel()
	decode, p95 := definition(t, signals.Decode), definition(t, signals.P95)
	require.Equal(t, signals.Critical, decode.Against(0.022).Judge(0.05), "a fast model is slow at 50 ms")
	require.Equal(t, signals.OK, decode.Against(0.04).Judge(0.05))
	require.Equal(t, signals.OK, p95.Against(30).Judge(40), "answers that are long by nature")
	require.Equal(t, signals.Critical, p95.Against(0.8).Judge(12))
	require.Equal(t, signals.OK, p95.Against(0.1).Judge(3), "0.1 s as usual makes 3 s no outage")
	require.Equal(t, decode, decode.Against(0))
	require.Equal(t, decode, decode.Against(-1))
	require.Equal(t, definition(t, signals.Queue), definition(t, signals.Queue).Against(5))
}

func number(t *rapid.T, label string) float64 {
	return rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, 0.05, 1, 100})).Draw(t, label)
}

// A worse value is never judged better, and what is no number is never judged.
func TestHealthIsMonotone(t *testing.T) {
	t.Parallel()
	rank := map[signals.Health]int{signals.OK: 0, signals.Warning: 1, signals.Critical: 2}
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom(signals.Golden()).Draw(t, "signal").Against(number(t, "usual"))
		a, b := number(t, "a"), number(t, "b")
		for _, v := range []float64{a, b} {
			if !signals.IsData(v) {
				require.Equal(t, signals.HealthNoData, d.Judge(v))
				return
			}
		}
		if a > b {
			a, b = b, a
		}
		require.LessOrEqual(t, rank[d.Judge(a)], rank[d.Judge(b)])
	})
}

// Moving a value to the failing side never turns a verdict from fail to pass,
// and NaN never passes and never fails by itself.
func TestJudgeIsMonotone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := signals.Criterion{Is: rapid.SampledFrom([]signals.Comparison{signals.Below, signals.AtMost, signals.Above, signals.AtLeast}).Draw(t, "is"), Value: rapid.Float64().Draw(t, "limit")}
		values := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) float64 { return number(t, "v") }), 0, 5).Draw(t, "values")
		var answer, worse []signals.Sample
		step := math.Abs(rapid.Float64().Draw(t, "step"))
		if strings.HasPrefix(string(c.Is), ">") {
			step = -step
		}
		valid := 0
		for _, v := range values {
			answer = append(answer, signals.Sample{Value: v})
			moved := v
			if signals.IsData(v) {
				valid++
				if signals.IsData(v + step) {
					moved = v + step
				}
			}
			worse = append(worse, signals.Sample{Value: moved})
		}
		before, after := c.Judge(answer).Verdict, c.Judge(worse).Verdict
		if before == signals.Fail {
			require.Equal(t, signals.Fail, after)
		}
		if valid < len(values) || valid == 0 {
			require.NotEqual(t, signals.Pass, before)
		}
		if valid == 0 {
			require.Equal(t, signals.NoData, before)
		}
	})
}
