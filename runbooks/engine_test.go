package runbooks_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"holdfast/actions"
	"holdfast/gpuguard/signals"
	"holdfast/runbooks"
	"holdfast/runbooks/runbookstest"
	"holdfast/strict"
)

func TestRunGoesFromStartToEnd(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.metrics.Answer(0.23)
	run := f.launch()
	require.Equal(t, runbooks.StatusWaiting, run.Status)
	require.Equal(t, []string{"run", "skip", "stop"}, run.Answers(0))
	require.Empty(t, run.Answers(1))
	require.Empty(t, f.actions.Started(), "nothing is done before a person presses")

	run = f.answer(run.ID, "run")
	require.Equal(t, runbooks.StepRunning, run.Steps[0].Status)
	require.Equal(t, &alice, run.Steps[0].PressedBy)
	require.Equal(t, "action001", run.Steps[0].ActionRun)
	asked := f.actions.Started()
	require.Len(t, asked, 1)
	require.JSONEq(t, `{"target":"global","requests_per_second":8}`, string(asked[0].Params))
	require.Equal(t, "runbook:"+run.ID+":limit:1", asked[0].Key)
	require.Equal(t, "runbook Short, step 1/6: Limit to 8", asked[0].Reason)
	require.Equal(t, 10*time.Minute, asked[0].TTL)
	require.Equal(t, "inc1", asked[0].IncidentID)
	require.Equal(t, alice, asked[0].Actor)

	f.tick(2 * time.Second)
	require.Empty(t, f.metrics.Queries(), "not judged before it is verified")
	f.actions.Verify("action001")
	f.tick(2 * time.Second)
	run = f.run(run.ID)
	require.InDelta(t, 0.23, *run.Steps[0].Value, 0)
	require.Equal(t, "23 % (want < 5 %)", run.Steps[0].Detail)
	require.Equal(t, []string{`errors{service="llm"}`}, f.metrics.Queries())
	f.metrics.Answer(0.01)
	f.tick(2 * time.Second)
	run = f.run(run.ID)
	require.Equal(t, runbooks.StepPassed, run.Steps[0].Status)

	require.Equal(t, runbooks.StepPassed, run.Steps[1].Status, "the queue was short at once")
	require.Equal(t, []string{"found", "lost"}, run.Answers(2))
	run = f.answer(run.ID, "found")
	require.Equal(t, "action002", run.Steps[3].ActionRun, "an automatic action asks nobody")
	require.Equal(t, alice, f.actions.Started()[1].Actor)
	f.actions.Verify("action002")
	f.tick(2 * time.Second)
	run = f.run(run.ID)
	require.Equal(t, runbooks.StepPassed, run.Steps[3].Status)
	require.Equal(t, f.store.Now().Add(5*time.Minute), run.NextAt)
	f.tick(5*time.Minute - time.Second)
	require.Equal(t, runbooks.StepRunning, f.run(run.ID).Steps[4].Status)
	f.tick(time.Second)
	run = f.run(run.ID)
	require.Equal(t, runbooks.StatusSucceeded, run.Status)
	require.Equal(t, 6, run.Current)
	require.True(t, run.NextAt.IsZero())
	require.Equal(t, []runbooks.EventKind{
		runbooks.EventStarted, runbooks.EventAsked, runbooks.EventAnswered, runbooks.EventStep, runbooks.EventStep, runbooks.EventAsked,
		runbooks.EventAnswered, runbooks.EventStep, runbooks.EventStep, runbooks.EventStep, runbooks.EventFinished,
	}, f.store.Kinds(run.ID))
	events := f.store.Events()
	require.Equal(t, "Short: finished after 5m8s: 6 passed", events[len(events)-1].Text)
	require.Equal(t, run, events[len(events)-1].Run, "an event carries the run as it is afterwards")
}

func TestLaunchRefusesNamingTheField(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*runbooks.StartRequest)
		want   error
		text   string
	}{
		"unknown runbook":   {func(r *runbooks.StartRequest) { r.Runbook = "shrot" }, runbooks.ErrUnknownRunbook, `did you mean "short"?`},
		"missing parameter": {func(r *runbooks.StartRequest) { r.Params = nil }, runbooks.ErrInvalid, "params.service: is missing"},
		"blank parameter":   {func(r *runbooks.StartRequest) { r.Params["service"] = " " }, runbooks.ErrInvalid, "params.service: is missing"},
		"unknown parameter": {func(r *runbooks.StartRequest) { r.Params["servise"] = "llm" }, runbooks.ErrInvalid, `params.servise: no parameter is named "servise": did you mean "service"?`},
		"odd name":          {func(r *runbooks.StartRequest) { r.Params["service"] = `x"} or up{a="` }, runbooks.ErrInvalid, "params.service: is"},
		"no number":         {func(r *runbooks.StartRequest) { r.Params["rate"] = "many" }, runbooks.ErrInvalid, `params.rate: is "many": want a number`},
		"short key":         {func(r *runbooks.StartRequest) { r.Key = "k" }, runbooks.ErrInvalid, "key: is 1 bytes long"},
		"nobody":            {func(r *runbooks.StartRequest) { r.Actor = actions.Actor{} }, runbooks.ErrInvalid, "actor: is missing"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			req := f.request()
			tt.change(&req)
			run, err := f.engine.Launch(t.Context(), req)
			require.ErrorIs(t, err, tt.want)
			require.ErrorContains(t, err, tt.text)
			require.Empty(t, run.ID)
			if errors.Is(err, runbooks.ErrInvalid) {
				var fields strict.Errors
				require.ErrorAs(t, err, &fields)
			}
			require.Empty(t, f.store.Events())
		})
	}
}

func TestLaunchChecksTheQueriesItMakes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	e, err := runbooks.NewEngine(runbooks.Options{
		Store: f.store, Actions: f.actions, Library: f.library,
		CheckQuery: func(q string) error {
			if strings.Contains(q, "odd") {
				return errors.New("1:1: no")
			}
			return nil
		},
	})
	require.NoError(t, err)
	req := f.request()
	req.Params["service"] = "odd"
	_, err = e.Launch(t.Context(), req)
	require.ErrorIs(t, err, runbooks.ErrInvalid)
	require.ErrorContains(t, err, "params: make the query of step limit impossible: 1:1: no")
}

func TestNewEngineRefusesALibraryThatDoesNotFit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, err := runbooks.NewEngine(runbooks.Options{Store: f.store, Actions: runbookstest.NewActions(f.store.Now), Library: f.library})
	require.ErrorContains(t, err, `short.yaml:14: steps[0].action: no action is named "set_rate_limit"`)
	require.ErrorContains(t, err, "steps[3].action", "all problems at once")
	_, err = runbooks.NewEngine(runbooks.Options{})
	require.Error(t, err)
}

func TestOneKeyStartsOneRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	req := f.request()
	var wg sync.WaitGroup
	ids, errs := make([]string, 20), make([]error, 20)
	for i := range ids {
		wg.Go(func() {
			run, err := f.engine.Launch(context.Background(), req)
			ids[i], errs[i] = run.ID, err
		})
	}
	wg.Wait()
	first := 0
	for i, err := range errs {
		require.Equal(t, ids[0], ids[i])
		if err == nil {
			first++
			continue
		}
		require.ErrorIs(t, err, runbooks.ErrDuplicate)
		require.ErrorContains(t, err, "by Alice at 12:00:00 UTC")
	}
	require.Equal(t, 1, first)
	other := req
	other.Params = map[string]string{"service": "embeddings"}
	run, err := f.engine.Launch(t.Context(), other)
	require.ErrorIs(t, err, runbooks.ErrDuplicate)
	require.ErrorContains(t, err, "for something else")
	require.Empty(t, run.ID, "the first run must not be taken for the answer")
}

func TestWhoMayNotIsRefusedAndRecorded(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	f := newFixture(t)
	req := f.request()
	req.Actor = bob
	_, err := f.engine.Launch(ctx, req)
	require.ErrorIs(t, err, runbooks.ErrForbidden)
	require.ErrorContains(t, err, "Bob may not start the runbook short, which needs the role responder")
	run := f.launch()
	_, err = f.engine.Answer(ctx, run.ID, runbooks.AnswerRequest{Step: "limit", Attempt: 1, Answer: "run", Actor: bob})
	require.ErrorIs(t, err, runbooks.ErrForbidden)
	_, err = f.engine.Cancel(ctx, run.ID, bob)
	require.ErrorIs(t, err, runbooks.ErrForbidden)
	require.Equal(t, runbooks.StatusWaiting, f.run(run.ID).Status)

	var denied []runbooks.Event
	for _, e := range f.store.Events() {
		if e.Kind == runbooks.EventDenied {
			denied = append(denied, e)
		}
	}
	require.Len(t, denied, 3)
	require.Empty(t, denied[0].Run.ID, "it never came to be")
	require.Equal(t, "short", denied[0].Run.Runbook.ID)
	require.Equal(t, run.ID, denied[1].Run.ID)
	require.Equal(t, "limit", denied[1].Step)
	for _, e := range denied {
		require.Equal(t, bob, e.Actor)
		require.NotEmpty(t, e.Reason)
		require.False(t, e.Thread)
	}
}

func TestTheSecondAnswerSaysWhoWasFirst(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	f := newFixture(t)
	f.store.SetRole(bob.PersonID, "responder")
	run := f.launch()
	req := runbooks.AnswerRequest{Step: "limit", Attempt: 1, Answer: "run", Actor: alice}
	_, err := f.engine.Answer(ctx, run.ID, req)
	require.NoError(t, err)
	f.store.Advance(time.Minute)
	req.Actor, req.Answer = bob, "skip"
	got, err := f.engine.Answer(ctx, run.ID, req)
	require.ErrorIs(t, err, runbooks.ErrWrongState)
	require.ErrorContains(t, err, `Alice answered "run" to step limit at 12:00:00 UTC`)
	require.Equal(t, run.ID, got.ID, "with the run as it is")
	_, err = f.engine.Answer(ctx, "absent", req)
	require.ErrorIs(t, err, runbooks.ErrNotFound)
	req.Note = strings.Repeat("x", 501)
	_, err = f.engine.Answer(ctx, run.ID, req)
	require.ErrorIs(t, err, runbooks.ErrInvalid)
}

func TestTwoPeoplePressAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	run := f.launch()
	var wg sync.WaitGroup
	errs := make([]error, 10)
	for i := range errs {
		wg.Go(func() {
			_, errs[i] = f.engine.Answer(context.Background(), run.ID, runbooks.AnswerRequest{Step: "limit", Attempt: 1, Answer: "run", Actor: alice})
		})
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
			continue
		}
		require.ErrorIs(t, err, runbooks.ErrWrongState)
	}
	require.Equal(t, 1, won)
	f.tick(0)
	require.Len(t, f.actions.Started(), 1)
}

func TestALeaseInTheWayIsReportedAndRetried(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	run := f.launch()
	f.actions.Refuse(&actions.LeasedError{Lease: actions.LeaseRef{Path: "limits.global", Owner: "Bob", Reason: "sale", Expires: f.store.Now().Add(time.Hour)}})
	run = f.answer(run.ID, "run")
	require.Equal(t, runbooks.StepFailed, run.Steps[0].Status)
	require.Equal(t, runbooks.StatusWaiting, run.Status)
	require.Equal(t, "limits.global is leased by Bob until 2026-03-01T13:00:00Z (sale)", run.Steps[0].Detail)
	require.Equal(t, []string{"retry", "skip", "stop"}, run.Answers(0))
	f.actions.Refuse(nil)
	run = f.answer(run.ID, "retry")
	require.Equal(t, 2, run.Steps[0].Attempt)
	require.Equal(t, "runbook:"+run.ID+":limit:2", f.actions.Started()[0].Key)
	require.Equal(t, runbooks.StepRunning, run.Steps[0].Status)
}

func TestARetryFollowsWhatIsInForceAlready(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.metrics.Answer(0.5)
	run := f.launch()
	f.answer(run.ID, "run")
	f.actions.Verify("action001")
	f.tick(2 * time.Second)
	f.tick(time.Minute)
	run = f.run(run.ID)
	require.Equal(t, runbooks.StepFailed, run.Steps[0].Status)
	f.metrics.Answer(0.01)
	run = f.answer(run.ID, "retry")
	require.Equal(t, runbooks.StepPassed, run.Steps[0].Status)
	require.Len(t, f.actions.Started(), 1, "no second action while the first holds its path")

	// One that is over is started anew.
	f = newFixture(t)
	run = f.launch()
	f.answer(run.ID, "run")
	f.actions.Change("action001", func(r *actions.Run) { r.Status, r.EndDetail = actions.StatusFailed, "rejected" })
	f.tick(2 * time.Second)
	require.Equal(t, "rejected", f.run(run.ID).Steps[0].Detail)
	run = f.answer(run.ID, "retry")
	require.Len(t, f.actions.Started(), 2)
	require.Equal(t, "action002", run.Steps[0].ActionRun)
}

func TestWhatIsOldIsNotStartedAnyMore(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	run := f.launch()
	_, err := f.engine.Answer(t.Context(), run.ID, runbooks.AnswerRequest{Step: "limit", Attempt: 1, Answer: "run", Actor: alice})
	require.NoError(t, err)
	f.tick(11 * time.Minute) // the server was away for longer than the lease
	run = f.run(run.ID)
	require.Equal(t, runbooks.StepFailed, run.Steps[0].Status)
	require.Contains(t, run.Steps[0].Detail, "too late now")
	require.Empty(t, f.actions.Started())
}

func TestALateStartHasItsWholeTime(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	run := f.launch()
	_, err := f.engine.Answer(t.Context(), run.ID, runbooks.AnswerRequest{Step: "limit", Attempt: 1, Answer: "run", Actor: alice})
	require.NoError(t, err)
	f.tick(5 * time.Minute) // longer than the step's time, not than its lease
	run = f.run(run.ID)
	require.Len(t, f.actions.Started(), 1, "a press that was accepted takes effect")
	require.Equal(t, f.store.Now().Add(time.Minute), run.Steps[0].Deadline)
}

func TestWithoutDataNothingPasses(t *testing.T) {
	t.Parallel()
	tests := map[string]func(*fixture){
		"no metrics": func(f *fixture) {
			e, err := runbooks.NewEngine(runbooks.Options{Store: f.store, Actions: f.actions, Library: f.library})
			require.NoError(f.t, err)
			f.engine = e
		},
		"no answer":     func(f *fixture) { f.metrics.Fail(errors.New("connection refused")) },
		"empty answers": func(f *fixture) { f.metrics.Answer() },
	}
	for name, prepare := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			prepare(f)
			run := f.launch()
			run = f.answer(run.ID, "skip")
			require.Equal(t, runbooks.StepSkipped, run.Steps[0].Status)
			require.Equal(t, "skipped by Alice", run.Steps[0].Detail)
			f.tick(29 * time.Second)
			require.Equal(t, runbooks.StepRunning, f.run(run.ID).Steps[1].Status)
			f.tick(2 * time.Second)
			run = f.run(run.ID)
			require.Equal(t, runbooks.StepInconclusive, run.Steps[1].Status)
			require.Contains(t, run.Steps[1].Detail, "no data")
			require.Nil(t, run.Steps[1].Value)
			require.Equal(t, runbooks.StatusWaiting, run.Status)
			run = f.answer(run.ID, "stop")
			require.Equal(t, runbooks.StatusFailed, run.Status)
			require.Equal(t, "Alice", run.EndedBy)
			require.Equal(t, runbooks.StepInconclusive, run.Steps[1].Status, "how far it came stays to be seen")
		})
	}
}

// A hanging Prometheus costs one step its data, and no other run its turn.
func TestAHangingQueryEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		e, err := runbooks.NewEngine(runbooks.Options{Store: f.store, Actions: f.actions, Library: f.library, Metrics: hanging{}})
		require.NoError(t, err)
		f.engine = e
		run := f.launch()
		began := time.Now()
		run = f.answer(run.ID, "skip")
		require.Equal(t, 3*time.Second, time.Since(began))
		require.Contains(t, run.Steps[1].Detail, "deadline exceeded")
	})
}

type hanging struct{}

func (hanging) Query(ctx context.Context, _ string, _ time.Time) ([]signals.Sample, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestCancelLeavesLeasesAndNamesThem(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	f := newFixture(t)
	run := f.launch()
	f.answer(run.ID, "run")
	f.actions.Verify("action001")
	f.actions.Change("action001", func(r *actions.Run) { r.ExpiresAt = f.store.Now().Add(10 * time.Minute) })
	f.tick(2 * time.Second)
	got, err := f.engine.Cancel(ctx, run.ID, alice)
	require.NoError(t, err)
	require.Equal(t, runbooks.StatusCancelled, got.Status)
	require.Equal(t, runbooks.StepSkipped, got.Steps[0].Status)
	require.Equal(t, 6, got.Current)
	events := f.store.Events()
	require.Equal(t, "Short: cancelled by Alice; these stay in force until they are reverted or expire: set rate limit (run action001, until 12:10:00 UTC)", events[len(events)-1].Text)
	require.Equal(t, alice, events[len(events)-1].Actor)
	again, err := f.engine.Cancel(ctx, run.ID, alice)
	require.ErrorIs(t, err, runbooks.ErrWrongState)
	require.ErrorContains(t, err, "as cancelled by Alice")
	require.Equal(t, run.ID, again.ID)
	_, err = f.engine.Cancel(ctx, "absent", alice)
	require.ErrorIs(t, err, runbooks.ErrNotFound)

	run = f.launch()
	_, err = f.engine.Cancel(ctx, run.ID, alice)
	require.NoError(t, err)
	events = f.store.Events()
	require.Equal(t, "Short: cancelled by Alice; no measure of it is in force", events[len(events)-1].Text)
}

// The action is accepted and the run cancelled in the same moment: the run must
// still say which lease it left behind.
func TestAnActionStartedWhileTheRunIsCancelledIsKept(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	run := f.launch()
	_, err := f.engine.Answer(t.Context(), run.ID, runbooks.AnswerRequest{Step: "limit", Attempt: 1, Answer: "run", Actor: alice})
	require.NoError(t, err)
	f.actions.SetFault(func(op string) error {
		if op == "ran" {
			_, err := f.engine.Cancel(context.Background(), run.ID, alice)
			require.NoError(t, err)
		}
		return nil
	})
	f.tick(0)
	got := f.run(run.ID)
	require.Equal(t, runbooks.StatusCancelled, got.Status)
	require.Equal(t, "action001", got.Steps[0].ActionRun)
	events := f.store.Events()
	require.Contains(t, events[len(events)-1].Text, "its action was accepted in the moment in which the run ended, and stays: set rate limit (run action001)")
}

func TestTheVersionIsFrozenInTheRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	run := f.launch()
	f.library = load(t, "short.yaml", strings.Replace(short, "Limit to ${rate}", "Shape to ${rate}", 1))
	f.restart()
	now, err := f.engine.Runbook("short")
	require.NoError(t, err)
	got := f.run(run.ID)
	require.NotEqual(t, now.Version, got.Runbook.Version)
	require.Equal(t, "Limit to 8", got.Filled(0).Title)
}

func TestChecksWriteNoOftenerThanTheyLook(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.metrics.Answer(50)
	run := f.launch()
	f.answer(run.ID, "skip")
	before := f.store.Saves()
	for range 40 {
		f.tick(500 * time.Millisecond)
	}
	require.Equal(t, before+10, f.store.Saves(), "one look every two seconds in twenty")

	f = newFixture(t)
	run = f.launch()
	f.answer(run.ID, "run")
	before = f.store.Saves()
	for range 40 {
		f.tick(500 * time.Millisecond)
	}
	require.Equal(t, before, f.store.Saves(), "an action run that does not move writes nothing")
}

func TestOneStuckRunStopsNoOther(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	stuck, other := f.request(), f.request()
	a, err := f.engine.Launch(t.Context(), stuck)
	require.NoError(t, err)
	b, err := f.engine.Launch(t.Context(), other)
	require.NoError(t, err)
	failing := errors.New("disk full")
	f.store.SetFault(func(op string) error {
		if op == "run:"+a.ID {
			return failing
		}
		return nil
	})
	_, err = f.engine.Tick(t.Context())
	require.ErrorIs(t, err, failing)
	f.store.SetFault(nil)
	require.Equal(t, runbooks.StatusWaiting, f.run(b.ID).Status)
	require.Equal(t, runbooks.StatusRunning, f.run(a.ID).Status)
	f.tick(5 * time.Second)
	require.Equal(t, runbooks.StatusWaiting, f.run(a.ID).Status)
}

func TestListSelects(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first := f.launch()
	f.store.Advance(time.Minute)
	req := f.request()
	req.IncidentID = "inc2"
	second, err := f.engine.Launch(t.Context(), req)
	require.NoError(t, err)
	_, err = f.engine.Cancel(t.Context(), first.ID, alice)
	require.NoError(t, err)
	ids := func(filter runbooks.Filter) []string {
		runs, err := f.engine.List(t.Context(), filter)
		require.NoError(t, err)
		ids := []string{}
		for _, r := range runs {
			ids = append(ids, r.ID)
		}
		return ids
	}
	require.Equal(t, []string{second.ID, first.ID}, ids(runbooks.Filter{Limit: 10}))
	require.Equal(t, []string{second.ID}, ids(runbooks.Filter{Limit: 1}))
	require.Equal(t, []string{first.ID}, ids(runbooks.Filter{IncidentID: "inc1", Limit: 10}))
	require.Equal(t, []string{second.ID}, ids(runbooks.Filter{Live: true, Limit: 10}))
	require.Equal(t, []string{first.ID}, ids(runbooks.Filter{Before: second.StartedAt, Limit: 10}))
	require.Len(t, f.engine.Runbooks(), 1)
	require.Len(t, f.engine.Suggest(nil, map[string]string{"runbook": "short"}), 1)
}

func TestStartedEngineMovesRunsAndStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := runbookstest.NewStore(time.Now)
		store.SetRole(alice.PersonID, "responder")
		fake := runbookstest.NewActions(time.Now, specs(t)...)
		metrics := &runbookstest.Metrics{}
		metrics.Answer(0.01)
		registry := prometheus.NewRegistry()
		engine, err := runbooks.NewEngine(runbooks.Options{
			Store: store, Actions: fake, Metrics: metrics, Library: load(t, "short.yaml", short), Registerer: registry,
		})
		require.NoError(t, err)
		engine.Start(t.Context())
		engine.Start(t.Context())
		defer engine.Stop()

		run, err := engine.Launch(t.Context(), runbooks.StartRequest{Runbook: "short", Params: map[string]string{"service": "llm"}, Actor: alice, Key: "12345678"})
		require.NoError(t, err)
		synctest.Wait()
		find := func() runbooks.Run {
			got, err := engine.Find(t.Context(), run.ID)
			require.NoError(t, err)
			return got
		}
		require.Equal(t, runbooks.StatusWaiting, find().Status, "woken by the commit, without waiting for the poll")
		answer := func(step, word string) {
			_, err := engine.Answer(t.Context(), run.ID, runbooks.AnswerRequest{Step: step, Attempt: 1, Answer: word, Actor: alice})
			require.NoError(t, err)
			synctest.Wait()
		}
		answer("limit", "run")
		fake.Verify(find().Steps[0].ActionRun)
		<-time.After(3 * time.Second)
		synctest.Wait()
		require.Equal(t, runbooks.StepAsking, find().Steps[2].Status)
		answer("found", "lost")
		require.Equal(t, runbooks.StatusSucceeded, find().Status)
		engine.Stop()
		engine.Stop()
		require.InDelta(t, 1, value(t, registry, "holdfast_runbook_events_total", "finished"), 0)
		require.InDelta(t, 2, value(t, registry, "holdfast_runbook_steps_total", "skipped"), 0)
		problems, err := testutil.GatherAndLint(registry)
		require.NoError(t, err)
		require.Empty(t, problems)
	})
}

// value is that of the series with the label value.
func value(t *testing.T, g prometheus.Gatherer, name, label string) float64 {
	t.Helper()
	families, err := g.Gather()
	require.NoError(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if f.GetName() == name && l.GetValue() == label {
					return m.GetCounter().GetValue()
				}
			}
		}
	}
	return 0
}
