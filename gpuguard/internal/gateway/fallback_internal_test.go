package gateway

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/gpuguard/policy"
)

func TestFallbackAsAStream(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, body, want string }{
		{
			"chat completion",
			`{"id":"f","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"later\nplease"},"finish_reason":"stop"}]}`,
			`{"choices":[{"delta":{"role":"assistant","content":"later\nplease"},"finish_reason":"stop","index":0}],"id":"f","object":"chat.completion.chunk"}`,
		},
		{"other object", "{\n  \"items\": [1, 2]\n}", `{"items":[1,2]}`},
		{"text completion", `{"object":"text_completion","choices":[{"text":"x"}]}`, `{"choices":[{"text":"x"}],"object":"text_completion"}`},
		{"no object", `[1]`, ""},
		{"no JSON", `later`, ""},
		{"null", `null`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFallback(&policy.Fallback{Status: 200, ContentType: "application/json", Body: tt.body})
			require.Equal(t, tt.body, string(f.body))
			if tt.want == "" {
				require.Nil(t, f.events)
				return
			}
			event, rest, ok := strings.Cut(string(f.events), "\n\n")
			require.True(t, ok)
			require.Equal(t, "data: [DONE]\n\n", rest)
			data, ok := strings.CutPrefix(event, "data: ")
			require.True(t, ok)
			require.NotContains(t, data, "\n")
			require.JSONEq(t, tt.want, data)
		})
	}
	require.Nil(t, newFallback(nil))
	require.Nil(t, newFallback(&policy.Fallback{Status: 503, ContentType: "application/json", Body: "{}"}).events, "an error is told by its status")
	require.Nil(t, newFallback(&policy.Fallback{Status: 200, ContentType: "text/plain", Body: "{}"}).events)
}
