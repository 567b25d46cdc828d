package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/gpuguard/policy"
)

func TestAuthentication(t *testing.T) {
	t.Parallel()
	optional := func(d *policy.Document) {
		d.Routes["open"] = policy.Route{Match: policy.Match{PathPrefix: "/open"}, Pool: "llm", Auth: policy.AuthOptional}
	}
	tests := []struct {
		name, path string
		header     http.Header
		status     int
		outcome    policy.Outcome
		tenant     string
	}{
		{"bearer", chatPath, http.Header{"Authorization": {"Bearer " + key}}, 200, policy.OutcomeOK, "alpha"},
		{"scheme in any case", chatPath, http.Header{"Authorization": {"bearer " + key}}, 200, policy.OutcomeOK, "alpha"},
		{"x-api-key", chatPath, http.Header{"X-Api-Key": {key}}, 200, policy.OutcomeOK, "alpha"},
		{"none", chatPath, nil, 401, policy.OutcomeUnauthenticated, ""},
		{"wrong", chatPath, http.Header{"Authorization": {"Bearer " + key + "x"}}, 401, policy.OutcomeUnauthenticated, ""},
		{"other scheme", chatPath, http.Header{"Authorization": {"Basic " + key}}, 401, policy.OutcomeUnauthenticated, ""},
		{"the digest is no key", chatPath, http.Header{"X-Api-Key": {"4a5f"}}, 401, policy.OutcomeUnauthenticated, ""},
		{"optional without", "/open", nil, 200, policy.OutcomeOK, ""},
		{"optional with unknown", "/open", http.Header{"X-Api-Key": {"x"}}, 200, policy.OutcomeOK, ""},
		{"optional with known", "/open", http.Header{"X-Api-Key": {key}}, 200, policy.OutcomeOK, "alpha"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var seen atomic.Pointer[http.Header]
			inBubble(t, only(func(w http.ResponseWriter, r *http.Request) {
				h := r.Header.Clone()
				seen.Store(&h)
				jsonAnswer(http.StatusOK, goodAnswer)(w, r)
			}), optional, func(t *testing.T, b *bench) {
				r := b.request(http.MethodPost, tt.path, plainBody)
				r.Header.Del("Authorization")
				maps.Copy(r.Header, tt.header)
				a := b.do(r)
				require.Equal(t, tt.status, a.status)
				require.Equal(t, tt.outcome, a.outcome())
				if tt.status != http.StatusOK {
					require.Nil(t, seen.Load(), "nothing reaches the upstream")
					require.Equal(t, "Bearer", a.header.Get("WWW-Authenticate"))
					return
				}
				require.Equal(t, tt.tenant, seen.Load().Get("X-Tenant-Id"))
				require.Empty(t, seen.Load().Get("Authorization"))
				require.Empty(t, seen.Load().Get("X-Api-Key"))
			})
		})
	}
}

func TestR34_CallersWordAboutThemselvesIsDropped(t *testing.T) {
	t.Parallel()
	var seen atomic.Pointer[http.Request]
	inBubble(t, only(func(w http.ResponseWriter, r *http.Request) {
		seen.Store(r.Clone(context.Background()))
		jsonAnswer(http.StatusOK, goodAnswer)(w, r)
	}), nil, func(t *testing.T, b *bench) {
		r := b.request(http.MethodPost, chatPath+"?beta=true", plainBody)
		for _, name := range []string{
			"X-Forwarded-For", "X-Forwarded-Host", "Forwarded", "X-Real-Ip", "X-Tenant-Id", "X-Tenant-Class",
			"X-Guard-Priority", "X-Gpuguard-Outcome", "Proxy-Authorization", "Te", "Keep-Alive", "X-Hop", "Api-Key",
		} {
			r.Header.Set(name, "forged")
		}
		r.Header.Set("Connection", "x-hop, close")
		r.Header.Set("Idempotency-Key", "k1")
		r.Header.Set("X-Custom", "kept")
		r.Host = "evil.example"
		a := b.do(r)
		require.Equal(t, http.StatusOK, a.status)
		got := seen.Load()
		for name, values := range got.Header {
			require.NotContains(t, values, "forged", name)
		}
		require.Equal(t, "alpha", got.Header.Get("X-Tenant-Id"))
		require.Equal(t, "kept", got.Header.Get("X-Custom"))
		require.Equal(t, "k1", got.Header.Get("Idempotency-Key"))
		require.Equal(t, "one", got.Host)
		require.Equal(t, "beta=true", got.URL.RawQuery)
		require.Equal(t, a.header.Get("X-Request-ID"), got.Header.Get("X-Request-ID"))
	})
}

func TestR36_PathsThatCouldMeanAnotherPathAreRefused(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	inBubble(t, only(counted(&calls, jsonAnswer(http.StatusOK, goodAnswer))), nil, func(t *testing.T, b *bench) {
		for _, path := range []string{
			"/v1/../admin", "/v1/%2e%2e/admin", "/v1/%2e%2e%2fadmin", "//admin", "/v1//chat", "/v1/./chat", "/v1/a%00b",
			"/v1/..", "/v1/%5c..%5cadmin", "/v1/%252e%252e/admin", "/v1/%0d%0aX",
		} {
			require.Equal(t, http.StatusBadRequest, raw(b, "POST "+path+" HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+key+"\r\nContent-Length: 0\r\n\r\n"), path)
		}
		for _, path := range []string{"/admin", "/metrics", "/healthz", "/v10/chat", "/"} {
			require.Equal(t, http.StatusNotFound, b.do(b.request(http.MethodGet, path, "")).status, path)
		}
		require.Zero(t, calls.Load())
		require.Equal(t, http.StatusOK, b.do(b.request(http.MethodGet, "/v1/models/org%2Fname", "")).status, "an encoded slash in a name is no trick")
		require.Equal(t, http.StatusOK, b.do(b.request(http.MethodGet, "/v1", "")).status)
	})
}

// raw sends bytes to the gateway and returns the status of its answer.
func raw(b *bench, text string) int {
	b.t.Helper()
	conn, err := b.net.dial(b.t.Context(), "", "gateway:80")
	require.NoError(b.t, err)
	defer conn.Close()
	go func() { _, _ = io.WriteString(conn, text) }()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(b.t, err)
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

func TestR33_RequestFraming(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	inBubble(t, only(counted(&calls, jsonAnswer(http.StatusOK, goodAnswer))), nil, func(t *testing.T, b *bench) {
		auth := "Authorization: Bearer " + key + "\r\n"
		require.Equal(t, http.StatusMethodNotAllowed, raw(b, "CONNECT one:80 HTTP/1.1\r\nHost: one:80\r\n"+auth+"\r\n"))
		require.Equal(t, http.StatusBadRequest, raw(b, "POST "+chatPath+" HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n"+auth+"\r\nab"))
		require.Equal(t, http.StatusNotImplemented, raw(b, "POST "+chatPath+" HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n"+auth+"\r\n"))
		require.Equal(t, http.StatusBadRequest, raw(b, "POST "+chatPath+" HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"+auth+"\r\nzz\r\n"))
		require.Zero(t, calls.Load())
		require.Equal(t, http.StatusOK, raw(b, "POST "+chatPath+" HTTP/1.1\r\nHost: x\r\nContent-Length: 40\r\nTransfer-Encoding: chunked\r\n"+auth+"\r\n2\r\n{}\r\n0\r\n\r\n"))
		require.Equal(t, http.StatusOK, raw(b, "POST http://evil.example"+chatPath+" HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n"+auth+"\r\n{}"))
		require.EqualValues(t, 2, calls.Load())
	})
}

func TestMethodsAndLongestPrefix(t *testing.T) {
	t.Parallel()
	routes := func(d *policy.Document) {
		d.Routes["models"] = policy.Route{Match: policy.Match{PathPrefix: "/v1/models", Methods: []string{"GET"}}, Pool: "llm"}
		d.Routes["files"] = policy.Route{Match: policy.Match{PathPrefix: "/files", Methods: []string{"GET", "PUT"}}, Pool: "llm"}
	}
	inBubble(t, only(jsonAnswer(http.StatusOK, goodAnswer)), routes, func(t *testing.T, b *bench) {
		b.do(b.request(http.MethodGet, "/v1/models/x", ""))
		require.Contains(t, b.log.String(), `"route":"models"`)
		b.do(b.request(http.MethodPost, "/v1/models/x", "{}"))
		require.Contains(t, b.log.String(), `"route":"chat"`)
		a := b.do(b.request(http.MethodDelete, "/files/x", ""))
		require.Equal(t, http.StatusMethodNotAllowed, a.status)
		require.Equal(t, "GET, PUT", a.header.Get("Allow"))
		require.Equal(t, policy.OutcomeNoRoute, a.outcome())
	})
}

func TestC58_BodySizes(t *testing.T) {
	t.Parallel()
	const limit = 10 << 20
	var got atomic.Pointer[[]byte]
	up := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got.Store(&body)
		jsonAnswer(http.StatusOK, goodAnswer)(w, r)
	}
	inBubble(t, only(up), func(d *policy.Document) {
		r := d.Routes["chat"]
		r.MaxBodyBytes = limit
		d.Routes["chat"] = r
	}, func(t *testing.T, b *bench) {
		for _, size := range []int{0, 1, 32_768, 32_769, 65_536, 65_537, 1_014_506, limit, limit + 1} {
			body := bytes.Repeat([]byte("p"), size)
			for _, chunked := range []bool{false, true} {
				name := fmt.Sprintf("%d bytes, chunked %t", size, chunked)
				r := b.request(http.MethodPost, chatPath, "")
				r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(size)
				if chunked {
					r.ContentLength = -1
				}
				got.Store(nil)
				a := b.do(r)
				if size <= limit {
					require.Equal(t, http.StatusOK, a.status, name)
					require.True(t, bytes.Equal(body, *got.Load()), name)
					continue
				}
				require.Equal(t, http.StatusRequestEntityTooLarge, a.status, name)
				require.Equal(t, policy.OutcomeBodyTooLarge, a.outcome())
				code, _ := errorOf(t, a)
				require.Equal(t, "body_too_large", code)
				require.Nil(t, got.Load(), name)
			}
		}
	})
}

func TestSlowBodyIsGivenUp(t *testing.T) {
	t.Parallel()
	inBubble(t, only(jsonAnswer(http.StatusOK, goodAnswer)), nil, func(t *testing.T, b *bench) {
		began := time.Now()
		status := raw(b, "POST "+chatPath+" HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\nAuthorization: Bearer "+key+"\r\n\r\n{")
		require.Equal(t, http.StatusRequestTimeout, status)
		require.Equal(t, 10*time.Second, time.Since(began))
		require.EqualValues(t, 1, b.outcomes(policy.OutcomeBadRequest))
	})
}

func TestBadTimeoutHeader(t *testing.T) {
	t.Parallel()
	inBubble(t, only(jsonAnswer(http.StatusOK, goodAnswer)), nil, func(t *testing.T, b *bench) {
		for _, v := range []string{"soon", "0", "-1", "NaN", "Inf", "1e400", "5s"} {
			r := b.request(http.MethodPost, chatPath, plainBody)
			r.Header.Set("X-Request-Timeout", v)
			a := b.do(r)
			require.Equal(t, http.StatusBadRequest, a.status, v)
			require.Contains(t, a.body, "X-Request-Timeout")
		}
		a := b.chat(`{"timeout":{"connect":1}}`)
		require.Equal(t, http.StatusOK, a.status, "another API's own member")
	})
}

func TestOneLineAndOneOutcomePerRequest(t *testing.T) {
	t.Parallel()
	inBubble(t, only(jsonAnswer(http.StatusOK, goodAnswer)), nil, func(t *testing.T, b *bench) {
		b.chat(`{"messages":[{"content":"a secret prompt"}]}`)
		b.do(b.request(http.MethodGet, "/nowhere?token=canary-query", ""))
		r := b.request(http.MethodPost, chatPath, plainBody)
		r.Header.Set("Authorization", "Bearer wrong-key")
		b.do(r)
		lines := strings.Split(strings.TrimSpace(b.log.String()), "\n")
		require.Len(t, lines, 3)
		require.Contains(t, lines[0], `"outcome":"ok"`)
		require.Contains(t, lines[0], `"tenant":"alpha","class":"vip"`)
		require.Contains(t, lines[1], `"outcome":"no_route"`)
		require.Contains(t, lines[2], `"outcome":"unauthenticated"`)
		for _, secret := range []string{"secret prompt", "canary-query", "wrong-key", key} {
			require.NotContains(t, b.log.String(), secret)
		}
		total := int64(0)
		for _, byOutcome := range b.gateway.State().Outcomes {
			for _, n := range byOutcome {
				total += n
			}
		}
		require.EqualValues(t, 3, total)
	})
}

func TestFaultInTheGatewayLeaksNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, only(jsonAnswer(http.StatusOK, goodAnswer)), func(d *policy.Document) {
		d.Limits.Global = &policy.Limit{RequestsPerSecond: 0.001, Burst: 1}
	})
	defer closeAll(b)
	r := httptest.NewRequest(http.MethodPost, chatPath, readerThatPanics{})
	r.Header.Set("X-Api-Key", key)
	w := httptest.NewRecorder()
	b.gateway.ServeHTTP(w, r)
	require.Equal(t, http.StatusInternalServerError, w.Code)
	require.Equal(t, string(policy.OutcomeInternal), w.Header().Get("X-Gpuguard-Outcome"))
	require.Contains(t, b.events.String(), "request handling failed")
	require.NotContains(t, b.events.String()+b.log.String(), "the caller's words")
	require.Zero(t, b.gateway.InFlight())
	require.EqualValues(t, 1, b.outcomes(policy.OutcomeInternal))
	require.Equal(t, http.StatusOK, b.chat(plainBody).status, "the token was given back")
	b.client.CloseIdleConnections()
}

type readerThatPanics struct{}

func (readerThatPanics) Read([]byte) (int, error) { panic("the caller's words") }

func TestLeastLoadedEndpointIsChosen(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	var one, two atomic.Int64
	wait := func(w http.ResponseWriter, r *http.Request) {
		<-release
		jsonAnswer(http.StatusOK, goodAnswer)(w, r)
	}
	b := newBench(t, map[string]http.HandlerFunc{"one": counted(&one, wait), "two": counted(&two, wait)}, nil)
	defer closeAll(b)
	const calls = 10
	ended := make(chan struct{})
	for range calls {
		go func() {
			resp, err := b.client.Do(b.request(http.MethodPost, chatPath, plainBody))
			if err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
			ended <- struct{}{}
		}()
	}
	require.Eventually(t, func() bool { return one.Load()+two.Load() == calls }, 5*time.Second, time.Millisecond)
	require.InDelta(t, calls/2, one.Load(), 1)
	close(release)
	for range calls {
		<-ended
	}
	b.client.CloseIdleConnections()
}
