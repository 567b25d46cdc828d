package enginesim

import (
	"encoding/json"
	"net/http"
	"time"
)

// stream answers with server-sent events: role, one event per token, finish
// reason, usage if asked for, [DONE].
func (x *exchange) stream(c *call) {
	s := sse{w: x.w, cutAfter: -1}
	if x.fault == faultCut {
		s.cutAfter = x.knobs.CutAfterEvents
	}
	chunk := chatChunk{
		ID: newID("chatcmpl-"), Object: "chat.completion.chunk", Created: time.Now().Unix(), Model: x.engine.opts.Model,
	}
	sent := 0
	for {
		p, err := c.wait(x.ctx)
		if err != nil {
			return
		}
		if p.err != nil {
			x.failStream(&s, p.err)
			return
		}
		if p.made > 0 && x.fault != faultEmpty {
			s.begin(func() { x.event(&s, chunk.with(chatDelta{Role: "assistant", Content: new(string)}, nil)) })
		}
		for ; sent < p.made && x.tokensVisible(); sent++ {
			text := word(x.hash, sent)
			x.event(&s, chunk.with(chatDelta{Content: &text}, nil))
		}
		if p.done {
			x.endStream(&s, chunk, p.made)
			return
		}
		s.flush()
	}
}

// tokensVisible is false when the answer is empty or an error.
func (x *exchange) tokensVisible() bool { return x.fault != faultEmpty && x.fault != faultErrorIn200 }

func (x *exchange) endStream(s *sse, chunk chatChunk, made int) {
	if x.fault == faultEmpty {
		s.begin(func() {})
		return
	}
	if x.fault == faultErrorIn200 {
		x.event(s, errorBody{injectedError()})
		s.done()
		return
	}
	x.event(s, chunk.with(chatDelta{}, &x.work.finishReason))
	if x.usage {
		x.event(s, chunk.withUsage(newUsage(x.work.prompt, made)))
	}
	s.done()
}

// failStream reports an engine failure: as a status while that is possible,
// else as an event, as vLLM does.
func (x *exchange) failStream(s *sse, err error) {
	if !s.begun {
		x.fail(err)
		return
	}
	x.event(s, errorBody{x.engine.engineError(err, x.work)})
	s.done()
}

// event sends one object. With usage asked for, chunks carry "usage": null, as
// the OpenAI API does.
func (x *exchange) event(s *sse, v any) {
	if c, ok := v.(chatChunk); ok && x.usage && c.Usage == nil {
		c.Usage = &nullUsage
		v = c
	}
	s.send(v)
}

// chatChunk is one event of a stream.
type chatChunk struct {
	ID      string           `json:"id"`
	Object  string           `json:"object"`
	Created int64            `json:"created"`
	Model   string           `json:"model"`
	Choices []chatChoice     `json:"choices"`
	Usage   *json.RawMessage `json:"usage,omitempty"`
}

var nullUsage = json.RawMessage("null")

func (c chatChunk) with(delta chatDelta, finish *string) chatChunk {
	c.Choices = []chatChoice{{Delta: &delta, FinishReason: finish}}
	return c
}

func (c chatChunk) withUsage(u *usage) chatChunk {
	c.Choices = []chatChoice{}
	if raw, err := json.Marshal(u); err == nil {
		c.Usage = (*json.RawMessage)(&raw)
	}
	return c
}

// sse writes server-sent events and cuts the connection on command.
type sse struct {
	w        http.ResponseWriter
	begun    bool
	events   int
	cutAfter int // events before the cut; negative is never
}

// begin sends the header and runs first, once.
func (s *sse) begin(first func()) {
	if s.begun {
		return
	}
	s.begun = true
	s.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	s.w.Header().Set("Cache-Control", "no-cache")
	s.w.WriteHeader(http.StatusOK)
	first()
}

func (s *sse) send(v any) {
	body, err := json.Marshal(v)
	if err != nil {
		abort() // unreachable for our types; a cut is the honest end
	}
	s.write(body)
}

// done ends the stream well, unless a cut is due: then the end never comes.
func (s *sse) done() {
	if s.cutAfter >= 0 {
		s.cut()
	}
	s.write([]byte("[DONE]"))
	s.flush()
}

func (s *sse) write(data []byte) {
	if s.cutAfter >= 0 && s.events >= s.cutAfter {
		s.cut()
	}
	s.events++
	_, _ = s.w.Write([]byte("data: "))
	_, _ = s.w.Write(data)
	_, _ = s.w.Write([]byte("\n\n"))
}

// cut delivers what was written and closes the connection without the final
// chunk, so that the client sees a broken stream and not a short one.
func (s *sse) cut() {
	s.flush()
	abort()
}

// flush ignores its error: a client that left is reported by the context.
func (s *sse) flush() { _ = http.NewResponseController(s.w).Flush() }
