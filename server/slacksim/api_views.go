package slacksim

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
	"unicode/utf8"
)

// View is one modal as it stands now.
type View struct {
	// ID identifies the view; Hash changes with each update.
	ID, Hash string
	// UserID is the person who sees it.
	UserID string
	// RootID is the first view of the stack, PreviousID the one below.
	RootID, PreviousID string
	// Title, Submit and Close are the frame's texts; Submit may be nil.
	Title, Submit, Close *Text
	// Blocks is what is shown; RawBlocks the JSON with filled-in ids.
	Blocks    []Block
	RawBlocks json.RawMessage
	// CallbackID, ExternalID and PrivateMetadata are the app's own.
	CallbackID, ExternalID, PrivateMetadata string
	// ClearOnClose and NotifyOnClose say what closing does.
	ClearOnClose, NotifyOnClose bool
	// Errors are the app's complaints about the last submission, by block id.
	Errors map[string]string
}

type view struct {
	View
	values map[string]map[string]any // block → action → state, as last entered
}

// trigger is a trigger_id: who it belongs to, until when, and whether used.
type trigger struct {
	userID  string
	expires time.Time
	used    bool
	viewID  string // the view the click came from, for views.push
}

// newTrigger returns a fresh trigger_id. The caller holds the lock.
func (st *state) newTrigger(userID, viewID string) string {
	now := st.clock.Now()
	maps.DeleteFunc(st.triggers, func(_ string, t *trigger) bool { return now.Sub(t.expires) > ResponseURLLife })
	st.serial++
	id := fmt.Sprintf("%d.%d.%s", now.UnixMicro(), st.serial, randomHex(16))
	st.triggers[id] = &trigger{userID: userID, viewID: viewID, expires: now.Add(TriggerLife)}
	return id
}

// useTrigger spends a trigger_id; problem is Slack's error name. The caller
// holds the lock.
func (st *state) useTrigger(id string) (*trigger, string) {
	t := st.triggers[id]
	switch {
	case t == nil:
		return nil, "invalid_trigger_id"
	case t.used:
		return nil, "exchanged_trigger_id"
	case st.clock.Now().After(t.expires):
		return nil, "expired_trigger_id"
	}
	t.used = true
	return t, ""
}

func randomHex(bytes int) string {
	b := make([]byte, bytes)
	rand.Read(b) // never fails since Go 1.24
	return hex.EncodeToString(b)
}

// viewArgument is the view as the app sends it.
type viewArgument struct {
	Type            string          `json:"type"`
	Title           json.RawMessage `json:"title"`
	Submit          json.RawMessage `json:"submit"`
	Close           json.RawMessage `json:"close"`
	Blocks          json.RawMessage `json:"blocks"`
	CallbackID      string          `json:"callback_id"`
	ExternalID      string          `json:"external_id"`
	PrivateMetadata string          `json:"private_metadata"`
	ClearOnClose    bool            `json:"clear_on_close"`
	NotifyOnClose   bool            `json:"notify_on_close"`
}

// readView checks a view argument.
func (s *Sim) readView(raw string) (View, *reply) {
	var bad reply
	if len(raw) > MaxViewBytes {
		bad = failReply("view_too_large")
		return View{}, &bad
	}
	var in viewArgument
	if raw == "" || json.Unmarshal([]byte(raw), &in) != nil {
		bad = problemReply("invalid_arguments", []string{"view must be a JSON object [json-pointer:/view]"})
		return View{}, &bad
	}
	v := &validator{surface: surfaceModal}
	if in.Type != "modal" {
		v.addf("/view/type", "unsupported type: %s", in.Type)
	}
	out := View{
		CallbackID: in.CallbackID, ExternalID: in.ExternalID, PrivateMetadata: in.PrivateMetadata,
		ClearOnClose: in.ClearOnClose, NotifyOnClose: in.NotifyOnClose,
	}
	out.Title = v.frameText("title", in.Title, true)
	out.Submit = v.frameText("submit", in.Submit, false)
	out.Close = v.frameText("close", in.Close, false)
	v.length("/view/callback_id", in.CallbackID, 0, MaxCallbackID)
	v.length("/view/external_id", in.ExternalID, 0, MaxCallbackID)
	v.length("/view/private_metadata", in.PrivateMetadata, 0, MaxPrivateMetadata)
	if len(in.Blocks) == 0 || string(in.Blocks) == "null" {
		v.addf("/view", "missing required field: blocks")
	} else {
		filled, blocks, bv, err := parseBlocks(in.Blocks, "/view/blocks", surfaceModal, s.state.newBlockID)
		if err != nil {
			v.addf("/view/blocks", "must be an array")
		} else {
			v.problems = append(v.problems, bv.problems...)
			out.RawBlocks, out.Blocks = filled, blocks
		}
	}
	if hasInput(out.Blocks) && out.Submit == nil {
		v.addf("/view/submit", "`submit` is required when an input block is within the blocks array")
	}
	if len(v.problems) > 0 {
		bad = problemReply("invalid_arguments", v.problems)
		return View{}, &bad
	}
	return out, nil
}

func hasInput(blocks []Block) bool {
	return slices.ContainsFunc(blocks, func(b Block) bool { return b.Type == "input" })
}

func (v *validator) frameText(field string, raw json.RawMessage, required bool) *Text {
	if len(raw) == 0 || string(raw) == "null" {
		if required {
			v.addf("/view", "missing required field: %s", field)
		}
		return nil
	}
	var obj any
	if json.Unmarshal(raw, &obj) != nil {
		return nil
	}
	before := len(v.problems)
	v.text("/view/"+field, obj, MaxViewTitle, true)
	var t Text
	if len(v.problems) > before || json.Unmarshal(raw, &t) != nil {
		return nil
	}
	return &t
}

func (s *Sim) viewsOpen(p params) reply { return s.showView(p, false) }

func (s *Sim) viewsPush(p params) reply { return s.showView(p, true) }

func (s *Sim) showView(p params, push bool) reply {
	in, bad := s.readView(p["view"])
	if bad != nil {
		return *bad
	}
	st := s.state
	st.mu.Lock()
	defer st.mu.Unlock()
	t, problem := st.useTrigger(p["trigger_id"])
	if problem != "" {
		return failReply(problem)
	}
	if st.externalTaken(in.ExternalID, "") {
		return failReply("duplicate_external_id")
	}
	in.UserID = t.userID
	if push {
		if !slices.Contains(st.stacks[t.userID], t.viewID) {
			return failReply("no_view_to_push")
		}
		if len(st.stacks[t.userID]) >= MaxViewStack {
			return failReply("push_limit_reached")
		}
		return okReply(map[string]any{"view": s.wireView(st.pushView(in))})
	}
	st.closeViews(t.userID)
	return okReply(map[string]any{"view": s.wireView(st.pushView(in))})
}

// pushView puts a view on top of its user's stack. The caller holds the lock.
func (st *state) pushView(in View) *view {
	in.ID, in.Hash = st.nextID("V0"), st.newHash()
	in.RootID = in.ID
	if stack := st.stacks[in.UserID]; len(stack) > 0 {
		in.RootID, in.PreviousID = stack[0], stack[len(stack)-1]
	}
	v := &view{View: in}
	st.views[in.ID] = v
	st.stacks[in.UserID] = append(st.stacks[in.UserID], in.ID)
	st.hub.changed()
	return v
}

// closeViews closes every view of a user. The caller holds the lock.
func (st *state) closeViews(userID string) {
	for _, id := range st.stacks[userID] {
		delete(st.views, id)
	}
	delete(st.stacks, userID)
	st.hub.changed()
}

// popView closes one view. The caller holds the lock.
func (st *state) popView(v *view) {
	delete(st.views, v.ID)
	st.stacks[v.UserID] = slices.DeleteFunc(st.stacks[v.UserID], func(id string) bool { return id == v.ID })
	st.hub.changed()
}

func (st *state) newHash() string { return st.nextTS() + "." + randomHex(4) }

func (st *state) externalTaken(externalID, exceptID string) bool {
	if externalID == "" {
		return false
	}
	for _, v := range st.views {
		if v.ExternalID == externalID && v.ID != exceptID {
			return true
		}
	}
	return false
}

func (s *Sim) viewsUpdate(p params) reply {
	in, bad := s.readView(p["view"])
	if bad != nil {
		return *bad
	}
	st := s.state
	st.mu.Lock()
	defer st.mu.Unlock()
	v := st.views[p["view_id"]]
	if v == nil && p["external_id"] != "" {
		for _, candidate := range st.views {
			if candidate.ExternalID == p["external_id"] {
				v = candidate
			}
		}
	}
	switch {
	case v == nil:
		return failReply("not_found")
	case p["hash"] != "" && p["hash"] != v.Hash:
		return failReply("hash_conflict")
	case st.externalTaken(in.ExternalID, v.ID):
		return failReply("duplicate_external_id")
	}
	st.replaceView(v, in)
	return okReply(map[string]any{"view": s.wireView(v)})
}

// replaceView changes what a view shows. The caller holds the lock.
func (st *state) replaceView(v *view, in View) {
	in.ID, in.UserID, in.RootID, in.PreviousID = v.ID, v.UserID, v.RootID, v.PreviousID
	in.Hash = st.newHash()
	v.View = in
	st.hub.changed()
}

// wireView renders a view for the API and for payloads.
func (s *Sim) wireView(v *view) map[string]any {
	var previous any
	if v.PreviousID != "" {
		previous = v.PreviousID
	}
	values := v.values
	if values == nil {
		values = map[string]map[string]any{}
	}
	return map[string]any{
		"id": v.ID, "team_id": s.opts.TeamID, "type": "modal", "blocks": v.RawBlocks,
		"private_metadata": v.PrivateMetadata, "callback_id": v.CallbackID, "state": map[string]any{"values": values},
		"hash": v.Hash, "title": v.Title, "clear_on_close": v.ClearOnClose, "notify_on_close": v.NotifyOnClose,
		"close": v.Close, "submit": v.Submit, "previous_view_id": previous, "root_view_id": v.RootID,
		"app_id": s.opts.AppID, "external_id": v.ExternalID, "app_installed_team_id": s.opts.TeamID, "bot_id": s.opts.BotID,
	}
}

// OpenView returns the view on top of a person's stack.
func (s *Sim) OpenView(userID string) (View, bool) {
	st := s.state
	st.mu.Lock()
	defer st.mu.Unlock()
	stack := st.stacks[userID]
	if len(stack) == 0 {
		return View{}, false
	}
	return st.views[stack[len(stack)-1]].View, true
}

// runes counts characters as Slack does.
func runes(s string) int { return utf8.RuneCountInString(s) }
