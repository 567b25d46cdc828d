package gateway_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/gpuguard/policy"
)

func TestC40_HealthyStreamIsNotCutByTheTotalLimit(t *testing.T) {
	t.Parallel()
	const pieces, gap = 100, 250 * time.Millisecond // 25 s, beyond first byte (15 s) and total (20 s)
	slow := func(w http.ResponseWriter, r *http.Request) {
		for range pieces {
			pass(gap)
			events(w, chunk)
		}
		events(w, done)
	}
	inBubble(t, only(slow), nil, func(t *testing.T, b *bench) {
		began := time.Now()
		a := b.chat(streamBody)
		require.NoError(t, a.err)
		require.Equal(t, http.StatusOK, a.status)
		require.Equal(t, strings.Repeat(chunk, pieces)+done, a.body)
		require.Equal(t, policy.OutcomeOK, a.outcome())
		require.Equal(t, pieces*gap, time.Since(began))
	})
}

func TestC40_TotalLimitEndsARequestThatIsNoStream(t *testing.T) {
	t.Parallel()
	slow := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for range 100 {
			pass(250 * time.Millisecond)
			if _, err := io.WriteString(w, " "); err != nil {
				return
			}
			w.(http.Flusher).Flush()
		}
	}
	inBubble(t, only(slow), nil, func(t *testing.T, b *bench) {
		began := time.Now()
		a := b.chat(plainBody)
		require.Equal(t, http.StatusGatewayTimeout, a.status)
		require.Equal(t, policy.OutcomeTimeoutTotal, a.outcome())
		require.Equal(t, "false", a.header.Get("X-Should-Retry"))
		require.Equal(t, 20*time.Second, time.Since(began))
		require.Equal(t, 1, b.breaker().Calls)
	})
}

func TestStreamTotalCapsAStream(t *testing.T) {
	t.Parallel()
	endless := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			events(w, chunk)
			pass(time.Second)
		}
	}
	inBubble(t, only(endless), nil, func(t *testing.T, b *bench) {
		began := time.Now()
		a := b.chat(streamBody)
		require.Error(t, a.err, "the caller must see a cut")
		require.Equal(t, 10*time.Minute, time.Since(began))
		require.EqualValues(t, 1, b.outcomes(policy.OutcomeTimeoutTotal))
	})
}

func TestFirstByteAndIdleLimits(t *testing.T) {
	t.Parallel()
	silent := func(after ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if len(after) > 0 {
				events(w, after...)
			}
			<-r.Context().Done()
		}
	}
	t.Run("no header", func(t *testing.T) {
		t.Parallel()
		inBubble(t, only(silent()), nil, func(t *testing.T, b *bench) {
			began := time.Now()
			a := b.chat(streamBody)
			require.Equal(t, http.StatusGatewayTimeout, a.status)
			require.Equal(t, policy.OutcomeTimeoutFirstByte, a.outcome())
			require.Equal(t, 15*time.Second, time.Since(began))
		})
	})
	t.Run("header without a byte", func(t *testing.T) {
		t.Parallel()
		inBubble(t, only(silent("")), nil, func(t *testing.T, b *bench) {
			a := b.chat(streamBody)
			require.Equal(t, http.StatusGatewayTimeout, a.status)
			require.Equal(t, policy.OutcomeTimeoutFirstByte, a.outcome())
		})
	})
	t.Run("silence after an event", func(t *testing.T) {
		t.Parallel()
		inBubble(t, only(silent(chunk)), nil, func(t *testing.T, b *bench) {
			began := time.Now()
			a := b.chat(streamBody)
			require.Equal(t, http.StatusOK, a.status)
			require.ErrorIs(t, a.err, io.ErrUnexpectedEOF)
			require.Equal(t, chunk, a.body)
			require.Equal(t, 5*time.Second, time.Since(began))
			require.EqualValues(t, 1, b.outcomes(policy.OutcomeTimeoutIdle))
		})
	})
	t.Run("silence after the end mark", func(t *testing.T) {
		t.Parallel()
		inBubble(t, only(silent(chunk, done)), nil, func(t *testing.T, b *bench) {
			a := b.chat(streamBody)
			require.NoError(t, a.err, "all of the answer was delivered")
			require.Equal(t, policy.OutcomeOK, a.outcome())
		})
	})
}

func TestC43_CallersOwnTimeoutIsNoFailure(t *testing.T) {
	t.Parallel()
	slow := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-time.After(2 * time.Second):
			jsonAnswer(http.StatusOK, goodAnswer)(w, r)
		case <-r.Context().Done():
		}
	}
	const calls = 20
	tests := map[string]func(*bench){
		"disconnect": func(b *bench) {
			ctx, cancel := context.WithTimeout(b.t.Context(), 100*time.Millisecond)
			defer cancel()
			_, err := b.client.Do(b.request(http.MethodPost, chatPath, plainBody).WithContext(ctx))
			require.ErrorIs(b.t, err, context.DeadlineExceeded)
		},
		"header": func(b *bench) {
			r := b.request(http.MethodPost, chatPath, plainBody)
			r.Header.Set("X-Request-Timeout", "0.1")
			a := b.do(r)
			require.Equal(b.t, http.StatusRequestTimeout, a.status)
			require.Equal(b.t, policy.OutcomeClientCancelled, a.outcome())
			require.Equal(b.t, "false", a.header.Get("X-Should-Retry"))
		},
		"body": func(b *bench) {
			began := time.Now()
			a := b.chat(`{"messages":[],"timeout":0.1}`)
			require.Equal(b.t, http.StatusRequestTimeout, a.status)
			require.Equal(b.t, 100*time.Millisecond, time.Since(began))
		},
	}
	for name, call := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, only(slow), nil, func(t *testing.T, b *bench) {
				for range calls {
					call(b)
					pass(150 * time.Millisecond)
				}
				synctest.Wait()
				require.EqualValues(t, calls, b.outcomes(policy.OutcomeClientCancelled))
				require.Equal(t, "closed", b.breaker().State)
				require.Zero(t, b.breaker().Calls)
				require.Zero(t, b.gateway.InFlight())
			})
		})
	}
}

func TestCallersDeadlineExtendsNothing(t *testing.T) {
	t.Parallel()
	hang := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}
	inBubble(t, only(hang), nil, func(t *testing.T, b *bench) {
		r := b.request(http.MethodPost, chatPath, plainBody)
		r.Header.Set("X-Request-Timeout", "3600")
		began := time.Now()
		a := b.do(r)
		require.Equal(t, policy.OutcomeTimeoutFirstByte, a.outcome())
		require.Equal(t, 15*time.Second, time.Since(began))
	})
}

func TestC49_BytesPassUnchangedInEverySplit(t *testing.T) {
	t.Parallel()
	event := "data: {\"choices\":[{\"delta\":{\"content\":\"\xE4\xBD\xA0\xE5\xA5\xBD\"}}]}"
	at := strings.Index(event, "\xE4")
	tests := map[string][]string{
		"3+3":           {event[:at+3], event[at+3:] + "\n\n", done},
		"1+5":           {event[:at+1], event[at+1:] + "\n\n", done},
		"4+2":           {event[:at+4], event[at+4:] + "\n\n", done},
		"before end":    {event, "\n", "\n", done},
		"crlf":          {event + "\r\n", "\r", "\n", "data: [DONE]\r\n\r\n"},
		"bad byte":      {"data: {\"choices\":[{\"delta\":{\"content\":\"\xFF\"}}]}\n\n", done},
		"single bytes":  strings.Split(event+"\n\n"+done, ""),
		"comment first": {": keep-alive\n\n", event + "\n\n", done},
	}
	for name, parts := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, only(eventAnswer(parts...)), nil, func(t *testing.T, b *bench) {
				a := b.chat(streamBody)
				require.NoError(t, a.err)
				require.Equal(t, strings.Join(parts, ""), a.body)
				require.Equal(t, policy.OutcomeOK, a.outcome())
			})
		})
	}
}

func TestStreamIsPassedAsItComes(t *testing.T) {
	t.Parallel()
	next := make(chan string)
	source := func(w http.ResponseWriter, r *http.Request) {
		for part := range next {
			events(w, part)
		}
	}
	// Real time and a channel of the test's own: whoever buffers blocks here.
	b := newBench(t, only(source), nil)
	defer func() { b.client.CloseIdleConnections(); closeAll(b) }()
	go func() { next <- chunk }()
	resp, err := b.client.Do(b.request(http.MethodPost, chatPath, streamBody))
	require.NoError(t, err)
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	for range 5 {
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, chunk, line+"\n")
		_, err = lines.ReadString('\n')
		require.NoError(t, err)
		next <- chunk
	}
	close(next)
	_, _ = io.Copy(io.Discard, resp.Body)
}

func closeAll(b *bench) {
	for _, s := range b.servers {
		_ = s.Close()
	}
	b.gateway.Close()
}

func TestR30_UpstreamCutStaysVisible(t *testing.T) {
	t.Parallel()
	cut := func(parts ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			events(w, parts...)
			panic(http.ErrAbortHandler)
		}
	}
	for name, upstream := range map[string]http.HandlerFunc{
		"connection closed":  cut(chunk, chunk, chunk),
		"clean end, no mark": eventAnswer(chunk, chunk, chunk),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, only(upstream), nil, func(t *testing.T, b *bench) {
				a := b.chat(streamBody)
				require.Equal(t, http.StatusOK, a.status)
				require.Equal(t, strings.Repeat(chunk, 3), a.body)
				require.ErrorIs(t, a.err, io.ErrUnexpectedEOF)
				require.EqualValues(t, 1, b.outcomes(policy.OutcomeUpstreamCut))
				require.Equal(t, policy.BreakerState{State: "closed", FailureRate: 1, Calls: 1}, b.breaker())
			})
		})
	}
	t.Run("before the first byte", func(t *testing.T) {
		t.Parallel()
		inBubble(t, only(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), nil, func(t *testing.T, b *bench) {
			a := b.chat(streamBody)
			require.Equal(t, http.StatusBadGateway, a.status)
			require.Equal(t, policy.OutcomeUpstreamCut, a.outcome())
		})
	})
	t.Run("inside a JSON answer", func(t *testing.T) {
		t.Parallel()
		inBubble(t, only(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"choices":[`)
		}), nil, func(t *testing.T, b *bench) {
			a := b.chat(plainBody)
			require.Equal(t, http.StatusBadGateway, a.status, "nothing was sent yet")
			require.Equal(t, policy.OutcomeUpstreamCut, a.outcome())
		})
	})
	t.Run("inside a long JSON answer", func(t *testing.T) {
		t.Parallel()
		inBubble(t, only(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"data":"`+strings.Repeat("x", 100_000)) // ends cleanly, not whole
		}), nil, func(t *testing.T, b *bench) {
			a := b.chat(plainBody)
			require.Equal(t, http.StatusOK, a.status)
			require.ErrorIs(t, a.err, io.ErrUnexpectedEOF)
			require.EqualValues(t, 1, b.outcomes(policy.OutcomeUpstreamCut))
		})
	})
}

func TestC56_NoSecondCallOnceAByteWasSent(t *testing.T) {
	t.Parallel()
	var first, second atomic.Int64
	inBubble(t, map[string]http.HandlerFunc{
		"one": counted(&first, func(w http.ResponseWriter, r *http.Request) {
			events(w, chunk, chunk, chunk)
			panic(http.ErrAbortHandler)
		}),
		"two": counted(&second, eventAnswer(chunk, done)),
	}, nil, func(t *testing.T, b *bench) {
		for range 2 { // endpoints take turns
			_ = b.chat(streamBody)
		}
		require.EqualValues(t, 1, first.Load())
		require.EqualValues(t, 1, second.Load())
	})
}

func TestUpstreamIsCancelledWhenTheCallerLeaves(t *testing.T) {
	t.Parallel()
	for name, after := range map[string][]string{"before the first byte": nil, "in a stream": {chunk}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gone := make(chan time.Time, 1)
			inBubble(t, only(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if after != nil {
					events(w, after...)
				}
				<-r.Context().Done()
				gone <- time.Now()
			}), nil, func(t *testing.T, b *bench) {
				ctx, cancel := context.WithTimeout(b.t.Context(), time.Second)
				defer cancel()
				began := time.Now()
				resp, err := b.client.Do(b.request(http.MethodPost, chatPath, streamBody).WithContext(ctx))
				if err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
				synctest.Wait()
				require.Equal(t, time.Second, (<-gone).Sub(began))
				require.EqualValues(t, 1, b.outcomes(policy.OutcomeClientCancelled))
				require.Zero(t, b.breaker().Calls)
				require.Zero(t, b.gateway.InFlight())
			})
		})
	}
}

func TestR31_MalformedStreams(t *testing.T) {
	t.Parallel()
	long := "data: {\"choices\":[{\"delta\":{\"content\":\"" + strings.Repeat("x", 5<<20) + "\"}}]}\n\n"
	tests := []struct {
		name    string
		stream  string
		outcome policy.Outcome
	}{
		{"a line of 5 MiB", long + done, policy.OutcomeOK},
		{"no empty line", strings.TrimSuffix(chunk, "\n") + done, policy.OutcomeOK},
		{"invalid UTF-8", "data: {\"a\":\"\xff\xfe\"}\n\n" + done, policy.OutcomeOK},
		{"never an end mark", strings.Repeat(chunk, 1000), policy.OutcomeUpstreamCut},
		{"no stream at all", strings.Repeat("x", 100_000), policy.OutcomeUpstreamEmpty},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, only(eventAnswer(tt.stream)), nil, func(t *testing.T, b *bench) {
				a := b.chat(streamBody)
				require.EqualValues(t, 1, b.outcomes(tt.outcome), "%v", b.gateway.State().Outcomes)
				if tt.outcome == policy.OutcomeOK {
					require.NoError(t, a.err)
				} else {
					require.Error(t, a.err, "the caller must not take it for whole")
				}
				require.Len(t, a.body, len(tt.stream))
			})
		})
	}
}
