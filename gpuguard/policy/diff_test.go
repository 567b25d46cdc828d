package policy

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestDiffExample(t *testing.T) {
	t.Parallel()
	a, b := example(t), example(t)
	llm := b.Dependencies["llm"]
	llm.Breaker.Forced = ForcedOpen
	llm.Breaker.OpenFor = Duration(time.Minute)
	b.Dependencies["llm"] = llm
	delete(b.Routes, "models")
	b.Limits.Global = nil
	b.Dependencies["reranker"] = Dependency{}
	got := Diff(a, b)
	lines := make([]string, len(got))
	for i, c := range got {
		lines[i] = c.Path + " " + string(c.Before) + " → " + string(c.After)
	}
	require.Equal(t, []string{
		`dependencies.llm.breaker.forced null → "open"`,
		`dependencies.llm.breaker.open_for "10s" → "1m0s"`,
		`dependencies.reranker null → {}`,
		`limits {"global":{"requests_per_second":500,"burst":50}} → null`,
		`routes.models {"match":{"path_prefix":"/v1/models"},"auth":"optional","pool":"llm-main"} → null`,
	}, lines)
	require.Empty(t, Diff(a, a))
	require.Len(t, Diff(b, a), len(got))
}

func TestDiffOfWhatCannotBeEncoded(t *testing.T) {
	t.Parallel()
	bad := Document{Limits: Limits{Global: &Limit{RequestsPerSecond: math.NaN()}}}
	require.Len(t, Diff(bad, Document{}), 1)
	_, err := Hash(bad)
	require.Error(t, err)
}

// document draws valid documents of every shape the type allows.
func document(t *rapid.T) Document {
	name := rapid.StringMatching(`[a-z0-9]([a-z0-9-]{0,4}[a-z0-9])?`)
	limit := func(label string) *Limit {
		if !rapid.Bool().Draw(t, label) {
			return nil
		}
		return &Limit{RequestsPerSecond: rapid.Float64Range(0, 1e9).Draw(t, label+"rate"), Burst: rapid.Float64Range(1, 1e9).Draw(t, label+"burst")}
	}
	d := Document{Version: Version, Dependencies: map[string]Dependency{}, Pools: map[string]Pool{}, Routes: map[string]Route{}}
	for _, n := range rapid.SliceOfN(name, 0, 3).Draw(t, "dependencies") {
		d.Dependencies[n] = Dependency{
			Service: rapid.SampledFrom([]string{"", "svc", "büro 1"}).Draw(t, "service"),
			Breaker: Breaker{
				Disabled:    rapid.Bool().Draw(t, "disabled"),
				WindowCalls: rapid.IntRange(0, maxWindowCalls).Draw(t, "calls"),
				FailureRate: rapid.Float64Range(0, 1).Draw(t, "failure"),
				OpenFor:     Duration(rapid.Int64Range(0, int64(maxDuration)).Draw(t, "open")),
			},
			Timeouts: Timeouts{Connect: Duration(rapid.Int64Range(0, int64(20*time.Second)).Draw(t, "connect"))},
		}
	}
	for _, n := range rapid.SliceOfN(name, 0, 3).Draw(t, "pools") {
		if len(d.Dependencies) == 0 {
			break
		}
		p := Pool{Dependency: rapid.SampledFrom(sortedKeys(d.Dependencies)).Draw(t, "dependency"), Endpoints: map[string]Endpoint{}}
		for _, e := range rapid.SliceOfN(name, 0, 2).Draw(t, "endpoints") {
			p.Endpoints[e] = Endpoint{URL: "http://" + e + ":80/base", Drained: rapid.Bool().Draw(t, "drained")}
		}
		if rapid.Bool().Draw(t, "credential") {
			p.Credential = &Credential{File: "/run/secret", Prefix: rapid.SampledFrom([]string{"", "Bearer ", `"<&`}).Draw(t, "prefix")}
		}
		d.Pools[n] = p
	}
	for i, n := range rapid.SliceOfNDistinct(name, 0, 3, rapid.ID).Draw(t, "routes") {
		if len(d.Pools) == 0 {
			break
		}
		r := Route{
			Match:  Match{PathPrefix: "/" + string(rune('a'+i)), Methods: rapid.SampledFrom([][]string{nil, {"GET"}, {"POST", "GET"}}).Draw(t, "methods")},
			Pool:   rapid.SampledFrom(sortedKeys(d.Pools)).Draw(t, "pool"),
			Auth:   rapid.SampledFrom([]Auth{"", AuthRequired, AuthOptional}).Draw(t, "auth"),
			Expect: rapid.SampledFrom([]Expect{"", ExpectJSON}).Draw(t, "expect"),
			Limit:  limit("route"),
		}
		if rapid.Bool().Draw(t, "fallback") {
			r.Fallback = &Fallback{ContentType: "text/plain", Body: rapid.StringN(1, 20, 60).Draw(t, "body")}
		}
		d.Routes[n] = r
	}
	d.Limits.Global = limit("global")
	return d
}

func TestEncodeAndDiffProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := document(t), document(t)
		require.NoError(t, a.Validate())
		data, err := Encode(a)
		require.NoError(t, err)
		back, err := Decode(data)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(a, back, cmpopts.EquateEmpty()), "decode(encode(d)) is d")

		hashA, err := Hash(a)
		require.NoError(t, err)
		hashBack, err := Hash(back)
		require.NoError(t, err)
		require.Equal(t, hashA, hashBack)

		require.Empty(t, Diff(a, back))
		changes := Diff(a, b)
		require.Equal(t, cmp.Equal(a, b, cmpopts.EquateEmpty()), len(changes) == 0, "empty exactly when equal")
		require.True(t, slices.IsSortedFunc(changes, func(x, y Change) int {
			if x.Path < y.Path {
				return -1
			}
			return 1
		}))
		back2 := Diff(b, a)
		require.Len(t, back2, len(changes))
		for i := range changes {
			require.Equal(t, changes[i].Path, back2[i].Path)
			require.Equal(t, string(changes[i].Before), string(back2[i].After))
		}
	})
}
