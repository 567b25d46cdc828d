package controlclient

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"holdfast/gpuguard/policy"
)

func TestUpdateIsAppliedSavedAndAcknowledged(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		st := r.connected()
		require.Equal(t, "gateway=gw-1", st.query)
		require.Equal(t, "Bearer "+token, st.header.Get("Authorization"))
		require.Equal(t, "text/event-stream", st.header.Get("Accept"))
		require.Empty(t, st.header.Get("Last-Event-ID"))
		require.Zero(t, r.server.ackCount(), "there is nothing to acknowledge yet")

		r.deliver(st, update(3, trip(time.Minute)))
		got := r.gateway.last(t)
		require.EqualValues(t, 3, got.Revision)
		require.Equal(t, time.Now().Add(time.Minute), got.Overrides[0].Expires)

		ack := r.server.lastAck()
		require.Empty(t, cmp.Diff(policy.Ack{
			Gateway: "gw-1", Instance: "i-1", Version: "v1", Lineage: "l1", Revision: 3,
			Result: policy.AckApplied, ApplySeconds: ack.ApplySeconds, State: policy.State{InFlight: 7},
		}, ack, cmpopts.EquateEmpty()))

		info, err := os.Stat(filepath.Join(r.dir, LastKnownGoodFile))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		saved, err := LoadLastKnownGood(r.dir, time.Now())
		require.NoError(t, err)
		require.EqualValues(t, 3, saved.Revision)

		s := r.client.Status()
		require.True(t, s.Connected)
		require.Equal(t, "l1", s.Lineage)
		require.EqualValues(t, 3, s.Revision)
		require.Empty(t, s.StorageError)
	})
}

func TestHeartbeatEveryFiveSeconds(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.deliver(r.connected(), update(1))
		require.Equal(t, 1, r.server.ackCount())
		pass(time.Minute)
		require.Equal(t, 1+12, r.server.ackCount())
		require.Empty(t, r.server.streams, "one stream is enough")
	})
}

func TestHeartbeatGoesOnWithoutAStream(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		st := r.connected()
		r.deliver(st, update(1))
		r.server.set(func() {
			r.server.refuse = func(w http.ResponseWriter, req *http.Request) bool {
				if req.Method != http.MethodGet {
					return false
				}
				w.WriteHeader(http.StatusServiceUnavailable)
				return true
			}
		})
		close(st.out)
		pass(30 * time.Second)
		require.False(t, r.client.Status().Connected)
		require.GreaterOrEqual(t, r.server.ackCount(), 6, "the gateway is still a member")
	})
}

func TestReconnectsWithLastEventID(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		st := r.connected()
		r.deliver(st, update(3))
		close(st.out)
		start := time.Now()
		st = r.connected()
		require.Equal(t, "l1:3", st.header.Get("Last-Event-ID"))
		require.Less(t, time.Since(start), time.Second, "a restarted server is followed at once")
		require.True(t, r.client.Status().Connected)

		r.deliver(st, update(4))
		require.EqualValues(t, 4, r.client.Status().Revision)
	})
}

func TestSilenceOfFifteenSecondsReconnects(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		st := r.connected()
		r.deliver(st, update(1))
		pass(10 * time.Minute)
		require.Empty(t, r.server.streams, "comments keep a stream alive")

		r.server.set(func() { r.server.silent = true })
		silentAt := time.Now()
		st2 := r.connected()
		<-st.gone
		waited := time.Since(silentAt)
		require.GreaterOrEqual(t, waited, 10*time.Second)
		require.Less(t, waited, 16*time.Second)
		require.Equal(t, "l1:1", st2.header.Get("Last-Event-ID"))
		require.Contains(t, r.log.String(), "silent for 15s")
	})
}

func TestServerThatNeverAnswersIsLeft(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		st := r.connected()
		r.server.set(func() {
			r.server.refuse = func(_ http.ResponseWriter, req *http.Request) bool {
				<-req.Context().Done()
				return true
			}
		})
		close(st.out)
		pass(20 * time.Second)
		require.Contains(t, r.client.Status().LastError, "silent for 15s")
	})
}

// R07 for the control link: a server that is away for five minutes changes
// nothing but the age.
func TestR07_ServerAwayLeavesThePolicy(t *testing.T) {
	reg := prometheus.NewRegistry()
	inBubble(t, func(o *Options) { o.Registerer = reg }, func(r *rig) {
		st := r.connected()
		r.deliver(st, update(3, trip(time.Hour)))
		require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP gpuguard_control_connected 1 while the policy stream is open, else 0.
# TYPE gpuguard_control_connected gauge
gpuguard_control_connected 1
# HELP gpuguard_control_updates_total Policy updates received from the server, by result (applied, rejected).
# TYPE gpuguard_control_updates_total counter
gpuguard_control_updates_total{result="applied"} 1
gpuguard_control_updates_total{result="rejected"} 0
`), "gpuguard_control_connected", "gpuguard_control_updates_total"))

		attempts := 0
		r.server.set(func() {
			r.server.refuse = func(w http.ResponseWriter, req *http.Request) bool {
				if req.Method == http.MethodGet {
					attempts++ // under no lock: the stream loop makes one request at a time
				}
				w.WriteHeader(http.StatusBadGateway)
				return true
			}
		})
		close(st.out)
		pass(5 * time.Minute)
		require.Equal(t, 1, r.gateway.count(), "nothing was applied meanwhile")
		require.EqualValues(t, 3, r.client.Status().Revision)
		require.InDelta(t, 300, r.client.ageSeconds(), 1)
		require.Greater(t, attempts, 300/5, "waits are at most 5 s")
		require.Less(t, attempts, 300/5*3, "and grow up to there")

		r.server.set(func() { r.server.refuse = nil })
		back := time.Now()
		r.connected()
		require.LessOrEqual(t, time.Since(back), 5*time.Second)
	})
}

func TestLowerRevisionOfTheSameLineageIsRefused(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		st := r.connected()
		r.deliver(st, update(7))
		r.deliver(st, update(6))
		require.Equal(t, 1, r.gateway.count())
		ack := r.server.lastAck()
		require.Equal(t, policy.AckRejected, ack.Result)
		require.EqualValues(t, 7, ack.Revision, "the one in force")
		require.EqualValues(t, 6, ack.RejectedRevision)
		require.Contains(t, ack.Error, "revision 6 is lower than 7")
		require.EqualValues(t, 6, r.client.Status().RejectedRevision)

		saved, err := LoadLastKnownGood(r.dir, time.Now())
		require.NoError(t, err)
		require.EqualValues(t, 7, saved.Revision)

		r.deliver(st, update(8))
		ack = r.server.lastAck()
		require.Equal(t, policy.AckApplied, ack.Result)
		require.Empty(t, ack.Error)
		require.Zero(t, r.client.Status().RejectedRevision)
	})
}

func TestSameRevisionIsAppliedAgain(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		st := r.connected()
		r.deliver(st, update(7, trip(time.Minute)))
		pass(20 * time.Second)
		r.deliver(st, update(7, trip(40*time.Second)))
		require.Equal(t, 2, r.gateway.count())
		require.Equal(t, policy.AckApplied, r.server.lastAck().Result)
		require.Equal(t, time.Now().Add(40*time.Second), r.gateway.last(t).Overrides[0].Expires)
	})
}

func TestNewLineageNeedsConfirmation(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		st := r.connected()
		r.deliver(st, update(7))
		restored := update(2)
		restored.Lineage = "l2"
		r.deliver(st, restored)
		require.Equal(t, 1, r.gateway.count())
		ack := r.server.lastAck()
		require.Equal(t, policy.AckRejected, ack.Result)
		require.Equal(t, "l1", ack.Lineage)
		require.Contains(t, ack.Error, `lineage "l2" is not the one in force ("l1")`)

		restored.LineageConfirmed = true
		r.deliver(st, restored)
		require.Equal(t, 2, r.gateway.count())
		require.Equal(t, "l2", r.server.lastAck().Lineage)
		require.EqualValues(t, 2, r.server.lastAck().Revision, "revisions of another lineage do not compare")
	})
}

func TestFirstLineageNeedsNoConfirmation(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.deliver(r.connected(), update(1))
		require.Equal(t, policy.AckApplied, r.server.lastAck().Result)
	})
}

func TestBadUpdatesAreRejectedAndTheOldStays(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		change func(*policy.Update)
		want   string
	}{
		"unknown field in the base": {func(u *policy.Update) {
			u.Base = []byte(strings.Replace(baseJSON, `"pools"`, `"poools":{},"pools"`, 1))
		}, `poools: unknown key: did you mean "pools"?`},
		"invalid base": {func(u *policy.Update) {
			u.Base = []byte(strings.Replace(baseJSON, `"pool":"main"`, `"pool":"mian"`, 1))
		}, `routes.chat.pool: no pool is named "mian"`},
		"override of an absent name": {func(u *policy.Update) {
			o := trip(time.Minute)
			o.Path = policy.BreakerForcedPath("gone")
			u.Overrides = []policy.Override{o}
		}, `dependencies.gone.breaker.forced: no dependency is named "gone"`},
		"no lineage":  {func(u *policy.Update) { u.Lineage = "" }, "lineage is empty"},
		"no revision": {func(u *policy.Update) { u.Revision = 0 }, "revision 0: want 1 or more"},
		"no members":  {func(u *policy.Update) { u.LiveGateways = 0 }, "live_gateways 0: want 1 or more"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(r *rig) {
				st := r.connected()
				r.deliver(st, update(7))
				bad := update(8)
				tc.change(&bad)
				r.deliver(st, bad)
				require.Equal(t, 1, r.gateway.count())
				ack := r.server.lastAck()
				require.Equal(t, policy.AckRejected, ack.Result)
				require.EqualValues(t, 7, ack.Revision)
				require.Equal(t, bad.Revision, ack.RejectedRevision)
				require.Contains(t, ack.Error, tc.want)
			})
		})
	}
}

func TestUnreadableUpdateIsRejectedByItsEventID(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		st := r.connected()
		r.deliver(st, update(7))
		st.send("id: l1:8\nevent: policy\ndata: {\"lineage\": \"l1\",\ndata: \"epoch\": 9}\n\n")
		synctest.Wait()
		ack := r.server.lastAck()
		require.Equal(t, policy.AckRejected, ack.Result)
		require.EqualValues(t, 8, ack.RejectedRevision)
		require.Contains(t, ack.Error, "epoch: unknown key")
	})
}

func TestApplyErrorRejects(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		st := r.connected()
		r.deliver(st, update(7))
		r.gateway.mu.Lock()
		r.gateway.fail = errors.New("pools.main.credential: LLM_API_KEY is not set")
		r.gateway.mu.Unlock()
		r.deliver(st, update(8))
		ack := r.server.lastAck()
		require.Equal(t, policy.AckRejected, ack.Result)
		require.EqualValues(t, 7, ack.Revision)
		require.Equal(t, "pools.main.credential: LLM_API_KEY is not set", ack.Error)
		saved, err := LoadLastKnownGood(r.dir, time.Now())
		require.NoError(t, err)
		require.EqualValues(t, 7, saved.Revision, "what was not applied is not known good")
	})
}

func TestLongReasonsAreShortened(t *testing.T) {
	t.Parallel()
	require.LessOrEqual(t, len(shorten(strings.Repeat("ä", 5000))), 4<<10+3)
	require.Equal(t, "short", shorten("short"))
}

func TestMembersApplyAnew(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		st := r.connected()
		st.send("event: members\ndata: {\"live_gateways\": 2}\n\n") // nothing to apply it to
		synctest.Wait()
		require.Zero(t, r.gateway.count())

		r.deliver(st, update(7))
		st.send("event: members\ndata: {\"live_gateways\": 3}\n\n")
		synctest.Wait()
		require.Equal(t, 2, r.gateway.count())
		require.Equal(t, 3, r.gateway.last(t).LiveGateways)
		require.EqualValues(t, 7, r.gateway.last(t).Revision)
		require.Equal(t, policy.AckApplied, r.server.lastAck().Result)

		for _, data := range []string{`{"live_gateways": 3}`, `{"live_gateways": 0}`, `{"live": 1}`, `x`} {
			st.send("event: members\ndata: " + data + "\n\n")
		}
		st.send("event: from-the-future\ndata: {}\n\n")
		synctest.Wait()
		require.Equal(t, 2, r.gateway.count(), "neither the same number nor nonsense applies anew")

		saved, err := LoadLastKnownGood(r.dir, time.Now())
		require.NoError(t, err)
		require.Equal(t, 3, saved.LiveGateways)
	})
}

func TestAcknowledgementIsTriedAgain(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		st := r.connected()
		r.server.set(func() {
			r.server.refuse = func(w http.ResponseWriter, req *http.Request) bool {
				if req.Method != http.MethodPost {
					return false
				}
				w.Header().Set("Content-Type", "application/problem+json")
				w.WriteHeader(http.StatusServiceUnavailable)
				_, _ = w.Write([]byte(`{"title":"database is away","detail":"try again"}`))
				return true
			}
		})
		r.deliver(st, update(7))
		require.Zero(t, r.server.ackCount())
		require.Contains(t, r.client.Status().AckError, "503 Service Unavailable: database is away: try again")
		r.server.set(func() { r.server.refuse = nil })
		pass(time.Second)
		require.EqualValues(t, 7, r.server.lastAck().Revision, "before the next heartbeat is due")
		require.Empty(t, r.client.Status().AckError)
	})
}

func TestHeldPolicyIsResumedAndFenced(t *testing.T) {
	held := update(7)
	inBubble(t, func(o *Options) { o.Held = &held }, func(r *rig) {
		st := r.connected()
		require.Equal(t, "l1:7", st.header.Get("Last-Event-ID"))
		require.EqualValues(t, 7, r.server.lastAck().Revision, "a restarted gateway is a member at once")
		r.deliver(st, update(6))
		require.Zero(t, r.gateway.count())
		require.Equal(t, policy.AckRejected, r.server.lastAck().Result)
	})
}

func TestRefusalsExplainThemselves(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		answer func(w http.ResponseWriter)
		want   string
	}{
		"unauthorized": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusUnauthorized) }, "is the gateway token right"},
		"redirect": {func(w http.ResponseWriter) {
			w.Header().Set("Location", "http://elsewhere.test/")
			w.WriteHeader(http.StatusFound)
		}, "redirects are not followed"},
		"not a stream": {func(w http.ResponseWriter) { w.Header().Set("Content-Type", "text/html") }, "is it a holdfast server?"},
		"problem": {func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusConflict)
			_, _ = w.Write([]byte(`{"title":"gateway name is taken","detail":"by\ninstance i-9"}`))
		}, "409 Conflict: gateway name is taken: by instance i-9"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(o *Options) { o.Gateway = "gw-2" }, func(r *rig) {
				st := r.connected()
				r.server.set(func() {
					r.server.refuse = func(w http.ResponseWriter, _ *http.Request) bool { tc.answer(w); return true }
				})
				close(st.out)
				pass(time.Second)
				require.Contains(t, r.client.Status().LastError, tc.want)
			})
		})
	}
}

func TestNobodyListening(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.connected()
		require.NoError(t, r.server.http.Close())
		pass(time.Minute)
		require.Contains(t, r.client.Status().LastError, "connection refused")
		require.Equal(t, 1, strings.Count(r.log.String(), `level=WARN msg="policy stream is down: the policy in force stays" error="Get`), "one reason is told once")
	})
}

func TestStorageFailureLeavesTheDataPath(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		st := r.connected()
		require.NoError(t, os.RemoveAll(r.dir))
		r.deliver(st, update(7))
		require.Equal(t, 1, r.gateway.count())
		require.Equal(t, policy.AckApplied, r.server.lastAck().Result)
		require.NotEmpty(t, r.client.Status().StorageError)

		require.NoError(t, os.Mkdir(r.dir, 0o700))
		r.deliver(st, update(8))
		require.Empty(t, r.client.Status().StorageError)
	})
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	good := Options{URL: "https://h.example", Token: token, Gateway: "gw-1", Apply: func(context.Context, policy.Update) error { return nil }}
	_, err := New(good)
	require.NoError(t, err)
	for want, change := range map[string]func(*Options){
		"control URL is empty":   func(o *Options) { o.URL = "" },
		"absolute http or https": func(o *Options) { o.URL = "h.example" },
		"user information":       func(o *Options) { o.URL = "https://u:canary@h.example" },
		"query or a fragment":    func(o *Options) { o.URL = "https://h.example?x=1" },
		"control token is empty": func(o *Options) { o.Token = "" },
		"white space":            func(o *Options) { o.Token = "canary\n" },
		"gateway name":           func(o *Options) { o.Gateway = "GW 1" },
		"Apply is nil":           func(o *Options) { o.Apply = nil },
		"state folder":           func(o *Options) { o.StateDir = "/dev/null/x" },
	} {
		o := good
		change(&o)
		_, err := New(o)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "canary")
	}
	reg := prometheus.NewRegistry()
	good.Registerer = reg
	_, err = New(good)
	require.NoError(t, err)
	_, err = New(good)
	require.ErrorContains(t, err, "metrics of the control link", "two clients cannot share a registry")
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	for range 200 {
		var b backoff
		for i, most := range []int64{250, 500, 1000, 2000, 4000, 5000, 5000} {
			ms := b.next().Milliseconds()
			require.LessOrEqual(t, ms, most, "attempt %d", i)
			require.GreaterOrEqual(t, ms, most/2, "attempt %d", i)
		}
		b.reset()
		require.LessOrEqual(t, b.next(), backoffFirst)
	}
}
