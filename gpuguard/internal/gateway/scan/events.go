package scan

// Events watches a stream of server-sent events. The zero Events is ready.
type Events struct {
	name     [24]byte // field name, then the value of an event line
	nameSize int
	part     linePart
	cr       bool // the last byte was a carriage return

	data     bool // the event has a data line
	dataJSON JSON
	head     [8]byte // begin of the data line
	headSize int
	typ      eventType

	seen     int
	comment  bool
	first    verdict
	errors   int
	terminal bool
}

// linePart is where in a line the next byte stands.
type linePart byte

const (
	inName  linePart = iota
	inSpace          // right after the colon
	inData
	inType
	inOther
)

type eventType byte

const (
	plain eventType = iota
	errorType
	lastType
)

type verdict byte

const (
	undecided verdict = iota
	good
	bad
)

// Write takes the next bytes of the stream.
func (e *Events) Write(p []byte) {
	for i := 0; i < len(p); {
		c := p[i]
		if c == '\n' || c == '\r' {
			if c == '\r' || !e.cr {
				e.endLine()
			}
			e.cr = c == '\r'
			i++
			continue
		}
		e.cr = false
		i += e.inLine(p[i:])
	}
}

// inLine takes bytes of a line and returns how many; p does not begin with a line end.
func (e *Events) inLine(p []byte) int {
	switch e.part {
	case inName:
		e.fieldName(p[0])
		return 1
	case inSpace:
		e.part = e.valuePart()
		if p[0] == ' ' {
			return 1
		}
		return 0
	default:
		n := lineLength(p)
		e.value(p[:n])
		return n
	}
}

// value takes bytes of a field's value.
func (e *Events) value(p []byte) {
	switch e.part {
	case inData:
		e.dataJSON.Write(p)
		e.keepHead(p)
	case inType:
		e.keepName(p)
	default:
	}
}

func (e *Events) fieldName(c byte) {
	if c == ':' {
		if e.nameSize == 0 {
			e.comment = true
			e.part = inOther
			return
		}
		e.part = inSpace
		return
	}
	if e.nameSize < len(e.name) {
		e.name[e.nameSize] = c
	}
	e.nameSize++
}

// valuePart begins the value of the field whose name was read.
func (e *Events) valuePart() linePart {
	field := e.nameText()
	e.nameSize = 0
	switch field {
	case "data":
		if e.data {
			e.dataJSON.Write([]byte{'\n'})
		}
		e.data, e.headSize = true, 0
		return inData
	case "event":
		return inType
	}
	return inOther
}

func (e *Events) nameText() string {
	if e.nameSize > len(e.name) {
		return ""
	}
	return string(e.name[:e.nameSize])
}

func (e *Events) keepName(p []byte) {
	if e.nameSize < len(e.name) {
		copy(e.name[e.nameSize:], p)
	}
	e.nameSize += len(p)
}

func (e *Events) keepHead(p []byte) {
	if e.headSize < len(e.head) {
		copy(e.head[e.headSize:], p)
	}
	e.headSize += len(p)
}

// endLine takes the end of a line; an empty line ends the event.
func (e *Events) endLine() {
	switch {
	case e.part == inName && e.nameSize == 0:
		e.dispatch()
	case e.part == inSpace && e.nameText() == "data":
		e.data = true
	case e.part == inType:
		e.typ = typeOf(e.nameText())
	case e.part == inData && e.headSize == len("[DONE]") && string(e.head[:e.headSize]) == "[DONE]":
		// Readers take it line by line and leave, so the empty line may never come.
		e.terminal = true
	}
	e.part, e.nameSize = inName, 0
}

func typeOf(name string) eventType {
	switch name {
	case "error":
		return errorType
	case "message_stop", "response.completed", "response.incomplete", "response.failed":
		return lastType
	}
	return plain
}

// dispatch judges the event that an empty line, or the end of the stream, ended.
func (e *Events) dispatch() {
	if e.data {
		e.seen++
		v := good
		if e.typ == errorType || e.dataJSON.Set(Error) {
			v = bad
			e.errors++
		}
		if e.first == undecided {
			e.first = v
		}
		e.terminal = e.terminal || e.typ == lastType
	}
	e.data, e.headSize, e.typ = false, 0, plain
	e.dataJSON = JSON{}
}

// End takes the end of the stream.
func (e *Events) End() {
	if e.part != inName || e.nameSize > 0 {
		e.endLine()
	}
	e.dispatch()
}

// Decided says that the first event was judged, or that a comment came before
// it: a comment keeps the caller's connection alive and must not be held back.
func (e *Events) Decided() bool { return e.first != undecided || e.comment }

// FirstFailed says that the first event is an error.
func (e *Events) FirstFailed() bool { return e.first == bad }

// Failed says that some event is an error.
func (e *Events) Failed() bool { return e.errors > 0 }

// Seen is the number of events with data.
func (e *Events) Seen() int { return e.seen }

// Terminal says that the stream's own end mark came: "data: [DONE]", or the
// last event type of the Messages and Responses APIs.
func (e *Events) Terminal() bool { return e.terminal }

// lineLength is the number of bytes before the next line end.
func lineLength(p []byte) int {
	for i, c := range p {
		if c == '\n' || c == '\r' {
			return i
		}
	}
	return len(p)
}
