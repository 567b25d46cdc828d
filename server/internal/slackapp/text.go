package slackapp

import (
	"strings"
	"unicode/utf8"
)

// Slack's limits, in characters (https://docs.slack.dev/reference/block-kit).
const (
	maxText = 3000
	// maxFallback bounds a notification text: chat.update takes 4,000 bytes, and a
	// character has up to four.
	maxFallback = 1000
	// maxCommand bounds the answer to a slash command.
	maxCommand    = 12_000
	maxHeader     = 150
	maxField      = 2000
	maxButtonText = 75
	maxOptionText = 75
	ellipsis      = "…"
)

// escaper is Slack's whole escaping: these three and no others.
var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// clip cuts plain text to at most limit runes, marking the cut.
func clip(s string, limit int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	r := []rune(s)
	return strings.TrimRight(string(r[:limit-1]), " \n") + ellipsis
}

// escape makes untrusted text safe inside mrkdwn: no mention, link or channel can come of it.
func escape(s string) string { return escaper.Replace(s) }

// escapeClip escapes and cuts so that the result has at most limit runes and no
// entity is cut in two.
func escapeClip(s string, limit int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	full := escape(s)
	if utf8.RuneCountInString(full) <= limit {
		return full
	}
	var b strings.Builder
	n := 0
	for _, r := range s {
		e := escape(string(r))
		if n+utf8.RuneCountInString(e) > limit-1 {
			break
		}
		n += utf8.RuneCountInString(e)
		b.WriteString(e)
	}
	return strings.TrimRight(b.String(), " \n") + ellipsis
}

// link is a mrkdwn link, or the bare label when the address cannot be one.
func link(url, label string) string {
	if !strings.HasPrefix(url, "https://") && !strings.HasPrefix(url, "http://") || strings.ContainsAny(url, "<>| \t\r\n") || len(url) > maxText/2 {
		return escape(label)
	}
	return "<" + strings.ReplaceAll(url, "&", "&amp;") + "|" + strings.ReplaceAll(escapeClip(label, 200), "|", "/") + ">"
}

// joinClip joins whole parts while they fit into limit runes; a part that does
// not fit is left out, never cut (links stay whole).
func joinClip(parts []string, sep string, limit int) string {
	var b strings.Builder
	n := 0
	for _, p := range parts {
		l := utf8.RuneCountInString(p)
		if n > 0 {
			l += utf8.RuneCountInString(sep)
		}
		if n+l > limit {
			continue
		}
		if n > 0 {
			b.WriteString(sep)
		}
		b.WriteString(p)
		n += l
	}
	return b.String()
}
