package gateway

import (
	"bytes"
	"encoding/json"
	"net/http"

	"holdfast/gpuguard/policy"
)

// fallback is a route's static answer, in the two forms callers ask for.
type fallback struct {
	status      int
	contentType string
	body        []byte
	// events is the body as a stream, nil when it has no such form.
	events []byte
}

func newFallback(f *policy.Fallback) *fallback {
	if f == nil {
		return nil
	}
	out := &fallback{status: f.Status, contentType: f.ContentType, body: []byte(f.Body)}
	if f.Status == http.StatusOK && f.ContentType == policy.DefaultFallbackContentType {
		out.events = eventsOf(out.body)
	}
	return out
}

// eventsOf writes a JSON answer as the stream an OpenAI-compatible client
// expects of it: a client that asked for events finds none in plain JSON and
// would show an empty answer. Nil when the body is no JSON object.
func eventsOf(body []byte) []byte {
	var answer map[string]json.RawMessage
	if json.Unmarshal(body, &answer) != nil || answer == nil {
		return nil
	}
	if choices, ok := deltas(answer["choices"]); ok {
		answer["choices"] = choices
		answer["object"] = json.RawMessage(`"chat.completion.chunk"`)
	}
	event, err := json.Marshal(answer)
	if err != nil {
		return nil
	}
	return bytes.Join([][]byte{[]byte("data: "), event, []byte("\n\ndata: [DONE]\n\n")}, nil)
}

// deltas renames the message of each choice as streams have it; false when the
// choices carry no messages.
func deltas(raw json.RawMessage) (json.RawMessage, bool) {
	var choices []map[string]json.RawMessage
	if json.Unmarshal(raw, &choices) != nil {
		return nil, false
	}
	found := false
	for _, c := range choices {
		if message, ok := c["message"]; ok {
			c["delta"] = message
			delete(c, "message")
			found = true
		}
	}
	out, err := json.Marshal(choices)
	return out, found && err == nil
}
