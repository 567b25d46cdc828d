package runbooks_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/actions"
	"holdfast/runbooks"
)

var errKilled = errors.New("killed")

// drawBook writes a random runbook.
func drawBook(rt *rapid.T) string {
	n := rapid.IntRange(1, 7).Draw(rt, "steps")
	var b strings.Builder
	b.WriteString("id: short\ntitle: Random\nsummary: Random.\nparams: [{name: service, kind: service, required: true, help: Which.}]\nsteps:\n")
	phase := 0
	for i := range n {
		phase = rapid.IntRange(phase, 2).Draw(rt, "phase")
		kind := rapid.SampledFrom([]string{"action", "check", "decision", "note", "wait"}).Draw(rt, "kind")
		fmt.Fprintf(&b, "  - id: s%d\n    phase: %s\n    title: Step %d\n    kind: %s\n    command: C\n    expect: E\n", i, []string{"isolate", "locate", "restore"}[phase], i, kind)
		if kind != "note" && kind != "wait" {
			fmt.Fprintf(&b, "    on_failure: %s\n", rapid.SampledFrom([]string{"ask", "stop", "continue"}).Draw(rt, "on failure"))
		}
		criterion := "    criterion: {query: 'x{service=\"${service}\"}', is: \"<\", value: 10}\n    timeout: 20s\n"
		switch kind {
		case "action":
			fmt.Fprintf(&b, "    action: trip_breaker\n    params: {dependency: llm}\n    ttl: 1m\n    automatic: %t\n", rapid.Bool().Draw(rt, "automatic"))
			if rapid.Bool().Draw(rt, "criterion") {
				b.WriteString(criterion)
			}
		case "check":
			b.WriteString(criterion)
		case "decision":
			b.WriteString("    question: Q\n    choices:\n      - {id: on, label: On}\n      - {id: out, label: Out, goto: end}\n")
			if i+1 < n {
				fmt.Fprintf(&b, "      - {id: far, label: Far, goto: s%d}\n", rapid.IntRange(i+1, n-1).Draw(rt, "goto"))
			}
			if rapid.Bool().Draw(rt, "timed") {
				b.WriteString("    timeout: 15s\n")
			}
		case "note":
			b.WriteString("    text: T\n")
		case "wait":
			b.WriteString("    wait: 10s\n")
		}
	}
	return b.String()
}

// walk is one random history of one run.
type walk struct {
	*fixture
	rt   *rapid.T
	id   string
	seen runbooks.Run
	// holds says that the metrics would let a criterion pass now.
	holds bool
	kills int
}

// TestRandomHistories draws runbooks, answers, outcomes of actions, metrics, kills
// between any two calls and jumps of time.
func TestRandomHistories(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := &walk{fixture: newFixture(t, "short.yaml", drawBook(rt)), rt: rt}
		w.start()
		for range rapid.IntRange(0, 40).Draw(rt, "length") {
			w.world()
			w.arm()
			w.move()
			w.disarm()
			w.check()
			w.store.Advance(time.Duration(rapid.SampledFrom([]int{0, 1, 2, 5, 30, 600}).Draw(rt, "seconds")) * time.Second)
		}
		w.settle()
		w.recorded()
	})
}

// start repeats the request with one key, as a client does that got no answer.
func (w *walk) start() {
	req := w.request()
	for {
		w.arm()
		run, err := w.engine.Launch(context.Background(), req)
		w.disarm()
		if err == nil || errors.Is(err, runbooks.ErrDuplicate) {
			w.id, w.seen = run.ID, run
			return
		}
		require.ErrorIs(w.t, err, errKilled)
	}
}

// arm kills the process after a random number of calls, sometimes: a dead
// process calls nothing any more.
func (w *walk) arm() {
	if w.kills >= 10 || rapid.IntRange(0, 2).Draw(w.rt, "kill") > 0 {
		return
	}
	w.kills++
	left := rapid.IntRange(0, 40).Draw(w.rt, "calls before the kill")
	var mu sync.Mutex
	die := func(string) error {
		mu.Lock()
		defer mu.Unlock()
		if left--; left < 0 {
			return errKilled
		}
		return nil
	}
	w.store.SetFault(die)
	w.actions.SetFault(die)
}

func (w *walk) disarm() {
	w.store.SetFault(nil)
	w.actions.SetFault(nil)
	w.restart()
}

// world lets action runs and metrics go where they will.
func (w *walk) world() {
	for _, id := range w.actions.IDs() {
		status := rapid.SampledFrom([]actions.Status{"", "", actions.StatusExecuting, actions.StatusActive, actions.StatusActive, actions.StatusFailed, actions.StatusEnded}).Draw(w.rt, "action status")
		verdict := rapid.SampledFrom([]actions.Verdict{"", actions.Verified, actions.Verified, actions.NotVerified, actions.Inconclusive}).Draw(w.rt, "verdict")
		w.actions.Change(id, func(r *actions.Run) {
			if r.Live() && status != "" {
				r.Status, r.Verification.Verdict = status, verdict
			}
		})
	}
	refuse := rapid.SampledFrom([]error{nil, nil, actions.ErrForbidden, actions.ErrPathLeased}).Draw(w.rt, "refusal")
	w.actions.Refuse(refuse)
	metric := rapid.SampledFrom([]string{"pass", "fail", "none", "error"}).Draw(w.rt, "metric")
	w.holds = metric == "pass"
	switch metric {
	case "pass":
		w.metrics.Answer(1)
	case "fail":
		w.metrics.Answer(1, 99)
	case "none":
		w.metrics.Answer()
	case "error":
		w.metrics.Fail(errors.New("no answer"))
	}
}

// move ticks, and sometimes a person says something, right or wrong.
func (w *walk) move() {
	ctx := context.Background()
	run := w.seen
	if run.Live() && rapid.Bool().Draw(w.rt, "somebody answers") {
		said := append([]string{"run", "nonsense"}, run.Answers(run.Current)...)
		_, err := w.engine.Answer(ctx, w.id, runbooks.AnswerRequest{
			Step: run.Runbook.Steps[run.Current].ID, Attempt: run.Steps[run.Current].Attempt,
			Answer: rapid.SampledFrom(said).Draw(w.rt, "answer"), Actor: alice,
		})
		if err != nil && !errors.Is(err, runbooks.ErrWrongState) && !errors.Is(err, runbooks.ErrInvalid) {
			require.ErrorIs(w.t, err, errKilled)
		}
	}
	if rapid.IntRange(0, 60).Draw(w.rt, "cancel") == 60 {
		if _, err := w.engine.Cancel(ctx, w.id, alice); err != nil && !errors.Is(err, runbooks.ErrWrongState) {
			require.ErrorIs(w.t, err, errKilled)
		}
	}
	if _, err := w.engine.Tick(ctx); err != nil {
		require.ErrorIs(w.t, err, errKilled)
	}
}

// check compares the run with what it was before.
func (w *walk) check() {
	before, now := w.seen, w.run(w.id)
	w.seen = now
	require.GreaterOrEqual(w.t, now.Current, before.Current, "never back")
	for i, s := range now.Steps {
		step := now.Runbook.Steps[i]
		if s.Status == runbooks.StepPassed && before.Steps[i].Status != runbooks.StepPassed {
			if step.Criterion != nil {
				require.True(w.t, w.holds, "step %s passed without data", step.ID)
			}
			if step.Kind == runbooks.StepAction {
				a, err := w.actions.Find(context.Background(), s.ActionRun)
				require.NoError(w.t, err)
				require.Equal(w.t, actions.StatusActive, a.Status)
				require.Equal(w.t, actions.Verified, a.Verification.Verdict, "step %s passed without verification", step.ID)
			}
		}
		switch {
		case i > now.Current:
			require.Equal(w.t, runbooks.StepPending, s.Status, "nothing is begun before its turn")
		case i < now.Current && now.Status != runbooks.StatusCancelled && now.Status != runbooks.StatusFailed:
			require.Contains(w.t, []runbooks.StepStatus{runbooks.StepPassed, runbooks.StepSkipped, runbooks.StepFailed, runbooks.StepInconclusive}, s.Status)
			require.False(w.t, s.EndedAt.IsZero())
		}
	}
	switch {
	case !now.Live():
		require.True(w.t, now.NextAt.IsZero())
		require.False(w.t, now.EndedAt.IsZero())
		require.Len(w.t, now.Steps, now.Current)
	case now.NextAt.IsZero():
		require.NotEmpty(w.t, now.Answers(now.Current), "it must ask, end, or be looked at again")
		require.Equal(w.t, runbooks.StatusWaiting, now.Status)
	case now.Status == runbooks.StatusWaiting:
		require.NotEmpty(w.t, now.Answers(now.Current))
	}
	require.Equal(w.t, before.Runbook, now.Runbook, "the version is frozen")
	w.onceEach()
}

// onceEach wants at most one action run for each attempt of a step.
func (w *walk) onceEach() {
	keys := map[string]bool{}
	for _, r := range w.actions.Started() {
		require.False(w.t, keys[r.Key], "%s twice", r.Key)
		keys[r.Key] = true
		parts := strings.Split(r.Key, ":")
		require.Equal(w.t, []string{"runbook", w.id}, parts[:2])
		require.Len(w.t, parts, 4, "a key says run, step and attempt, and nothing else")
		i := slices.IndexFunc(w.seen.Runbook.Steps, func(s runbooks.Step) bool { return s.ID == parts[2] })
		require.LessOrEqual(w.t, parts[3], fmt.Sprint(w.seen.Steps[i].Attempt))
	}
	for i, s := range w.seen.Steps {
		if s.Status == runbooks.StepPending && s.Attempt == 1 {
			require.Empty(w.t, s.ActionRun, "step %d", i)
		}
	}
}

// settle lets all go well from here: then the run must come to its end.
func (w *walk) settle() {
	w.metrics.Answer(1)
	w.holds = true
	w.actions.Refuse(nil)
	for range 60 {
		run := w.run(w.id)
		if !run.Live() {
			return
		}
		for _, id := range w.actions.IDs() {
			w.actions.Change(id, func(r *actions.Run) {
				if r.Live() {
					r.Status, r.Verification.Verdict = actions.StatusActive, actions.Verified
				}
			})
		}
		if answers := run.Answers(run.Current); len(answers) > 0 {
			w.answer(w.id, answers[0])
		}
		w.tick(10 * time.Second)
		w.check()
	}
	w.rt.Fatalf("stuck: %+v", w.run(w.id))
}

// recorded wants one event for each start, end of an attempt, and end of the run.
func (w *walk) recorded() {
	ends, starts := 0, 0
	last := map[string]int{}
	order := -1
	for _, e := range w.store.Events() {
		switch e.Kind {
		case runbooks.EventStarted:
			starts++
		case runbooks.EventFinished, runbooks.EventFailed, runbooks.EventCancelled:
			ends++
		case runbooks.EventStep:
			i := slices.IndexFunc(w.seen.Runbook.Steps, func(s runbooks.Step) bool { return s.ID == e.Step })
			if i < 0 {
				continue // told about the run as a whole
			}
			require.GreaterOrEqual(w.t, i, order, "steps end in their order, so phases do")
			order = i
			last[e.Step]++
			require.LessOrEqual(w.t, last[e.Step], w.seen.Steps[i].Attempt, "one end for each attempt")
		default:
		}
	}
	require.Equal(w.t, 1, starts)
	require.Equal(w.t, 1, ends)
}

// TestKillAtEachCallInTurn is the same without chance: one kill at the n-th call, for every n.
func TestKillAtEachCallInTurn(t *testing.T) {
	t.Parallel()
	survived := false
	for n := 0; !survived; n++ {
		require.Less(t, n, 500)
		f := newFixture(t)
		f.metrics.Answer(0.01)
		left := n
		var mu sync.Mutex
		die := func(string) error {
			mu.Lock()
			defer mu.Unlock()
			if left--; left < 0 {
				return errKilled
			}
			return nil
		}
		f.store.SetFault(die)
		f.actions.SetFault(die)
		req := f.request()
		alive := storyOf(f, req)
		f.store.SetFault(nil)
		f.actions.SetFault(nil)
		survived = alive
		f.restart()
		require.True(t, storyOf(f, req), "kill at call %d", n)
		runs, err := f.engine.List(t.Context(), runbooks.Filter{Limit: 10})
		require.NoError(t, err)
		require.Len(t, runs, 1)
		require.Equal(t, runbooks.StatusSucceeded, runs[0].Status, "kill at call %d", n)
		require.Len(t, f.actions.Started(), 2, "no action twice, none left out; kill at call %d", n)
		for i, s := range runs[0].Steps {
			require.Equal(t, runbooks.StepPassed, s.Status, "step %d, kill at call %d", i, n)
			require.Equal(t, 1, s.Attempt)
		}
		kinds := f.store.Kinds(runs[0].ID)
		require.Len(t, kinds, 11, "each once: %v; kill at call %d", kinds, n)
	}
}

// storyOf plays the runbook to its end like people who press again when they got
// no answer; false when the process died on the way.
func storyOf(f *fixture, req runbooks.StartRequest) bool {
	ctx := context.Background()
	run, err := f.engine.Launch(ctx, req)
	if err != nil && !errors.Is(err, runbooks.ErrDuplicate) {
		return false
	}
	for range 200 {
		if run, err = f.engine.Find(ctx, run.ID); err != nil {
			return false
		}
		if !run.Live() {
			return true
		}
		if answers := run.Answers(run.Current); len(answers) > 0 {
			_, err := f.engine.Answer(ctx, run.ID, runbooks.AnswerRequest{
				Step: run.Runbook.Steps[run.Current].ID, Attempt: run.Steps[run.Current].Attempt, Answer: answers[0], Actor: alice,
			})
			if err != nil {
				return false
			}
		}
		if _, err := f.engine.Tick(ctx); err != nil {
			return false
		}
		for _, id := range f.actions.IDs() {
			f.actions.Verify(id)
		}
		f.store.Advance(25 * time.Second)
	}
	return false
}

// TestTwoServersDoNothingTwice lets two engines tick over one database at once.
func TestTwoServersDoNothingTwice(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.metrics.Answer(0.01)
	second := newFixture(t)
	second.store, second.actions, second.metrics = f.store, f.actions, f.metrics
	second.restart()
	ids := make([]string, 5)
	for i := range ids {
		ids[i] = f.launch().ID
	}
	for range 120 {
		for _, id := range ids {
			run := f.run(id)
			if answers := run.Answers(min(run.Current, 5)); len(answers) > 0 {
				_, err := f.engine.Answer(t.Context(), id, runbooks.AnswerRequest{
					Step: run.Runbook.Steps[run.Current].ID, Attempt: run.Steps[run.Current].Attempt, Answer: answers[0], Actor: alice,
				})
				require.NoError(t, err)
			}
		}
		var wg sync.WaitGroup
		for _, e := range []*runbooks.Engine{f.engine, second.engine, f.engine, second.engine} {
			wg.Go(func() { _, _ = e.Tick(context.Background()) })
		}
		wg.Wait()
		for _, id := range f.actions.IDs() {
			f.actions.Verify(id)
		}
		f.store.Advance(5 * time.Second)
	}
	require.Len(t, f.actions.Started(), 10)
	for _, id := range ids {
		require.Equal(t, runbooks.StatusSucceeded, f.run(id).Status)
		require.Len(t, f.store.Kinds(id), 11)
	}
}
