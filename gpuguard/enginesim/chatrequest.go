package enginesim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// messageTokens is what a chat template adds to each message.
const messageTokens = 4

// mostTokens bounds a requested output, so that sums of tokens cannot overflow.
const mostTokens = 1 << 30

// chatRequest holds the fields of /v1/chat/completions that matter here.
type chatRequest struct {
	Model               string        `json:"model"`
	Messages            []chatMessage `json:"messages"`
	MaxTokens           *int          `json:"max_tokens"`
	MaxCompletionTokens *int          `json:"max_completion_tokens"`
	IgnoreEOS           bool          `json:"ignore_eos"` // of vLLM: always make max_tokens tokens
	N                   *int          `json:"n"`
	Temperature         *float64      `json:"temperature"`
	TopP                *float64      `json:"top_p"`
	Stream              bool          `json:"stream"`
	StreamOptions       *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

type chatMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

var chatRoles = []string{"system", "developer", "user", "assistant", "tool", "function"}

// prompt is what remains of a valid request.
type prompt struct {
	hash   uint64
	tokens int
}

// checkModel refuses a missing model (400) and one that is not served (404).
func (e *Engine) checkModel(name string) *apiError {
	switch name {
	case e.opts.Model:
		return nil
	case "":
		return badRequest("model", "model: field required.")
	}
	err := &apiError{
		status: http.StatusNotFound, Type: "invalid_request_error",
		Message: fmt.Sprintf("The model %q does not exist; this engine serves %q.", clip(name), e.opts.Model),
	}
	param := "model"
	err.Param = &param
	return err.withCode("model_not_found")
}

// clip bounds the part of a client's text that an error repeats.
func clip(s string) string {
	const most = 100
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// validate checks the parameters and reads the prompt.
func (r *chatRequest) validate() (prompt, *apiError) {
	if r.Messages == nil {
		return prompt{}, badRequest("messages", "messages: field required.")
	}
	if len(r.Messages) == 0 {
		return prompt{}, badRequest("messages", "messages: want at least one message.")
	}
	if err := r.validateSampling(); err != nil {
		return prompt{}, err
	}
	var p prompt
	texts := make([]string, 0, 2*len(r.Messages))
	for i, m := range r.Messages {
		where := fmt.Sprintf("messages[%d]", i)
		if !slices.Contains(chatRoles, m.Role) {
			return prompt{}, badRequest(where+".role", fmt.Sprintf("%s.role: got %q, want one of %s.",
				where, clip(m.Role), strings.Join(chatRoles, ", ")))
		}
		text, err := m.text(where + ".content")
		if err != nil {
			return prompt{}, err
		}
		p.tokens += messageTokens + countTokens(text)
		texts = append(texts, m.Role, text)
	}
	p.hash = hashText(texts...)
	return p, nil
}

func (r *chatRequest) validateSampling() *apiError {
	for name, v := range map[string]*int{"max_tokens": r.MaxTokens, "max_completion_tokens": r.MaxCompletionTokens} {
		if v != nil && *v < 1 {
			return badRequest(name, fmt.Sprintf("%s: got %d, want 1 or more.", name, *v))
		}
	}
	switch {
	case r.N != nil && *r.N != 1:
		return badRequest("n", fmt.Sprintf("n: got %d, but this engine makes exactly 1 choice.", *r.N))
	case r.Temperature != nil && (*r.Temperature < 0 || *r.Temperature > 2):
		return badRequest("temperature", fmt.Sprintf("temperature: got %v, want 0 to 2.", *r.Temperature))
	case r.TopP != nil && (*r.TopP <= 0 || *r.TopP > 1):
		return badRequest("top_p", fmt.Sprintf("top_p: got %v, want more than 0, at most 1.", *r.TopP))
	case r.StreamOptions != nil && !r.Stream:
		return badRequest("stream_options", "stream_options: only allowed when stream is true.")
	}
	return nil
}

// text joins the text of a message: a string, a list of text parts, or null
// (an assistant message that only called tools).
func (m chatMessage) text(where string) (string, *apiError) {
	if len(m.Content) == 0 || string(m.Content) == "null" {
		if m.Role == "assistant" {
			return "", nil
		}
		return "", badRequest(where, where+": field required.")
	}
	var s string
	if json.Unmarshal(m.Content, &s) == nil {
		return s, nil
	}
	var parts []struct {
		Type string  `json:"type"`
		Text *string `json:"text"`
	}
	if json.Unmarshal(m.Content, &parts) != nil {
		return "", badRequest(where, where+": want a string or an array of text parts.")
	}
	var b strings.Builder
	for i, p := range parts {
		at := fmt.Sprintf("%s[%d]", where, i)
		if p.Type != "text" {
			return "", badRequest(at+".type", fmt.Sprintf("%s.type: got %q, but this engine reads only text.", at, clip(p.Type)))
		}
		if p.Text == nil {
			return "", badRequest(at+".text", at+".text: field required.")
		}
		b.WriteString(*p.Text)
	}
	return b.String(), nil
}

// work sizes the request. Without a limit the answer ends by itself and never
// exceeds the context.
func (r *chatRequest) work(p prompt, o Options) work {
	natural := naturalLength(p.hash, o.OutputTokens)
	limit := r.MaxCompletionTokens
	if limit == nil {
		limit = r.MaxTokens
	}
	w := work{prompt: p.tokens, output: natural, stream: r.Stream, finishReason: finishStop}
	if limit == nil {
		w.output = min(natural, max(1, o.Profile.MaxContextTokens-p.tokens))
		return w
	}
	w.limit = min(*limit, mostTokens)
	if r.IgnoreEOS || natural > w.limit {
		w.output, w.finishReason = w.limit, finishLength
	}
	return w
}
