package gateway_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"holdfast/gpuguard/internal/gateway"
	"holdfast/gpuguard/internal/upstream"
	"holdfast/gpuguard/policy"
)

// withSecret is a gateway whose one pool needs a credential.
func withSecret(t *testing.T, secret func(policy.Credential) (string, error)) (*gateway.Gateway, policy.Document) {
	t.Helper()
	g, err := gateway.New(gateway.Options{
		Logger: slog.New(slog.DiscardHandler), AccessLog: slog.New(slog.DiscardHandler), Clock: time.Now,
		NewClient:   func(d time.Duration) gateway.Client { return upstream.NewClient(d) },
		BodyTimeout: time.Second, WriteTimeout: time.Second, Secret: secret,
	})
	require.NoError(t, err)
	doc := document(map[string]policy.Endpoint{"one": {URL: "http://one"}})
	p := doc.Pools["llm"]
	p.Credential = &policy.Credential{File: "/run/secrets/key"}
	doc.Pools["llm"] = p
	return g, doc
}

func TestCredentialThatCannotBeReadRefusesThePolicy(t *testing.T) {
	t.Parallel()
	tests := map[string]func(policy.Credential) (string, error){
		"no resolver": nil,
		"error":       func(policy.Credential) (string, error) { return "", errors.New("no such file") },
		"empty":       func(policy.Credential) (string, error) { return "\n", nil },
		"two lines":   func(policy.Credential) (string, error) { return "a\nX-Evil: 1", nil },
	}
	for name, secret := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, doc := withSecret(t, secret)
			err := g.Apply(policy.Effective{Document: doc}, 1)
			require.ErrorContains(t, err, "pools.llm.credential")
			_, ok := g.Effective()
			require.False(t, ok, "nothing is in force")
		})
	}
}

// A lease must end also while the source of a credential is gone.
func TestCredentialSourceMayFailLater(t *testing.T) {
	t.Parallel()
	var gone atomic.Bool
	g, doc := withSecret(t, func(policy.Credential) (string, error) {
		if gone.Load() {
			return "", errors.New("no such file")
		}
		return "key\n", nil
	})
	require.NoError(t, g.Apply(policy.Effective{Document: doc, Revision: 1}, 1))
	gone.Store(true)
	require.NoError(t, g.Apply(policy.Effective{Document: doc, Revision: 2}, 1))
	eff, _ := g.Effective()
	require.EqualValues(t, 2, eff.Revision)
}

func TestRemovedNamesLeaveNoState(t *testing.T) {
	t.Parallel()
	inBubble(t, only(jsonAnswer(http.StatusOK, goodAnswer)), func(d *policy.Document) {
		d.Dependencies["other"] = policy.Dependency{}
		d.Pools["other"] = policy.Pool{Dependency: "other", Endpoints: d.Pools["llm"].Endpoints}
		d.Routes["other"] = policy.Route{Match: policy.Match{PathPrefix: "/other"}, Pool: "other", Limit: &policy.Limit{RequestsPerSecond: 5}}
	}, func(t *testing.T, b *bench) {
		require.Contains(t, b.gateway.State().Breakers, "other")
		require.Contains(t, b.gateway.State().Limits, policy.RouteLimitPath("other"))
		delete(b.document.Dependencies, "other")
		delete(b.document.Pools, "other")
		delete(b.document.Routes, "other")
		b.apply()
		require.NotContains(t, b.gateway.State().Breakers, "other")
		require.Empty(t, b.gateway.State().Limits)
	})
}

func TestCallerWhoDoesNotReadIsCutOff(t *testing.T) {
	t.Parallel()
	flood := func(w http.ResponseWriter, r *http.Request) {
		for range 100 {
			events(w, chunk)
		}
		events(w, done)
	}
	inBubble(t, only(flood), nil, func(t *testing.T, b *bench) {
		conn, err := b.net.dial(b.t.Context(), "", "gateway:80")
		require.NoError(b.t, err)
		defer conn.Close()
		began := time.Now()
		_, err = io.WriteString(conn, "POST "+chatPath+" HTTP/1.1\r\nHost: x\r\nX-Api-Key: "+key+"\r\nContent-Length: 15\r\n\r\n{\"stream\":true}")
		require.NoError(b.t, err)
		for b.gateway.InFlight() == 0 {
			pass(time.Millisecond)
		}
		for b.gateway.InFlight() > 0 {
			pass(100 * time.Millisecond)
		}
		require.InDelta(t, 30, time.Since(began).Seconds(), 1)
		require.EqualValues(t, 1, b.outcomes(policy.OutcomeClientCancelled))
		require.Zero(t, b.breaker().Calls)
	})
}

func TestSlowReaderIsNoFaultOfTheUpstream(t *testing.T) {
	t.Parallel()
	const chunks = 100
	flood := func(w http.ResponseWriter, r *http.Request) {
		for range chunks {
			events(w, chunk)
		}
		events(w, done)
	}
	for name, body := range map[string]string{"idle limit": streamBody, "total limit": plainBody} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			upstream := flood
			if body == plainBody {
				upstream = jsonAnswer(http.StatusOK, `{"data":"`+strings.Repeat("x", 300_000)+`"}`)
			}
			inBubble(t, only(upstream), nil, func(t *testing.T, b *bench) {
				resp, err := b.client.Do(b.request(http.MethodPost, chatPath, body))
				require.NoError(t, err)
				defer resp.Body.Close()
				pass(25 * time.Second) // idle is 5 s, total 20 s, the write limit 30 s
				got, err := io.ReadAll(resp.Body)
				synctest.Wait()
				require.Equal(t, 0, int(b.breaker().FailureRate))
				if body == streamBody {
					require.NoError(t, err)
					require.Len(t, got, chunks*len(chunk)+len(done))
					require.EqualValues(t, 1, b.outcomes(policy.OutcomeOK))
					return
				}
				require.Error(t, err)
				require.EqualValues(t, 1, b.outcomes(policy.OutcomeClientCancelled))
			})
		})
	}
}

// slowBody takes its time before each of its two halves.
type slowBody struct {
	pause time.Duration
	parts []string
}

func (s *slowBody) Read(p []byte) (int, error) {
	if len(s.parts) == 0 {
		return 0, io.EOF
	}
	pass(s.pause)
	n := copy(p, s.parts[0])
	s.parts = s.parts[1:]
	return n, nil
}

func TestSlowUploadUsesUpNoneOfTheUpstreamsTime(t *testing.T) {
	t.Parallel()
	up := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		pass(14 * time.Second)
		jsonAnswer(http.StatusOK, goodAnswer)(w, r)
	}
	send := func(b *bench, patience string) answer {
		r := b.request(http.MethodPost, chatPath, "")
		r.Body, r.ContentLength = io.NopCloser(&slowBody{4 * time.Second, []string{"{}", "  "}}), -1
		if patience != "" {
			r.Header.Set("X-Request-Timeout", patience)
		}
		return b.do(r)
	}
	inBubble(t, only(up), nil, func(t *testing.T, b *bench) { // 8 s + 14 s, and a total of 20 s
		require.Equal(t, policy.OutcomeOK, send(b, "").outcome())
		began := time.Now()
		require.Equal(t, policy.OutcomeClientCancelled, send(b, "19").outcome())
		require.Equal(t, 19*time.Second, time.Since(began), "the caller's deadline counts from the request's begin")
	})
}

func TestTooLargeBodyIsRefusedBeforeItIsSent(t *testing.T) {
	t.Parallel()
	inBubble(t, only(jsonAnswer(http.StatusOK, goodAnswer)), func(d *policy.Document) {
		r := d.Routes["chat"]
		r.MaxBodyBytes = 10
		d.Routes["chat"] = r
	}, func(t *testing.T, b *bench) {
		head := "POST " + chatPath + " HTTP/1.1\r\nHost: x\r\nX-Api-Key: " + key + "\r\nExpect: 100-continue\r\n"
		require.Equal(t, http.StatusRequestEntityTooLarge, raw(b, head+"Content-Length: 11\r\n\r\n"))
		require.Equal(t, http.StatusContinue, raw(b, head+"Content-Length: 2\r\n\r\n"))
	})
}

// What alert rules need of the gateway's metrics: the service of each dependency,
// and which answers of a degrade path helped the caller.
func TestMetricsTellServicesAndUsefulDegradedAnswers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status         int
		useful, others int
	}{{http.StatusOK, 2, 0}, {http.StatusServiceUnavailable, 0, 2}} {
		inBubble(t, only(jsonAnswer(http.StatusOK, goodAnswer)), func(d *policy.Document) {
			d.Dependencies["llm"] = policy.Dependency{Service: "chat-model", Breaker: policy.Breaker{Forced: policy.ForcedOpen}}
			d.Dependencies["plain"] = policy.Dependency{}
			r := d.Routes["chat"]
			r.Fallback = &policy.Fallback{Status: tt.status, ContentType: "application/json", Body: "{}"}
			d.Routes["chat"] = r
		}, func(t *testing.T, b *bench) {
			b.chat(plainBody)
			b.chat(plainBody)
			require.NoError(t, testutil.GatherAndCompare(b.registry, strings.NewReader(fmt.Sprintf(`
# HELP gpuguard_degraded_total Requests answered by a degrade path; useful ones with a 2xx status.
# TYPE gpuguard_degraded_total counter
gpuguard_degraded_total{dependency="llm",kind="static",route="chat",useful="false"} %d
gpuguard_degraded_total{dependency="llm",kind="static",route="chat",useful="true"} %d
# HELP gpuguard_dependency_info 1 for each dependency, with the catalogue service it is.
# TYPE gpuguard_dependency_info gauge
gpuguard_dependency_info{dependency="llm",service="chat-model"} 1
gpuguard_dependency_info{dependency="plain",service="plain"} 1
`, tt.others, tt.useful)), "gpuguard_degraded_total", "gpuguard_dependency_info"))
		})
	}
}
