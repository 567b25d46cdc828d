// Package runbooks holds runbooks and their runs: a fixed order of steps, each
// with a command, its expected effect, a pass criterion, a time limit and what to
// do when it fails (INCIDENTS A). A run freezes the version it began with, lives
// in rows and goes on where it was after a kill; nothing runs between ticks.
package runbooks

import (
	"time"

	"holdfast/gpuguard/signals"
)

// Phase is where a step belongs in the fixed order of an incident (INCIDENTS A).
type Phase string

// Phases, in their order.
const (
	PhaseIsolate Phase = "isolate"
	PhaseLocate  Phase = "locate"
	PhaseRestore Phase = "restore"
)

// StepKind is what a step does.
type StepKind string

// Step kinds.
const (
	// StepAction runs an action of the action engine.
	StepAction StepKind = "action"
	// StepCheck asks a PromQL question until its criterion holds or the time is up.
	StepCheck StepKind = "check"
	// StepDecision asks a person.
	StepDecision StepKind = "decision"
	// StepNote tells something and goes on at once.
	StepNote StepKind = "note"
	// StepWait lets time pass.
	StepWait StepKind = "wait"
)

// OnFailure is what happens when a step does not succeed.
type OnFailure string

// What to do on failure.
const (
	// FailAsk waits for a person: retry, go on without it, or stop. The default.
	FailAsk OnFailure = "ask"
	// FailStop ends the run as failed.
	FailStop OnFailure = "stop"
	// FailContinue goes on with the next step.
	FailContinue OnFailure = "continue"
)

// Runbook is one version of a runbook.
type Runbook struct {
	// ID names it, such as "slow-model"; Version is the SHA-256 of its canonical
	// form, hex, so that two texts never share one.
	ID      string `json:"id"`
	Version string `json:"version"`
	Title   string `json:"title"`
	Summary string `json:"summary"`
	Owner   string `json:"owner,omitempty"`
	// Params are asked for when it is started; "${name}" in texts, queries and
	// action parameters stands for their values.
	Params []Param `json:"params"`
	Steps  []Step  `json:"steps"`
}

// Param is one parameter of a runbook.
type Param struct {
	Name string `json:"name"`
	// Kind is a kind of action parameter (actions.Param), or "service" or "environment".
	Kind     string `json:"kind"`
	Required bool   `json:"required"`
	Default  string `json:"default,omitempty"`
	Help     string `json:"help"`
	Unit     string `json:"unit,omitempty"`
	// FromLabels are the alert labels that may fill it in, best first.
	FromLabels []string `json:"from_labels,omitempty"`
}

// Step is one step.
type Step struct {
	// ID is unique in the runbook.
	ID    string   `json:"id"`
	Phase Phase    `json:"phase"`
	Title string   `json:"title"`
	Kind  StepKind `json:"kind"`
	// Command is what the step does, in words or as a command line, for people.
	Command string `json:"command"`
	// Expect is the effect that should be seen.
	Expect string `json:"expect"`
	// Criterion is required for a check, and optional for an action: it is judged
	// after the action's own verification.
	Criterion *signals.Criterion `json:"criterion,omitempty"`
	// Timeout bounds the step; 0 means the default of its kind. Decisions have none unless one is given.
	Timeout   time.Duration `json:"-"`
	OnFailure OnFailure     `json:"on_failure"`
	// Action, Params and TTL are for StepAction. Parameter values are texts in which "${name}" is filled in.
	Action string            `json:"action,omitempty"`
	Params map[string]string `json:"params,omitempty"`
	TTL    time.Duration     `json:"-"`
	// Automatic lets an action run without a person pressing for it; then whoever
	// started the run asks for it.
	Automatic bool `json:"automatic,omitempty"`
	// Question and Choices are for StepDecision.
	Question string   `json:"question,omitempty"`
	Choices  []Choice `json:"choices,omitempty"`
	// Text is for StepNote.
	Text string `json:"text,omitempty"`
	// Wait is for StepWait.
	Wait time.Duration `json:"-"`
}

// Choice is one answer to a decision.
type Choice struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	// Goto is the id of a later step to go on with, "end" to end the run well, or empty for the next step.
	Goto string `json:"goto,omitempty"`
}
