package scan

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func jsonOf(parts ...string) *JSON {
	var j JSON
	for _, p := range parts {
		j.Write([]byte(p))
	}
	return &j
}

func TestJSONFindsTopLevelMembers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, doc                    string
		stream, err, noChoices, done bool
	}{
		{"stream last", `{"messages":[{"stream":false}],"stream":true}`, true, false, false, true},
		{"stream nested only", `{"messages":[{"stream":true}]}`, false, false, false, true},
		{"stream in text", `{"prompt":"\"stream\":true","n":1}`, false, false, false, true},
		{"escaped backslash before quote", `{"prompt":"\\","stream": true }`, true, false, false, true},
		{"last of a repeated key", `{"stream":true,"stream":false}`, false, false, false, true},
		{"error object", `{"error":{"message":"x"}}`, false, true, false, true},
		{"error text", `{"id":1,"error":"x"}`, false, true, false, true},
		{"error null", `{"error":null,"choices":[1]}`, false, false, false, true},
		{"error empty object", `{"error": { } }`, false, false, false, true},
		{"error false", `{"error":false}`, false, false, false, true},
		{"error nested", `{"choices":[{"error":{"a":1}}]}`, false, false, false, true},
		{"value named error", `{"object":"error"}`, false, false, false, true},
		{"choices empty", `{"choices": [ ], "id":"x"}`, false, false, true, true},
		{"choices full", `{"choices":[{}]}`, false, false, false, true},
		{"array at the top", `[{"error":{"a":1}}]`, false, false, false, true},
		{"cut", `{"error":{"a":1}`, false, true, false, false},
		{"long key", `{"` + strings.Repeat("error", 40) + `":1,"stream":true}`, true, false, false, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for split := range len(tt.doc) {
				j := jsonOf(tt.doc[:split], tt.doc[split:])
				require.Equal(t, tt.stream, j.True(Stream), "stream, split at %d", split)
				require.Equal(t, tt.err, j.Set(Error), "error, split at %d", split)
				require.Equal(t, tt.noChoices, j.EmptyArray(Choices), "choices, split at %d", split)
				require.Equal(t, tt.done, j.Whole(), "whole, split at %d", split)
			}
		})
	}
}

func TestJSONNumbersAndKinds(t *testing.T) {
	t.Parallel()
	n, ok := jsonOf(`{"timeout": 0.1}`).Number(Timeout)
	require.True(t, ok)
	require.InDelta(t, 0.1, n, 1e-12)
	_, ok = jsonOf(`{"timeout":"5"}`).Number(Timeout)
	require.False(t, ok)
	_, ok = jsonOf(`{"timeout":` + strings.Repeat("1", 100) + `}`).Number(Timeout)
	require.False(t, ok, "a literal longer than what is kept is no number")
	require.Equal(t, Absent, jsonOf(" \n").Top())
	require.Equal(t, Invalid, jsonOf("<html>").Top())
	require.Equal(t, String, jsonOf(`"x"`).Top())
	require.True(t, jsonOf(`"x"`).Whole())
	require.True(t, jsonOf(`17`).Whole())
}

func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{"stream":true,"error":{"a":[1,"]"]},"choices":[]}`), 5)
	f.Add([]byte(`{"a\"b":{"stream":true},"timeout":1e3}`), 1)
	f.Fuzz(func(t *testing.T, doc []byte, split int) {
		var whole, parts JSON
		whole.Write(doc)
		split = max(0, min(split, len(doc)))
		parts.Write(doc[:split])
		parts.Write(doc[split:])
		require.Equal(t, whole, parts, "the split must not matter")

		var want map[string]json.RawMessage
		if bytes.ContainsRune(doc, '\\') || json.Unmarshal(doc, &want) != nil || want == nil {
			return
		}
		require.True(t, whole.Whole())
		require.Equal(t, string(want["stream"]) == "true", whole.True(Stream))
		require.Equal(t, isSet(want["error"]), whole.Set(Error))
	})
}

// isSet is the definition of Set on decoded values.
func isSet(raw json.RawMessage) bool {
	var v any
	if len(raw) == 0 || json.Unmarshal(raw, &v) != nil {
		return false
	}
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	default:
		return string(raw) != "0"
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, stream                   string
		seen                           int
		firstFailed, failed, ended, ok bool
	}{
		{"chat", "data: {\"a\":1}\n\ndata: [DONE]\n\n", 2, false, false, true, true},
		{"crlf", "data: {\"a\":1}\r\n\r\ndata: [DONE]\r\n\r\n", 2, false, false, true, true},
		{"cr", "data: {\"a\":1}\r\rdata:[DONE]\r\r", 2, false, false, true, true},
		{"done without empty line", "data: 1\n\ndata: [DONE]\n", 2, false, false, true, true},
		{"first is an error", "data: {\"error\":{\"message\":\"x\"}}\n\n", 1, true, true, false, true},
		{"error by type", "event: error\ndata: {}\n\n", 1, true, true, false, true},
		{"error later", "data: {}\n\ndata: {\"error\":{\"message\":\"x\"}}\n\ndata: [DONE]\n\n", 3, false, true, true, true},
		{"error over two lines", "data: {\"error\":\ndata: {\"m\":1}}\n\n", 1, true, true, false, true},
		{"cut", "data: {\"a\":1}\n\ndata: {\"a\"", 2, false, false, false, true},
		{"comment first", ": ping\n\n", 0, false, false, false, true},
		{"id only", "id: 7\n\n", 0, false, false, false, false},
		{"done in text", "data: {\"t\":\"[DONE]\"}\n\n", 1, false, false, false, true},
		{"messages", "event: message_start\ndata: {}\n\nevent: message_stop\ndata: {}\n\n", 2, false, false, true, true},
		{"empty data", "data\n\ndata:\n\n", 1, false, false, false, true},
		{"nothing", "", 0, false, false, false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for split := range len(tt.stream) + 1 {
				var e Events
				e.Write([]byte(tt.stream[:split]))
				e.Write([]byte(tt.stream[split:]))
				e.End()
				require.Equal(t, tt.seen, e.Seen(), "seen, split at %d", split)
				require.Equal(t, tt.firstFailed, e.FirstFailed(), "first failed, split at %d", split)
				require.Equal(t, tt.failed, e.Failed(), "failed, split at %d", split)
				require.Equal(t, tt.ended, e.Terminal(), "terminal, split at %d", split)
				require.Equal(t, tt.ok, e.Decided(), "decided, split at %d", split)
			}
		})
	}
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte("event: error\r\ndata: {\"error\":1}\r\n\r\ndata: [DONE]\n\n"), 7)
	f.Fuzz(func(t *testing.T, stream []byte, split int) {
		var whole, parts Events
		whole.Write(stream)
		split = max(0, min(split, len(stream)))
		parts.Write(stream[:split])
		parts.Write(stream[split:])
		whole.End()
		parts.End()
		require.Equal(t, whole.Seen(), parts.Seen())
		require.Equal(t, whole.Terminal(), parts.Terminal())
		require.Equal(t, whole.Failed(), parts.Failed())
	})
}

func BenchmarkEvents(b *testing.B) {
	event := []byte(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"token"},"finish_reason":null}]}` + "\n\n")
	b.SetBytes(int64(len(event)))
	b.ReportAllocs()
	var e Events
	for b.Loop() {
		e.Write(event)
	}
}

func BenchmarkJSONEscapes(b *testing.B) {
	doc := []byte(`{"prompt":"` + strings.Repeat(`\n`, 50000) + `","stream":true}`)
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		var j JSON
		j.Write(doc)
	}
}

func BenchmarkJSON98KB(b *testing.B) {
	doc := []byte(`{"messages":[{"role":"user","content":"` + strings.Repeat("a long prompt ", 7000) + `"}],"stream":true}`)
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		var j JSON
		j.Write(doc)
		if !j.True(Stream) {
			b.Fatal("stream not seen")
		}
	}
}
