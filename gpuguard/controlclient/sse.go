package controlclient

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"holdfast/strict"
)

// maxEventBytes bounds one event, so that a broken peer cannot fill the memory.
const maxEventBytes = strict.MaxBytes + 64<<10

// event is one server-sent event.
type event struct {
	name string
	id   string
	data []byte
}

// eventReader reads a text/event-stream. Lines end with LF or CRLF; a lone CR,
// which the standard also allows, is not a line end here.
type eventReader struct {
	br *bufio.Reader
	// heard is called for everything that arrives, comments included.
	heard func()
}

func newEventReader(r io.Reader, heard func()) *eventReader {
	return &eventReader{br: bufio.NewReaderSize(r, 16<<10), heard: heard}
}

// next returns the next event that carries data. An event that the end of the
// stream cuts off is dropped, as the standard asks.
func (r *eventReader) next() (event, error) {
	var e event
	hasData := false
	size := 0
	for {
		line, err := r.line(maxEventBytes - size)
		if err != nil {
			return event{}, err
		}
		size += len(line)
		if line == "" {
			if hasData {
				return e, nil
			}
			e = event{}
			size = 0
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "event":
			e.name = value
		case "id":
			e.id = value
		case "data":
			if hasData {
				e.data = append(e.data, '\n')
			}
			e.data = append(e.data, value...)
			hasData = true
		case "": // a comment: it counts as heard and as nothing else
			size -= len(line)
		}
	}
}

// line reads one line of at most most bytes, without its end.
func (r *eventReader) line(most int) (string, error) {
	var b strings.Builder
	for {
		part, err := r.br.ReadSlice('\n')
		if len(part) > 0 {
			r.heard()
		}
		if b.Len()+len(part) > most+2 {
			return "", fmt.Errorf("an event is larger than %d bytes", maxEventBytes)
		}
		b.Write(part)
		switch {
		case err == nil:
			return strings.TrimSuffix(strings.TrimSuffix(b.String(), "\n"), "\r"), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return "", err
		}
	}
}
