package slackapp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"holdfast/actions"
	"holdfast/server/chat"
)

const (
	formCallback = "action_form"
	// maxOptions and maxMetadata are Slack's limits for a select and a view.
	maxOptions     = 100
	maxOptionValue = 150
	maxMetadata    = 3000
	// maxNumbers keeps the form below Slack's 100 blocks.
	maxNumbers = 20
)

// formState travels with the form, inside Slack's signed payload; it holds no values.
type formState struct {
	ID      string `json:"id"`
	Subject string `json:"subject"`
	// Numbers are the numbers each action takes, so that a submission is checked
	// at once, without the database.
	Numbers map[string]map[string]number `json:"numbers,omitempty"`
}

// number says how a number is asked for.
type number struct {
	Integer  bool `json:"i,omitempty"`
	Required bool `json:"r,omitempty"`
}

// errNoTargets: the policy names nothing that an action could work on.
var errNoTargets = errors.New("there is no action with a target in the policy")

// openForm shows the form of all actions. An option's value names an action and
// its target ("trip_breaker/dependency/llm"); numbers are asked for below.
func (a *App) openForm(ctx context.Context, trigger, subject string) error {
	forms, err := a.opts.Desk.FormActions(ctx)
	if err != nil {
		return err
	}
	view, err := newForm(forms, rand.Text(), subject)
	if err != nil {
		return err
	}
	_, err = a.api.OpenViewContext(ctx, trigger, view)
	return called("views.open", "", err)
}

// newForm draws the form of the given actions.
func newForm(forms []FormAction, id, subject string) (slack.ModalViewRequest, error) {
	options := formOptions(forms)
	if len(options) == 0 {
		return slack.ModalViewRequest{}, errNoTargets
	}
	state := formState{ID: id, Subject: subject, Numbers: map[string]map[string]number{}}
	for _, f := range forms {
		for _, p := range f.Spec.Params {
			if !isNumber(p) {
				continue
			}
			if state.Numbers[f.Spec.Name] == nil {
				state.Numbers[f.Spec.Name] = map[string]number{}
			}
			state.Numbers[f.Spec.Name][p.Name] = number{Integer: p.Kind == "integer", Required: p.Required}
		}
	}
	raw, err := json.Marshal(state)
	if err != nil {
		return slack.ModalViewRequest{}, fmt.Errorf("form state: %w", err)
	}
	if len(raw) > maxMetadata {
		return slack.ModalViewRequest{}, fmt.Errorf("form state of %d bytes: Slack takes %d", len(raw), maxMetadata)
	}
	return formView(options, numberParams(forms), string(raw)), nil
}

func isNumber(p actions.Param) bool { return p.Kind == "number" || p.Kind == "integer" }

func formView(options []*slack.OptionBlockObject, numbers []actions.Param, state string) slack.ModalViewRequest {
	pick := slack.NewOptionsSelectBlockElement(slack.OptTypeStatic, plain("Choose an action", 150), "choice", options...)
	blocks := []slack.Block{slack.NewInputBlock("action", plain("Action", 2000), nil, pick)}
	for _, p := range numbers {
		in := slack.NewInputBlock("num_"+p.Name, plain(numberLabel(p), 2000), nil, slack.NewPlainTextInputBlockElement(nil, "value"))
		if p.Help != "" {
			in.Hint = plain(p.Help, 2000)
		}
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
			if utf8.RuneCountInString(value) > maxOptionValue {
				continue // too long for Slack; the console offers it
			}
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
			if isNumber(p) && !seen[p.Name] && len(out) < maxNumbers {
				seen[p.Name] = true
				out = append(out, p)
			}
		}
	}
	return out
}

// submission checks a filled-in form at once, since Slack shows errors beside
// their fields only in the answer, and hands it on.
func (a *App) submission(w http.ResponseWriter, in interaction) bool {
	var state formState
	if in.View.CallbackID != formCallback || json.Unmarshal([]byte(in.View.PrivateMetadata), &state) != nil || state.ID == "" {
		return a.malformed(w, "not one of our forms")
	}
	sub, errs := readForm(state, in.View.State.Values)
	if len(errs) > 0 {
		a.metrics.requests.WithLabelValues("form_errors").Inc()
		writeJSON(w, map[string]any{"response_action": "errors", "errors": errs})
		return true
	}
	sub.FormID, sub.Subject, sub.Team, sub.User = state.ID, state.Subject, in.Team.ID, in.User.ID
	return a.enqueue(w, func(ctx context.Context) { a.submit(ctx, sub) })
}

// readForm turns the values into a submission, or into errors by block.
func readForm(state formState, values map[string]map[string]viewValue) (chat.FormSubmission, map[string]string) {
	parts := strings.SplitN(values["action"]["choice"].SelectedOption.Value, "/", 3)
	if len(parts) != 3 {
		return chat.FormSubmission{}, map[string]string{"action": "Choose an action."}
	}
	params, errs := readNumbers(state.Numbers[parts[0]], values)
	params[parts[1]] = parts[2]
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

// readNumbers reads the numbers an action takes. One it does not take is an error
// beside its field: a figure that is silently left out misleads.
func readNumbers(takes map[string]number, values map[string]map[string]viewValue) (map[string]any, map[string]string) {
	params, errs := map[string]any{}, map[string]string{}
	for block, v := range values {
		name, ok := strings.CutPrefix(block, "num_")
		if !ok {
			continue
		}
		text := strings.TrimSpace(v["value"].Value)
		want, taken := takes[name]
		n, err := strconv.ParseFloat(text, 64)
		switch {
		case text == "" && taken && want.Required:
			errs[block] = "This action needs this number."
		case text == "":
		case !taken:
			errs[block] = "This action does not take this number: leave it empty."
		case err != nil || math.IsNaN(n) || n < 0 || n > 1e12:
			errs[block] = "A number is needed here, such as 500."
		case want.Integer && n != math.Trunc(n):
			errs[block] = "A whole number is needed here, such as 500."
		default:
			params[name] = n
		}
	}
	return params, errs
}

func (a *App) submit(ctx context.Context, sub chat.FormSubmission) {
	ans, err := a.opts.Chat.SubmitForm(ctx, sub)
	if err != nil {
		a.opts.Logger.Error("form not committed", "error", err)
		ans.Text = "Nothing was done: holdfast could not record the form. Please try again."
	}
	a.whisper(a.opts.Channel, sub.User, ans.Text)
}
