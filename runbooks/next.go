package runbooks

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast/actions"
	"holdfast/gpuguard/signals"
)

// waits are the waits of the state machine.
type waits struct {
	// checkEvery is between two judgements of one criterion.
	checkEvery time.Duration
}

// view is everything a transition is decided on beside the run itself.
type view struct {
	// action is the action run of the current step, once it is started or found.
	action *actions.Run
	// refused is why the action engine took no action run for it; final.
	refused error
	// judged is the judgement of the step's criterion; nil when it was not asked for.
	judged *judgement
}

// judgement is what a criterion says now.
type judgement struct {
	signals.Judgement
	// problem says why there was no answer at all; empty when there was one.
	problem string
}

// transition is one step of the state machine, to be done in one transaction.
type transition struct {
	run    Run
	events []Event
	// ended are the statuses of the steps that came to an end.
	ended []StepStatus
}

// next decides how a run moves on: pure, so that every table and every random
// walk can be checked. False means that there is nothing to do yet.
func next(run Run, v view, now time.Time, waits waits) (transition, bool) {
	if !run.Live() || run.Current >= len(run.Steps) {
		return transition{}, false
	}
	m := move(run, now)
	step, state := m.step(), m.state()
	switch state.Status {
	case StepPending:
		m.begin()
		return m.transition, true
	case StepAsking:
		if state.Deadline.IsZero() || now.Before(state.Deadline) {
			return transition{}, false
		}
		m.fail(StepFailed, fmt.Sprintf("nobody answered within %s", step.Timeout))
		return m.transition, true
	case StepRunning:
		return m.nextRunning(v, waits)
	default:
		return transition{}, false // failed or inconclusive: a person is asked what to do
	}
}

// maxEvent bounds the text of an event, in characters.
const maxEvent = 1500

// mover builds a transition.
type mover struct {
	transition
	now time.Time
	// actor is who moves the run: a person who answers, else holdfast itself.
	actor actions.Actor
}

func move(run Run, now time.Time) *mover {
	run.Steps = slices.Clone(run.Steps)
	return &mover{transition: transition{run: run}, now: now, actor: actions.Actor{Name: systemName, Channel: systemName}}
}

func (m *mover) step() Step        { return m.run.Runbook.Steps[m.run.Current] }
func (m *mover) state() *StepState { return &m.run.Steps[m.run.Current] }

// say records an event about the current step.
func (m *mover) say(kind EventKind, thread bool, format string, args ...any) {
	i := m.run.Current
	m.events = append(m.events, Event{
		Kind: kind, Actor: m.actor, Step: m.step().ID, Thread: thread,
		Text: clip(fmt.Sprintf("%s, step %d/%d, %s: %s", m.run.Runbook.Title, i+1, len(m.run.Steps), m.run.Filled(i).Title, fmt.Sprintf(format, args...)), maxEvent),
	})
}

// begin starts the current step.
func (m *mover) begin() {
	step, state := m.step(), m.state()
	state.StartedAt = m.now
	m.run.Status, m.run.NextAt = StatusRunning, m.now
	switch step.Kind {
	case StepAction:
		if step.Automatic {
			state.Status = StepRunning
			return
		}
		m.ask("run it? %s Expected: %s", sentence(m.run.Filled(m.run.Current).Command), m.run.Filled(m.run.Current).Expect)
	case StepCheck:
		state.Status, state.Deadline = StepRunning, m.now.Add(step.Timeout)
	case StepDecision:
		filled := m.run.Filled(m.run.Current)
		labels := make([]string, len(filled.Choices))
		for i, c := range filled.Choices {
			labels[i] = c.Label
		}
		if step.Timeout > 0 {
			state.Deadline = m.now.Add(step.Timeout)
		}
		m.ask("%s (%s)", filled.Question, strings.Join(labels, " / "))
		m.run.NextAt = state.Deadline
	case StepWait:
		state.Status, state.Deadline = StepRunning, m.now.Add(step.Wait)
		m.run.NextAt = state.Deadline
	case StepNote:
		m.end(StepPassed, "")
		m.say(EventStep, true, "%s", m.run.Filled(m.run.Current).Text)
		m.goOn(m.run.Current + 1)
	default:
		m.fail(StepFailed, fmt.Sprintf("steps of kind %q are not known to this version of holdfast", step.Kind))
	}
}

// ask lets the run wait for a person.
func (m *mover) ask(format string, args ...any) {
	m.state().Status = StepAsking
	m.run.Status, m.run.NextAt = StatusWaiting, time.Time{}
	m.say(EventAsked, true, format, args...)
}

func (m *mover) nextRunning(v view, waits waits) (transition, bool) {
	state := m.state()
	switch m.step().Kind {
	case StepAction:
		return m.nextAction(v, waits)
	case StepWait:
		if m.now.Before(state.Deadline) {
			return transition{}, false
		}
		m.pass(fmt.Sprintf("waited %s", m.step().Wait))
		return m.transition, true
	case StepCheck:
		if v.judged == nil {
			return transition{}, false
		}
		m.judge(*v.judged, waits)
		return m.transition, true
	default:
		return transition{}, false // decisions ask, and notes are over at once
	}
}

// judge takes the judgement of a criterion in. Only data lets a step pass, and
// a criterion that holds in the last look counts, however late that is.
func (m *mover) judge(j judgement, waits waits) {
	state := m.state()
	detail := j.text(*m.step().Criterion)
	state.Value = j.Value
	switch over := !m.now.Before(state.Deadline); {
	case j.Verdict == signals.Pass:
		m.pass(detail)
	case over && j.Verdict == signals.Fail:
		m.fail(StepFailed, detail)
	case over:
		m.fail(StepInconclusive, detail)
	default:
		state.Detail = detail
		m.run.NextAt = earlier(m.now.Add(waits.checkEvery), state.Deadline)
	}
}

// pass ends the current step well and goes on.
func (m *mover) pass(detail string) {
	m.end(StepPassed, detail)
	m.say(EventStep, true, "%s", outcome("passed", detail))
	m.goOn(m.run.Current + 1)
}

// fail ends the current step without success and does what it says for that case.
func (m *mover) fail(status StepStatus, detail string) {
	step := m.step()
	m.end(status, detail)
	what := outcome(string(status), detail)
	switch step.OnFailure {
	case FailStop:
		m.say(EventStep, false, "%s", what)
		m.stop(systemName, what)
	case FailContinue:
		m.say(EventStep, true, "%s; the run goes on", what)
		m.goOn(m.run.Current + 1)
	default:
		m.say(EventStep, false, "%s", what)
		m.run.Status, m.run.NextAt = StatusWaiting, time.Time{}
		m.say(EventAsked, true, "%s. Retry, skip it, or stop?", what)
	}
}

// skip leaves the current step out.
func (m *mover) skip(detail string) {
	m.end(StepSkipped, detail)
	m.goOn(m.run.Current + 1)
}

func outcome(what, detail string) string {
	if detail == "" {
		return what
	}
	return what + ": " + detail
}

func (m *mover) end(status StepStatus, detail string) {
	state := m.state()
	state.Status, state.Detail, state.EndedAt = status, detail, m.now
	m.ended = append(m.ended, status)
}

// goOn makes step i the current one; those between are not needed.
func (m *mover) goOn(i int) {
	last := m.run.Current
	for m.run.Current++; m.run.Current < i; m.run.Current++ {
		m.end(StepSkipped, "not needed after "+m.run.Runbook.Steps[last].ID)
	}
	if i < len(m.run.Steps) {
		m.run.Status, m.run.NextAt = StatusRunning, m.now
		return
	}
	m.finish(last)
}

// finish ends a run that came to its end: well, unless its last step did not succeed.
func (m *mover) finish(last int) {
	status, kind := StatusSucceeded, EventFinished
	if s := m.run.Steps[last].Status; s == StepFailed || s == StepInconclusive {
		status, kind = StatusFailed, EventFailed
	}
	m.over(status, systemName)
	m.tell(kind, "finished after %s: %s", m.now.Sub(m.run.StartedAt).Round(time.Second), m.tally())
}

// stop ends the run at the current step as failed.
func (m *mover) stop(by, why string) {
	m.over(StatusFailed, by)
	m.tell(EventFailed, "stopped by %s: %s", by, why)
}

func (m *mover) over(status Status, by string) {
	m.run.Status, m.run.Current = status, len(m.run.Steps)
	m.run.EndedAt, m.run.EndedBy, m.run.NextAt = m.now, by, time.Time{}
}

// tell records an event about the whole run.
func (m *mover) tell(kind EventKind, format string, args ...any) {
	m.events = append(m.events, Event{
		Kind: kind, Actor: m.actor, Thread: true,
		Text: clip(fmt.Sprintf("%s: %s", m.run.Runbook.Title, fmt.Sprintf(format, args...)), maxEvent),
	})
}

// tally counts how the steps ended, such as "7 passed, 1 skipped".
func (m *mover) tally() string {
	var parts []string
	for _, status := range []StepStatus{StepPassed, StepSkipped, StepFailed, StepInconclusive} {
		n := 0
		for _, s := range m.run.Steps {
			if s.Status == status {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, status))
		}
	}
	return strings.Join(parts, ", ")
}
