package slackapp

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzParseInteraction(f *testing.F) {
	for _, s := range []string{
		`{"type":"block_actions","user":{"id":"U1","team_id":"T1"},"team":{"id":"T1"},"actions":[{"action_id":"btn_X","value":"X"}]}`,
		`{"type":"view_submission","user":{"id":"U1"},"view":{"callback_id":"action_form","state":{"values":{"a":{"b":{"value":null}}}}}}`,
		`{"type":"block_actions","enterprise":null,"user":null}`, `[]`, `null`, ``,
	} {
		f.Add([]byte(url.Values{"payload": {s}}.Encode()))
	}
	f.Add([]byte("payload=1&payload=2"))
	f.Add([]byte("%zz"))
	f.Fuzz(func(t *testing.T, body []byte) {
		in, err := parseInteraction(body)
		if err != nil {
			if !errors.Is(err, errPayload) {
				t.Fatalf("error %v is none of ours", err)
			}
			return
		}
		if in.Type == "" || in.User.ID == "" {
			t.Fatalf("accepted without type or user: %+v", in)
		}
		if id, err := in.button(); err == nil && (id == "" || len(id) > 64 || id != in.Actions[0].Value) {
			t.Fatalf("button %q", id)
		}
		readForm(formState{}, in.View.State.Values)
	})
}

func FuzzParseCommand(f *testing.F) {
	f.Add([]byte("command=%2Fholdfast&user_id=U1&text=status&team_id=T1"))
	f.Add([]byte("command=holdfast&user_id="))
	f.Add([]byte("%zz;"))
	f.Fuzz(func(t *testing.T, body []byte) {
		c, err := parseCommand(body)
		if err == nil && (c.UserID == "" || !strings.HasPrefix(c.Command, "/")) {
			t.Fatalf("accepted %+v", c)
		}
	})
}

func FuzzEscapeClip(f *testing.F) {
	f.Add("a&b<c>", 5)
	f.Add("模型🔥\xff", 3)
	f.Add(strings.Repeat("&", 50), 20)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit = 1 + max(0, limit)%5000
		got := escapeClip(s, limit)
		if n := utf8.RuneCountInString(got); n > limit {
			t.Fatalf("%d runes, limit %d", n, limit)
		}
		if strings.ContainsAny(got, "<>") || !utf8.ValidString(got) {
			t.Fatalf("unsafe %q", got)
		}
		for rest := got; ; {
			_, after, found := strings.Cut(rest, "&")
			if !found {
				break
			}
			if !strings.HasPrefix(after, "amp;") && !strings.HasPrefix(after, "lt;") && !strings.HasPrefix(after, "gt;") {
				t.Fatalf("entity cut in %q", got)
			}
			rest = after
		}
		if whole := strings.ToValidUTF8(s, "\uFFFD"); !strings.HasSuffix(got, ellipsis) && escaper.Replace(whole) != got {
			t.Fatalf("changed without a mark: %q became %q", whole, got)
		}
	})
}
