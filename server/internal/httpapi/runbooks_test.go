package httpapi

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/gpuguard/signals"
	"holdfast/runbooks"
	"holdfast/server/alert"
	"holdfast/server/incident"
	"holdfast/server/internal/httpapi/gen"
)

// shelf proposes what stands in the annotation, filled in from the labels.
type shelf struct{ unused }

type unused Runbooks

func (shelf) Suggest(labels, annotations map[string]string) []runbooks.Suggestion {
	if annotations["runbook"] == "" {
		return nil
	}
	s := runbooks.Suggestion{Runbook: annotations["runbook"], Title: "T", Params: map[string]string{}, Why: "w"}
	for _, name := range []string{"service", "environment"} {
		if v := labels[name]; v != "" {
			s.Params[name] = v
		} else {
			s.Missing = append(s.Missing, name)
		}
	}
	return []runbooks.Suggestion{s}
}

func TestRunbooksAreProposedOnceWithAllThatAlertsFillIn(t *testing.T) {
	t.Parallel()
	a := &handlers{Options: Options{Runbooks: shelf{}}}
	slow := map[string]string{"runbook": "slow-model"}
	members := []alert.Occurrence{
		{Status: alert.StatusFiring, Annotations: slow, Labels: map[string]string{"service": "llm"}},
		{Status: alert.StatusFiring, Annotations: slow, Labels: map[string]string{"service": "other", "environment": "prod"}},
		{Status: alert.StatusFiring, Annotations: map[string]string{"runbook": "bad-deploy"}},
		{Status: alert.StatusFiring},
		{Status: alert.StatusResolved, Annotations: map[string]string{"runbook": "over"}},
	}
	require.Equal(t, []gen.RunbookSuggestion{
		{Runbook: "slow-model", Title: "T", Params: map[string]string{"service": "llm", "environment": "prod"}, Missing: []string{}, Why: "w"},
		{Runbook: "bad-deploy", Title: "T", Params: map[string]string{}, Missing: []string{"service", "environment"}, Why: "w"},
	}, a.suggestRunbooks(incident.Incident{Status: incident.StatusOpen}, members), "the newest alert's word counts, older ones complete it")
	require.Equal(t, []gen.RunbookSuggestion{}, a.suggestRunbooks(incident.Incident{Status: incident.StatusResolved}, members), "nothing once it is over, and a list")
}

func TestARunbookAsShown(t *testing.T) {
	t.Parallel()
	book := runbooks.Runbook{
		ID: "slow-model", Version: "v", Title: "T", Summary: "S",
		Params: []runbooks.Param{
			{Name: "service", Kind: "service", Required: true, Help: "h"},
			{Name: "rps", Kind: "number", Default: "8", Unit: "requests/s", Help: "h"},
		},
		Steps: []runbooks.Step{
			{
				ID: "limit", Phase: runbooks.PhaseIsolate, Title: "Limit ${service}", Kind: runbooks.StepAction, Command: "c", Expect: "e", OnFailure: runbooks.FailAsk,
				Criterion: &signals.Criterion{Query: `q{service="${service}"}`, Is: signals.Below, Value: 0.05, Unit: "ratio"}, Timeout: 3 * time.Minute,
				Action: "set_rate_limit", Params: map[string]string{"requests_per_second": "${rps}"}, TTL: 30 * time.Minute, Automatic: true,
			},
			{ID: "ask", Kind: runbooks.StepDecision, Question: "Q?", Choices: []runbooks.Choice{{ID: "yes", Label: "Yes", Goto: "end"}, {ID: "no", Label: "No"}}},
			{ID: "wait", Kind: runbooks.StepWait, Wait: 30 * time.Second},
		},
	}
	shown := func(v any) string {
		b, err := json.Marshal(v)
		require.NoError(t, err)
		return string(b)
	}
	require.JSONEq(t, `{
		"id": "slow-model", "version": "v", "title": "T", "summary": "S",
		"params": [
			{"name": "service", "kind": "service", "required": true, "help": "h", "choices": ["checkout", "llm"]},
			{"name": "rps", "kind": "number", "required": false, "default": "8", "unit": "requests/s", "help": "h"}],
		"steps": [
			{"id": "limit", "phase": "isolate", "title": "Limit ${service}", "kind": "action", "command": "c", "expect": "e", "on_failure": "ask",
			 "criterion": {"query": "q{service=\"${service}\"}", "is": "<", "value": 0.05, "unit": "ratio"}, "timeout": "3m0s",
			 "action": "set_rate_limit", "params": {"requests_per_second": "${rps}"}, "ttl": "30m0s", "automatic": true},
			{"id": "ask", "phase": "", "title": "", "kind": "decision", "command": "", "expect": "", "on_failure": "",
			 "question": "Q?", "choices": [{"id": "yes", "label": "Yes", "goto": "end"}, {"id": "no", "label": "No"}]},
			{"id": "wait", "phase": "", "title": "", "kind": "wait", "command": "", "expect": "", "on_failure": "", "wait": "30s"}]
	}`, shown(toRunbook(book, map[string][]string{"service": {"checkout", "llm"}})))

	value := 0.034
	run := toRunbookRun(runbooks.Run{
		ID: "b1", Runbook: book, Params: map[string]string{"service": "llm", "rps": "8"}, Status: runbooks.StatusWaiting, Current: 1, StartedAt: t0,
		Steps: []runbooks.StepState{
			{Status: runbooks.StepPassed, Attempt: 1, StartedAt: t0, EndedAt: t0, ActionRun: "a1", Value: &value, Detail: "3.4 %"},
			{Status: runbooks.StepAsking, Attempt: 1},
			{Status: runbooks.StepPending, Attempt: 1},
		},
	})
	require.Equal(t, "Limit llm", run.Steps[0].Step.Title, "steps are shown filled in")
	require.Equal(t, `q{service="llm"}`, run.Steps[0].Step.Criterion.Query)
	require.Equal(t, "8", (*run.Steps[0].Step.Params)["requests_per_second"])
	require.InDelta(t, 0.034, *run.Steps[0].Value, 0)
	require.Equal(t, []string{"yes", "no"}, run.Steps[1].Answers)
	require.Equal(t, []string{}, run.Steps[2].Answers, "a list, though nothing is asked")
	require.NotContains(t, shown(run), "null")
}
