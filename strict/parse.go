package strict

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// Bounds of a document.
const (
	// MaxBytes is the largest document read (bytes).
	MaxBytes = 8 << 20
	// MaxDepth is the deepest nesting of objects and lists.
	MaxDepth = 64
	// MaxErrors is how many problems are reported for one document; a last entry says that there are more.
	MaxErrors = 100
)

type kind int

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindText
	kindList
	kindObject
)

// node is one parsed value; raw is its text within the document.
type node struct {
	kind    kind
	raw     []byte
	text    string
	list    []*node
	members []member
}

type member struct {
	key   string
	value *node
}

// noun names what was found, for messages.
func (n *node) noun() string {
	switch n.kind {
	case kindNull:
		return "null"
	case kindBool:
		return string(n.raw)
	case kindNumber:
		return "a number"
	case kindText:
		return "text"
	case kindList:
		return "a list"
	default:
		return "an object"
	}
}

// syntax checks size, encoding and grammar; what passes can be parsed without
// looking back.
func syntax(data []byte) error {
	if len(data) > MaxBytes {
		return fmt.Errorf("is %d bytes long: at most %d are read", len(data), MaxBytes)
	}
	if i := invalidUTF8(data); i >= 0 {
		return fmt.Errorf("has a byte at %s that is not UTF-8", position(data, i))
	}
	var raw json.RawMessage
	err := json.Unmarshal(data, &raw)
	var se *json.SyntaxError
	switch {
	case err == nil:
		return nil
	case len(data) == 0:
		return errors.New("is empty: want a JSON value")
	case errors.As(err, &se):
		return fmt.Errorf("is not JSON: %s at %s", se.Error(), position(data, int(se.Offset)-1))
	default:
		return fmt.Errorf("is not JSON: %w", err)
	}
}

func invalidUTF8(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size <= 1 {
			return i
		}
		i += size
	}
	return -1
}

// position renders a byte offset as line and column, both from 1.
func position(data []byte, offset int) string {
	offset = max(0, min(offset, len(data)))
	line, column := 1, 1
	for _, b := range data[:offset] {
		column++
		if b == '\n' {
			line, column = line+1, 1
		}
	}
	return fmt.Sprintf("line %d, column %d", line, column)
}

// parser builds nodes from text that passed syntax. It reports duplicate keys
// and nesting beyond MaxDepth; nothing else can be wrong by then.
type parser struct {
	data []byte
	pos  int
	errs *report
}

func (p *parser) space() {
	for p.pos < len(p.data) {
		switch p.data[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

func (p *parser) value(path string, depth int) *node {
	p.space()
	start := p.pos
	n := &node{}
	switch p.data[p.pos] {
	case '{', '[':
		if depth >= MaxDepth {
			p.errs.addf(path, "is nested deeper than %d levels", MaxDepth)
			p.errs.stop = true
			return n
		}
		if p.data[p.pos] == '{' {
			p.object(n, path, depth)
		} else {
			p.array(n, path, depth)
		}
	case '"':
		n.kind, n.text = kindText, p.str()
	case 't', 'f':
		n.kind = kindBool
		p.word()
	case 'n':
		n.kind = kindNull
		p.word()
	default:
		n.kind = kindNumber
		p.word()
	}
	n.raw = p.data[start:p.pos]
	return n
}

// more steps past the opening bracket or a comma and says whether a value follows.
func (p *parser) more(end byte) bool {
	p.space()
	switch p.data[p.pos] {
	case end:
		p.pos++
		return false
	case ',':
		p.pos++
		p.space()
	}
	return true
}

func (p *parser) object(n *node, path string, depth int) {
	n.kind = kindObject
	p.pos++
	seen := map[string]bool{}
	for p.more('}') {
		key := p.str()
		p.space()
		p.pos++ // the colon
		at := Join(path, key)
		v := p.value(at, depth+1)
		if p.errs.stop {
			return
		}
		if seen[key] {
			p.errs.addf(at, "is given twice")
			continue
		}
		seen[key] = true
		n.members = append(n.members, member{key, v})
	}
}

func (p *parser) array(n *node, path string, depth int) {
	n.kind = kindList
	p.pos++
	for p.more(']') {
		v := p.value(Index(path, len(n.list)), depth+1)
		if p.errs.stop {
			return
		}
		n.list = append(n.list, v)
	}
}

func (p *parser) str() string {
	start, escaped := p.pos, false
	for p.pos++; p.data[p.pos] != '"'; p.pos++ {
		if p.data[p.pos] == '\\' {
			escaped = true
			p.pos++
		}
	}
	p.pos++
	if !escaped {
		return string(p.data[start+1 : p.pos-1])
	}
	var s string
	// The literal passed the grammar, so this cannot fail.
	_ = json.Unmarshal(p.data[start:p.pos], &s)
	return s
}

// word steps over a number, true, false or null.
func (p *parser) word() {
	for p.pos < len(p.data) {
		switch p.data[p.pos] {
		case ',', ']', '}', ' ', '\t', '\n', '\r':
			return
		}
		p.pos++
	}
}
