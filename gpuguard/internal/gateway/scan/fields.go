// Package scan looks at bodies while their bytes pass, without decoding or
// keeping them: the few top-level members of a JSON document the gateway
// decides on, and the events of a server-sent stream. Scanners take their
// input in any split and use constant memory.
package scan

import (
	"bytes"
	"strconv"
)

// Field is a top-level member that is watched for.
type Field int

// Watched members.
const (
	none    Field = iota
	Stream        // "stream" of a request
	Timeout       // "timeout" of a request, in seconds
	Error         // "error" of an answer
	Choices       // "choices" of an answer
	fields
)

func lookup(key []byte) Field {
	switch string(key) {
	case "stream":
		return Stream
	case "timeout":
		return Timeout
	case "error":
		return Error
	case "choices":
		return Choices
	}
	return none
}

// Kind is the kind of a JSON value, told by its first byte.
type Kind byte

// Kinds. Absent is the zero value; Invalid is a byte no JSON value begins with.
const (
	Absent Kind = iota
	Object
	Array
	String
	Literal // number, true, false or null
	Invalid
)

func kindOf(c byte) Kind {
	switch {
	case c == '{':
		return Object
	case c == '[':
		return Array
	case c == '"':
		return String
	case c == '-' || c >= '0' && c <= '9' || c == 't' || c == 'f' || c == 'n':
		return Literal
	}
	return Invalid
}

// value is what is remembered of one watched member.
type value struct {
	kind   Kind
	filled bool // an object, array or string with something in it
	text   [24]byte
	size   int // bytes of a literal; those beyond text are counted only
}

// JSON watches one document. The zero JSON is ready. Keys written with
// escapes are not recognised; of a repeated key the last counts.
type JSON struct {
	top    Kind
	depth  int
	ended  bool
	string bool // inside a string
	escape bool // after a backslash
	inKey  bool // the string is a key of the top-level object
	// wantKey: the next string at depth 1 is a key. wantValue: the next byte
	// begins the value of field.
	wantKey   bool
	wantValue bool
	// looking: the next byte tells whether the container value of field is empty.
	looking bool
	literal bool // inside a literal value of field
	field   Field
	key     [8]byte
	keySize int
	values  [fields]value
}

// Write takes the next bytes of the document.
func (j *JSON) Write(p []byte) {
	for i := 0; i < len(p); {
		if j.string {
			i += j.text(p[i:])
			continue
		}
		j.token(p[i])
		i++
	}
}

const lookAhead = 512

// text takes bytes inside a string and returns how many.
func (j *JSON) text(p []byte) int {
	if j.escape {
		j.escape = false
		j.keep(p[:1])
		return 1
	}
	// Looking a little ahead keeps text full of backslashes linear.
	p = p[:min(len(p), lookAhead)]
	end := bytes.IndexByte(p, '"')
	if end < 0 {
		end = len(p)
	}
	if b := bytes.IndexByte(p[:end], '\\'); b >= 0 {
		j.escape = true
		j.keep(p[:b+1])
		return b + 1
	}
	j.keep(p[:end])
	if end == len(p) {
		return end
	}
	j.string = false
	if j.inKey {
		j.inKey = false
		j.field = none
		if j.keySize <= len(j.key) {
			j.field = lookup(j.key[:j.keySize])
		}
	}
	return end + 1
}

// keep remembers bytes of a string as far as they matter.
func (j *JSON) keep(p []byte) {
	switch {
	case len(p) == 0:
	case j.inKey:
		if j.keySize < len(j.key) {
			copy(j.key[j.keySize:], p)
		}
		j.keySize += len(p)
	case j.depth == 1 && j.field != none:
		j.values[j.field].filled = true
	}
}

func (j *JSON) token(c byte) {
	if c == ' ' || c == '\n' || c == '\r' || c == '\t' {
		j.literal = false
		return
	}
	if j.looking {
		j.looking = false
		j.values[j.field].filled = c != ']' && c != '}'
	}
	switch {
	case j.top == Absent:
		j.top = kindOf(c)
	case j.wantValue:
		j.wantValue = false
		j.begin(c)
	}
	j.structure(c)
}

// begin takes the first byte of a member's value.
func (j *JSON) begin(c byte) {
	if j.field == none {
		return
	}
	k := kindOf(c)
	j.values[j.field] = value{kind: k}
	j.looking = k == Object || k == Array
	j.literal = k == Literal
}

func (j *JSON) structure(c byte) {
	switch c {
	case '"':
		j.string = true
		if j.depth == 1 && j.wantKey {
			j.inKey, j.wantKey, j.keySize = true, false, 0
		}
	case '{', '[':
		j.depth++
		j.wantKey = j.depth == 1 && j.top == Object
	case '}', ']':
		j.literal = false
		j.depth--
		j.ended = j.ended || j.depth <= 0
	case ':':
		j.wantValue = j.depth == 1 && j.top == Object
	case ',':
		j.literal = false
		j.wantKey = j.depth == 1 && j.top == Object
	default:
		if j.literal {
			v := &j.values[j.field]
			if v.size < len(v.text) {
				v.text[v.size] = c
			}
			v.size++
		}
	}
}

// Top is the kind of the whole document; Absent when nothing but white space came.
func (j *JSON) Top() Kind { return j.top }

// Whole says that the document came to its end: every bracket is closed.
func (j *JSON) Whole() bool {
	switch j.top {
	case Object, Array:
		return j.ended
	case String:
		return !j.string
	case Literal:
		return true
	case Absent, Invalid:
	}
	return false
}

// True says that the member is the literal true.
func (j *JSON) True(f Field) bool { return string(j.literalText(f)) == "true" }

// Number returns the member as a number; false when it is none.
func (j *JSON) Number(f Field) (float64, bool) {
	n, err := strconv.ParseFloat(string(j.literalText(f)), 64)
	return n, err == nil
}

// Set says that the member is there and means something: not null, false, 0,
// an empty string, array or object.
func (j *JSON) Set(f Field) bool {
	v := &j.values[f]
	if v.kind == Literal {
		t := string(j.literalText(f))
		return t != "null" && t != "false" && t != "0"
	}
	return v.filled
}

// EmptyArray says that the member is an array without elements.
func (j *JSON) EmptyArray(f Field) bool {
	v := &j.values[f]
	return v.kind == Array && !v.filled
}

func (j *JSON) literalText(f Field) []byte {
	v := &j.values[f]
	if v.kind != Literal || v.size > len(v.text) {
		return nil
	}
	return v.text[:v.size]
}
