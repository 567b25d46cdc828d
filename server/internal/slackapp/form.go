package slackapp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"holdfast/actions"
	"holdfast/server/chat"
)

const (
	formCallback = "action_form"
	// maxOptions and maxMetadata are Slack's limits for a select and a view.
	maxOptions  = 100
	maxMetadata = 3000
)

// formState travels with the form, inside Slack's signed payload; it holds no parameters.
type formState struct {
	ID      string `json:"id"`
	Subject string `json:"subject"`
}

// openForm shows the form of all actions. An option's value names an action and
// its target ("trip_breaker/dependency/llm"); numbers are asked for below.
func (a *App) openForm(ctx context.Context, trigger, subject string) error {
	forms, err := a.opts.Desk.FormActions(ctx)
	if err != nil {
		return err
	}
	state, err := json.Marshal(formState{ID: rand.Text(), Subject: subject})
	if err != nil || len(state) > maxMetadata {
		return fmt.Errorf("form state: %w", err)
	}
	options := formOptions(forms)
	if len(options) == 0 {
		return fmt.Errorf("there is no action with a target in the policy")
	}
	_, err = a.api.OpenViewContext(ctx, trigger, formView(options, numberParams(forms), string(state)))
	return err
}

func formView(options []*slack.OptionBlockObject, numbers []actions.Param, state string) slack.ModalViewRequest {
	pick := slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, plain("Choose an action", 150), "choice", options...)
	blocks := []slack.Block{slack.NewInputBlock("action", plain("Action", 2000), nil, pick)}
	for _, p := range numbers {
		in := slack.NewInputBlock("num_"+p.Name, plain(numberLabel(p), 2000), plain(p.Help, 2000), slack.NewPlainTextInputBlockElement(nil, "value"))
		in.Optional = true
		blocks = append(blocks, in)
	}
	reason := slack.NewPlainTextInputBlockElement(plain("What you see, in a few words", 150), "value")
	reason.MaxLength = 500
	blocks = append(blocks, slack.NewInputBlock("reason", plain("Reason", 2000), nil, reason))
	return slack.ModalViewRequest{
		Type: slack.VTModal, CallbackID: formCallback, PrivateMetadata: state,
		Title: plain("Run an action", 24), Submit: plain("Run", 24), Close: plain("Cancel", 24),
		Blocks: slack.Blocks{BlockSet: blocks},
	}
}

func numberLabel(p actions.Param) string {
	label := strings.ReplaceAll(p.Name, "_", " ")
	if p.Unit != "" {
		label += " (" + p.Unit + ")"
	}
	return label
}

// formOptions lists each action once for each target it may have now.
func formOptions(forms []FormAction) []*slack.OptionBlockObject {
	var out []*slack.OptionBlockObject
	for _, f := range forms {
		target, ok := targetParam(f)
		if !ok {
			continue
		}
		for _, choice := range f.Choices[target.Name] {
			if len(out) == maxOptions {
				return out
			}
			value := f.Spec.Name + "/" + target.Name + "/" + choice
			out = append(out, slack.NewOptionBlockObject(value, plain(f.Spec.Title+": "+choice, maxOptionText), nil))
		}
	}
	return out
}

func targetParam(f FormAction) (actions.Param, bool) {
	for _, p := range f.Spec.Params {
		if len(f.Choices[p.Name]) > 0 {
			return p, true
		}
	}
	return actions.Param{}, false
}

// numberParams are the numbers that any of the actions takes, each once.
func numberParams(forms []FormAction) []actions.Param {
	var out []actions.Param
	seen := map[string]bool{}
	for _, f := range forms {
		for _, p := range f.Spec.Params {
			if (p.Kind == "number" || p.Kind == "integer") && !seen[p.Name] {
				seen[p.Name] = true
				out = append(out, p)
			}
		}
	}
	return out
}

// submission checks a filled-in form at once, since Slack shows errors beside
// their fields only in the answer, and hands it on.
func (a *App) submission(w http.ResponseWriter, in interaction) {
	var state formState
	if in.View.CallbackID != formCallback || json.Unmarshal([]byte(in.View.PrivateMetadata), &state) != nil || state.ID == "" {
		a.refuse(w, http.StatusBadRequest, "malformed", "not one of our forms")
		return
	}
	sub, errs := readForm(in.View.State.Values)
	if len(errs) > 0 {
		writeJSON(w, map[string]any{"response_action": "errors", "errors": errs})
		return
	}
	sub.FormID, sub.Subject, sub.Team, sub.User = state.ID, state.Subject, in.Team.ID, in.User.ID
	a.enqueue(w, func(ctx context.Context) { a.submit(ctx, sub) })
}

// readForm turns the values into a submission, or into errors by block.
func readForm(values map[string]map[string]viewValue) (chat.FormSubmission, map[string]string) {
	errs := map[string]string{}
	parts := strings.SplitN(values["action"]["choice"].SelectedOption.Value, "/", 3)
	if len(parts) != 3 {
		return chat.FormSubmission{}, map[string]string{"action": "Choose an action."}
	}
	params := map[string]any{parts[1]: parts[2]}
	for block, v := range values {
		name, ok := strings.CutPrefix(block, "num_")
		text := strings.TrimSpace(v["value"].Value)
		if !ok || text == "" {
			continue
		}
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || n != n || n < 0 || n > 1e12 {
			errs[block] = "A number is needed here, such as 500."
			continue
		}
		params[name] = n
	}
	reason := strings.TrimSpace(values["reason"]["value"].Value)
	if reason == "" {
		errs["reason"] = "Say why, in a few words."
	}
	raw, err := json.Marshal(params)
	if err != nil {
		errs["action"] = "These values cannot be sent."
	}
	return chat.FormSubmission{Action: parts[0], Params: raw, Reason: reason}, errs
}

func (a *App) submit(ctx context.Context, sub chat.FormSubmission) {
	ans, err := a.opts.Chat.SubmitForm(ctx, sub)
	if err != nil {
		a.opts.Logger.Error("form not committed", "component", "slack", "error", err)
		ans.Text = "Nothing was done: holdfast could not record the form. Please try again."
	}
	a.whisper(ctx, a.opts.Channel, sub.User, ans.Text)
}
