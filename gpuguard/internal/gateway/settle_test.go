package gateway_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/gpuguard/policy"
)

// C51 is about slots that are never given back; here they are the in-flight
// gauge, endpoint slots and breaker permits.
func TestC51_EveryEndingGivesBackWhatItTook(t *testing.T) {
	t.Parallel()
	up := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch r.URL.Path {
		case "/v1/reset":
			panic(http.ErrAbortHandler)
		case "/v1/hang":
			<-r.Context().Done()
		case "/v1/stream":
			events(w, chunk)
			<-r.Context().Done()
		default:
			jsonAnswer(http.StatusOK, goodAnswer)(w, r)
		}
	}
	inBubble(t, only(up), func(d *policy.Document) {
		dep := d.Dependencies["llm"]
		dep.Breaker.Disabled = true
		d.Dependencies["llm"] = dep
	}, func(t *testing.T, b *bench) {
		call := func(path, body string, patience time.Duration) {
			ctx, cancel := context.WithTimeout(b.t.Context(), patience)
			defer cancel()
			resp, err := b.client.Do(b.request(http.MethodPost, path, body).WithContext(ctx))
			if err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		}
		kinds := []struct {
			n  int
			do func()
		}{
			{30, func() {
				raw(b, "POST "+chatPath+" HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nX-Api-Key: "+key+"\r\n\r\nzz\r\n")
			}},
			{30, func() {
				r := httptest.NewRequest(http.MethodPost, chatPath, readerThatPanics{})
				r.Header.Set("X-Api-Key", key)
				b.gateway.ServeHTTP(httptest.NewRecorder(), r)
			}},
			{30, func() { call("/v1/reset", plainBody, time.Hour) }},
			{30, func() { call("/v1/hang", plainBody, time.Second) }},
			{30, func() { call("/v1/stream", streamBody, time.Second) }},
			{25, func() { call("/v1/ok", plainBody, time.Hour) }},
			{25, func() { call("/v1/hang", plainBody, time.Hour) }},
		}
		var wg sync.WaitGroup
		want := int64(0)
		for _, k := range kinds {
			want += int64(k.n)
			for range k.n {
				wg.Go(k.do)
			}
		}
		wg.Wait()
		synctest.Wait()
		require.Zero(t, b.gateway.InFlight())
		require.InDelta(t, 0, gauge(b, "gpuguard_endpoint_in_flight"), 0)
		got := int64(0)
		for _, n := range b.gateway.State().Outcomes["llm"] {
			got += n
		}
		require.Equal(t, want, got, "%v", b.gateway.State().Outcomes)
		for range 16 {
			require.Equal(t, policy.OutcomeOK, b.chat(plainBody).outcome())
		}
	})
}

func TestC72_OnlyTheProbesReachASickUpstream(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	sick := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		calls.Add(1)
		pass(2 * time.Second)
		w.WriteHeader(http.StatusInternalServerError)
	}
	inBubble(t, only(sick), nil, func(t *testing.T, b *bench) {
		for range 5 {
			b.chat(plainBody)
		}
		require.Contains(t, b.events.String(), `"level":"WARN","msg":"breaker changed","dependency":"llm","state":"open"`)
		calls.Store(0)
		pass(10 * time.Second)
		began := time.Now()
		const callers = 500
		var refused atomic.Int64
		var wg sync.WaitGroup
		for range callers {
			wg.Go(func() {
				if a := b.chat(plainBody); a.outcome() == policy.OutcomeBreakerOpen {
					refused.Add(1)
					if time.Since(began) != 0 {
						b.t.Error("a refusal waited")
					}
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, policy.DefaultBreaker().HalfOpenProbes, calls.Load())
		require.EqualValues(t, callers-policy.DefaultBreaker().HalfOpenProbes, refused.Load())
		require.Equal(t, "open", b.breaker().State)
	})
}

func TestC75_LoweredLimitHoldsAtOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, only(jsonAnswer(http.StatusOK, goodAnswer)), func(d *policy.Document) {
		d.Limits.Global = &policy.Limit{RequestsPerSecond: 2000, Burst: 2000}
	}, func(t *testing.T, b *bench) {
		pass(2 * time.Second)
		b.apply(policy.Override{
			ID: "x", Path: policy.GlobalLimitPath, Value: []byte(`{"requests_per_second":500,"burst":50}`),
			Owner: "alice", Reason: "INCIDENTS A", Expires: time.Now().Add(time.Minute),
		})
		require.Equal(t, policy.Limit{RequestsPerSecond: 500, Burst: 50}, b.gateway.State().Limits[policy.GlobalLimitPath])
		passed := 0
		for range 600 { // over one second
			if b.chat(plainBody).outcome() == policy.OutcomeOK {
				passed++
			}
			pass(time.Second / 600)
		}
		require.LessOrEqual(t, passed, 550)
		require.GreaterOrEqual(t, passed, 540)
	})
}

func TestLimitsAreDividedByTheLiveGateways(t *testing.T) {
	t.Parallel()
	inBubble(t, only(jsonAnswer(http.StatusOK, goodAnswer)), func(d *policy.Document) {
		d.Limits.Global = &policy.Limit{RequestsPerSecond: 100, Burst: 40}
	}, func(t *testing.T, b *bench) {
		require.NoError(t, b.gateway.Apply(policy.Effective{Document: b.document}, 4))
		require.Equal(t, policy.Limit{RequestsPerSecond: 25, Burst: 10}, b.gateway.State().Limits[policy.GlobalLimitPath])
		passed := 0
		for range 100 {
			if b.chat(plainBody).outcome() == policy.OutcomeOK {
				passed++
			}
		}
		require.Equal(t, 10, passed)
	})
}

// A swap must not forget what breakers and buckets know.
func TestStateLivesOnAcrossSwaps(t *testing.T) {
	t.Parallel()
	inBubble(t, only(jsonAnswer(http.StatusInternalServerError, "{}")), func(d *policy.Document) {
		d.Limits.Global = &policy.Limit{RequestsPerSecond: 0.001, Burst: 10}
	}, func(t *testing.T, b *bench) {
		for range 4 {
			b.chat(plainBody)
			b.apply()
		}
		require.Equal(t, 4, b.breaker().Calls)
		b.chat(plainBody)
		b.apply()
		require.Equal(t, "open", b.breaker().State)
		for range 10 { // refused by the breaker: they use no tokens up
			require.Equal(t, policy.OutcomeBreakerOpen, b.chat(plainBody).outcome())
		}
	})
}

// Body buffers are reused: none may be handed out while a transport still reads it.
func TestReusedBodiesNeverMix(t *testing.T) {
	t.Parallel()
	var mixed atomic.Int64
	up := func(w http.ResponseWriter, r *http.Request) {
		buf := make([]byte, 16<<10)
		n, _ := io.ReadFull(r.Body, buf)
		switch buf[0] % 3 {
		case 0: // answers before it has read all
			jsonAnswer(http.StatusOK, goodAnswer)(w, r)
			return
		case 1: // hangs until the caller leaves
			<-time.After(time.Duration(buf[0]) * time.Millisecond / 10)
		}
		rest, _ := io.ReadAll(r.Body)
		for _, c := range append(buf[:n:n], rest...) {
			if c != buf[0] {
				mixed.Add(1)
				break
			}
		}
		jsonAnswer(http.StatusOK, goodAnswer)(w, r)
	}
	b := newBench(t, only(up), nil)
	defer closeAll(b)
	const workers, each = 8, 30
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(5+i%20)*time.Millisecond)
				body := bytes.Repeat([]byte{byte('a' + (w*each+i)%26)}, 200_000)
				req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://gateway"+chatPath, bytes.NewReader(body))
				if err == nil {
					req.Header.Set("X-Api-Key", key)
					if resp, err := b.client.Do(req); err == nil {
						_, _ = io.Copy(io.Discard, resp.Body)
						_ = resp.Body.Close()
					}
				}
				cancel()
			}
		})
	}
	wg.Wait()
	b.client.CloseIdleConnections()
	require.Zero(t, mixed.Load())
	require.Eventually(t, func() bool { return b.gateway.InFlight() == 0 }, 5*time.Second, time.Millisecond)
}
