package slackapp

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/actions"
	"holdfast/server/chat"
	"holdfast/server/slacksim"
)

func formActions() []FormAction {
	return []FormAction{
		{
			Spec:    actions.Spec{Name: "trip_breaker", Title: "Trip breaker", Params: []actions.Param{{Name: "dependency", Kind: "dependency", Required: true}}},
			Choices: map[string][]string{"dependency": {"llm", "vector/db"}},
		},
		{
			Spec: actions.Spec{Name: "set_rate_limit", Title: "Set rate limit", Params: []actions.Param{
				{Name: "target", Kind: "limit_target", Required: true},
				{Name: "requests_per_second", Kind: "number", Required: true, Unit: "requests/s", Help: "The sustained rate of all gateways together."},
				{Name: "burst", Kind: "integer", Unit: "requests"},
			}},
			Choices: map[string][]string{"target": {"global", "route:chat"}},
		},
	}
}

func TestGoldenForm(t *testing.T) {
	t.Parallel()
	view, err := newForm(formActions(), "FORMID", card1)
	require.NoError(t, err)
	golden(t, "form", view)
	_, err = newForm(nil, "FORMID", card1)
	require.ErrorIs(t, err, errNoTargets)
}

// openedForm presses More… and gives the form that alice sees.
func openedForm(t *testing.T) (*world, slacksim.View) {
	t.Helper()
	w := newWorld(t, setup{})
	w.domain.actions = formActions()
	w.domain.accept = func(_ context.Context, p chat.Press) (chat.Answer, error) {
		return chat.Answer{OpenForm: true, Subject: card1}, nil
	}
	m := w.posted()
	res, err := w.sim.Click(t.Context(), slacksim.ClickRequest{Channel: incidents, TS: m.TS, ActionID: actionPrefix + "MOREBUTTON", UserID: alice})
	require.NoError(t, err)
	require.True(t, res.Acked())
	w.settle()
	view, ok := w.sim.OpenView(alice)
	require.True(t, ok, w.logs.String())
	return w, view
}

func TestFormRoundTrip(t *testing.T) {
	t.Parallel()
	w, view := openedForm(t)
	res, err := w.sim.SubmitView(t.Context(), slacksim.SubmitRequest{ViewID: view.ID, UserID: alice, Values: map[string][]string{
		"action/choice": {"set_rate_limit/target/route:chat"}, "num_requests_per_second/value": {" 12.5 "}, "reason/value": {"queue grows"},
	}})
	require.NoError(t, err)
	require.True(t, res.Acked())
	w.settle()
	require.Len(t, w.domain.forms, 1)
	f := w.domain.forms[0]
	require.Equal(t, "set_rate_limit", f.Action)
	require.JSONEq(t, `{"target":"route:chat","requests_per_second":12.5}`, string(f.Params))
	require.Equal(t, "queue grows", f.Reason)
	require.Equal(t, card1, f.Subject)
	require.Equal(t, alice, f.User)
	require.Equal(t, "T0HOLDFAST", f.Team)
	require.Len(t, f.FormID, 26)
	_, open := w.sim.OpenView(alice)
	require.False(t, open)
	told := w.sim.Ephemerals(alice)
	require.Len(t, told, 1)
	require.Equal(t, "form accepted", told[0].Text)
}

func TestFormErrorsStandBesideTheirFields(t *testing.T) {
	t.Parallel()
	w, view := openedForm(t)
	for name, c := range map[string]struct {
		choice, rate, burst string
		field               string
	}{
		"needed number is missing": {"set_rate_limit/target/global", "", "", "num_requests_per_second"},
		"no number":                {"set_rate_limit/target/global", "many", "", "num_requests_per_second"},
		"NaN":                      {"set_rate_limit/target/global", "NaN", "", "num_requests_per_second"},
		"infinite":                 {"set_rate_limit/target/global", "Inf", "", "num_requests_per_second"},
		"negative":                 {"set_rate_limit/target/global", "-1", "", "num_requests_per_second"},
		"not whole":                {"set_rate_limit/target/global", "5", "1.5", "num_burst"},
		"not taken":                {"trip_breaker/dependency/llm", "5", "", "num_requests_per_second"},
	} {
		_, err := w.sim.SubmitView(t.Context(), slacksim.SubmitRequest{ViewID: view.ID, UserID: alice, Values: map[string][]string{
			"action/choice": {c.choice}, "num_requests_per_second/value": {c.rate}, "num_burst/value": {c.burst}, "reason/value": {"x"},
		}})
		require.NoError(t, err, name)
		shown, ok := w.sim.OpenView(alice)
		require.True(t, ok, name)
		require.Contains(t, shown.Errors, c.field, name)
		w.clock.advance(1e9)
	}
	w.settle()
	require.Empty(t, w.domain.forms)
}

func TestFormOfATargetWithASlash(t *testing.T) {
	t.Parallel()
	w, view := openedForm(t)
	_, err := w.sim.SubmitView(t.Context(), slacksim.SubmitRequest{ViewID: view.ID, UserID: alice, Values: map[string][]string{
		"action/choice": {"trip_breaker/dependency/vector/db"}, "reason/value": {"x"},
	}})
	require.NoError(t, err)
	w.settle()
	require.Len(t, w.domain.forms, 1)
	require.JSONEq(t, `{"dependency":"vector/db"}`, string(w.domain.forms[0].Params))
}

func TestFormOptionsStayWithinSlacksLimits(t *testing.T) {
	t.Parallel()
	f := formActions()[0]
	f.Choices["dependency"] = []string{strings.Repeat("x", 300)}
	for range 300 {
		f.Choices["dependency"] = append(f.Choices["dependency"], "模型")
	}
	options := formOptions([]FormAction{f})
	require.Len(t, options, maxOptions)
	for _, o := range options {
		require.LessOrEqual(t, len([]rune(o.Value)), maxOptionValue)
	}
}
