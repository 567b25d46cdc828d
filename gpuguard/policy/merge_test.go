package policy

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func override(id, path, value string, ttl time.Duration) Override {
	return Override{ID: id, Path: path, Value: json.RawMessage(value), Owner: "alice", Reason: "storm", Expires: now.Add(ttl)}
}

func TestMergeSetsEachPath(t *testing.T) {
	t.Parallel()
	base := example(t)
	got, err := Merge(base, []Override{
		override("a", BreakerForcedPath("llm"), `"open"`, time.Minute),
		override("b", GlobalLimitPath, `{"requests_per_second": 10, "burst": 2}`, time.Minute),
		override("c", RouteLimitPath("search"), `{"requests_per_second": 0}`, time.Minute),
		override("d", TenantLimitPath("guest"), `{"requests_per_second": 1.5}`, time.Minute),
		{ID: "e", Path: BreakerForcedPath("vector-db"), Value: json.RawMessage(`"closed"`)}, // without an end
	}, now)
	require.NoError(t, err)
	want := example(t)
	llm := want.Dependencies["llm"]
	llm.Breaker.Forced = ForcedOpen
	want.Dependencies["llm"] = llm
	vector := want.Dependencies["vector-db"]
	vector.Breaker.Forced = ForcedClosed
	want.Dependencies["vector-db"] = vector
	want.Limits.Global = &Limit{RequestsPerSecond: 10, Burst: 2}
	search := want.Routes["search"]
	search.Limit = &Limit{}
	want.Routes["search"] = search
	guest := want.Tenants["guest"]
	guest.Limit = &Limit{RequestsPerSecond: 1.5}
	want.Tenants["guest"] = guest
	require.Empty(t, cmp.Diff(want, got))
	require.Empty(t, cmp.Diff(example(t), base), "the base is left as it was")
}

func TestMergeRefuses(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		overrides []Override
		want      []string
	}{
		"absent dependency":        {[]Override{override("a", BreakerForcedPath("lm"), `"open"`, 1)}, []string{`dependencies.lm.breaker.forced: no dependency is named "lm": did you mean "llm"?`}},
		"absent route":             {[]Override{override("a", RouteLimitPath("x"), `{"requests_per_second": 1}`, 1)}, []string{`routes.x.limit: no route is named "x"`}},
		"absent tenant":            {[]Override{override("a", TenantLimitPath("x"), `{"requests_per_second": 1}`, 1)}, []string{`tenants.x.limit: no tenant is named "x"`}},
		"path not overridable":     {[]Override{override("a", "pools.llm-main.endpoints", `{}`, 1)}, []string{`pools.llm-main.endpoints: path "pools.llm-main.endpoints" cannot be overridden`}},
		"forced to nothing":        {[]Override{override("a", BreakerForcedPath("llm"), `""`, 1)}, []string{`dependencies.llm.breaker.forced: is "": want open or closed`}},
		"forced of wrong type":     {[]Override{override("a", BreakerForcedPath("llm"), `true`, 1)}, []string{"dependencies.llm.breaker.forced: want text, got true"}},
		"no value":                 {[]Override{{ID: "a", Path: GlobalLimitPath}}, []string{"limits.global: document is empty"}},
		"null":                     {[]Override{override("a", GlobalLimitPath, `null`, 1)}, []string{"limits.global: is null"}},
		"limit without rate":       {[]Override{override("a", GlobalLimitPath, `{"burst": 5}`, 1)}, []string{"limits.global.requests_per_second: is missing"}},
		"limit with unknown key":   {[]Override{override("a", GlobalLimitPath, `{"rps": 5}`, 1)}, []string{`limits.global.rps: unknown key: known here are "requests_per_second", "burst"`}},
		"limit out of range":       {[]Override{override("a", RouteLimitPath("chat"), `{"requests_per_second": -5, "burst": 0.1}`, 1)}, []string{"routes.chat.limit.requests_per_second: is -5", "routes.chat.limit.burst: is 0.1"}},
		"two leases for one path":  {[]Override{override("a", BreakerForcedPath("llm"), `"open"`, 1), override("b", BreakerForcedPath("llm"), `"closed"`, 1)}, []string{`dependencies.llm.breaker.forced: override "b" conflicts with the live override "a"`}},
		"each problem is reported": {[]Override{override("a", RouteLimitPath("x"), `{"requests_per_second": 1}`, 1), override("b", GlobalLimitPath, `7`, 1)}, []string{`routes.x.limit: no route`, "limits.global: want an object, got a number"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Merge(example(t), tc.overrides, now)
			got := problems(t, err)
			require.Len(t, got, len(tc.want), "%v", got)
			for i := range got {
				require.Contains(t, got[i], tc.want[i])
			}
		})
	}
}

func TestMergeIgnoresWhatHasEnded(t *testing.T) {
	t.Parallel()
	base := example(t)
	got, err := Merge(base, []Override{
		override("a", GlobalLimitPath, `{"requests_per_second": 1}`, 0),
		override("b", GlobalLimitPath, `{"requests_per_second": 2}`, -time.Hour),
		override("c", RouteLimitPath("gone"), `{"requests_per_second": 2}`, -time.Hour),
	}, now)
	require.NoError(t, err)
	require.Empty(t, Diff(base, got))

	trip := override("a", BreakerForcedPath("llm"), `"open"`, -time.Second)
	closed := override("b", BreakerForcedPath("llm"), `"closed"`, time.Second)
	got, err = Merge(base, []Override{trip, closed}, now)
	require.NoError(t, err, "a path is free again once its lease has ended")
	require.Equal(t, ForcedClosed, got.Dependencies["llm"].Breaker.Forced)
}

func TestCheckPath(t *testing.T) {
	t.Parallel()
	for _, path := range []string{BreakerForcedPath("llm"), GlobalLimitPath, RouteLimitPath("a-1"), TenantLimitPath("acme")} {
		require.NoError(t, CheckPath(path))
	}
	for _, path := range []string{
		"", ".", "limits", "limits.global.burst", "limits.*", "dependencies..breaker.forced", "dependencies.llm.breaker",
		"dependencies.llm.breaker.forced.x", "dependencies.LLM.breaker.forced", `routes["a"].limit`, "routes.a b.limit", "pools.x.limit", " limits.global",
	} {
		require.Error(t, CheckPath(path), path)
	}
}

func TestPathsConflict(t *testing.T) {
	t.Parallel()
	require.True(t, PathsConflict(GlobalLimitPath, GlobalLimitPath))
	require.True(t, PathsConflict("limits", "limits.global"))
	require.True(t, PathsConflict("limits.global", "limits"))
	require.False(t, PathsConflict(RouteLimitPath("a"), RouteLimitPath("ab")))
	require.False(t, PathsConflict(RouteLimitPath("a"), TenantLimitPath("a")))
}

func TestOverrideValidate(t *testing.T) {
	t.Parallel()
	require.NoError(t, override("a", GlobalLimitPath, `{}`, 1).Validate())
	err := Override{Path: "nowhere", Owner: " "}.Validate()
	require.Len(t, problems(t, err), 4)
	require.ErrorContains(t, err, "reason: is missing")
}

func TestLeaseTimes(t *testing.T) {
	t.Parallel()
	overrides := []Override{
		override("a", GlobalLimitPath, `{}`, time.Hour),
		override("b", RouteLimitPath("a"), `{}`, time.Minute),
		override("c", RouteLimitPath("b"), `{}`, -time.Minute),
		{ID: "d", Path: RouteLimitPath("c")},
	}
	next, ok := NextExpiry(overrides, now)
	require.True(t, ok)
	require.Equal(t, now.Add(time.Minute), next)
	_, ok = NextExpiry(overrides, now.Add(time.Hour))
	require.False(t, ok)

	sent := StampRemaining(overrides, now)
	require.Len(t, sent, 3, "ended leases are not sent")
	require.Equal(t, 60.0, sent[1].RemainingSeconds)
	require.Zero(t, overrides[1].RemainingSeconds, "the original is not touched")

	// The receiver's clock is an hour ahead: the lease still has its minute.
	ahead := now.Add(time.Hour)
	received := ArmExpiry(sent, ahead)
	require.Equal(t, ahead.Add(time.Minute), received[1].Expires)
	require.True(t, received[1].LiveAt(ahead.Add(time.Minute-1)))
	require.False(t, received[1].LiveAt(ahead.Add(time.Minute)))

	for _, s := range []float64{0, -5, math.NaN(), math.Inf(-1)} {
		got := ArmExpiry([]Override{{RemainingSeconds: s}}, now)
		require.False(t, got[0].LiveAt(now), "%g seconds left is ended", s)
	}
	huge := ArmExpiry([]Override{{RemainingSeconds: math.MaxFloat64}}, now)
	require.True(t, huge[0].LiveAt(now.Add(300*24*time.Hour)))
}

// layers draws live and ended overrides of at most one for each path.
func layers(t *rapid.T, base Document, label string) []Override {
	var out []Override
	add := func(path string, value string) {
		if rapid.Bool().Draw(t, label+path) {
			ttl := time.Duration(rapid.IntRange(-2, 3).Draw(t, label+path+"ttl")) * time.Minute
			out = append(out, override(label+path, path, value, ttl))
		}
	}
	for _, name := range sortedKeys(base.Dependencies) {
		add(BreakerForcedPath(name), rapid.SampledFrom([]string{`"open"`, `"closed"`}).Draw(t, "state"))
	}
	limit := func() string {
		b, _ := json.Marshal(Limit{RequestsPerSecond: rapid.Float64Range(0, 1e6).Draw(t, "rate")})
		return string(b)
	}
	for _, name := range sortedKeys(base.Routes) {
		add(RouteLimitPath(name), limit())
	}
	for _, name := range sortedKeys(base.Tenants) {
		add(TenantLimitPath(name), limit())
	}
	add(GlobalLimitPath, limit())
	return out
}

func merged(t *rapid.T, base Document, overrides []Override, at time.Time) Document {
	d, err := Merge(base, overrides, at)
	require.NoError(t, err)
	return d
}

func TestMergeProperties(t *testing.T) {
	t.Parallel()
	base := example(t)
	rapid.Check(t, func(t *rapid.T) {
		all := layers(t, base, "x")
		at := now.Add(time.Duration(rapid.IntRange(-3, 4).Draw(t, "at")) * time.Minute)
		want := merged(t, base, all, at)

		require.Empty(t, Diff(base, merged(t, base, nil, at)), "merging nothing is identity")
		require.Empty(t, Diff(want, merged(t, base, Live(all, at), at)), "ended layers do not matter")

		shuffled := append([]Override(nil), all...)
		rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		require.Empty(t, Diff(want, merged(t, base, shuffled, at)), "order does not matter")

		cut := rapid.IntRange(0, len(all)).Draw(t, "cut")
		require.Empty(t, Diff(want, merged(t, merged(t, base, all[:cut], at), all[cut:], at)), "merging in two steps is merging at once")
		require.Empty(t, Diff(want, merged(t, want, all, at)), "merging twice is merging once")
	})
}

// Reverting deletes the layer, so base edits made while it lived survive.
func TestRemovingALayerKeepsBaseEdits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		base, err := Decode(encoded)
		require.NoError(t, err)
		leases := layers(t, base, "x")
		require.NotPanics(t, func() { _, _ = Merge(base, leases, now) })

		edited, err := Decode(encoded)
		require.NoError(t, err)
		edited.Limits.Global = &Limit{RequestsPerSecond: rapid.Float64Range(0, 1e6).Draw(t, "edit")}
		chat := edited.Routes["chat"]
		chat.MaxBodyBytes = rapid.Int64Range(1, MaxBodyBytesLimit).Draw(t, "body")
		edited.Routes["chat"] = chat

		_ = merged(t, edited, leases, now)
		require.Empty(t, Diff(edited, merged(t, edited, nil, now)), "the base edit is what remains")
		if len(leases) == 0 {
			return
		}
		// Taking one lease away brings back the edited base at its path, and nothing else.
		i := rapid.IntRange(0, len(leases)-1).Draw(t, "revert")
		rest := append(append([]Override(nil), leases[:i]...), leases[i+1:]...)
		for _, c := range Diff(merged(t, edited, leases, now), merged(t, edited, rest, now)) {
			require.True(t, PathsConflict(c.Path, leases[i].Path), "%s changed with %s", c.Path, leases[i].Path)
		}
	})
}

// encoded is a small document for property tests.
var encoded = []byte(`{
	"version": 1,
	"tenants": {"acme": {"keys": ["9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"]}},
	"dependencies": {"llm": {}}, "pools": {"main": {"dependency": "llm", "endpoints": {}}},
	"routes": {"chat": {"match": {"path_prefix": "/"}, "pool": "main"}}
}`)
