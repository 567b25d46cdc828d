package slacksim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// SubmitRequest fills in and submits, or closes, a modal.
type SubmitRequest struct {
	// ViewID names the view, UserID its owner.
	ViewID, UserID string
	// Values are the inputs by "action_id" or "block_id/action_id". An element
	// not named keeps its initial value.
	Values map[string][]string
	// Tamper changes the delivery.
	Tamper Tamper
}

// SubmitView submits a modal and does what the app's answer says: nothing
// closes the view, response_action may show errors, update, push or clear. A
// submission Slack's client would hold back (a required input left empty)
// returns ErrInput and sends nothing.
func (s *Sim) SubmitView(ctx context.Context, in SubmitRequest) (ClickResult, error) {
	u, err := s.actor(in.UserID)
	if err != nil {
		return ClickResult{}, err
	}
	st := s.state
	st.mu.Lock()
	v, err := st.ownView(in)
	if err == nil {
		v.values, err = readValues(v.Blocks, in.Values)
	}
	if err != nil {
		st.mu.Unlock()
		return ClickResult{}, fmt.Errorf("slacksim: submit: %w", err)
	}
	v.Errors = nil
	payload := s.envelope("view_submission", u, in.Tamper)
	trigger := st.newTrigger(u.ID, v.ID)
	payload["trigger_id"], payload["view"], payload["response_urls"] = trigger, s.wireView(v), []any{}
	what := or(v.CallbackID, v.ID)
	st.mu.Unlock()
	res, err := s.deliver(ctx, outgoing{
		kind: "view_submission", userID: u.ID, what: what, url: s.url(&s.interactivity),
		contentType: formType, body: payloadForm(payload), tamper: in.Tamper,
	})
	res.TriggerID = trigger
	if err != nil || !res.Acked() {
		return res, err
	}
	return res, s.afterSubmit(in.ViewID, res.Response)
}

// ownView finds a view of its owner. The caller holds the lock.
func (st *state) ownView(in SubmitRequest) (*view, error) {
	v := st.views[in.ViewID]
	if v == nil {
		return nil, fmt.Errorf("view %s: %w", in.ViewID, ErrNotFound)
	}
	if v.UserID != in.UserID {
		return nil, fmt.Errorf("view %s belongs to %s: %w", in.ViewID, v.UserID, ErrNotAllowed)
	}
	return v, nil
}

// submitAnswer is what the app's acknowledgement may carry.
type submitAnswer struct {
	ResponseAction string            `json:"response_action"`
	Errors         map[string]string `json:"errors"`
	View           json.RawMessage   `json:"view"`
}

// afterSubmit does what the acknowledgement says.
func (s *Sim) afterSubmit(viewID string, raw []byte) error {
	var answer submitAnswer
	if strings.TrimSpace(string(raw)) != "" {
		if err := json.Unmarshal(raw, &answer); err != nil {
			return fmt.Errorf("slacksim: the answer to view_submission is no JSON object: %w", err)
		}
	}
	var next View
	if answer.ResponseAction == "update" || answer.ResponseAction == "push" {
		var bad *reply
		if next, bad = s.readView(string(answer.View)); bad != nil {
			return fmt.Errorf("slacksim: the view in the answer is refused: %v %v", bad.body["error"], bad.body["errors"])
		}
	}
	st := s.state
	st.mu.Lock()
	defer st.mu.Unlock()
	v := st.views[viewID]
	if v == nil {
		return nil // closed or replaced by the app meanwhile
	}
	switch answer.ResponseAction {
	case "":
		st.popView(v)
	case "clear":
		st.closeViews(v.UserID)
	case "update":
		st.replaceView(v, next)
	case "push":
		if len(st.stacks[v.UserID]) >= MaxViewStack {
			return fmt.Errorf("slacksim: push_limit_reached: a modal holds %d views", MaxViewStack)
		}
		next.UserID = v.UserID
		st.pushView(next)
	case "errors":
		return st.showErrors(v, answer.Errors)
	default:
		return fmt.Errorf("slacksim: unknown response_action %q", answer.ResponseAction)
	}
	return nil
}

// showErrors shows complaints under inputs. The caller holds the lock.
func (st *state) showErrors(v *view, errs map[string]string) error {
	inputs := map[string]bool{}
	for _, b := range v.Blocks {
		if b.Type == "input" {
			inputs[b.BlockID] = true
		}
	}
	if len(errs) == 0 {
		return errors.New("slacksim: response_action errors without errors")
	}
	for id := range errs {
		if !inputs[id] {
			return fmt.Errorf("slacksim: response_action errors names block_id %q, which is no input of the view", id)
		}
	}
	v.Errors = errs
	st.hub.changed()
	return nil
}

// CloseView closes a modal by its ✕ button. The app hears of it only when the
// view asked to be told.
func (s *Sim) CloseView(ctx context.Context, in SubmitRequest) (ClickResult, error) {
	u, err := s.actor(in.UserID)
	if err != nil {
		return ClickResult{}, err
	}
	st := s.state
	st.mu.Lock()
	v, err := st.ownView(in)
	if err != nil {
		st.mu.Unlock()
		return ClickResult{}, fmt.Errorf("slacksim: close: %w", err)
	}
	if v.ClearOnClose {
		st.closeViews(u.ID)
	} else {
		st.popView(v)
	}
	payload := s.envelope("view_closed", u, in.Tamper)
	payload["view"], payload["is_cleared"] = s.wireView(v), v.ClearOnClose
	notify, what := v.NotifyOnClose, or(v.CallbackID, v.ID)
	st.mu.Unlock()
	if !notify {
		return ClickResult{}, nil
	}
	return s.deliver(ctx, outgoing{
		kind: "view_closed", userID: u.ID, what: what, url: s.url(&s.interactivity),
		contentType: formType, body: payloadForm(payload), tamper: in.Tamper,
	})
}

// readValues builds state.values and does the checks of Slack's client.
func readValues(blocks []Block, given map[string][]string) (map[string]map[string]any, error) {
	out := map[string]map[string]any{}
	for _, b := range blocks {
		for _, e := range b.all() {
			if !e.interactive() || !statefulType(e.Type) {
				continue
			}
			value, err := readValue(b, e, given)
			if err != nil {
				return nil, err
			}
			if out[b.BlockID] == nil {
				out[b.BlockID] = map[string]any{}
			}
			out[b.BlockID][e.ActionID] = value
		}
	}
	return out, nil
}

func readValue(b Block, e Element, given map[string][]string) (map[string]any, error) {
	values, ok := given[b.BlockID+"/"+e.ActionID]
	if !ok {
		values, ok = given[e.ActionID]
	}
	values = withoutEmpty(values)
	state := initialState(e)
	if ok {
		state = initialState(Element{Type: e.Type})
		if len(values) > 0 {
			var err error
			if state, err = choice(e, ClickRequest{Values: values}); err != nil {
				return nil, fmt.Errorf("%s: %w", b.BlockID, err)
			}
		}
	}
	if b.Type != "input" {
		return state, nil
	}
	return state, checkInput(b, e, state)
}

// checkInput applies required, length and number rules.
func checkInput(b Block, e Element, state map[string]any) error {
	label := b.BlockID
	if b.Label != nil {
		label = b.Label.Text
	}
	empty := true
	for key, value := range state {
		if key == "type" {
			continue
		}
		switch v := value.(type) {
		case nil:
		case *Option:
			empty = v == nil
		case []Option:
			empty = len(v) == 0
		default:
			empty = false
		}
	}
	if empty {
		if b.Optional {
			return nil
		}
		return fmt.Errorf("%q is required: %w", label, ErrInput)
	}
	text, _ := state["value"].(string)
	switch e.Type {
	case "plain_text_input":
		n := runes(text)
		if n < e.MinLength || (e.MaxLength > 0 && n > e.MaxLength) {
			return fmt.Errorf("%q has %d characters, want %d to %d: %w", label, n, e.MinLength, e.MaxLength, ErrInput)
		}
	case "number_input":
		if _, err := strconv.ParseFloat(text, 64); err != nil {
			return fmt.Errorf("%q: %q is not a number: %w", label, text, ErrInput)
		}
	case "email_text_input":
		if !strings.Contains(text, "@") {
			return fmt.Errorf("%q: %q is not an e-mail address: %w", label, text, ErrInput)
		}
	}
	return nil
}

func withoutEmpty(values []string) []string {
	var out []string
	for _, v := range values {
		if v != "" {
			out = append(out, v)
		}
	}
	return out
}
