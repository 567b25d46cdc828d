package slacksim

import (
	"encoding/json"
	"errors"
	"strings"
)

// Text is a Block Kit text object.
type Text struct {
	Type  string `json:"type"`
	Text  string `json:"text"`
	Emoji bool   `json:"emoji,omitempty"`
}

// Option is one choice of a menu.
type Option struct {
	Text        Text   `json:"text"`
	Value       string `json:"value"`
	Description *Text  `json:"description,omitempty"`
}

// OptionGroup is a titled group of choices.
type OptionGroup struct {
	Label   Text     `json:"label"`
	Options []Option `json:"options"`
}

// Confirm is the dialog shown before a click is sent.
type Confirm struct {
	Title   Text   `json:"title"`
	Text    Text   `json:"text"`
	Confirm Text   `json:"confirm"`
	Deny    Text   `json:"deny"`
	Style   string `json:"style,omitempty"`
}

// Element is an interactive element, an image, or, in a context block, a text.
type Element struct {
	Type               string        `json:"type"`
	ActionID           string        `json:"action_id"`
	Text               *Text         `json:"-"`
	Value              string        `json:"value"`
	URL                string        `json:"url"`
	Style              string        `json:"style"`
	AccessibilityLabel string        `json:"accessibility_label"`
	Confirm            *Confirm      `json:"confirm"`
	Placeholder        *Text         `json:"placeholder"`
	Options            []Option      `json:"options"`
	OptionGroups       []OptionGroup `json:"option_groups"`
	InitialOption      *Option       `json:"initial_option"`
	InitialOptions     []Option      `json:"initial_options"`
	InitialValue       string        `json:"initial_value"`
	InitialDate        string        `json:"initial_date"`
	InitialTime        string        `json:"initial_time"`
	InitialUser        string        `json:"initial_user"`
	Multiline          bool          `json:"multiline"`
	MinLength          int           `json:"min_length"`
	MaxLength          int           `json:"max_length"`
	ImageURL           string        `json:"image_url"`
	AltText            string        `json:"alt_text"`
}

// UnmarshalJSON reads an element whose text is an object (a button) or, for a
// text inside a context block, a plain string.
func (e *Element) UnmarshalJSON(data []byte) error {
	type plain Element
	var raw struct {
		*plain
		Text json.RawMessage `json:"text"`
	}
	raw.plain = (*plain)(e)
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	if len(raw.Text) == 0 || string(raw.Text) == "null" {
		return nil
	}
	if raw.Text[0] == '"' {
		text := Text{Type: e.Type}
		if err := json.Unmarshal(raw.Text, &text.Text); err != nil {
			return err
		}
		e.Text = &text
		return nil
	}
	return json.Unmarshal(raw.Text, &e.Text)
}

// AllOptions returns the element's options, those in groups included.
func (e Element) AllOptions() []Option {
	all := append([]Option(nil), e.Options...)
	for _, g := range e.OptionGroups {
		all = append(all, g.Options...)
	}
	return all
}

// interactive says whether using the element sends a payload to the app.
func (e Element) interactive() bool {
	switch e.Type {
	case "image", "mrkdwn", "plain_text":
		return false
	}
	return true
}

// Block is one Block Kit block as the simulator shows it.
type Block struct {
	Type           string    `json:"type"`
	BlockID        string    `json:"block_id"`
	Text           *Text     `json:"-"`
	Fields         []Text    `json:"fields"`
	Elements       []Element `json:"-"`
	Accessory      *Element  `json:"accessory"`
	Label          *Text     `json:"label"`
	Hint           *Text     `json:"hint"`
	Element        *Element  `json:"element"`
	Optional       bool      `json:"optional"`
	DispatchAction bool      `json:"dispatch_action"`
	ImageURL       string    `json:"image_url"`
	AltText        string    `json:"alt_text"`
	Title          *Text     `json:"title"`
}

// UnmarshalJSON reads a block. A markdown block's text is a string, every
// other one's an object; a rich_text block is flattened to its words.
func (b *Block) UnmarshalJSON(data []byte) error {
	type plain Block
	var raw struct {
		*plain
		Text     json.RawMessage `json:"text"`
		Elements json.RawMessage `json:"elements"`
	}
	raw.plain = (*plain)(b)
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	if b.Type == "rich_text" {
		b.Text = &Text{Type: "plain_text", Text: richText(raw.Elements)}
		return nil
	}
	if len(raw.Elements) > 0 {
		if err := json.Unmarshal(raw.Elements, &b.Elements); err != nil {
			return err
		}
	}
	if len(raw.Text) > 0 && raw.Text[0] == '"' {
		b.Text = &Text{Type: "mrkdwn"}
		return json.Unmarshal(raw.Text, &b.Text.Text)
	}
	if len(raw.Text) > 0 {
		return json.Unmarshal(raw.Text, &b.Text)
	}
	return nil
}

// all returns the block's elements, wherever they sit.
func (b Block) all() []Element {
	all := append([]Element(nil), b.Elements...)
	if b.Accessory != nil {
		all = append(all, *b.Accessory)
	}
	if b.Element != nil {
		all = append(all, *b.Element)
	}
	return all
}

// texts returns what the block says, in reading order.
func (b Block) texts() []Text {
	var out []Text
	add := func(t *Text) {
		if t != nil && t.Text != "" {
			out = append(out, *t)
		}
	}
	add(b.Title)
	add(b.Text)
	out = append(out, b.Fields...)
	add(b.Label)
	add(b.Hint)
	for _, e := range b.all() {
		add(e.Text)
		add(e.Placeholder)
		for _, o := range e.AllOptions() {
			add(&o.Text)
		}
	}
	return out
}

// richText collects the words of a rich_text block.
func richText(raw json.RawMessage) string {
	var nodes []struct {
		Text     string          `json:"text"`
		URL      string          `json:"url"`
		Elements json.RawMessage `json:"elements"`
	}
	if len(raw) == 0 || json.Unmarshal(raw, &nodes) != nil {
		return ""
	}
	var sb strings.Builder
	for _, n := range nodes {
		switch {
		case n.Text != "":
			sb.WriteString(n.Text)
		case n.URL != "":
			sb.WriteString(n.URL)
		default:
			sb.WriteString(richText(n.Elements))
		}
	}
	return sb.String()
}

// errBlocksFormat is Slack's answer to blocks that are no JSON array.
var errBlocksFormat = errors.New("invalid_blocks_format")

// parseBlocks checks raw blocks and returns them with the ids Slack fills in.
// It returns problems in Slack's wording, each with a JSON pointer.
func parseBlocks(raw []byte, pointer string, surface surface, newID func() string) (json.RawMessage, []Block, *validator, error) {
	var list []any
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, nil, nil, errBlocksFormat
	}
	v := &validator{surface: surface}
	v.blocks(pointer, list, newID)
	if len(v.problems) > 0 {
		return nil, nil, v, nil
	}
	filled, blocks, ok := fillBlocks(list)
	if !ok {
		// The validator checks the fields Slack documents; a wrong type in a
		// field it does not know by name ends here.
		v.addf(pointer, "failed to match all allowed schemas")
		return nil, nil, v, nil
	}
	return filled, blocks, v, nil
}

// fillBlocks renders a checked list with its filled-in ids.
func fillBlocks(list []any) (raw json.RawMessage, blocks []Block, ok bool) {
	raw, err := json.Marshal(list)
	if err != nil {
		return nil, nil, false
	}
	err = json.Unmarshal(raw, &blocks)
	return raw, blocks, err == nil
}
