package runbooks

import (
	"context"

	"holdfast/actions"
)

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

// Answer takes what a person says to the step that asks.
func (e *Engine) Answer(ctx context.Context, runID string, req AnswerRequest) (Run, error) {
	return Run{}, ErrWrongState
}

// Cancel ends the run. Leases that its actions hold stay.
func (e *Engine) Cancel(ctx context.Context, runID string, actor actions.Actor) (Run, error) {
	return Run{}, ErrWrongState
}

// Tick moves every due run on.
func (e *Engine) Tick(ctx context.Context) (int, error) { return 0, nil }

// Answers are what a person may say to step i now; empty when it asks nothing.
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
