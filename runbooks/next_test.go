package runbooks

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/actions"
	"holdfast/gpuguard/signals"
)

var (
	t0    = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	pause = waits{checkEvery: 2 * time.Second}
	carol = actions.Actor{PersonID: "p-carol", Name: "Carol", Channel: "console"}
)

// runOf is a run whose first step is the given one; a note follows it.
func runOf(s Step, state StepState) Run {
	if s.OnFailure == "" {
		s.OnFailure = FailAsk
	}
	s.ID, s.Title = "first", "First"
	if state.Attempt == 0 {
		state.Attempt = 1
	}
	status := StatusRunning
	if state.Status == StepAsking {
		status = StatusWaiting
	}
	return Run{
		ID: "r", Status: status, StartedAt: t0, NextAt: t0, StartedBy: carol,
		Runbook: Runbook{ID: "b", Title: "Book", Steps: []Step{s, {ID: "second", Title: "Second", Kind: StepNote, Text: "Told."}}},
		Steps:   []StepState{state, {Status: StepPending, Attempt: 1}},
	}
}

func ratio(v float64) *judgement {
	c := signals.Criterion{Is: signals.Below, Value: 0.05}
	return &judgement{Judgement: c.Judge([]signals.Sample{{Value: v}})}
}

func blind(problem string) *judgement {
	return &judgement{Judgement: signals.Judgement{Verdict: signals.NoData}, problem: problem}
}

func actionRun(status actions.Status, change func(*actions.Run)) *actions.Run {
	r := &actions.Run{ID: "a1", Status: status, Plan: actions.Plan{Summary: "Limit it"}}
	if change != nil {
		change(r)
	}
	return r
}

func verifiedAs(v actions.Verdict, detail string) *actions.Run {
	return actionRun(actions.StatusActive, func(r *actions.Run) { r.Verification = actions.Verification{Verdict: v, Detail: detail} })
}

func TestNext(t *testing.T) {
	t.Parallel()
	criterion := &signals.Criterion{Query: "q", Is: signals.Below, Value: 0.05, Unit: "ratio"}
	check := Step{Kind: StepCheck, Criterion: criterion, Timeout: time.Minute}
	action := Step{Kind: StepAction, Action: "limit", Timeout: time.Minute, Command: "Limit it", Expect: "Less."}
	withCriterion := action
	withCriterion.Criterion = criterion
	automatic := action
	automatic.Automatic = true
	decision := Step{Kind: StepDecision, Question: "Well?", Choices: []Choice{{ID: "yes", Label: "Yes"}, {ID: "no", Label: "No"}}}
	timed := decision
	timed.Timeout = 5 * time.Minute
	failing := func(s Step, f OnFailure) Step { s.OnFailure = f; return s }
	checking := StepState{Status: StepRunning, StartedAt: t0, Deadline: t0.Add(time.Minute)}
	acting := StepState{Status: StepRunning, StartedAt: t0, Deadline: t0.Add(time.Minute), ActionRun: "a1", Detail: "accepted"}

	tests := []struct {
		name  string
		step  Step
		state StepState
		view  view
		at    time.Duration
		// moves is false when there is nothing to do.
		moves  bool
		status StepStatus
		run    Status
		// next is when the run is looked at again after t0; -1 never.
		next   time.Duration
		detail string
		kinds  []EventKind
	}{
		{"a check begins", check, StepState{Status: StepPending}, view{}, 0, true, StepRunning, StatusRunning, 0, "", nil},
		{"a check passes", check, checking, view{judged: ratio(0.01)}, 10 * time.Second, true, StepPassed, StatusRunning, 10 * time.Second, "1 % (want < 5 %)", []EventKind{EventStep}},
		{"a check that fails goes on", check, checking, view{judged: ratio(0.23)}, 10 * time.Second, true, StepRunning, StatusRunning, 12 * time.Second, "23 % (want < 5 %)", nil},
		{"the last look is at the deadline", check, checking, view{judged: ratio(0.23)}, 59 * time.Second, true, StepRunning, StatusRunning, time.Minute, "23 % (want < 5 %)", nil},
		{"a check fails at its deadline", check, checking, view{judged: ratio(0.23)}, time.Minute, true, StepFailed, StatusWaiting, -1, "23 % (want < 5 %)", []EventKind{EventStep, EventAsked}},
		{"no data is inconclusive at the deadline", check, checking, view{judged: blind("")}, time.Minute, true, StepInconclusive, StatusWaiting, -1, "no data (want < 5 %)", []EventKind{EventStep, EventAsked}},
		{"no data before it goes on", check, checking, view{judged: blind("connection refused")}, 0, true, StepRunning, StatusRunning, 2 * time.Second, "no data: connection refused (want < 5 %)", nil},
		{"what holds in a late look passes", check, checking, view{judged: ratio(0.01)}, time.Hour, true, StepPassed, StatusRunning, time.Hour, "1 % (want < 5 %)", []EventKind{EventStep}},
		{"a check that was not asked waits", check, checking, view{}, time.Hour, false, "", "", 0, "", nil},
		{"failure stops", failing(check, FailStop), checking, view{judged: ratio(1)}, time.Minute, true, StepFailed, StatusFailed, -1, "100 % (want < 5 %)", []EventKind{EventStep, EventFailed}},
		{"failure continues", failing(check, FailContinue), checking, view{judged: ratio(1)}, time.Minute, true, StepFailed, StatusRunning, time.Minute, "100 % (want < 5 %)", []EventKind{EventStep}},
		{"a failed step waits for a person", check, StepState{Status: StepFailed}, view{judged: ratio(0)}, time.Hour, false, "", "", 0, "", nil},

		{"an action asks", action, StepState{Status: StepPending}, view{}, 0, true, StepAsking, StatusWaiting, -1, "", []EventKind{EventAsked}},
		{"and waits for the answer", action, StepState{Status: StepAsking}, view{}, time.Hour, false, "", "", 0, "", nil},
		{"an automatic one begins", automatic, StepState{Status: StepPending}, view{}, 0, true, StepRunning, StatusRunning, 0, "", nil},
		{"the action run is noted with its deadline", action, StepState{Status: StepRunning, StartedAt: t0}, view{action: actionRun(actions.StatusAccepted, nil)}, 5 * time.Second, true, StepRunning, StatusRunning, 7 * time.Second, "accepted", nil},
		{"one that is verified is looked at at once", action, StepState{Status: StepRunning, StartedAt: t0}, view{action: verifiedAs(actions.Verified, "")}, 5 * time.Second, true, StepRunning, StatusRunning, 5 * time.Second, "verified", nil},
		{"a refusal fails", action, StepState{Status: StepRunning, StartedAt: t0}, view{refused: &actions.LeasedError{Lease: actions.LeaseRef{Path: "limits.global", Owner: "Bob", Reason: "r", Expires: t0.Add(time.Hour)}}}, 0, true, StepFailed, StatusWaiting, -1, "limits.global is leased by Bob until 2026-03-01T13:00:00Z (r)", []EventKind{EventStep, EventAsked}},
		{"one that is too old fails", action, StepState{Status: StepRunning, StartedAt: t0}, view{}, time.Hour, true, StepFailed, StatusWaiting, -1, "it was asked for at 12:00:00 UTC and could not be started within its own lease: too late now", []EventKind{EventStep, EventAsked}},
		{"no news writes nothing", action, acting, view{action: actionRun(actions.StatusAccepted, nil)}, 10 * time.Second, false, "", "", 0, "", nil},
		{"gateways are named", action, acting, view{action: actionRun(actions.StatusExecuting, func(r *actions.Run) { r.Missing = []string{"gw-2"} })}, 10 * time.Second, true, StepRunning, StatusRunning, 12 * time.Second, "waiting for gw-2", nil},
		{"not in force at the deadline", action, acting, view{action: actionRun(actions.StatusExecuting, nil)}, time.Minute, true, StepFailed, StatusWaiting, -1, "not in force after 1m0s: written, waiting for the gateways", []EventKind{EventStep, EventAsked}},
		{"verified", action, acting, view{action: verifiedAs(actions.Verified, "1 gateway enforces 8")}, 10 * time.Second, true, StepPassed, StatusRunning, 10 * time.Second, "1 gateway enforces 8", []EventKind{EventStep}},
		{"not verified goes on", action, acting, view{action: verifiedAs(actions.NotVerified, "gw-1 reports 20")}, 10 * time.Second, true, StepRunning, StatusRunning, 12 * time.Second, "gw-1 reports 20", nil},
		{"not verified at the deadline", action, acting, view{action: verifiedAs(actions.NotVerified, "gw-1 reports 20")}, time.Minute, true, StepFailed, StatusWaiting, -1, "in force, but not verified after 1m0s: gw-1 reports 20", []EventKind{EventStep, EventAsked}},
		{"no data to verify with at the deadline", action, acting, view{action: verifiedAs(actions.Inconclusive, "no live gateway")}, time.Minute, true, StepInconclusive, StatusWaiting, -1, "in force, but not verified after 1m0s: no live gateway", []EventKind{EventStep, EventAsked}},
		{"not judged at the deadline", action, acting, view{action: verifiedAs("", "")}, time.Minute, true, StepInconclusive, StatusWaiting, -1, "in force, but not verified after 1m0s: in force, not judged yet", []EventKind{EventStep, EventAsked}},
		{"an action run that fails", action, acting, view{action: actionRun(actions.StatusFailed, func(r *actions.Run) { r.EndDetail = "gateway gw-1 rejected it" })}, time.Second, true, StepFailed, StatusWaiting, -1, "gateway gw-1 rejected it", []EventKind{EventStep, EventAsked}},
		{"one that is taken back", action, acting, view{action: actionRun(actions.StatusReverting, func(r *actions.Run) { r.EndedBy, r.EndedAt = "Bob", t0 })}, time.Second, true, StepFailed, StatusWaiting, -1, "it was taken back by Bob at 12:00:00 UTC", []EventKind{EventStep, EventAsked}},
		{"one that expired", action, acting, view{action: actionRun(actions.StatusEnded, func(r *actions.Run) { r.EndReason, r.EndedAt = actions.EndExpired, t0 })}, time.Second, true, StepFailed, StatusWaiting, -1, "its lease expired at 12:00:00 UTC", []EventKind{EventStep, EventAsked}},
		{"verified, criterion not asked yet", withCriterion, acting, view{action: verifiedAs(actions.Verified, "")}, time.Second, false, "", "", 0, "", nil},
		{"verified, criterion not met", withCriterion, acting, view{action: verifiedAs(actions.Verified, ""), judged: ratio(0.1)}, time.Second, true, StepRunning, StatusRunning, 3 * time.Second, "10 % (want < 5 %)", nil},
		{"verified and criterion met", withCriterion, acting, view{action: verifiedAs(actions.Verified, ""), judged: ratio(0.01)}, time.Second, true, StepPassed, StatusRunning, time.Second, "1 % (want < 5 %)", []EventKind{EventStep}},
		{"criterion not met at the deadline", withCriterion, acting, view{action: verifiedAs(actions.Verified, ""), judged: ratio(0.1)}, time.Minute, true, StepFailed, StatusWaiting, -1, "10 % (want < 5 %)", []EventKind{EventStep, EventAsked}},
		{"a criterion does not stand in for verification", withCriterion, acting, view{action: verifiedAs(actions.NotVerified, "no"), judged: ratio(0)}, time.Minute, true, StepFailed, StatusWaiting, -1, "in force, but not verified after 1m0s: no", []EventKind{EventStep, EventAsked}},

		{"a decision asks", decision, StepState{Status: StepPending}, view{}, 0, true, StepAsking, StatusWaiting, -1, "", []EventKind{EventAsked}},
		{"a timed one is looked at again", timed, StepState{Status: StepPending}, view{}, 0, true, StepAsking, StatusWaiting, 5 * time.Minute, "", []EventKind{EventAsked}},
		{"nobody decides", timed, StepState{Status: StepAsking, Deadline: t0.Add(5 * time.Minute)}, view{}, 5 * time.Minute, true, StepFailed, StatusWaiting, -1, "nobody answered within 5m0s", []EventKind{EventStep, EventAsked}},
		{"there is time left", timed, StepState{Status: StepAsking, Deadline: t0.Add(5 * time.Minute)}, view{}, 4 * time.Minute, false, "", "", 0, "", nil},

		{"a note is told", Step{Kind: StepNote, Text: "Told."}, StepState{Status: StepPending}, view{}, 0, true, StepPassed, StatusRunning, 0, "", []EventKind{EventStep}},
		{"a kind from another version", Step{Kind: "dance"}, StepState{Status: StepPending}, view{}, 0, true, StepFailed, StatusWaiting, -1, `steps of kind "dance" are not known to this version of holdfast`, []EventKind{EventStep, EventAsked}},
		{"a wait begins", Step{Kind: StepWait, Wait: time.Minute}, StepState{Status: StepPending}, view{}, 0, true, StepRunning, StatusRunning, time.Minute, "", nil},
		{"a wait goes on", Step{Kind: StepWait, Wait: time.Minute}, checking, view{}, 59 * time.Second, false, "", "", 0, "", nil},
		{"a wait is over", Step{Kind: StepWait, Wait: time.Minute}, checking, view{}, time.Hour, true, StepPassed, StatusRunning, time.Hour, "waited 1m0s", []EventKind{EventStep}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			before := runOf(tt.step, tt.state)
			steps := slices.Clone(before.Steps)
			tr, moved := next(before, tt.view, t0.Add(tt.at), pause)
			require.Equal(t, steps, before.Steps, "what was given is not written to")
			require.Equal(t, tt.moves, moved)
			if !moved {
				return
			}
			got := tr.run
			require.Equal(t, tt.status, got.Steps[0].Status)
			require.Equal(t, tt.run, got.Status)
			require.Equal(t, tt.detail, got.Steps[0].Detail)
			if tt.next < 0 {
				require.True(t, got.NextAt.IsZero(), "%s", got.NextAt)
			} else {
				require.Equal(t, t0.Add(tt.next), got.NextAt)
			}
			var kinds []EventKind
			for _, e := range tr.events {
				kinds = append(kinds, e.Kind)
			}
			require.Equal(t, tt.kinds, kinds)
		})
	}
}

func TestTextsOfEvents(t *testing.T) {
	t.Parallel()
	run := runOf(Step{Kind: StepAction, Action: "limit", Command: "Limit it", Expect: "Less."}, StepState{Status: StepPending})
	tr, _ := next(run, view{}, t0, pause)
	require.Equal(t, "Book, step 1/2, First: run it? Limit it. Expected: Less.", tr.events[0].Text)
	require.True(t, tr.events[0].Thread)
	require.Equal(t, "first", tr.events[0].Step)

	tr, err := answered(tr.run, AnswerRequest{Step: "first", Attempt: 1, Answer: "skip", Note: "not today", Actor: carol}, t0)
	require.NoError(t, err)
	require.Equal(t, "Book, step 1/2, First: Carol says skip – not today", tr.events[0].Text)
	tr, _ = next(tr.run, view{}, t0.Add(time.Minute), pause)
	require.Equal(t, "Book, step 2/2, Second: Told.", tr.events[0].Text)
	require.Equal(t, "Book: finished after 1m0s: 1 passed, 1 skipped", tr.events[1].Text)
	require.Equal(t, StatusSucceeded, tr.run.Status)
	require.Equal(t, 2, tr.run.Current)
	require.Equal(t, "system", tr.run.EndedBy)

	run = runOf(Step{Kind: StepDecision, Question: "Well?", Choices: []Choice{{ID: "yes", Label: "Yes, it is"}, {ID: "no", Label: "No"}}}, StepState{Status: StepPending})
	tr, _ = next(run, view{}, t0, pause)
	require.Equal(t, "Book, step 1/2, First: Well? (Yes, it is / No)", tr.events[0].Text)
	tr, err = answered(tr.run, AnswerRequest{Step: "first", Attempt: 1, Answer: "yes", Actor: carol}, t0)
	require.NoError(t, err)
	require.Equal(t, "Book, step 1/2, First: Carol says Yes, it is", tr.events[0].Text)

	run = runOf(Step{Kind: StepCheck, Criterion: &signals.Criterion{Is: signals.Below, Value: 1500, Unit: "tokens/s"}}, StepState{Status: StepRunning, Deadline: t0})
	j := judgement{Judgement: signals.Criterion{Is: signals.Below, Value: 1500}.Judge([]signals.Sample{{Value: 12345.6, Labels: map[string]string{"service": "llm", "source": "allocator"}}})}
	tr, _ = next(run, view{judged: &j}, t0, pause)
	require.Equal(t, "Book, step 1/2, First: failed: 12346 tokens/s at source allocator (want < 1500 tokens/s). Retry, skip it, or stop?", tr.events[1].Text)
	require.False(t, tr.events[0].Thread, "the thread is told once")
}

func TestTheLastStepDecidesHowTheRunEnds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		judged *judgement
		status Status
		kind   EventKind
	}{
		{ratio(0), StatusSucceeded, EventFinished},
		{ratio(1), StatusFailed, EventFailed},
		{blind(""), StatusFailed, EventFailed},
	} {
		run := runOf(Step{Kind: StepCheck, Criterion: &signals.Criterion{Is: signals.Below, Value: 0.05}, OnFailure: FailContinue}, StepState{Status: StepRunning, Deadline: t0})
		run.Runbook.Steps, run.Steps = run.Runbook.Steps[:1], run.Steps[:1]
		tr, ok := next(run, view{judged: tt.judged}, t0, pause)
		require.True(t, ok)
		require.Equal(t, tt.status, tr.run.Status)
		require.Equal(t, tt.kind, tr.events[len(tr.events)-1].Kind)
		require.Equal(t, 1, tr.run.Current)
		require.Equal(t, t0, tr.run.EndedAt)
	}
}

func TestRetryKeepsWhatIsInForce(t *testing.T) {
	t.Parallel()
	run := runOf(Step{Kind: StepAction, Action: "limit", Timeout: time.Minute}, StepState{Status: StepFailed, ActionRun: "a1", Detail: "not verified", Deadline: t0})
	run.Status, run.NextAt = StatusWaiting, time.Time{}
	tr, err := answered(run, AnswerRequest{Step: "first", Attempt: 1, Answer: AnswerRetry, Actor: carol}, t0.Add(time.Hour))
	require.NoError(t, err)
	state := tr.run.Steps[0]
	require.Equal(t, StepState{
		Status: StepRunning, Attempt: 2, StartedAt: t0.Add(time.Hour), ActionRun: "a1", Choice: "retry", By: "Carol", AnsweredAt: t0.Add(time.Hour), PressedBy: &carol,
	}, state)
	require.Equal(t, StatusRunning, tr.run.Status)
	tr, ok := next(tr.run, view{action: verifiedAs(actions.NotVerified, "still not")}, t0.Add(time.Hour), pause)
	require.True(t, ok)
	require.Equal(t, t0.Add(time.Hour+time.Minute), tr.run.Steps[0].Deadline, "the attempt has its own time")
}

func TestAnswersOutOfTurn(t *testing.T) {
	t.Parallel()
	asking := runOf(Step{Kind: StepAction}, StepState{Status: StepAsking, Attempt: 2, Choice: "retry", By: "Bob", AnsweredAt: t0})
	running := runOf(Step{Kind: StepAction}, StepState{Status: StepRunning, Choice: "run", By: "Bob", AnsweredAt: t0})
	over := running
	over.Status, over.Current, over.EndedAt, over.EndedBy = StatusCancelled, 2, t0, "Bob"
	tests := []struct {
		name string
		run  Run
		req  AnswerRequest
		want error
		text string
	}{
		{"an attempt that is over", asking, AnswerRequest{Step: "first", Attempt: 1, Answer: "run"}, ErrWrongState, `Bob answered "retry" to step first at 12:00:00 UTC; attempt 2 of it asks now`},
		{"answered already", running, AnswerRequest{Step: "first", Attempt: 1, Answer: "run"}, ErrWrongState, `Bob answered "run" to step first at 12:00:00 UTC`},
		{"another step asks", asking, AnswerRequest{Step: "second", Attempt: 1, Answer: "run"}, ErrWrongState, "step second asks nothing now; step first asks now"},
		{"the run is over", over, AnswerRequest{Step: "first", Attempt: 1, Answer: "run"}, ErrWrongState, "it ended at 12:00:00 UTC as cancelled by Bob"},
		{"no such step", asking, AnswerRequest{Step: "third", Attempt: 1, Answer: "run"}, ErrInvalid, `step: the runbook has no step "third"`},
		{"no such answer", asking, AnswerRequest{Step: "first", Attempt: 2, Answer: "retry"}, ErrInvalid, `answer: is "retry": want one of run, skip, stop`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := answered(tt.run, tt.req, t0)
			require.ErrorIs(t, err, tt.want)
			require.ErrorContains(t, err, tt.text)
		})
	}
}

func TestGotoSkipsWhatIsBetween(t *testing.T) {
	t.Parallel()
	run := runOf(Step{Kind: StepDecision, Choices: []Choice{{ID: "far", Label: "Far", Goto: "third"}, {ID: "out", Label: "Out", Goto: "end"}, {ID: "on", Label: "On"}}}, StepState{Status: StepAsking})
	run.Runbook.Steps = append(run.Runbook.Steps, Step{ID: "third", Kind: StepNote})
	run.Steps = append(run.Steps, StepState{Status: StepPending, Attempt: 1})
	answer := func(id string) Run {
		tr, err := answered(run, AnswerRequest{Step: "first", Attempt: 1, Answer: id, Actor: carol}, t0)
		require.NoError(t, err)
		return tr.run
	}
	far := answer("far")
	require.Equal(t, 2, far.Current)
	require.Equal(t, StepSkipped, far.Steps[1].Status)
	require.Equal(t, "not needed after first", far.Steps[1].Detail)
	out := answer("out")
	require.Equal(t, StatusSucceeded, out.Status)
	require.Equal(t, 3, out.Current)
	require.Equal(t, []StepStatus{StepPassed, StepSkipped, StepSkipped}, []StepStatus{out.Steps[0].Status, out.Steps[1].Status, out.Steps[2].Status})
	on := answer("on")
	require.Equal(t, 1, on.Current)
	require.Equal(t, StepPending, on.Steps[1].Status)
	require.Equal(t, "on", on.Steps[0].Choice)
}

// TestNextHoldsItsInvariants draws steps, states and views at will.
func TestNextHoldsItsInvariants(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		now := t0.Add(time.Duration(rapid.IntRange(0, 200).Draw(rt, "now")) * time.Second)
		step := Step{
			Kind:      rapid.SampledFrom([]StepKind{StepAction, StepCheck, StepDecision, StepNote, StepWait}).Draw(rt, "kind"),
			OnFailure: rapid.SampledFrom([]OnFailure{FailAsk, FailStop, FailContinue}).Draw(rt, "on failure"),
			Timeout:   time.Minute, Wait: time.Minute, Automatic: rapid.Bool().Draw(rt, "automatic"),
		}
		if step.Kind == StepCheck || step.Kind == StepAction && rapid.Bool().Draw(rt, "criterion") {
			step.Criterion = &signals.Criterion{Is: signals.Below, Value: 0.05}
		}
		state := StepState{
			Status:    rapid.SampledFrom([]StepStatus{StepPending, StepAsking, StepRunning, StepFailed, StepInconclusive}).Draw(rt, "status"),
			StartedAt: t0, Deadline: t0.Add(time.Minute), ActionRun: rapid.SampledFrom([]string{"", "a1"}).Draw(rt, "action run"),
		}
		var v view
		if rapid.Bool().Draw(rt, "has action") {
			v.action = actionRun(rapid.SampledFrom([]actions.Status{
				actions.StatusAccepted, actions.StatusExecuting, actions.StatusActive, actions.StatusReverting, actions.StatusEnded, actions.StatusFailed,
			}).Draw(rt, "action status"), func(r *actions.Run) {
				r.Verification.Verdict = rapid.SampledFrom([]actions.Verdict{"", actions.Verified, actions.NotVerified, actions.Inconclusive}).Draw(rt, "verdict")
			})
		} else if rapid.Bool().Draw(rt, "refused") {
			v.refused = errors.New("no")
		}
		if rapid.Bool().Draw(rt, "judged") {
			v.judged = rapid.SampledFrom([]*judgement{ratio(0), ratio(1), blind("")}).Draw(rt, "judgement")
		}
		before := runOf(step, state)
		tr, moved := next(before, v, now, pause)
		if !moved {
			return
		}
		after := tr.run
		if after.Steps[0].Status == StepPassed && (step.Kind == StepCheck || step.Kind == StepAction) {
			require.True(t, step.Criterion == nil || v.judged.Verdict == signals.Pass, "never passed without data")
			if step.Kind == StepAction {
				require.Equal(t, actions.Verified, v.action.Verification.Verdict)
				require.Equal(t, actions.StatusActive, v.action.Status)
			}
		}
		switch {
		case !after.Live():
			require.True(t, after.NextAt.IsZero())
			require.Equal(t, len(after.Steps), after.Current)
			require.False(t, after.EndedAt.IsZero())
		case after.NextAt.IsZero():
			require.NotEmpty(t, after.Answers(after.Current), "not looked at again only when a person is asked")
			require.Equal(t, StatusWaiting, after.Status)
		}
		if after.Steps[0].Status != state.Status && after.Steps[0].Status != StepRunning {
			require.NotEmpty(t, tr.events, "every change is recorded")
		}
	})
}
