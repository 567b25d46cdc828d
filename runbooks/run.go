package runbooks

import (
	"errors"
	"time"

	"holdfast/actions"
)

// Status of a run.
type Status string

// Statuses.
const (
	StatusRunning Status = "running"
	// StatusWaiting: a person is asked.
	StatusWaiting   Status = "waiting"
	StatusSucceeded Status = "succeeded"
	StatusFailed    Status = "failed"
	StatusCancelled Status = "cancelled"
)

// StepStatus is how far a step got.
type StepStatus string

// Step statuses.
const (
	StepPending StepStatus = "pending"
	// StepAsking: a person is to press, decide, or say what to do about a failure.
	StepAsking  StepStatus = "asking"
	StepRunning StepStatus = "running"
	StepPassed  StepStatus = "passed"
	StepFailed  StepStatus = "failed"
	// StepInconclusive: the time is up and there was no data to judge with.
	StepInconclusive StepStatus = "inconclusive"
	StepSkipped      StepStatus = "skipped"
)

// Run is one execution of a runbook.
type Run struct {
	ID string
	// Key makes starting idempotent: the caller's Idempotency-Key, prefixed with the person.
	Key string
	// Runbook is the version it began with, frozen, with nothing filled in.
	Runbook Runbook
	// Params are all parameters with their values.
	Params     map[string]string
	IncidentID string
	StartedBy  actions.Actor
	Status     Status
	// Current is the index of the step in progress; len(Steps) when it has ended.
	Current int
	Steps   []StepState
	// StartedAt and EndedAt are database times.
	StartedAt time.Time
	EndedAt   time.Time
	EndedBy   string
	// NextAt is when the ticker looks again; zero means never.
	NextAt time.Time
	// Version is for compare-and-set.
	Version int64
}

// StepState is what became of one step of a run.
type StepState struct {
	Status StepStatus `json:"status"`
	// Attempt counts from 1; a retry raises it.
	Attempt int `json:"attempt"`
	// StartedAt is when the step began, Deadline when its time is up, EndedAt when it was over.
	StartedAt time.Time `json:"started_at,omitzero"`
	Deadline  time.Time `json:"deadline,omitzero"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
	// ActionRun is the run that an action step started. A retry keeps the one of
	// an earlier attempt while that is in force.
	ActionRun string `json:"action_run,omitempty"`
	// Value is the last value seen of the criterion; nil when there was no data.
	Value *float64 `json:"value,omitempty"`
	// Detail is one line for people: what was seen, or why it failed.
	Detail string `json:"detail,omitempty"`
	// Choice and By are what a person said last, and who; AnsweredAt is when.
	Choice     string    `json:"choice,omitempty"`
	By         string    `json:"by,omitempty"`
	AnsweredAt time.Time `json:"answered_at,omitzero"`
	// PressedBy is the person who let an action step run; the action is theirs.
	PressedBy *actions.Actor `json:"pressed_by,omitempty"`
}

// Live says whether the run goes on.
func (r Run) Live() bool { return r.Status == StatusRunning || r.Status == StatusWaiting }

// Answers a person gives to a step that asks, besides the choices of a decision.
const (
	// AnswerRun lets an action step run.
	AnswerRun = "run"
	// AnswerRetry tries a step that did not succeed again.
	AnswerRetry = "retry"
	// AnswerSkip goes on without the step.
	AnswerSkip = "skip"
	// AnswerStop ends the run as failed.
	AnswerStop = "stop"
)

// Suggestion is a runbook proposed for an alert, with what its labels fill in.
type Suggestion struct {
	Runbook string
	Title   string
	Params  map[string]string
	// Missing names required parameters that nothing filled in.
	Missing []string
	Why     string
}

// Sentinels.
var (
	ErrUnknownRunbook = errors.New("unknown runbook")
	ErrNotFound       = errors.New("runbook run not found")
	// ErrInvalid wraps what is wrong with a request or a file.
	ErrInvalid   = errors.New("invalid runbook request")
	ErrForbidden = errors.New("not allowed")
	ErrDuplicate = errors.New("already started")
	ErrStale     = errors.New("somebody else changed it at the same moment")
	// ErrWrongState: the step does not ask for this now.
	ErrWrongState = errors.New("not possible in this state")
)
