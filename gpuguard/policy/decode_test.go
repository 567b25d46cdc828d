package policy

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

func TestDecodeExample(t *testing.T) {
	t.Parallel()
	d := example(t)
	require.Equal(t, "llm", d.Pools["llm-main"].Dependency)
	require.Equal(t, 2*time.Second, d.Dependencies["vector-db"].Timeouts.Total.D())
	require.True(t, d.Pools["llm-main"].Endpoints["two"].Drained)

	// The canonical form is a fixed text: a change of it changes every hash.
	got, err := json.MarshalIndent(d, "", "  ")
	require.NoError(t, err)
	golden := "testdata/example.canonical.json"
	if os.Getenv("UPDATE_GOLDEN") != "" {
		require.NoError(t, os.WriteFile(golden, append(got, '\n'), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got)+"\n")
	hash, err := Hash(d)
	require.NoError(t, err)
	require.Len(t, hash, 64)
}

func TestDecodeNamesEveryProblem(t *testing.T) {
	t.Parallel()
	_, err := Decode([]byte(`{
		"version": 1,
		"dependencies": {"llm": {"breaker": {"failure_rat": 0.3}, "timeouts": {"total": 20}}},
		"pools": {}, "routes": {"chat": {"match": {"path_prefix": 1}, "pool": "p"}}, "limit": {}
	}`))
	require.Equal(t, []string{
		`dependencies.llm.breaker.failure_rat: unknown key: did you mean "failure_rate"?`,
		`dependencies.llm.timeouts.total: want a duration as text with a unit, such as "15s" or "200ms"`,
		"routes.chat.match.path_prefix: want text, got a number",
		`limit: unknown key: did you mean "limits"?`,
	}, problems(t, err))
}

func TestDecodeRefusesWrittenZeros(t *testing.T) {
	t.Parallel()
	_, err := Decode([]byte(`{"version": 1, "dependencies": {"status": {
		"breaker": {"failure_rate": 0, "open_for": "0s", "minimum_calls": 0, "window_calls": 0},
		"timeouts": {"total": "0s"}
	}}, "pools": {"total": {"dependency": "status", "endpoints": {}}}, "routes": {"burst": {
		"match": {"path_prefix": "/"}, "pool": "total", "max_body_bytes": 0,
		"fallback": {"status": 0, "content_type": "text/plain", "body": "0s"}
	}}, "limits": {"global": {"requests_per_second": 0, "burst": 0}}}`))
	require.Equal(t, []string{
		"dependencies.status.breaker.failure_rate: is zero: leave the key out for the default (0.3)",
		"dependencies.status.breaker.minimum_calls: is zero: leave the key out for the default (10)",
		"dependencies.status.breaker.open_for: is zero: leave the key out for the default (10s)",
		"dependencies.status.breaker.window_calls: is zero: leave the key out for the default (a time window of 10s)",
		"dependencies.status.timeouts.total: is zero: leave the key out for the default (20s)",
		"limits.global.burst: is zero: leave the key out for the default (requests_per_second, at least 1)",
		"routes.burst.fallback.status: is zero: leave the key out for the default (200)",
		"routes.burst.max_body_bytes: is zero: leave the key out for the default (8388608)",
	}, problems(t, err))
}

func TestDecodeSmallest(t *testing.T) {
	t.Parallel()
	d, err := Decode([]byte(`{"version": 1}`))
	require.NoError(t, err)
	got, err := Encode(d)
	require.NoError(t, err)
	require.JSONEq(t, `{"version": 1, "dependencies": {}, "pools": {}, "routes": {}}`, string(got))

	_, err = Decode([]byte(`{}`))
	require.Equal(t, []string{"version: is 0: this program reads version 1"}, problems(t, err))
}

// A document built in Go encodes to what Decode reads, whatever was left nil.
func TestNilCollectionsEncodeAsEmpty(t *testing.T) {
	t.Parallel()
	d := Document{
		Version:      Version,
		Dependencies: map[string]Dependency{"llm": {}},
		Pools:        map[string]Pool{"main": {Dependency: "llm"}},
	}
	data, err := json.Marshal(d)
	require.NoError(t, err)
	require.NotContains(t, string(data), "null")
	_, err = Decode(data)
	require.NoError(t, err)
	require.Nil(t, d.Pools["main"].Endpoints, "encoding does not touch the document")
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	d := example(t).WithDefaults()
	require.Equal(t, "embedding", d.Dependencies["embedding"].Service)
	require.Equal(t, "chat-model", d.Dependencies["llm"].Service)

	byCalls := d.Dependencies["embedding"].Breaker
	require.Equal(t, 20, byCalls.WindowCalls)
	require.Zero(t, byCalls.WindowTime, "a count window is not joined by a time window")
	require.Equal(t, 10, byCalls.MinimumCalls)
	require.Equal(t, time.Minute, byCalls.OpenFor.D())
	require.Equal(t, 3, Breaker{WindowCalls: 3}.WithDefaults().MinimumCalls, "never more than the window")

	require.Equal(t, DefaultBreaker(), Breaker{}.WithDefaults())
	require.Equal(t, DefaultTimeouts(), Timeouts{}.WithDefaults())
	require.Equal(t, 30*time.Second, d.Dependencies["vector-db"].Timeouts.Idle.D())

	chat := d.Routes["chat"]
	require.Equal(t, AuthRequired, chat.Auth)
	require.EqualValues(t, DefaultMaxBodyBytes, chat.MaxBodyBytes)
	require.Equal(t, 200.0, chat.Limit.Burst)
	require.Equal(t, 503, chat.Fallback.Status)
	require.Equal(t, "application/json", chat.Fallback.ContentType)
	require.Equal(t, 200, d.Routes["search"].Fallback.Status)
	require.Equal(t, ExpectAny, d.Routes["search"].Expect)
	require.Equal(t, 1.0, (&Limit{RequestsPerSecond: 0.1}).withDefaults().Burst)
	require.Equal(t, "Bearer ", d.Pools["llm-main"].Credential.Prefix)
	require.Equal(t, "Authorization", d.Pools["llm-main"].Credential.Header)
	require.Empty(t, d.Pools["vector-main"].Credential.Prefix, "only Authorization has a scheme")

	require.Empty(t, cmp.Diff(d, d.WithDefaults()), "filling in twice changes nothing")
	require.NoError(t, d.Validate(), "defaults are valid")
	require.Nil(t, example(t).Routes["models"].Limit)
	require.Zero(t, example(t).Routes["chat"].MaxBodyBytes, "the original is not touched")
}

func FuzzDecode(f *testing.F) {
	f.Add(exampleJSON(f))
	f.Add([]byte(`{"version":1}`))
	f.Add([]byte(`{"version":1,"dependencies":{"a":{"breaker":{"open_for":"0s"},"timeouts":{"total":"-1s"}}}}`))
	f.Add([]byte(strings.Repeat(`{"pools":`, 80)))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := Decode(data)
		if err != nil {
			if len(problems(t, err)) == 0 {
				t.Fatal("an error without a problem")
			}
			return
		}
		encoded, err := Encode(d)
		if err != nil {
			t.Fatalf("accepted but cannot be encoded: %v", err)
		}
		again, err := Decode(encoded)
		if err != nil {
			t.Fatalf("own encoding refused: %v\n%s", err, encoded)
		}
		if changes := Diff(d, again); len(changes) != 0 {
			t.Fatalf("changed by encoding: %v", changes)
		}
		if err := d.WithDefaults().Validate(); err != nil {
			t.Fatalf("invalid with defaults: %v", err)
		}
	})
}
