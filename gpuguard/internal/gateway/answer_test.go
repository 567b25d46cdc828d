package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"holdfast/gpuguard/policy"
)

func TestC44_OneFailureOutOfOneIsNotAnOutage(t *testing.T) {
	t.Parallel()
	inBubble(t, only(jsonAnswer(http.StatusInternalServerError, `{}`)), nil, func(t *testing.T, b *bench) {
		a := b.chat(plainBody)
		require.Equal(t, http.StatusInternalServerError, a.status)
		require.Equal(t, policy.OutcomeUpstreamError, a.outcome())
		require.Equal(t, policy.BreakerState{State: "closed", FailureRate: 1, Calls: 1}, b.breaker())
		// The second rule, for low traffic: n in a row, whatever the volume.
		for range policy.DefaultBreaker().ConsecutiveFailures - 1 {
			require.Equal(t, "closed", b.breaker().State)
			b.chat(plainBody)
		}
		require.Equal(t, "open", b.breaker().State)
		require.Equal(t, http.StatusServiceUnavailable, b.chat(plainBody).status)
	})
}

func TestC54_FailureInsideA200(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		upstream http.HandlerFunc
		status   int
		outcome  policy.Outcome
	}{
		{"A error document", jsonAnswer(http.StatusOK, `{"error":{"message":"worker local total request limit reached","code":502}}`), http.StatusBadGateway, policy.OutcomeUpstreamError},
		{"A error after other members", jsonAnswer(http.StatusOK, `{"id":"x","choices":[],"error":{"message":"no"}}`), http.StatusBadGateway, policy.OutcomeUpstreamError},
		{"B error event first", eventAnswer("data: {\"error\":{\"message\":\"no\"}}\n\n", done), http.StatusBadGateway, policy.OutcomeUpstreamError},
		{"B error event by type", eventAnswer("event: error\ndata: overloaded\n\n"), http.StatusBadGateway, policy.OutcomeUpstreamError},
		{"C nothing", jsonAnswer(http.StatusOK, ""), http.StatusBadGateway, policy.OutcomeUpstreamEmpty},
		{"C white space", jsonAnswer(http.StatusOK, " \n"), http.StatusBadGateway, policy.OutcomeUpstreamEmpty},
		{"C stream without an event", eventAnswer(""), http.StatusBadGateway, policy.OutcomeUpstreamEmpty},
		{"page", jsonAnswer(http.StatusOK, "<html>login</html>"), http.StatusBadGateway, policy.OutcomeUpstreamError},
		{"half a document", jsonAnswer(http.StatusOK, `{"choices":[`), http.StatusBadGateway, policy.OutcomeUpstreamCut},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, only(tt.upstream), nil, func(t *testing.T, b *bench) {
				a := b.chat(streamBody)
				require.Equal(t, tt.status, a.status, a.body)
				require.NoError(t, a.err)
				require.Equal(t, tt.outcome, a.outcome())
				code, _ := errorOf(t, a)
				require.Equal(t, string(tt.outcome), code)
				require.Equal(t, policy.BreakerState{State: "closed", FailureRate: 1, Calls: 1}, b.breaker())
			})
		})
	}
	t.Run("D no choices", func(t *testing.T) {
		t.Parallel()
		inBubble(t, only(jsonAnswer(http.StatusOK, `{"choices": []}`)), nil, func(t *testing.T, b *bench) {
			a := b.chat(plainBody)
			require.JSONEq(t, `{"choices": []}`, a.body)
			require.Equal(t, policy.OutcomeOK, a.outcome())
			require.Equal(t, policy.BreakerState{State: "closed", Calls: 1}, b.breaker())
			require.NoError(t, testutil.GatherAndCompare(b.registry, strings.NewReader(
				"# HELP gpuguard_empty_choices_total Good answers that carried no choice.\n"+
					"# TYPE gpuguard_empty_choices_total counter\n"+
					"gpuguard_empty_choices_total{dependency=\"llm\",route=\"chat\"} 1\n"), "gpuguard_empty_choices_total"))
		})
	})
	t.Run("error event later", func(t *testing.T) {
		t.Parallel()
		parts := []string{chunk, "data: {\"error\":{\"message\":\"out of memory\"}}\n\n", done}
		inBubble(t, only(eventAnswer(parts...)), nil, func(t *testing.T, b *bench) {
			a := b.chat(streamBody)
			require.NoError(t, a.err)
			require.Equal(t, strings.Join(parts, ""), a.body, "the caller sees the event itself")
			require.Equal(t, policy.OutcomeUpstreamError, a.outcome())
			require.InDelta(t, 1, b.breaker().FailureRate, 0)
		})
	})
	t.Run("route that does not judge", func(t *testing.T) {
		t.Parallel()
		inBubble(t, only(jsonAnswer(http.StatusOK, `{"error":{"message":"x"}}`)), expectAny, func(t *testing.T, b *bench) {
			require.Equal(t, policy.OutcomeOK, b.chat(plainBody).outcome())
		})
	})
}

func expectAny(d *policy.Document) {
	r := d.Routes["chat"]
	r.Expect = policy.ExpectAny
	d.Routes["chat"] = r
}

func TestC45_WhichAnswersCount(t *testing.T) {
	t.Parallel()
	const calls = 20
	tests := []struct {
		name    string
		status  int
		body    string
		outcome policy.Outcome
		broken  float64
	}{
		{"prompt too long", http.StatusBadRequest, `{"error":{"message":"prompt too long"}}`, policy.OutcomeClientFault, 0},
		{"no credit", http.StatusBadRequest, `{"error":{"message":"Your credit balance is too low"}}`, policy.OutcomeUpstreamMisconfigured, 1},
		{"no quota", http.StatusTooManyRequests, `{"error":{"code":"insufficient_quota"}}`, policy.OutcomeUpstreamMisconfigured, 1},
		{"bad key", http.StatusUnauthorized, `{"error":{"message":"Incorrect API key: sk-x"}}`, policy.OutcomeUpstreamMisconfigured, 1},
		{"forbidden", http.StatusForbidden, `{}`, policy.OutcomeUpstreamMisconfigured, 1},
		{"throttled", http.StatusTooManyRequests, `{}`, policy.OutcomeUpstreamThrottled, 0},
		{"no model", http.StatusNotFound, `{}`, policy.OutcomeClientFault, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, only(jsonAnswer(tt.status, tt.body)), nil, func(t *testing.T, b *bench) {
				for range calls {
					a := b.chat(plainBody)
					require.Equal(t, tt.outcome, a.outcome())
					require.Equal(t, tt.body, a.body)
					require.Equal(t, tt.status, a.status)
				}
				require.Equal(t, policy.BreakerState{State: "closed"}, b.breaker(), "neither success nor failure")
				require.InDelta(t, tt.broken, gauge(b, "gpuguard_upstream_misconfigured"), 0)
				require.Equal(t, tt.broken == 1, strings.Contains(b.events.String(), "refuses the gateway's credential"))
			})
		})
	}
}

// gauge is the value of a metric with one series, 0 when it has none.
func gauge(b *bench, name string) float64 {
	b.t.Helper()
	families, err := b.registry.Gather()
	require.NoError(b.t, err)
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	return 0
}

func TestC45_UpstreamsWordsAboutOurCredentialAreNotPassedOn(t *testing.T) {
	t.Parallel()
	var key atomic.Value
	up := func(w http.ResponseWriter, r *http.Request) {
		key.Store(r.Header.Get("Authorization"))
		jsonAnswer(http.StatusUnauthorized, `{"error":{"message":"Incorrect API key: upstream-secret"}}`)(w, r)
	}
	inBubble(t, only(up), func(d *policy.Document) {
		p := d.Pools["llm"]
		p.Credential = &policy.Credential{Env: "UPSTREAM_KEY"}
		d.Pools["llm"] = p
	}, func(t *testing.T, b *bench) {
		a := b.chat(plainBody)
		require.Equal(t, http.StatusBadGateway, a.status)
		require.Equal(t, policy.OutcomeUpstreamMisconfigured, a.outcome())
		require.Equal(t, "Bearer upstream-secret", key.Load())
		require.NotContains(t, a.body, "secret")
		require.NotContains(t, b.log.String(), "upstream-secret")
		require.NotContains(t, b.log.String(), "sk-test")
	})
}

func TestC45_ThrottledEndpointIsLeftAloneForAsLongAsItAsked(t *testing.T) {
	t.Parallel()
	var first, second atomic.Int64
	throttle := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "7")
		jsonAnswer(http.StatusTooManyRequests, `{}`)(w, r)
	}
	inBubble(t, map[string]http.HandlerFunc{
		"one": counted(&first, throttle), "two": counted(&second, jsonAnswer(http.StatusOK, goodAnswer)),
	}, nil, func(t *testing.T, b *bench) {
		for range 10 {
			b.chat(plainBody)
		}
		require.EqualValues(t, 1, first.Load())
		require.EqualValues(t, 9, second.Load())
		pass(7 * time.Second)
		for range 2 {
			b.chat(plainBody)
		}
		require.EqualValues(t, 2, first.Load())
	})
	inBubble(t, only(throttle), nil, func(t *testing.T, b *bench) {
		require.Equal(t, "7", b.chat(plainBody).header.Get("Retry-After"))
		pass(3 * time.Second)
		a := b.chat(plainBody)
		require.Equal(t, http.StatusTooManyRequests, a.status)
		require.Equal(t, policy.OutcomeUpstreamThrottled, a.outcome())
		require.Equal(t, "4", a.header.Get("Retry-After"))
	})
}

func TestC45_ClientFaultInHalfOpenDecidesNothing(t *testing.T) {
	t.Parallel()
	var status atomic.Int64
	status.Store(http.StatusInternalServerError)
	up := func(w http.ResponseWriter, r *http.Request) { jsonAnswer(int(status.Load()), goodAnswer)(w, r) }
	inBubble(t, only(up), nil, func(t *testing.T, b *bench) {
		for range 5 {
			b.chat(plainBody)
		}
		require.Equal(t, "open", b.breaker().State)
		pass(10 * time.Second)
		status.Store(http.StatusBadRequest)
		for range 10 {
			require.Equal(t, policy.OutcomeClientFault, b.chat(plainBody).outcome(), "the probe slot is given back")
			require.Equal(t, "half_open", b.breaker().State)
		}
		status.Store(http.StatusOK)
		for range 3 {
			require.Equal(t, policy.OutcomeOK, b.chat(plainBody).outcome())
		}
		require.Equal(t, "closed", b.breaker().State)
	})
}

func TestC61_OwnRefusalsCarryRetryAfter(t *testing.T) {
	t.Parallel()
	inBubble(t, only(jsonAnswer(http.StatusInternalServerError, `{}`)), nil, func(t *testing.T, b *bench) {
		for range 5 {
			b.chat(plainBody)
		}
		for wait := 10; wait >= 1; wait-- {
			a := b.chat(plainBody)
			require.Equal(t, http.StatusServiceUnavailable, a.status)
			require.Equal(t, fmt.Sprint(wait), a.header.Get("Retry-After"), "the remaining open time")
			require.Equal(t, "false", a.header.Get("X-Should-Retry"))
			pass(time.Second)
		}
	})
	t.Run("limits", func(t *testing.T) {
		t.Parallel()
		tests := []struct {
			name  string
			limit policy.Limit
			want  string
		}{
			{"fraction of a second", policy.Limit{RequestsPerSecond: 1000, Burst: 1}, "1"},
			{"several seconds", policy.Limit{RequestsPerSecond: 0.25, Burst: 1}, "4"},
			{"nothing at all", policy.Limit{RequestsPerSecond: 0, Burst: 1}, "3600"},
		}
		for _, tt := range tests {
			inBubble(t, only(jsonAnswer(http.StatusOK, goodAnswer)), func(d *policy.Document) { d.Limits.Global = &tt.limit }, func(t *testing.T, b *bench) {
				b.chat(plainBody)
				a := b.chat(plainBody)
				require.Equal(b.t, http.StatusTooManyRequests, a.status, tt.name)
				require.Equal(b.t, tt.want, a.header.Get("Retry-After"), tt.name)
				require.Equal(b.t, policy.OutcomeLimited, a.outcome())
				_, kind := errorOf(b.t, a)
				require.Equal(b.t, "rate_limit_error", kind)
			})
		}
	})
	t.Run("limit of a lease", func(t *testing.T) {
		t.Parallel()
		inBubble(t, only(jsonAnswer(http.StatusOK, goodAnswer)), nil, func(t *testing.T, b *bench) {
			b.apply(policy.Override{
				ID: "x", Path: policy.GlobalLimitPath, Value: []byte(`{"requests_per_second":0}`),
				Owner: "alice", Reason: "flood", Expires: time.Now().Add(90 * time.Second),
			})
			require.Equal(t, "90", b.chat(plainBody).header.Get("Retry-After"))
		})
	})
}

func TestC62_NoEndpointIs503(t *testing.T) {
	t.Parallel()
	drain := func(d *policy.Document) {
		d.Pools["llm"].Endpoints["one"] = policy.Endpoint{URL: "http://one", Drained: true}
	}
	var calls atomic.Int64
	inBubble(t, only(counted(&calls, jsonAnswer(http.StatusOK, goodAnswer))), drain, func(t *testing.T, b *bench) {
		a := b.chat(plainBody)
		require.Equal(t, http.StatusServiceUnavailable, a.status)
		require.Equal(t, policy.OutcomeNoEndpoint, a.outcome())
		require.Equal(t, "1", a.header.Get("Retry-After"))
		require.Zero(t, calls.Load())
	})
}

func TestC77_CallsNeverMadeUseNothingUp(t *testing.T) {
	t.Parallel()
	limits := func(d *policy.Document) {
		d.Limits.Global = &policy.Limit{RequestsPerSecond: 0.001, Burst: 3}
		alpha := d.Tenants["alpha"]
		alpha.Limit = &policy.Limit{RequestsPerSecond: 0.001, Burst: 2}
		d.Tenants["alpha"] = alpha
	}
	inBubble(t, only(jsonAnswer(http.StatusOK, goodAnswer)), limits, func(t *testing.T, b *bench) {
		trip := policy.Override{
			ID: "x", Path: policy.BreakerForcedPath("llm"), Value: []byte(`"open"`),
			Owner: "alice", Reason: "test", Expires: time.Now().Add(time.Hour),
		}
		b.apply(trip)
		for range 10 {
			require.Equal(t, policy.OutcomeBreakerOpen, b.chat(plainBody).outcome())
		}
		b.apply()
		for range 2 {
			require.Equal(t, policy.OutcomeOK, b.chat(plainBody).outcome())
		}
		for range 10 { // the tenant's limit refuses, the global one is not used up
			require.Equal(t, policy.OutcomeLimited, b.chat(plainBody).outcome())
		}
		b.document.Tenants["alpha"] = policy.Tenant{Keys: b.document.Tenants["alpha"].Keys}
		b.apply()
		require.Equal(t, policy.OutcomeOK, b.chat(plainBody).outcome())
		require.Equal(t, policy.OutcomeLimited, b.chat(plainBody).outcome())
	})
}

func TestConnectFailureIsRetriedOnceElsewhere(t *testing.T) {
	t.Parallel()
	t.Run("another endpoint", func(t *testing.T) {
		t.Parallel()
		var calls atomic.Int64
		inBubble(t, only(counted(&calls, jsonAnswer(http.StatusOK, goodAnswer))), func(d *policy.Document) {
			d.Pools["llm"].Endpoints["dead"] = policy.Endpoint{URL: "http://dead"}
		}, func(t *testing.T, b *bench) {
			for range 6 {
				a := b.chat(plainBody)
				require.Equal(t, policy.OutcomeOK, a.outcome())
			}
			require.EqualValues(t, 6, calls.Load())
		})
	})
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		inBubble(t, nil, func(d *policy.Document) {
			d.Pools["llm"].Endpoints["dead"] = policy.Endpoint{URL: "http://dead"}
		}, func(t *testing.T, b *bench) {
			a := b.chat(plainBody)
			require.Equal(t, http.StatusBadGateway, a.status)
			require.Equal(t, policy.OutcomeUpstreamUnreachable, a.outcome())
			require.Contains(t, b.log.String(), `"attempts":2`)
			require.Equal(t, 1, b.breaker().Calls, "one request is one result")
		})
	})
}

func TestUpstreamAnswersPassUnchanged(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 201, 204, 302, 304, 400, 404, 409, 422, 500, 503} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			inBubble(t, only(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("X-Upstream", "yes")
				w.Header().Set("X-Degraded", "lie")
				w.Header().Set("Keep-Alive", "timeout=5")
				w.Header().Set("Location", "/elsewhere")
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(status)
				if status != http.StatusNoContent && status != http.StatusNotModified {
					_, _ = io.WriteString(w, `{"a":1}`)
				}
			}), nil, func(t *testing.T, b *bench) {
				a := b.chat(plainBody)
				require.Equal(t, status, a.status)
				require.Equal(t, "yes", a.header.Get("X-Upstream"))
				require.Empty(t, a.header.Get("X-Degraded"))
				require.Empty(t, a.header.Get("Keep-Alive"))
				require.Equal(t, "/elsewhere", a.header.Get("Location"))
				if status != http.StatusNoContent && status != http.StatusNotModified {
					require.Equal(t, `{"a":1}`, a.body)
				}
			})
		})
	}
	t.Run("HEAD", func(t *testing.T) {
		t.Parallel()
		inBubble(t, only(jsonAnswer(http.StatusOK, "")), nil, func(t *testing.T, b *bench) {
			a := b.do(b.request(http.MethodHead, "/v1/models", ""))
			require.Equal(t, http.StatusOK, a.status)
			require.Equal(t, policy.OutcomeOK, a.outcome())
		})
	})
	t.Run("longer than the buffer", func(t *testing.T) {
		t.Parallel()
		long := `{"data":"` + strings.Repeat("x", 300_000) + `"}`
		inBubble(t, only(jsonAnswer(http.StatusOK, long)), nil, func(t *testing.T, b *bench) {
			a := b.chat(plainBody)
			require.NoError(t, a.err)
			require.Equal(t, long, a.body)
			require.Equal(t, policy.OutcomeOK, a.outcome(), "told by the trailer")
		})
	})
	t.Run("compressed all the same", func(t *testing.T) {
		t.Parallel()
		inBubble(t, only(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Accept-Encoding") != "identity" {
				w.WriteHeader(http.StatusTeapot)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "br")
			_, _ = w.Write([]byte{1, 2, 3})
		}), nil, func(t *testing.T, b *bench) {
			r := b.request(http.MethodPost, chatPath, plainBody)
			r.Header.Set("Accept-Encoding", "gzip, br, zstd")
			a := b.do(r)
			require.Equal(t, "\x01\x02\x03", a.body)
			require.Equal(t, policy.OutcomeOK, a.outcome())
		})
	})
}
