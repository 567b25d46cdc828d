package slacksim

import (
	"html"
	"html/template"
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// markup turns Slack's mrkdwn into HTML or into plain words. HTML leaves only
// through escape, so that nothing an app posts can become markup of its own.
type markup struct {
	asHTML bool
	name   func(id string) string // user or channel id → shown name
	out    strings.Builder
}

const (
	maxSpan  = 4000 // characters looked at for the end of *bold* and the like
	maxDepth = 4    // *_~nested~_*
)

// mrkdwnHTML renders mrkdwn for the page.
func mrkdwnHTML(s string, name func(string) string) template.HTML {
	m := &markup{asHTML: true, name: name}
	m.document(s)
	return template.HTML(m.out.String()) //nolint:gosec // built from escaped pieces only
}

// plainMrkdwn returns the words a person reads.
func plainMrkdwn(s string) string {
	m := &markup{name: func(id string) string { return id }}
	m.document(s)
	return strings.TrimSuffix(m.out.String(), "\n")
}

// visible returns the words of a text object.
func visible(t Text) string {
	if t.Type == "plain_text" {
		return unescape(t.Text)
	}
	return plainMrkdwn(t.Text)
}

// unescape resolves the three entities Slack knows, once.
func unescape(s string) string {
	return strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">").Replace(s)
}

var mentionPattern = regexp.MustCompile(`<(?:!(channel|here|everyone)|!subteam\^(\w+)|@([UW]\w+))(?:\|[^>]*)?>`)

// mentions returns whom a mrkdwn text notifies.
func mentions(s string) []string {
	var out []string
	for _, match := range mentionPattern.FindAllStringSubmatch(s, -1) {
		out = append(out, match[1]+match[2]+match[3])
	}
	return out
}

func (m *markup) tag(s string) {
	if m.asHTML {
		m.out.WriteString(s)
	}
}

// word writes characters a person reads.
func (m *markup) word(s string) {
	if m.asHTML {
		s = html.EscapeString(s)
	}
	m.out.WriteString(s)
}

// document renders ``` blocks and what is between them.
func (m *markup) document(s string) {
	for s != "" {
		before, rest, found := strings.Cut(s, "```")
		code, after, closed := strings.Cut(rest, "```")
		if !found || !closed || code == "" {
			m.lines(s)
			return
		}
		m.lines(strings.TrimSuffix(before, "\n"))
		m.tag("<pre>")
		m.word(unescape(strings.Trim(code, "\n")))
		m.tag("</pre>")
		if !m.asHTML {
			m.out.WriteByte('\n')
		}
		s = strings.TrimPrefix(after, "\n")
	}
}

// lines renders quotes and line breaks.
func (m *markup) lines(s string) {
	if s == "" {
		return
	}
	quoted := false
	for i, line := range strings.Split(s, "\n") {
		rest, isQuote := cutQuote(line)
		switch {
		case isQuote && !quoted:
			m.tag("<blockquote>")
		case !isQuote && quoted:
			m.tag("</blockquote>")
		case i > 0:
			m.tag("<br>")
		}
		if i > 0 && !m.asHTML {
			m.out.WriteByte('\n')
		}
		quoted = isQuote
		m.inline(rest, 0)
	}
	if quoted {
		m.tag("</blockquote>")
	}
}

func cutQuote(line string) (string, bool) {
	for _, prefix := range []string{"&gt; ", "> ", "&gt;", ">"} {
		if rest, ok := strings.CutPrefix(line, prefix); ok {
			return rest, true
		}
	}
	return line, false
}

var spanTags = map[byte][2]string{
	'*': {"<b>", "</b>"}, '_': {"<i>", "</i>"}, '~': {"<s>", "</s>"}, '`': {"<code>", "</code>"},
}

// inline renders one line.
func (m *markup) inline(s string, depth int) {
	start, previous := 0, ' '
	flush := func(end int) {
		m.word(unescape(s[start:end]))
	}
	for i := 0; i < len(s); {
		n := 0
		switch {
		case s[i] == '<':
			if end := strings.IndexByte(s[i:], '>'); end > 1 {
				flush(i)
				m.reference(s[i+1 : i+end])
				n = end + 1
			}
		case s[i] == ':':
			if glyph, size := emojiAt(s[i:]); size > 0 {
				flush(i)
				m.word(glyph)
				n = size
			}
		default:
			if tags, ok := spanTags[s[i]]; ok && depth < maxDepth && !isWord(previous) {
				if end := spanEnd(s[i:]); end > 0 {
					flush(i)
					m.span(s[i], tags, s[i+1:i+end], depth)
					n = end + 1
				}
			}
		}
		if n > 0 {
			i += n
			start, previous = i, '*'
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		previous = r
		i += size
	}
	flush(len(s))
}

func (m *markup) span(mark byte, tags [2]string, inner string, depth int) {
	m.tag(tags[0])
	if mark == '`' {
		m.word(unescape(inner))
	} else {
		m.inline(inner, depth+1)
	}
	m.tag(tags[1])
}

// spanEnd returns the index of the mark that closes the span s begins with.
func spanEnd(s string) int {
	mark := s[0]
	limit := min(len(s), maxSpan)
	if limit < 3 || s[1] == ' ' || s[1] == mark {
		return 0
	}
	for i := 2; i < limit; i++ {
		if s[i] != mark || s[i-1] == ' ' {
			continue
		}
		next, _ := utf8.DecodeRuneInString(s[i+1:])
		if i+1 == len(s) || !isWord(next) {
			return i
		}
	}
	return 0
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// reference renders what stands between < and >.
func (m *markup) reference(ref string) {
	target, label, labelled := strings.Cut(ref, "|")
	switch {
	case strings.HasPrefix(target, "@"):
		m.chip("mention", "@"+m.name(target[1:]))
	case strings.HasPrefix(target, "#"):
		m.chip("mention", "#"+m.name(target[1:]))
	case strings.HasPrefix(target, "!date^"):
		m.word(unescape(or(label, target)))
	case strings.HasPrefix(target, "!subteam^"):
		m.chip("notify", or(unescape(label), "@"+strings.TrimPrefix(target, "!subteam^")))
	case strings.HasPrefix(target, "!"):
		m.chip("notify", "@"+strings.TrimPrefix(target, "!"))
	default:
		text := unescape(target)
		if labelled && label != "" {
			text = unescape(label)
		}
		m.link(unescape(target), text)
	}
}

func (m *markup) chip(class, text string) {
	m.tag(`<span class="` + class + `">`)
	m.word(text)
	m.tag("</span>")
}

func (m *markup) link(target, text string) {
	if !linkable(target) {
		m.word(text)
		return
	}
	m.tag(`<a href="` + html.EscapeString(target) + `" target="_blank" rel="noopener noreferrer">`)
	m.word(text)
	m.tag("</a>")
}

// linkable says whether the page may link to a target: no script, no data.
func linkable(target string) bool {
	u, err := url.Parse(target)
	if err != nil {
		return false
	}
	return ((u.Scheme == "http" || u.Scheme == "https") && u.Host != "") || u.Scheme == "mailto"
}

// emoji are the names an operations channel uses; others stay as typed.
var emoji = map[string]string{
	"fire": "🔥", "rotating_light": "🚨", "warning": "⚠️", "white_check_mark": "✅", "x": "❌", "bell": "🔔",
	"no_bell": "🔕", "hourglass": "⌛", "hourglass_flowing_sand": "⏳", "lock": "🔒", "unlock": "🔓", "eyes": "👀",
	"red_circle": "🔴", "large_orange_circle": "🟠", "large_yellow_circle": "🟡", "large_green_circle": "🟢",
	"large_blue_circle": "🔵", "white_circle": "⚪", "black_circle": "⚫", "electric_plug": "🔌", "zap": "⚡", "rocket": "🚀",
	"calendar": "📅", "clock3": "🕒", "stopwatch": "⏱️", "arrows_counterclockwise": "🔄", "leftwards_arrow_with_hook": "↩️",
	"no_entry": "⛔", "no_entry_sign": "🚫", "octagonal_sign": "🛑", "information_source": "ℹ️", "question": "❓",
	"tada": "🎉", "wave": "👋", "thumbsup": "👍", "+1": "👍", "thumbsdown": "👎", "-1": "👎", "robot_face": "🤖",
	"chart_with_upwards_trend": "📈", "chart_with_downwards_trend": "📉", "book": "📖", "memo": "📝", "link": "🔗",
	"heavy_check_mark": "✔️", "shield": "🛡️", "construction": "🚧", "snowflake": "❄️", "pager": "📟", "raised_hand": "✋",
}

var emojiPattern = regexp.MustCompile(`^:([a-z0-9_+-]{1,40}):`)

// emojiAt returns the glyph of a known :name: at the start of s.
func emojiAt(s string) (string, int) {
	match := emojiPattern.FindStringSubmatch(s[:min(len(s), 44)]) // a longer search costs its length at every colon
	if match == nil {
		return "", 0
	}
	glyph, ok := emoji[match[1]]
	if !ok {
		return "", 0
	}
	return glyph, len(match[0])
}
