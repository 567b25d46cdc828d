package slacksim

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// limitCase is one limit: build makes content of size n, which is valid up to
// max and refused at max+1 with the error and, for blocks, the pointer.
type limitCase struct {
	name    string
	max     int
	build   func(n int) map[string]any // arguments of chat.postMessage
	err     string
	pointer string
}

func blocksArg(blocks ...any) map[string]any { return map[string]any{"text": "t", "blocks": blocks} }

func text(n int) string { return strings.Repeat("界", n) } // three bytes per character

func confirmWith(field string, n int) map[string]any {
	c := map[string]any{"title": plain("t"), "text": mrkdwn("x"), "confirm": plain("y"), "deny": plain("n")}
	c[field] = plain(text(n))
	return blocksArg(actions(with(button("a", "A"), "confirm", c)))
}

func menu(kind string, n int) map[string]any {
	return blocksArg(actions(map[string]any{
		"type": kind, "action_id": "m", "placeholder": plain("p"),
		"options": repeat(n, func(i int) any { return option("o", fmt.Sprint("v", i)) }),
	}))
}

func menuWithoutPlaceholder(kind string, n int) map[string]any {
	return blocksArg(actions(map[string]any{
		"type": kind, "action_id": "m", "options": repeat(n, func(i int) any { return option("o", fmt.Sprint("v", i)) }),
	}))
}

var limitCases = []limitCase{
	{"blocks", MaxMessageBlocks, func(n int) map[string]any {
		return blocksArg(repeat(n, func(int) any { return map[string]any{"type": "divider"} })...)
	}, "invalid_blocks", "/blocks]"},
	{"actions elements", MaxActionsElements, func(n int) map[string]any {
		return blocksArg(actions(repeat(n, func(i int) any { return button(fmt.Sprint("b", i), "B") })...))
	}, "invalid_blocks", "/blocks/0/elements]"},
	{"block_id", MaxBlockID, func(n int) map[string]any {
		return blocksArg(with(section("s"), "block_id", text(n)))
	}, "invalid_blocks", "/blocks/0/block_id]"},
	{"action_id", MaxActionID, func(n int) map[string]any { return blocksArg(actions(button(text(n), "B"))) }, "invalid_blocks", "/blocks/0/elements/0/action_id]"},
	{"section text", MaxSectionText, func(n int) map[string]any { return blocksArg(section(text(n))) }, "invalid_blocks", "/blocks/0/text/text]"},
	{"section fields", MaxSectionFields, func(n int) map[string]any {
		return blocksArg(map[string]any{"type": "section", "fields": repeat(n, func(int) any { return mrkdwn("f") })})
	}, "invalid_blocks", "/blocks/0/fields]"},
	{"field text", MaxFieldText, func(n int) map[string]any {
		return blocksArg(map[string]any{"type": "section", "fields": []any{mrkdwn(text(n))}})
	}, "invalid_blocks", "/blocks/0/fields/0/text]"},
	{"context elements", MaxContextElements, func(n int) map[string]any {
		return blocksArg(map[string]any{"type": "context", "elements": repeat(n, func(int) any { return mrkdwn("c") })})
	}, "invalid_blocks", "/blocks/0/elements]"},
	{"header", MaxHeaderText, func(n int) map[string]any {
		return blocksArg(map[string]any{"type": "header", "text": plain(text(n))})
	}, "invalid_blocks", "/blocks/0/text/text]"},
	{"button text", MaxButtonText, func(n int) map[string]any { return blocksArg(actions(button("b", text(n)))) }, "invalid_blocks", "/blocks/0/elements/0/text/text]"},
	{"button value", MaxButtonValue, func(n int) map[string]any {
		return blocksArg(actions(with(button("b", "B"), "value", text(n))))
	}, "invalid_blocks", "/elements/0/value]"},
	{"button url", MaxURL, func(n int) map[string]any {
		return blocksArg(actions(with(button("b", "B"), "url", "https://x.example/"+strings.Repeat("a", n-18))))
	}, "invalid_blocks", "/elements/0/url]"},
	{"accessibility label", MaxAccessibilityLabel, func(n int) map[string]any {
		return blocksArg(actions(with(button("b", "B"), "accessibility_label", text(n))))
	}, "invalid_blocks", "/elements/0/accessibility_label]"},
	{"confirm title", MaxConfirmTitle, func(n int) map[string]any { return confirmWith("title", n) }, "invalid_blocks", "/confirm/title/text]"},
	{"confirm text", MaxConfirmText, func(n int) map[string]any { return confirmWith("text", n) }, "invalid_blocks", "/confirm/text/text]"},
	{"confirm yes", MaxConfirmButton, func(n int) map[string]any { return confirmWith("confirm", n) }, "invalid_blocks", "/confirm/confirm/text]"},
	{"confirm no", MaxConfirmButton, func(n int) map[string]any { return confirmWith("deny", n) }, "invalid_blocks", "/confirm/deny/text]"},
	{"overflow options", MaxOverflowOptions, func(n int) map[string]any { return menuWithoutPlaceholder("overflow", n) }, "invalid_blocks", "/elements/0/options]"},
	{"select options", MaxSelectOptions, func(n int) map[string]any { return menu("static_select", n) }, "invalid_blocks", "/elements/0/options]"},
	{"radio options", MaxChoiceOptions, func(n int) map[string]any { return menuWithoutPlaceholder("radio_buttons", n) }, "invalid_blocks", "/elements/0/options]"},
	{"option text", MaxOptionText, func(n int) map[string]any {
		return blocksArg(actions(map[string]any{"type": "overflow", "action_id": "m", "options": []any{option(text(n), "v")}}))
	}, "invalid_blocks", "/options/0/text/text]"},
	{"option value", MaxOptionValue, func(n int) map[string]any {
		return blocksArg(actions(map[string]any{"type": "overflow", "action_id": "m", "options": []any{option("o", text(n))}}))
	}, "invalid_blocks", "/options/0/value]"},
	{"placeholder", MaxPlaceholder, func(n int) map[string]any {
		return blocksArg(actions(map[string]any{"type": "users_select", "action_id": "m", "placeholder": plain(text(n))}))
	}, "invalid_blocks", "/placeholder/text]"},
	{"image alt text", MaxAltText, func(n int) map[string]any {
		return blocksArg(map[string]any{"type": "image", "image_url": "https://x.example/i.png", "alt_text": text(n)})
	}, "invalid_blocks", "/blocks/0/alt_text]"},
	{"markdown", MaxMarkdownText, func(n int) map[string]any {
		return blocksArg(map[string]any{"type": "markdown", "text": text(n - 1)}, map[string]any{"type": "markdown", "text": "x"})
	}, "invalid_blocks", "/blocks]"},
	{"all texts together", MaxBlocksText, func(n int) map[string]any {
		return blocksArg(section(text(3000)), section(text(3000)), section(text(3000)), section(text(3000)), section(text(n-12000)))
	}, "msg_blocks_too_long", ""},
	{"text", MaxPostText, func(n int) map[string]any { return map[string]any{"text": text(n)} }, "msg_too_long", ""},
	{"attachments", MaxAttachments, func(n int) map[string]any {
		return map[string]any{"attachments": repeat(n, func(int) any { return map[string]any{"text": "a"} })}
	}, "too_many_attachments", ""},
	{"metadata", MaxMetadataBytes, func(n int) map[string]any {
		const frame = `{"event_payload":{"k":""},"event_type":"t"}`
		return map[string]any{"text": "t", "metadata": map[string]any{
			"event_type": "t", "event_payload": map[string]any{"k": strings.Repeat("a", n-len(frame))},
		}}
	}, "metadata_too_large", ""},
}

func TestLimitsAtTheirBoundary(t *testing.T) {
	t.Parallel()
	for _, tc := range limitCases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := startSim(t, nil)
			_, _, out := call(t, s, "chat.postMessage", with(tc.build(tc.max), "channel", incidents))
			require.Equal(t, true, out["ok"], "exactly %d must pass: %v", tc.max, out)
			_, _, out = call(t, s, "chat.postMessage", with(tc.build(tc.max+1), "channel", incidents))
			require.Equal(t, tc.err, out["error"], "one more than %d must be refused: %v", tc.max, out)
			require.Len(t, s.Messages(incidents), 1, "a refused message must not be stored")
			if tc.pointer != "" {
				require.Contains(t, fmt.Sprint(out["errors"]), tc.pointer)
				require.Contains(t, fmt.Sprint(out["response_metadata"]), "[ERROR] ")
			}
		})
	}
}

func TestRefusedBlocks(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		blocks any
		want   string
	}{
		"not an array":             {map[string]any{"type": "section"}, "invalid_blocks_format"},
		"text instead of blocks":   {"hello", "invalid_blocks_format"},
		"block is no object":       {[]any{"section"}, "must be an object [json-pointer:/blocks/0]"},
		"no type":                  {[]any{map[string]any{}}, "missing required field: type"},
		"unknown type":             {[]any{map[string]any{"type": "marquee"}}, "unsupported type: marquee [json-pointer:/blocks/0/type]"},
		"empty section text":       {[]any{section("")}, "must be more than 0 characters [json-pointer:/blocks/0/text/text]"},
		"section with neither":     {[]any{map[string]any{"type": "section"}}, "must define either `text` or `fields` [json-pointer:/blocks/0/type]"},
		"header in mrkdwn":         {[]any{map[string]any{"type": "header", "text": mrkdwn("h")}}, "unsupported type: mrkdwn [json-pointer:/blocks/0/text/type]"},
		"button in mrkdwn":         {[]any{actions(with(button("a", "A"), "text", mrkdwn("A")))}, "unsupported type: mrkdwn"},
		"button without text":      {[]any{actions(map[string]any{"type": "button", "action_id": "a"})}, "missing required field: text"},
		"style":                    {[]any{actions(with(button("a", "A"), "style", "warning"))}, "must be one of: primary, danger"},
		"script url":               {[]any{actions(with(button("a", "A"), "url", "javascript:alert(1)"))}, "invalid url"},
		"no elements":              {[]any{actions()}, "no less than 1 items allowed [json-pointer:/blocks/0/elements]"},
		"two buttons, one id":      {[]any{actions(button("gate", "Yes"), button("gate", "No"))}, "`action_id` \"gate\" already exists"},
		"two blocks, one id":       {[]any{with(section("a"), "block_id", "b"), with(section("b"), "block_id", "b")}, "`block_id` \"b\" already exists"},
		"number as text":           {[]any{map[string]any{"type": "section", "text": map[string]any{"type": "mrkdwn", "text": 5}}}, "missing required field: text"},
		"emoji in mrkdwn":          {[]any{map[string]any{"type": "section", "text": with(mrkdwn("x"), "emoji", true)}}, "`emoji` is only allowed in plain_text"},
		"select without options":   {[]any{actions(map[string]any{"type": "static_select", "action_id": "a"})}, "missing required field: options"},
		"input outside a modal":    {[]any{map[string]any{"type": "input", "label": plain("l"), "element": map[string]any{"type": "plain_text_input"}}}, "unsupported type: input"},
		"image without alt":        {[]any{map[string]any{"type": "image", "image_url": "https://x.example/a.png"}}, "missing required field: alt_text"},
		"confirm without deny":     {[]any{actions(with(button("a", "A"), "confirm", map[string]any{"title": plain("t"), "text": plain("x"), "confirm": plain("y")}))}, "missing required field: deny"},
		"wrong type of flag":       {[]any{with(section("x"), "optional", "yes")}, "failed to match all allowed schemas"},
		"value not a string":       {[]any{actions(with(button("a", "A"), "value", 42))}, "must be a string [json-pointer:/blocks/0/elements/0/value]"},
		"context with a button":    {[]any{map[string]any{"type": "context", "elements": []any{button("a", "A")}}}, "unsupported type: button"},
		"accessory of wrong type":  {[]any{with(section("x"), "accessory", map[string]any{"type": "plain_text_input"})}, "unsupported type: plain_text_input"},
		"both kinds of options":    {[]any{actions(map[string]any{"type": "static_select", "options": []any{option("a", "a")}, "option_groups": []any{map[string]any{"label": plain("g"), "options": []any{option("b", "b")}}}})}, "only one of"},
		"option group without any": {[]any{actions(map[string]any{"type": "static_select", "option_groups": []any{map[string]any{"label": plain("g"), "options": []any{}}}})}, "no less than 1 items allowed"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startSim(t, nil)
			_, _, out := call(t, s, "chat.postMessage", map[string]any{"channel": incidents, "text": "t", "blocks": tc.blocks})
			require.Equal(t, false, out["ok"])
			require.Contains(t, fmt.Sprint(out), tc.want)
			require.Empty(t, s.Messages(incidents))
		})
	}
}

func TestSameActionIDInTwoBlocksIsAllowed(t *testing.T) {
	t.Parallel()
	s := startSim(t, nil)
	_, _, out := call(t, s, "chat.postMessage", map[string]any{"channel": incidents, "text": "t", "blocks": []any{
		actions(button("same", "One")), actions(button("same", "Two")),
	}})
	require.Equal(t, true, out["ok"], out)
}

func TestMissingIDsAreFilledIn(t *testing.T) {
	t.Parallel()
	s := startSim(t, nil)
	_, _, out := call(t, s, "chat.postMessage", map[string]any{"channel": incidents, "text": "t", "blocks": []any{
		section("a"), actions(map[string]any{"type": "button", "text": plain("A")}, map[string]any{"type": "button", "text": plain("B")}),
	}})
	require.Equal(t, true, out["ok"], out)
	m := s.Messages(incidents)[0]
	require.NotEmpty(t, m.Blocks[0].BlockID)
	require.NotEqual(t, m.Blocks[0].BlockID, m.Blocks[1].BlockID)
	ids := actionIDs(m.Elements())
	require.Len(t, ids, 2)
	require.NotEqual(t, ids[0], ids[1])
}

// FuzzBlocks feeds anything to the validator: it must not panic, and what it
// accepts must render and survive being sent again.
func FuzzBlocks(f *testing.F) {
	for _, tc := range limitCases {
		raw, err := json.Marshal(tc.build(tc.max)["blocks"])
		if err != nil {
			f.Fatal(err)
		}
		if len(raw) < 4000 {
			f.Add(string(raw))
		}
	}
	f.Add(`[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"x"}]}]}]`)
	f.Add(`[{"type":"actions","elements":[null,5,{"type":"button","confirm":[]}]}]`)
	f.Fuzz(func(t *testing.T, raw string) {
		n := 0
		id := func() string { n++; return fmt.Sprint("auto", n) }
		for _, surface := range []surface{surfaceMessage, surfaceModal} {
			filled, blocks, v, err := parseBlocks([]byte(raw), "/blocks", surface, id)
			if err != nil || len(v.problems) > 0 {
				continue
			}
			if len(blocks) > MaxViewBlocks {
				t.Fatalf("%d blocks accepted", len(blocks))
			}
			m := Message{Blocks: blocks, RawBlocks: filled}
			_, _, _ = m.Visible(), m.Notifies(), m.Elements()
			if _, _, again, err := parseBlocks(filled, "/blocks", surface, id); err != nil || len(again.problems) > 0 {
				t.Fatalf("accepted once but not again: %v %v\n%s", err, again, filled)
			}
		}
	})
}
