package runbooks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"holdfast/actions"
	"holdfast/strict"
)

// maxNote is the longest note to an answer, in characters.
const maxNote = 500

// AnswerRequest is what a person says to a step that asks.
type AnswerRequest struct {
	// Step and Attempt name what was looked at; when another step or attempt asks now, the answer is refused.
	Step    string
	Attempt int
	// Answer is one of Run.Answers.
	Answer string
	// Note goes into the timeline; may be empty, at most 500 characters.
	Note  string
	Actor actions.Actor
}

// Answers are what a person may say to step i now; empty when it asks nothing.
// An action step asks for "run", "skip" or "stop" before it runs, a decision for
// one of its choices, and a step that did not succeed for "retry", "skip" or "stop".
func (r Run) Answers(i int) []string {
	if !r.Live() || i != r.Current || i >= len(r.Steps) {
		return []string{}
	}
	step := r.Runbook.Steps[i]
	switch r.Steps[i].Status {
	case StepFailed, StepInconclusive:
		return []string{AnswerRetry, AnswerSkip, AnswerStop}
	case StepAsking:
		if step.Kind != StepDecision {
			return []string{AnswerRun, AnswerSkip, AnswerStop}
		}
		ids := make([]string, len(step.Choices))
		for j, c := range step.Choices {
			ids[j] = c.ID
		}
		return ids
	default:
		return []string{}
	}
}

// Answer takes what a person says to the step that asks, in one transaction; the
// run moves on with the next tick. ErrWrongState, with the run, when that step
// and attempt asks nothing (any more): it says who answered what and when.
// ErrInvalid when it cannot be answered so, ErrNotFound, and ErrForbidden, which is recorded.
func (e *Engine) Answer(ctx context.Context, runID string, req AnswerRequest) (Run, error) {
	req.Note = strings.TrimSpace(req.Note)
	odd := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }
	switch n := utf8.RuneCountInString(req.Note); {
	case n > maxNote:
		return Run{}, invalid("note", "is %d characters long: at most %d fit", n, maxNote)
	case !utf8.ValidString(req.Note) || strings.ContainsFunc(req.Note, odd):
		return Run{}, invalid("note", "has control characters")
	}
	return e.control(ctx, runID, req.Step, req.Actor, "answer", func(run Run, now time.Time) (transition, error) {
		return answered(run, req, now)
	})
}

// Cancel ends the run; the leases that its actions hold stay, and the event
// names them. ErrWrongState, with the run, when it is over already.
func (e *Engine) Cancel(ctx context.Context, runID string, actor actions.Actor) (Run, error) {
	run, err := e.Find(ctx, runID)
	if err != nil {
		return Run{}, fmt.Errorf("cancel runbook run %s: %w", runID, err)
	}
	left := e.inForce(ctx, run)
	return e.control(ctx, runID, "", actor, "cancel", func(run Run, now time.Time) (transition, error) {
		return cancelled(run, left, actor, now)
	})
}

// inForce describes the action runs of a run that hold or will hold a lease.
func (e *Engine) inForce(ctx context.Context, run Run) []string {
	var list, seen []string
	for _, s := range run.Steps {
		if s.ActionRun == "" || slices.Contains(seen, s.ActionRun) {
			continue
		}
		seen = append(seen, s.ActionRun)
		a, err := e.actions.Find(ctx, s.ActionRun)
		switch {
		case err != nil:
			list = append(list, fmt.Sprintf("run %s (it could not be read)", s.ActionRun))
		case a.Live() && a.ExpiresAt.IsZero():
			list = append(list, fmt.Sprintf("%s (run %s)", a.Plan.Summary, a.ID))
		case a.Live():
			list = append(list, fmt.Sprintf("%s (run %s, until %s)", a.Plan.Summary, a.ID, clock(a.ExpiresAt)))
		}
	}
	return list
}

// answered decides what an answer does.
func answered(run Run, req AnswerRequest, now time.Time) (transition, error) {
	if err := asks(run, req); err != nil {
		return transition{}, err
	}
	m := move(run, now)
	m.actor = req.Actor
	step, state := m.step(), m.state()
	asking := state.Status == StepAsking
	state.Choice, state.By, state.AnsweredAt = req.Answer, req.Actor.Name, now
	said := req.Answer
	if req.Note != "" {
		said += " – " + req.Note
	}
	switch {
	case asking && step.Kind == StepDecision:
		m.chosen(req, said)
	case req.Answer == AnswerRun, req.Answer == AnswerRetry:
		m.say(EventAnswered, true, "%s says %s", req.Actor.Name, said)
		m.press(req.Answer == AnswerRetry, req.Actor)
	case req.Answer == AnswerSkip:
		m.say(EventAnswered, true, "%s says %s", req.Actor.Name, said)
		detail := "skipped by " + req.Actor.Name
		if !asking {
			detail += fmt.Sprintf(" after it was %s: %s", state.Status, state.Detail)
		}
		m.skip(detail)
	default: // stop
		m.say(EventAnswered, false, "%s says %s", req.Actor.Name, said)
		if asking {
			m.end(StepSkipped, "the run was stopped here")
		}
		m.stop(req.Actor.Name, cmp.Or(req.Note, fmt.Sprintf("at step %d/%d, %s", m.run.Current+1, len(m.run.Steps), m.run.Filled(m.run.Current).Title)))
	}
	return m.transition, nil
}

// chosen goes where the choice of a decision leads.
func (m *mover) chosen(req AnswerRequest, said string) {
	step := m.run.Filled(m.run.Current)
	choice := step.Choices[slices.IndexFunc(step.Choices, func(c Choice) bool { return c.ID == req.Answer })]
	m.say(EventAnswered, true, "%s says %s", req.Actor.Name, strings.Replace(said, choice.ID, choice.Label, 1))
	m.end(StepPassed, choice.Label)
	to := m.run.Current + 1
	switch {
	case choice.Goto == gotoEnd:
		to = len(m.run.Steps)
	case choice.Goto != "":
		to = slices.IndexFunc(m.run.Runbook.Steps, func(s Step) bool { return s.ID == choice.Goto })
	}
	m.goOn(to)
}

// press lets the current step begin, or begin again. A retried action needs no
// second press, and keeps the action run of an earlier attempt: when that is in
// force, it is followed, because a second one would find its own path leased.
func (m *mover) press(again bool, by actions.Actor) {
	state := m.state()
	if again {
		*state = StepState{
			Attempt: state.Attempt + 1, ActionRun: state.ActionRun,
			Choice: state.Choice, By: state.By, AnsweredAt: state.AnsweredAt,
		}
		state.Status = StepPending
	}
	if m.step().Kind == StepAction {
		state.Status, state.StartedAt, state.PressedBy = StepRunning, m.now, &by
	}
	m.run.Status, m.run.NextAt = StatusRunning, m.now
}

// asks says why the request answers nothing, or nil.
func asks(run Run, req AnswerRequest) error {
	if !run.Live() {
		return overAlready(run)
	}
	i := slices.IndexFunc(run.Runbook.Steps, func(s Step) bool { return s.ID == req.Step })
	if i < 0 {
		return invalid("step", "the runbook has no step %q", clip(req.Step, 80))
	}
	state, answers := run.Steps[i], run.Answers(i)
	switch {
	case i != run.Current || req.Attempt != state.Attempt || len(answers) == 0:
		return fmt.Errorf("%w: %s", ErrWrongState, history(run, i))
	case !slices.Contains(answers, req.Answer):
		return invalid("answer", "is %q: want one of %s", clip(req.Answer, 80), strings.Join(answers, ", "))
	default:
		return nil
	}
}

// history says who answered step i what and when, and what the run asks now.
func history(run Run, i int) string {
	state := run.Steps[i]
	text := fmt.Sprintf("step %s asks nothing now", run.Runbook.Steps[i].ID)
	if state.By != "" {
		text = fmt.Sprintf("%s answered %q to step %s at %s", state.By, state.Choice, run.Runbook.Steps[i].ID, clock(state.AnsweredAt))
	}
	switch now := run.Steps[run.Current]; {
	case len(run.Answers(run.Current)) == 0:
		return text
	case run.Current == i:
		return fmt.Sprintf("%s; attempt %d of it asks now", text, now.Attempt)
	default:
		return fmt.Sprintf("%s; step %s asks now", text, run.Runbook.Steps[run.Current].ID)
	}
}

// overAlready says how and when a run came to its end.
func overAlready(run Run) error {
	return fmt.Errorf("%w: it ended at %s as %s by %s", ErrWrongState, clock(run.EndedAt), run.Status, run.EndedBy)
}

// cancelled ends a run where it is.
func cancelled(run Run, left []string, actor actions.Actor, now time.Time) (transition, error) {
	if !run.Live() {
		return transition{}, overAlready(run)
	}
	m := move(run, now)
	m.actor = actor
	if slices.Contains([]StepStatus{StepPending, StepAsking, StepRunning}, m.state().Status) {
		m.end(StepSkipped, "the run was cancelled here")
	}
	m.over(StatusCancelled, actor.Name)
	text := "no measure of it is in force"
	if len(left) > 0 {
		text = "these stay in force until they are reverted or expire: " + strings.Join(left, "; ")
	}
	m.tell(EventCancelled, "cancelled by %s; %s", actor.Name, text)
	return m.transition, nil
}

// invalid is ErrInvalid with one problem.
func invalid(path, format string, args ...any) error {
	var errs strict.Errors
	errs.Addf(path, format, args...)
	return fmt.Errorf("%w: %w", ErrInvalid, errs)
}

// tries is how often a transition is decided anew when something moved under it.
const tries = 4

// control does what a person asks of a run in one transaction.
func (e *Engine) control(ctx context.Context, runID, step string, actor actions.Actor, verb string, decide func(Run, time.Time) (transition, error)) (Run, error) {
	if actor.Name == "" {
		return Run{}, invalid("actor", "is missing: somebody must answer for it")
	}
	for range tries {
		tr, run, err := e.controlOnce(ctx, runID, actor, decide)
		switch {
		case errors.Is(err, ErrStale):
			continue
		case errors.Is(err, ErrForbidden):
			return Run{}, e.deny(ctx, run, clip(step, 80), actor, forbidden(actor, verb, run.Runbook))
		case errors.Is(err, ErrWrongState):
			return run, fmt.Errorf("%s runbook run %s: %w", verb, runID, err)
		case err != nil:
			return Run{}, fmt.Errorf("%s runbook run %s: %w", verb, runID, err)
		}
		e.counts.saw(tr)
		e.kick()
		return tr.run, nil
	}
	return Run{}, fmt.Errorf("%s runbook run %s: %w", verb, runID, ErrStale)
}

func (e *Engine) controlOnce(ctx context.Context, runID string, actor actions.Actor, decide func(Run, time.Time) (transition, error)) (tr transition, run Run, err error) {
	err = e.store.InTx(ctx, func(tx Tx) error {
		if err := lock(tx, runID); err != nil {
			return err
		}
		if run, err = tx.RunbookRun(runID); err != nil {
			return err
		}
		allowed, err := tx.Allowed(actor, Role)
		if err != nil {
			return err
		}
		if !allowed {
			return ErrForbidden
		}
		if tr, err = decide(run, tx.Now()); err != nil {
			return err
		}
		return apply(tx, &tr)
	})
	return tr, run, err
}
