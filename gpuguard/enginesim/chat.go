package enginesim

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"time"
)

// usage counts the tokens of one request.
type usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
}

func newUsage(prompt, completion int) *usage {
	return &usage{PromptTokens: prompt, CompletionTokens: completion, TotalTokens: prompt + completion}
}

type chatCompletion struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"`
	Created int64        `json:"created"`
	Model   string       `json:"model"`
	Choices []chatChoice `json:"choices"`
	Usage   *usage       `json:"usage"`
}

type chatChoice struct {
	Index        int        `json:"index"`
	Message      *chatDelta `json:"message,omitempty"`
	Delta        *chatDelta `json:"delta,omitempty"`
	Logprobs     any        `json:"logprobs"`
	FinishReason *string    `json:"finish_reason"`
}

type chatDelta struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`
}

// chat serves /v1/chat/completions.
func (e *Engine) chat(w http.ResponseWriter, r *http.Request) {
	var req chatRequest
	if err := e.decode(w, r, &req); err != nil {
		err.write(w)
		return
	}
	if err := e.checkModel(req.Model); err != nil {
		err.write(w)
		return
	}
	p, apiErr := req.validate()
	if apiErr != nil {
		apiErr.write(w)
		return
	}
	x := exchange{engine: e, w: w, ctx: r.Context(), hash: p.hash, work: req.work(p, e.opts)}
	x.usage = req.StreamOptions != nil && req.StreamOptions.IncludeUsage
	e.answer(&x, x.chat)
}

// exchange is one accepted request on its way to an answer.
type exchange struct {
	engine *Engine
	w      http.ResponseWriter
	ctx    context.Context
	hash   uint64
	work   work
	usage  bool // a stream ends with a usage event
	fault  fault
	knobs  Knobs
}

// answer draws the fault, queues the work and lets reply write the response.
func (e *Engine) answer(x *exchange, reply func(*call)) {
	x.fault, x.knobs = e.decide(x.work.stream)
	if x.fault == faultHang {
		e.hang(x.ctx)
		abort()
	}
	if x.fault == faultFail {
		serverError(x.knobs.FailStatus, "Injected failure.").withCode("injected_failure").write(x.w)
		return
	}
	c, err := e.submit(x.work)
	if err != nil {
		e.engineError(err, x.work).write(x.w)
		return
	}
	defer c.release()
	reply(c)
}

// abort closes the client's connection without ending the answer; net/http
// knows no other way.
func abort() {
	panic(http.ErrAbortHandler) //nolint:forbidigo // the documented signal to net/http, which recovers it
}

func (x *exchange) chat(c *call) {
	if x.work.stream {
		x.stream(c)
		return
	}
	made, ok := x.finish(c)
	if !ok {
		return
	}
	text := answer(x.hash, made)
	x.writeJSON(chatCompletion{
		ID: newID("chatcmpl-"), Object: "chat.completion", Created: time.Now().Unix(), Model: x.engine.opts.Model,
		Choices: []chatChoice{{
			Message:      &chatDelta{Role: "assistant", Content: &text},
			FinishReason: &x.work.finishReason,
		}},
		Usage: newUsage(x.work.prompt, made),
	})
}

// finish waits for the whole answer; false means that the response is already
// written or that nobody reads it.
func (x *exchange) finish(c *call) (int, bool) {
	made, err := c.finish(x.ctx)
	if err != nil {
		x.fail(err)
		return 0, false
	}
	return made, true
}

// fail answers a call that ended badly, unless the client left.
func (x *exchange) fail(err error) {
	if errors.Is(err, x.ctx.Err()) {
		return
	}
	x.engine.engineError(err, x.work).write(x.w)
}

// writeJSON sends a good answer, or what the fault makes of it.
func (x *exchange) writeJSON(v any) {
	switch x.fault {
	case faultEmpty:
		x.w.Header().Set("Content-Type", "application/json")
		x.w.WriteHeader(http.StatusOK)
	case faultErrorIn200:
		writeJSON(x.w, http.StatusOK, errorBody{injectedError()})
	default:
		writeJSON(x.w, http.StatusOK, v)
	}
}

func injectedError() *apiError {
	return serverError(http.StatusOK, "Injected error inside a 200 answer.").withCode("injected_error")
}

func newID(prefix string) string { return prefix + rand.Text() }
