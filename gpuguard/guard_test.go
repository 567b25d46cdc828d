package gpuguard_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"holdfast/gpuguard"
	"holdfast/gpuguard/enginesim"
	"holdfast/gpuguard/gpuguardtest"
	"holdfast/gpuguard/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	plainBody  = `{"model":"demo-model","messages":[{"role":"user","content":"hello"}],"max_tokens":4}`
	goodAnswer = `{"choices":[{"message":{"content":"hi"}}]}`
)

func TestForcedOpenAnswersTheFallbackUntilReverted(t *testing.T) {
	t.Parallel()
	up := gpuguardtest.NewUpstream(t, gpuguardtest.JSON(http.StatusOK, goodAnswer))
	g := gpuguardtest.Start(t, gpuguardtest.Document(up.URL))
	require.JSONEq(t, goodAnswer, g.Chat(plainBody).Body)

	g.Apply(gpuguardtest.TripBreaker(t, 5*time.Minute))
	a := g.Chat(plainBody)
	require.Equal(t, http.StatusOK, a.Status)
	require.Equal(t, "static", a.Header.Get("X-Degraded"))
	require.Equal(t, policy.OutcomeBreakerOpen, a.Outcome())
	require.Equal(t, "false", a.Header.Get("X-Should-Retry"))
	require.Contains(t, a.Body, "please try again later")
	wait, err := strconv.Atoi(a.Header.Get("Retry-After"))
	require.NoError(t, err)
	require.InDelta(t, 300, wait, 5, "the lease that is left")
	require.EqualValues(t, 1, up.Calls())
	require.Equal(t, "forced_open", g.State().Breakers["llm"].State)
	require.Equal(t, []string{"trip"}, g.State().ActiveOverrides)

	g.Apply()
	require.JSONEq(t, goodAnswer, g.Chat(plainBody).Body, "one click takes it back")
	require.Equal(t, "closed", g.State().Breakers["llm"].State)
}

func TestFallbackStatusIsTheRoutes(t *testing.T) {
	t.Parallel()
	doc := gpuguardtest.Document("http://127.0.0.1:1")
	route := doc.Routes["chat"]
	route.Fallback = &policy.Fallback{Status: http.StatusServiceUnavailable, ContentType: "text/plain", Body: "later"}
	doc.Routes["chat"] = route
	g := gpuguardtest.Start(t, doc)
	g.Apply(gpuguardtest.TripBreaker(t, time.Minute))
	a := g.Chat(plainBody)
	require.Equal(t, http.StatusServiceUnavailable, a.Status)
	require.Equal(t, "text/plain", a.Header.Get("Content-Type"))
	require.Equal(t, "later", a.Body)
}

func TestWithoutFallbackForcedOpenIsRefused(t *testing.T) {
	t.Parallel()
	doc := gpuguardtest.Document("http://127.0.0.1:1")
	route := doc.Routes["chat"]
	route.Fallback = nil
	doc.Routes["chat"] = route
	g := gpuguardtest.Start(t, doc)
	g.Apply(gpuguardtest.TripBreaker(t, time.Minute))
	a := g.Chat(plainBody)
	require.Equal(t, http.StatusServiceUnavailable, a.Status)
	require.Contains(t, a.Body, `"code":"breaker_open"`)
	require.Empty(t, a.Header.Get("X-Degraded"))
}

func TestOverrideEndsByTheGatewaysOwnClock(t *testing.T) {
	t.Parallel()
	up := gpuguardtest.NewUpstream(t, gpuguardtest.JSON(http.StatusOK, goodAnswer))
	g := gpuguardtest.Start(t, gpuguardtest.Document(up.URL))
	g.Apply(gpuguardtest.TripBreaker(t, 150*time.Millisecond))
	require.Equal(t, policy.OutcomeBreakerOpen, g.Chat(plainBody).Outcome())
	require.Eventually(t, func() bool { return len(g.State().ActiveOverrides) == 0 }, 5*time.Second, 5*time.Millisecond,
		"without a request and without a server")
	require.JSONEq(t, goodAnswer, g.Chat(plainBody).Body)
	require.EqualValues(t, 2, g.Effective().Revision, "the revision is the server's to raise")
}

// A clock that jumps past the end between two timers must not leave the lease in force.
func TestOverrideEndsAtTheNextRequestWhenTheTimerIsLate(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	up := gpuguardtest.NewUpstream(t, gpuguardtest.JSON(http.StatusOK, goodAnswer))
	g := gpuguardtest.Start(t, gpuguardtest.Document(up.URL), func(o *gpuguard.Options) {
		o.Clock = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	g.Apply(gpuguardtest.TripBreaker(t, time.Hour))
	require.Equal(t, policy.OutcomeBreakerOpen, g.Chat(plainBody).Outcome())
	ahead.Store(int64(2 * time.Hour))
	require.JSONEq(t, goodAnswer, g.Chat(plainBody).Body)
}

func TestUpdatesAreFenced(t *testing.T) {
	t.Parallel()
	up := gpuguardtest.NewUpstream(t, gpuguardtest.JSON(http.StatusOK, goodAnswer))
	doc := gpuguardtest.Document(up.URL)
	g := gpuguardtest.Start(t, doc)
	raw, err := policy.Encode(doc)
	require.NoError(t, err)
	update := func(lineage string, revision int64, confirmed bool) error {
		return g.ApplyUpdate(policy.Update{Lineage: lineage, Revision: revision, Base: raw, LiveGateways: 1, LineageConfirmed: confirmed})
	}
	require.NoError(t, update(gpuguardtest.Lineage, 5, false))
	require.ErrorIs(t, update(gpuguardtest.Lineage, 4, true), gpuguard.ErrStaleRevision)
	require.ErrorIs(t, update("other", 9, false), gpuguard.ErrLineageNotConfirmed)
	require.NoError(t, update(gpuguardtest.Lineage, 5, false), "the same revision may come again")
	require.NoError(t, update("other", 1, true))
	require.EqualValues(t, 1, g.Effective().Revision)
}

func TestRefusedUpdateChangesNothing(t *testing.T) {
	t.Parallel()
	up := gpuguardtest.NewUpstream(t, gpuguardtest.JSON(http.StatusOK, goodAnswer))
	g := gpuguardtest.Start(t, gpuguardtest.Document(up.URL))
	before := g.Effective()
	err := g.TryApply(gpuguardtest.Override(t, "x", policy.RouteLimitPath("nowhere"), policy.Limit{RequestsPerSecond: 1}, time.Minute))
	require.ErrorContains(t, err, "nowhere")
	g.SetBase(func(d *policy.Document) { d.Pools["llm"] = policy.Pool{Dependency: "gone"} })
	require.ErrorContains(t, g.TryApply(), "gone")
	require.Equal(t, before, g.Effective())
	require.JSONEq(t, goodAnswer, g.Chat(plainBody).Body)
}

func TestPolicySwapUnderLoadLosesNoRequest(t *testing.T) {
	t.Parallel()
	up := gpuguardtest.NewUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		<-time.After(time.Millisecond)
		gpuguardtest.JSON(http.StatusOK, goodAnswer)(w, r)
	})
	g := gpuguardtest.Start(t, gpuguardtest.Document(up.URL))
	const workers, each = 8, 60
	var failed atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range each {
				if a, err := g.TryChat(plainBody); err != nil || a.Err != nil || a.Body != goodAnswer {
					failed.Add(1)
				}
			}
		})
	}
	stop := make(chan struct{})
	swapped := make(chan int)
	go func() {
		n := 0
		for ; ; n++ {
			select {
			case <-stop:
				swapped <- n
				return
			default:
				g.Apply(gpuguardtest.Override(t, "l", policy.GlobalLimitPath, policy.Limit{RequestsPerSecond: 1e6 + float64(n)}, time.Minute))
				<-time.After(time.Millisecond)
			}
		}
	}()
	wg.Wait()
	close(stop)
	require.Greater(t, <-swapped, 10)
	require.Zero(t, failed.Load())
	require.EqualValues(t, workers*each, g.State().Outcomes["llm"][policy.OutcomeOK])
	require.Zero(t, g.State().InFlight)
}

func TestStopDrains(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}), make(chan struct{})
	up := gpuguardtest.NewUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-release
		gpuguardtest.JSON(http.StatusOK, goodAnswer)(w, r)
	})
	g := gpuguardtest.Start(t, gpuguardtest.Document(up.URL))
	answered := make(chan gpuguardtest.Answer, 1)
	go func() {
		a, _ := g.TryChat(plainBody)
		answered <- a
	}()
	<-arrived
	stopped := make(chan error, 1)
	go func() { stopped <- g.Stop(context.Background()) }()
	require.Eventually(t, func() bool {
		c, err := net.DialTimeout("tcp", g.Addr(), time.Second)
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	}, 5*time.Second, 5*time.Millisecond, "no new connections")
	close(release)
	require.JSONEq(t, goodAnswer, (<-answered).Body)
	require.NoError(t, <-stopped)
	require.NoError(t, g.Stop(context.Background()), "again")
	require.ErrorIs(t, g.Start(context.Background()), gpuguard.ErrStarted)
}

func TestStopCutsWhatDoesNotEnd(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	up := gpuguardtest.NewUpstream(t, func(w http.ResponseWriter, r *http.Request) {
		gpuguardtest.Events("data: {}\n\n")(w, r)
		close(arrived)
		<-r.Context().Done()
	})
	g := gpuguardtest.Start(t, gpuguardtest.Document(up.URL), func(o *gpuguard.Options) { o.DrainTimeout = 50 * time.Millisecond })
	read := make(chan gpuguardtest.Answer, 1)
	go func() {
		a, _ := g.TryChat(`{"stream":true}`)
		read <- a
	}()
	<-arrived
	require.ErrorContains(t, g.Stop(context.Background()), "1 requests cut")
	require.Error(t, (<-read).Err, "the caller sees a cut")
	require.Zero(t, g.State().InFlight)
}

func TestAddressInUseIsSaidClearly(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	o := gpuguard.DefaultOptions()
	o.Addr = l.Addr().String()
	g, err := gpuguard.New(o)
	require.NoError(t, err)
	err = g.Start(t.Context())
	require.ErrorContains(t, err, l.Addr().String())
	require.ErrorContains(t, err, "choose another Addr")
	require.NoError(t, g.Stop(t.Context()))
}

func TestOptionsListEveryProblem(t *testing.T) {
	t.Parallel()
	_, err := gpuguard.New(gpuguard.Options{
		Addr: "nowhere", AdminAddr: "x", Name: "Bad Name", Policy: &policy.Document{}, Control: &gpuguard.Control{URL: "ftp://x"},
	})
	for _, want := range []string{"Addr", "AdminAddr", "Name", "Policy and Control", "Control.URL", "Control.Token", "DrainTimeout", "MaxHeaderBytes", "WriteTimeout"} {
		require.ErrorContains(t, err, want)
	}
	o := gpuguard.DefaultOptions()
	o.Policy = &policy.Document{Version: 99}
	_, err = gpuguard.New(o)
	require.ErrorContains(t, err, "version")
}

func TestStandalonePolicyIsServed(t *testing.T) {
	t.Parallel()
	up := gpuguardtest.NewUpstream(t, gpuguardtest.JSON(http.StatusOK, goodAnswer))
	doc := gpuguardtest.Document(up.URL)
	o := gpuguard.DefaultOptions()
	o.Addr, o.AdminAddr, o.Policy = "127.0.0.1:0", "", &doc
	g, err := gpuguard.New(o)
	require.NoError(t, err)
	require.NoError(t, g.Start(t.Context()))
	defer func() { require.NoError(t, g.Stop(context.Background())) }()
	require.Empty(t, g.AdminAddr())
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+g.Addr()+gpuguardtest.ChatPath, strings.NewReader(plainBody))
	require.NoError(t, err)
	r.Header.Set("X-Api-Key", gpuguardtest.Key)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
}

func TestRealEngineBehindTheGateway(t *testing.T) {
	t.Parallel()
	engine, url := gpuguardtest.Engine(t, func(o *enginesim.Options) { o.TimeScale = 50 })
	g := gpuguardtest.Start(t, gpuguardtest.Document(url))
	a := g.Chat(plainBody)
	require.Equal(t, http.StatusOK, a.Status, a.Body)
	require.Equal(t, policy.OutcomeOK, a.Outcome())
	a = g.Chat(strings.TrimSuffix(plainBody, "}") + `,"stream":true}`)
	require.NoError(t, a.Err)
	require.Contains(t, a.Body, "data: [DONE]")
	require.Equal(t, policy.OutcomeOK, a.Outcome())

	knobs := enginesim.DefaultKnobs()
	knobs.EmptyRatio, knobs.CutRatio = 0, 1
	require.NoError(t, engine.SetKnobs(knobs))
	a = g.Chat(strings.TrimSuffix(plainBody, "}") + `,"stream":true}`)
	require.ErrorIs(t, a.Err, io.ErrUnexpectedEOF, "a cut stays visible (R30)")
	require.EqualValues(t, 1, g.State().Outcomes["llm"][policy.OutcomeUpstreamCut])
	require.Equal(t, policy.OutcomeOK, g.Chat(plainBody).Outcome(), "cuts concern streams only")

	knobs.EmptyRatio, knobs.CutRatio = 1, 0
	require.NoError(t, engine.SetKnobs(knobs))
	var last gpuguardtest.Answer
	for range 6 {
		last = g.Chat(plainBody)
	}
	require.Equal(t, policy.OutcomeBreakerOpen, last.Outcome(), "empty answers are failures (INCIDENTS A)")
	require.EqualValues(t, 5, g.State().Outcomes["llm"][policy.OutcomeUpstreamEmpty])
}

func TestStreamingCallersGetTheFallbackAsAStream(t *testing.T) {
	t.Parallel()
	g := gpuguardtest.Start(t, gpuguardtest.Document("http://127.0.0.1:1"))
	g.Apply(gpuguardtest.TripBreaker(t, time.Minute))
	a := g.Chat(`{"stream":true}`)
	require.Equal(t, http.StatusOK, a.Status)
	require.Equal(t, "text/event-stream", a.Header.Get("Content-Type"))
	require.Equal(t, "static", a.Header.Get("X-Degraded"))
	require.True(t, strings.HasSuffix(a.Body, "data: [DONE]\n\n"))
	require.Contains(t, a.Body, `"delta":{"content":"please try again later"}`)
}
