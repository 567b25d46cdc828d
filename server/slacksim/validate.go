package slacksim

import (
	"fmt"
	"net/url"
	"slices"
)

// surface is where blocks are shown; it decides what is allowed.
type surface int

const (
	surfaceMessage surface = iota
	surfaceModal
)

// validator collects the faults of a list of blocks in Slack's wording.
type validator struct {
	surface   surface
	problems  []string
	textRunes int // all texts together
	markdown  int // all markdown blocks together
	blockIDs  map[string]bool
}

func (v *validator) addf(pointer, format string, args ...any) {
	v.problems = append(v.problems, fmt.Sprintf(format, args...)+" [json-pointer:"+pointer+"]")
}

// blocks checks a list and fills in missing ids in place.
func (v *validator) blocks(pointer string, list []any, newID func() string) {
	limit := MaxMessageBlocks
	if v.surface == surfaceModal {
		limit = MaxViewBlocks
	}
	if len(list) > limit {
		v.addf(pointer, "no more than %d items allowed", limit)
		return
	}
	v.blockIDs = map[string]bool{}
	for i, item := range list {
		p := fmt.Sprintf("%s/%d", pointer, i)
		block, ok := item.(map[string]any)
		if !ok {
			v.addf(p, "must be an object")
			continue
		}
		v.block(p, block)
		v.blockID(p, block, newID)
	}
	if v.markdown > MaxMarkdownText {
		v.addf(pointer, "markdown blocks must be less than %d characters together", MaxMarkdownText+1)
	}
}

func (v *validator) blockID(p string, block map[string]any, newID func() string) {
	id, given := v.optional(p, block, "block_id", MaxBlockID)
	if !given {
		id = newID()
		block["block_id"] = id
	}
	if v.blockIDs[id] {
		v.addf(p+"/block_id", "`block_id` %q already exists", id)
	}
	v.blockIDs[id] = true
	ids := map[string]bool{}
	for _, e := range interactiveMaps(block) {
		action, given := e["action_id"].(string)
		if !given || action == "" {
			action = newID()
			e["action_id"] = action
		}
		if ids[action] {
			v.addf(p+"/elements", "`action_id` %q already exists for block_id %q", action, id)
		}
		ids[action] = true
	}
}

// interactiveMaps returns the raw elements of a block that carry an action_id.
func interactiveMaps(block map[string]any) []map[string]any {
	var out []map[string]any
	add := func(raw any) {
		e, ok := raw.(map[string]any)
		if !ok {
			return
		}
		t, _ := e["type"].(string)
		if (Element{Type: t}).interactive() {
			out = append(out, e)
		}
	}
	if block["type"] == "actions" {
		list, _ := block["elements"].([]any)
		for _, raw := range list {
			add(raw)
		}
	}
	for _, field := range []string{"accessory", "element"} {
		if raw, ok := block[field]; ok {
			add(raw)
		}
	}
	return out
}

func (v *validator) block(p string, block map[string]any) {
	kind, ok := block["type"].(string)
	if !ok {
		v.addf(p, "missing required field: type")
		return
	}
	switch kind {
	case "section":
		v.section(p, block)
	case "header":
		v.requiredText(p, block, "text", MaxHeaderText, true)
	case "divider":
	case "context":
		v.context(p, block)
	case "actions":
		v.actions(p, block)
	case "image":
		v.image(p, block)
		v.optionalText(p, block, "title", MaxAltText, true)
	case "markdown":
		text, ok := block["text"].(string)
		if !ok || text == "" {
			v.addf(p, "missing required field: text")
			return
		}
		v.count(text)
		v.markdown += runes(text)
	case "rich_text":
		if _, ok := block["elements"].([]any); !ok {
			v.addf(p, "missing required field: elements")
		}
	case "input":
		if v.surface == surfaceMessage {
			// Slack allows inputs in messages; nothing could submit one here.
			v.addf(p+"/type", "unsupported type: input")
			return
		}
		v.input(p, block)
	default:
		v.addf(p+"/type", "unsupported type: %s", kind)
	}
}

func (v *validator) section(p string, block map[string]any) {
	_, hasText := block["text"]
	rawFields, hasFields := block["fields"]
	if !hasText && !hasFields {
		v.addf(p+"/type", "must define either `text` or `fields`")
	}
	if hasText {
		v.requiredText(p, block, "text", MaxSectionText, false)
	}
	if hasFields {
		fields := v.list(p, "fields", rawFields, MaxSectionFields)
		for i, f := range fields {
			v.text(fmt.Sprintf("%s/fields/%d", p, i), f, MaxFieldText, false)
		}
	}
	if raw, ok := block["accessory"]; ok {
		v.element(p+"/accessory", raw, "button", "overflow", "image", "static_select", "users_select",
			"multi_static_select", "datepicker", "timepicker", "checkboxes", "radio_buttons")
	}
}

func (v *validator) context(p string, block map[string]any) {
	for i, raw := range v.list(p, "elements", block["elements"], MaxContextElements) {
		ep := fmt.Sprintf("%s/elements/%d", p, i)
		e, ok := raw.(map[string]any)
		if !ok {
			v.addf(ep, "must be an object")
			continue
		}
		if e["type"] == "image" {
			v.image(ep, e)
			continue
		}
		v.text(ep, raw, MaxSectionText, false)
	}
}

func (v *validator) actions(p string, block map[string]any) {
	for i, raw := range v.list(p, "elements", block["elements"], MaxActionsElements) {
		v.element(fmt.Sprintf("%s/elements/%d", p, i), raw, "button", "overflow", "static_select", "users_select",
			"datepicker", "timepicker", "checkboxes", "radio_buttons")
	}
}

func (v *validator) input(p string, block map[string]any) {
	v.requiredText(p, block, "label", MaxInputLabel, true)
	v.optionalText(p, block, "hint", MaxInputLabel, true)
	v.element(p+"/element", block["element"], "plain_text_input", "number_input", "email_text_input", "url_text_input",
		"static_select", "users_select", "multi_static_select", "datepicker", "timepicker", "checkboxes", "radio_buttons")
}

func (v *validator) image(p string, e map[string]any) {
	if u := v.required(p, e, "image_url", MaxURL); u != "" {
		v.httpURL(p+"/image_url", u)
	}
	v.required(p, e, "alt_text", MaxAltText)
}

// element checks one element that must be of one of the allowed types.
func (v *validator) element(p string, raw any, allowed ...string) {
	e, ok := raw.(map[string]any)
	if !ok {
		v.addf(p, "must be an object")
		return
	}
	kind, _ := e["type"].(string)
	if !slices.Contains(allowed, kind) {
		v.addf(p+"/type", "unsupported type: %s", kind)
		return
	}
	if kind == "image" {
		v.image(p, e)
		return
	}
	v.optional(p, e, "action_id", MaxActionID)
	if c, ok := e["confirm"]; ok {
		v.confirm(p+"/confirm", c)
	}
	v.optionalText(p, e, "placeholder", MaxPlaceholder, true)
	switch kind {
	case "button":
		v.button(p, e)
	case "overflow":
		v.options(p, e, MaxOverflowOptions, true)
	case "static_select", "multi_static_select":
		v.selectOptions(p, e)
	case "radio_buttons", "checkboxes":
		v.options(p, e, MaxChoiceOptions, false)
	case "plain_text_input", "number_input", "email_text_input", "url_text_input":
		v.textInput(p, e)
	}
}

func (v *validator) button(p string, e map[string]any) {
	v.requiredText(p, e, "text", MaxButtonText, true)
	v.optional(p, e, "value", MaxButtonValue)
	v.optional(p, e, "accessibility_label", MaxAccessibilityLabel)
	if u, ok := v.optional(p, e, "url", MaxURL); ok && u != "" {
		v.httpURL(p+"/url", u)
	}
	v.style(p, e)
}

func (v *validator) style(p string, e map[string]any) {
	raw, ok := e["style"]
	if !ok {
		return
	}
	if raw != "primary" && raw != "danger" {
		v.addf(p+"/style", "must be one of: primary, danger")
	}
}

func (v *validator) confirm(p string, raw any) {
	c, ok := raw.(map[string]any)
	if !ok {
		v.addf(p, "must be an object")
		return
	}
	v.requiredText(p, c, "title", MaxConfirmTitle, true)
	v.requiredText(p, c, "text", MaxConfirmText, false)
	v.requiredText(p, c, "confirm", MaxConfirmButton, true)
	v.requiredText(p, c, "deny", MaxConfirmButton, true)
	v.style(p, c)
}

func (v *validator) selectOptions(p string, e map[string]any) {
	raw, grouped := e["option_groups"]
	if !grouped {
		v.options(p, e, MaxSelectOptions, true)
		return
	}
	if _, both := e["options"]; both {
		v.addf(p, "only one of `options` and `option_groups` is allowed")
	}
	for i, item := range v.list(p, "option_groups", raw, MaxSelectOptions) {
		gp := fmt.Sprintf("%s/option_groups/%d", p, i)
		group, ok := item.(map[string]any)
		if !ok {
			v.addf(gp, "must be an object")
			continue
		}
		v.requiredText(gp, group, "label", MaxOptionText, true)
		v.options(gp, group, MaxSelectOptions, true)
	}
}

func (v *validator) options(p string, e map[string]any, high int, plain bool) {
	for i, item := range v.list(p, "options", e["options"], high) {
		op := fmt.Sprintf("%s/options/%d", p, i)
		option, ok := item.(map[string]any)
		if !ok {
			v.addf(op, "must be an object")
			continue
		}
		v.requiredText(op, option, "text", MaxOptionText, plain)
		v.required(op, option, "value", MaxOptionValue)
		v.optionalText(op, option, "description", MaxOptionText, plain)
		if u, ok := v.optional(op, option, "url", MaxURL); ok && u != "" {
			v.httpURL(op+"/url", u)
		}
	}
}

func (v *validator) textInput(p string, e map[string]any) {
	v.optional(p, e, "initial_value", MaxInputLength)
	for _, field := range []string{"min_length", "max_length"} {
		raw, ok := e[field]
		if !ok {
			continue
		}
		n, isNumber := raw.(float64)
		if !isNumber || n != float64(int(n)) || n < 0 || n > MaxInputLength {
			v.addf(p+"/"+field, "must be a number between 0 and %d", MaxInputLength)
		}
	}
}

func (v *validator) httpURL(p, raw string) {
	u, err := url.Parse(raw)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		v.addf(p, "invalid url")
	}
}

// list returns a required array of 1 to high items.
func (v *validator) list(p, field string, raw any, high int) []any {
	list, ok := raw.([]any)
	switch {
	case !ok:
		v.addf(p, "missing required field: %s", field)
	case len(list) == 0:
		v.addf(p+"/"+field, "no less than 1 items allowed")
	case len(list) > high:
		v.addf(p+"/"+field, "no more than %d items allowed", high)
	default:
		return list
	}
	return nil
}

// required returns a string field that must be there and not be empty.
func (v *validator) required(p string, obj map[string]any, field string, limit int) string {
	value, ok := v.optional(p, obj, field, limit)
	if _, present := obj[field]; !present {
		v.addf(p, "missing required field: %s", field)
	} else if ok && value == "" {
		v.addf(p+"/"+field, "must be more than 0 characters")
	}
	return value
}

// optional returns a string field within its limit and whether it is there.
func (v *validator) optional(p string, obj map[string]any, field string, limit int) (string, bool) {
	raw, ok := obj[field]
	if !ok {
		return "", false
	}
	value, ok := raw.(string)
	if !ok {
		v.addf(p+"/"+field, "must be a string")
		return "", false
	}
	v.length(p+"/"+field, value, 0, limit)
	if value == "" && (field == "block_id" || field == "action_id") {
		return "", false
	}
	return value, true
}

func (v *validator) requiredText(p string, obj map[string]any, field string, high int, plain bool) {
	raw, ok := obj[field]
	if !ok {
		v.addf(p, "missing required field: %s", field)
		return
	}
	v.text(p+"/"+field, raw, high, plain)
}

func (v *validator) optionalText(p string, obj map[string]any, field string, high int, plain bool) {
	if raw, ok := obj[field]; ok {
		v.text(p+"/"+field, raw, high, plain)
	}
}

// text checks a text object, which must not be empty.
func (v *validator) text(p string, raw any, high int, plain bool) {
	obj, ok := raw.(map[string]any)
	if !ok {
		v.addf(p, "must be an object")
		return
	}
	kind, _ := obj["type"].(string)
	if kind != "plain_text" && (plain || kind != "mrkdwn") {
		v.addf(p+"/type", "unsupported type: %s", kind)
		return
	}
	if obj["emoji"] == true && kind == "mrkdwn" {
		v.addf(p+"/emoji", "`emoji` is only allowed in plain_text")
	}
	text, ok := obj["text"].(string)
	if !ok {
		v.addf(p, "missing required field: text")
		return
	}
	v.length(p+"/text", text, 1, high)
	v.count(text)
}

func (v *validator) length(p, s string, low, high int) {
	n := runes(s)
	if n < low {
		v.addf(p, "must be more than %d characters", low-1)
	}
	if n > high {
		v.addf(p, "must be less than %d characters", high+1)
	}
}

func (v *validator) count(s string) { v.textRunes += runes(s) }
