package enginesim

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/expfmt"
	pmodel "github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
)

// startEngine runs an engine on free ports, a hundred times faster than real time.
func startEngine(t *testing.T, change func(*Options)) *Engine {
	t.Helper()
	o := DefaultOptions()
	o.Listen = "127.0.0.1:0"
	o.TimeScale = 100
	if change != nil {
		change(&o)
	}
	e, err := New(o)
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context()))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		require.NoError(t, e.Stop(ctx))
	})
	return e
}

func withKnobs(change func(*Knobs)) func(*Options) {
	return func(o *Options) { change(&o.Knobs) }
}

// client has its own connections, closed before goroutines are counted.
func client(t *testing.T) *http.Client {
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 20 * time.Second}
}

type reply struct {
	status int
	header http.Header
	body   string
	err    error // while reading the body
}

func send(t *testing.T, method, url, body string) reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	return do(t, req)
}

func do(t *testing.T, req *http.Request) reply {
	t.Helper()
	r := exchangeHTTP(client(t), req)
	require.NotZero(t, r.status, "no answer: %v", r.err)
	return r
}

// exchangeHTTP asserts nothing, so that goroutines may call it. Without an
// answer the status is 0.
func exchangeHTTP(c *http.Client, req *http.Request) reply {
	resp, err := c.Do(req)
	if err != nil {
		return reply{err: err}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, string(b), err}
}

// post asks for a chat answer in the background.
func post(ctx context.Context, t *testing.T, url, body string) <-chan reply {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	require.NoError(t, err)
	c, done := client(t), make(chan reply, 1)
	go func() { done <- exchangeHTTP(c, req) }()
	return done
}

const (
	plainBody  = `{"model":"demo-model","messages":[{"role":"user","content":"hello there"}],"max_tokens":5,"ignore_eos":true}`
	streamBody = `{"model":"demo-model","messages":[{"role":"user","content":"hello there"}],"max_tokens":5,"ignore_eos":true,"stream":true,"stream_options":{"include_usage":true}}`
)

func chatURL(e *Engine) string { return "http://" + e.Addr() + "/v1/chat/completions" }

func TestChatPlain(t *testing.T) {
	t.Parallel()
	e := startEngine(t, nil)
	r := send(t, "POST", chatURL(e), plainBody)
	require.Equal(t, 200, r.status)
	require.Equal(t, "application/json", r.header.Get("Content-Type"))
	var got map[string]any
	require.NoError(t, json.Unmarshal([]byte(r.body), &got))
	require.Equal(t, "chat.completion", got["object"])
	require.Equal(t, "demo-model", got["model"])
	choice := got["choices"].([]any)[0].(map[string]any)
	require.Equal(t, "length", choice["finish_reason"])
	message := choice["message"].(map[string]any)
	require.Equal(t, "assistant", message["role"])
	require.Len(t, strings.Fields(message["content"].(string)), 5)
	want := map[string]any{"prompt_tokens": 7.0, "completion_tokens": 5.0, "total_tokens": 12.0}
	require.Empty(t, cmp.Diff(want, got["usage"]))
}

func TestChatWithoutLimitEndsByItself(t *testing.T) {
	t.Parallel()
	e := startEngine(t, nil)
	body := `{"model":"demo-model","messages":[{"role":"system","content":"be brief"},{"role":"user","content":[{"type":"text","text":"你好"}]}]}`
	first, second := send(t, "POST", chatURL(e), body), send(t, "POST", chatURL(e), body)
	var a, b chatCompletion
	require.NoError(t, json.Unmarshal([]byte(first.body), &a))
	require.NoError(t, json.Unmarshal([]byte(second.body), &b))
	require.Equal(t, "stop", *a.Choices[0].FinishReason)
	require.Equal(t, *a.Choices[0].Message.Content, *b.Choices[0].Message.Content, "answers are repeatable")
	require.InDelta(t, 24, a.Usage.CompletionTokens, 12)
	require.NotEqual(t, a.ID, b.ID)
}

// events splits a stream into its data lines.
func events(t *testing.T, body string) []string {
	t.Helper()
	var out []string
	for _, block := range strings.SplitAfter(body, "\n\n") {
		if block == "" {
			continue
		}
		data, ok := strings.CutPrefix(block, "data: ")
		require.True(t, ok, "event %q", block)
		data, ok = strings.CutSuffix(data, "\n\n")
		require.True(t, ok, "event %q", block)
		out = append(out, data)
	}
	return out
}

func TestChatStream(t *testing.T) {
	t.Parallel()
	e := startEngine(t, nil)
	r := send(t, "POST", chatURL(e), streamBody)
	require.NoError(t, r.err)
	require.Equal(t, 200, r.status)
	require.Equal(t, "text/event-stream; charset=utf-8", r.header.Get("Content-Type"))
	got := events(t, r.body)
	require.Len(t, got, 1+5+1+1+1, "role, tokens, finish, usage, DONE")
	require.Equal(t, "[DONE]", got[8])

	var text strings.Builder
	for i, ev := range got[:7] {
		var c chatChunk
		require.NoError(t, json.Unmarshal([]byte(ev), &c))
		require.Equal(t, "chat.completion.chunk", c.Object)
		require.Len(t, c.Choices, 1)
		require.Contains(t, ev, `"usage":null`)
		if i == 0 {
			require.Equal(t, "assistant", c.Choices[0].Delta.Role)
		}
		if c.Choices[0].Delta.Content != nil {
			text.WriteString(*c.Choices[0].Delta.Content)
		}
		if i == 6 {
			require.Equal(t, "length", *c.Choices[0].FinishReason)
		} else {
			require.Nil(t, c.Choices[0].FinishReason)
		}
	}
	var plain chatCompletion
	require.NoError(t, json.Unmarshal([]byte(send(t, "POST", chatURL(e), plainBody).body), &plain))
	require.Equal(t, *plain.Choices[0].Message.Content, text.String(), "stream and plain answer say the same")
	require.Contains(t, got[7], `"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}`)

	noUsage := send(t, http.MethodPost, chatURL(e), strings.Replace(streamBody, `"include_usage":true`, `"include_usage":false`, 1))
	require.Len(t, events(t, noUsage.body), 8)
	require.NotContains(t, noUsage.body, "usage")
}

// Tokens arrive while the answer is being made, not at its end.
func TestChatStreamIsNotBuffered(t *testing.T) {
	t.Parallel()
	e := startEngine(t, func(o *Options) { o.TimeScale = 1 })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	body := strings.Replace(streamBody, `"max_tokens":5`, `"max_tokens":30000`, 1) // 7.5 minutes
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, chatURL(e), strings.NewReader(body))
	require.NoError(t, err)
	resp, err := client(t).Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for range 3 {
		require.True(t, lines.Scan())
	}
	require.Equal(t, 1, e.State().Running)
}

func TestClientThatLeavesFreesItsSlotAtOnce(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{false, true} {
		t.Run(fmt.Sprintf("stream=%v", stream), func(t *testing.T) {
			t.Parallel()
			e := startEngine(t, func(o *Options) {
				o.Profile.Slots, o.TimeScale = 1, 1
				o.Profile.DecodeBase = time.Minute // no step ends during this test
			})
			ctx, cancel := context.WithCancel(t.Context())
			body := fmt.Sprintf(`{"model":"demo-model","messages":[{"role":"user","content":"hi"}],"stream":%v}`, stream)
			done := post(ctx, t, chatURL(e), body)
			require.Eventually(t, func() bool { return e.State().Running == 1 }, 5*time.Second, time.Millisecond)
			require.Positive(t, e.State().KV.BlocksUsed)
			cancel()
			require.ErrorIs(t, (<-done).err, context.Canceled)
			require.Eventually(t, func() bool {
				s := e.State()
				return s.Running == 0 && s.KV.BlocksUsed == 0
			}, 5*time.Second, time.Millisecond)
			require.Equal(t, 1, metric(t, e, "vllm:request_success_total", "finished_reason", "abort"))
		})
	}
}

func TestEmbeddings(t *testing.T) {
	t.Parallel()
	e := startEngine(t, func(o *Options) { o.EmbeddingDimensions = 8 })
	url := "http://" + e.Addr() + "/v1/embeddings"
	var float, encoded struct {
		Data []struct {
			Index     int
			Embedding json.RawMessage
		}
		Usage usage
	}
	r := send(t, "POST", url, `{"model":"demo-model","input":["hello","world"]}`)
	require.Equal(t, 200, r.status)
	require.NoError(t, json.Unmarshal([]byte(r.body), &float))
	require.Len(t, float.Data, 2)
	require.Equal(t, 1, float.Data[1].Index)
	require.Equal(t, usage{PromptTokens: 4, TotalTokens: 4}, float.Usage)
	var v []float64
	require.NoError(t, json.Unmarshal(float.Data[0].Embedding, &v))
	require.Len(t, v, 8)
	var square float64
	for _, x := range v {
		square += x * x
	}
	require.InDelta(t, 1, math.Sqrt(square), 1e-6)

	r = send(t, "POST", url, `{"model":"demo-model","input":"hello","encoding_format":"base64","dimensions":8}`)
	require.NoError(t, json.Unmarshal([]byte(r.body), &encoded))
	var text string
	require.NoError(t, json.Unmarshal(encoded.Data[0].Embedding, &text))
	raw, err := base64.StdEncoding.DecodeString(text)
	require.NoError(t, err)
	require.Len(t, raw, 4*8)

	for _, input := range []string{`[1,2,3]`, `[[1,2],[3]]`} {
		require.Equal(t, 200, send(t, "POST", url, `{"model":"demo-model","input":`+input+`}`).status)
	}
}

func TestBadInputGetsOpenAIErrors(t *testing.T) {
	t.Parallel()
	e := startEngine(t, func(o *Options) { o.MaxBodyBytes = 2000 })
	user := `"messages":[{"role":"user","content":"x"}]`
	model := `"model":"demo-model"`
	tests := []struct {
		name, method, path, body string
		status                   int
		param, message           string
	}{
		{"malformed", "POST", "chat/completions", `{"model":`, 400, "", "ends too early"},
		{"syntax", "POST", "chat/completions", `{"model" "x"}`, 400, "", "Invalid JSON at byte 10"},
		{"empty body", "POST", "chat/completions", ``, 400, "", "empty"},
		{"not an object", "POST", "chat/completions", `[1]`, 400, "", "must be a JSON object, got array"},
		{"trailing data", "POST", "chat/completions", `{` + model + `,` + user + `} x`, 400, "", "unexpected data"},
		{"no model", "POST", "chat/completions", `{` + user + `}`, 400, "model", "model: field required"},
		{"other model", "POST", "chat/completions", `{"model":"gpt-9",` + user + `}`, 404, "model", `"gpt-9" does not exist`},
		{"model of wrong type", "POST", "chat/completions", `{"model":1,` + user + `}`, 400, "model", "model: got number, want string"},
		{"no messages", "POST", "chat/completions", `{` + model + `}`, 400, "messages", "messages: field required"},
		{"empty messages", "POST", "chat/completions", `{` + model + `,"messages":[]}`, 400, "messages", "at least one"},
		{"messages of wrong type", "POST", "chat/completions", `{` + model + `,"messages":"hi"}`, 400, "messages", "got string, want array"},
		{"bad role", "POST", "chat/completions", `{` + model + `,"messages":[{"role":"boss","content":"x"}]}`, 400, "messages[0].role", `got "boss"`},
		{"no content", "POST", "chat/completions", `{` + model + `,"messages":[{"role":"user"}]}`, 400, "messages[0].content", "field required"},
		{"content of wrong type", "POST", "chat/completions", `{` + model + `,"messages":[{"role":"user","content":5}]}`, 400, "messages[0].content", "want a string"},
		{"image", "POST", "chat/completions", `{` + model + `,"messages":[{"role":"user","content":[{"type":"image_url"}]}]}`, 400, "messages[0].content[0].type", "only text"},
		{"max_tokens", "POST", "chat/completions", `{` + model + `,` + user + `,"max_tokens":0}`, 400, "max_tokens", "got 0"},
		{"max_tokens of wrong type", "POST", "chat/completions", `{` + model + `,` + user + `,"max_tokens":"5"}`, 400, "max_tokens", "got string, want integer"},
		{"n", "POST", "chat/completions", `{` + model + `,` + user + `,"n":2}`, 400, "n", "exactly 1 choice"},
		{"temperature", "POST", "chat/completions", `{` + model + `,` + user + `,"temperature":3}`, 400, "temperature", "want 0 to 2"},
		{"stream of wrong type", "POST", "chat/completions", `{` + model + `,` + user + `,"stream":"yes"}`, 400, "stream", "want boolean"},
		{"stream_options alone", "POST", "chat/completions", `{` + model + `,` + user + `,"stream_options":{}}`, 400, "stream_options", "only allowed"},
		{"context too long", "POST", "chat/completions", `{` + model + `,` + user + `,"max_tokens":40000}`, 400, "messages", "maximum context length is 32768"},
		{"context beyond any integer", "POST", "chat/completions", `{` + model + `,` + user + `,"ignore_eos":true,"max_tokens":9223372036854775807}`, 400, "messages", "maximum context length is 32768"},
		{"oversized", "POST", "chat/completions", `{` + model + `,"messages":[{"role":"user","content":"` + strings.Repeat("x", 2000) + `"}]}`, 413, "", "larger than 2000 bytes"},
		{"oversized tail", "POST", "chat/completions", `{` + model + `,` + user + `}` + strings.Repeat(" ", 2000), 413, "", "larger than 2000 bytes"},
		{"embeddings without input", "POST", "embeddings", `{` + model + `}`, 400, "input", "field required"},
		{"embeddings of nothing", "POST", "embeddings", `{` + model + `,"input":[]}`, 400, "input", "at least one"},
		{"embeddings of empty text", "POST", "embeddings", `{` + model + `,"input":["a",""]}`, 400, "input", "input[1]: must not be empty"},
		{"embeddings of wrong type", "POST", "embeddings", `{` + model + `,"input":{"a":1}}`, 400, "input", "want a string"},
		{"embeddings format", "POST", "embeddings", `{` + model + `,"input":"a","encoding_format":"hex"}`, 400, "encoding_format", `got "hex"`},
		{"embeddings dimensions", "POST", "embeddings", `{` + model + `,"input":"a","dimensions":65}`, 400, "dimensions", "want 1 to 64"},
		{"wrong method", "GET", "chat/completions", ``, 405, "", "use POST"},
		{"unknown path", "POST", "completions", `{}`, 404, "", "Unknown path"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := send(t, tt.method, "http://"+e.Addr()+"/v1/"+tt.path, tt.body)
			require.Equal(t, tt.status, r.status, r.body)
			var got struct {
				Error *struct {
					Message string
					Type    string
					Param   *string
				}
			}
			require.NoError(t, json.Unmarshal([]byte(r.body), &got))
			require.NotNil(t, got.Error)
			require.Contains(t, got.Error.Message, tt.message)
			require.Equal(t, "invalid_request_error", got.Error.Type)
			if tt.param == "" {
				require.Nil(t, got.Error.Param)
			} else {
				require.Equal(t, tt.param, *got.Error.Param)
			}
		})
	}
}

func TestWrongContentType(t *testing.T) {
	t.Parallel()
	e := startEngine(t, nil)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, chatURL(e), strings.NewReader(plainBody))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	require.Equal(t, 415, do(t, req).status)
}

func TestAPIKey(t *testing.T) {
	t.Parallel()
	e := startEngine(t, func(o *Options) { o.APIKey = "secret" })
	for key, status := range map[string]int{"": 401, "Bearer wrong": 401, "secret": 401, "Bearer secret": 200} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+e.Addr()+"/v1/models", nil)
		require.NoError(t, err)
		req.Header.Set("Authorization", key)
		require.Equal(t, status, do(t, req).status, "key %q", key)
	}
	require.Equal(t, 200, send(t, "GET", "http://"+e.Addr()+"/health", "").status, "health needs no key")
}

func TestModels(t *testing.T) {
	t.Parallel()
	e := startEngine(t, nil)
	r := send(t, "GET", "http://"+e.Addr()+"/v1/models", "")
	require.Equal(t, 200, r.status)
	require.Contains(t, r.body, `"id":"demo-model"`)
	require.Contains(t, r.body, `"max_model_len":32768`)
}

func TestFaultFail(t *testing.T) {
	t.Parallel()
	e := startEngine(t, withKnobs(func(k *Knobs) { k.FailRatio, k.FailStatus = 1, 502 }))
	r := send(t, "POST", chatURL(e), plainBody)
	require.Equal(t, 502, r.status)
	require.Contains(t, r.body, `"type":"server_error"`)
	require.Zero(t, metric(t, e, "vllm:generation_tokens_total"), "a failed request costs nothing")
	require.Equal(t, 1, metric(t, e, "enginesim_faults_injected_total", "fault", "fail"))
	require.Equal(t, 200, send(t, "GET", "http://"+e.Addr()+"/health", "").status, "health stays green")
}

func TestFaultEmpty200(t *testing.T) {
	t.Parallel()
	e := startEngine(t, withKnobs(func(k *Knobs) { k.EmptyRatio = 1 }))
	for _, body := range []string{plainBody, streamBody} {
		r := send(t, "POST", chatURL(e), body)
		require.NoError(t, r.err)
		require.Equal(t, 200, r.status)
		require.Empty(t, r.body)
	}
	require.Equal(t, 10, metric(t, e, "vllm:generation_tokens_total"), "the work was done")
}

func TestFaultErrorInside200(t *testing.T) {
	t.Parallel()
	e := startEngine(t, withKnobs(func(k *Knobs) { k.ErrorIn200Ratio = 1 }))
	r := send(t, "POST", chatURL(e), plainBody)
	require.Equal(t, 200, r.status)
	require.Contains(t, r.body, `{"error":{`)
	require.NotContains(t, r.body, "choices")
	r = send(t, "POST", chatURL(e), streamBody)
	got := events(t, r.body)
	require.Len(t, got, 3)
	require.Contains(t, got[1], `{"error":{`)
	require.Equal(t, "[DONE]", got[2])
}

func TestFaultCutIsVisible(t *testing.T) {
	t.Parallel()
	for _, after := range []int{0, 1, 3, 1000} {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			t.Parallel()
			e := startEngine(t, withKnobs(func(k *Knobs) { k.CutRatio, k.CutAfterEvents = 1, after }))
			r := send(t, "POST", chatURL(e), streamBody)
			require.Equal(t, 200, r.status)
			require.ErrorIs(t, r.err, io.ErrUnexpectedEOF, "a cut is not a short answer")
			require.Len(t, events(t, r.body), min(after, 8))
			require.NotContains(t, r.body, "[DONE]")
			require.Equal(t, 200, send(t, "POST", chatURL(e), plainBody).status, "plain answers are not cut")
			require.Zero(t, e.State().Running)
		})
	}
}

func TestFaultHangEndsWithTheClient(t *testing.T) {
	t.Parallel()
	e := startEngine(t, withKnobs(func(k *Knobs) { k.HangRatio = 1 }))
	ctx, cancel := context.WithCancel(t.Context())
	done := post(ctx, t, chatURL(e), plainBody)
	require.Eventually(t, func() bool { return e.State().Hung == 1 }, 5*time.Second, time.Millisecond)
	require.Zero(t, e.State().Running)
	cancel()
	require.ErrorIs(t, (<-done).err, context.Canceled)
	require.Eventually(t, func() bool { return e.State().Hung == 0 }, 5*time.Second, time.Millisecond)
}

func TestStopEndsHungRequestsWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	e := startEngine(t, withKnobs(func(k *Knobs) { k.HangRatio = 1 }))
	done := post(t.Context(), t, chatURL(e), plainBody)
	require.Eventually(t, func() bool { return e.State().Hung == 1 }, 5*time.Second, time.Millisecond)
	require.NoError(t, e.Stop(t.Context()))
	require.ErrorIs(t, (<-done).err, io.EOF)
}

func TestOutOfMemoryCrashesAndRestarts(t *testing.T) {
	t.Parallel()
	e := startEngine(t, func(o *Options) {
		o.Knobs.FragmentationRatio = 0.95
		o.TimeScale, o.Profile.RestartTime = 1, 50*time.Millisecond
	})
	r := send(t, "POST", chatURL(e), plainBody)
	require.Equal(t, 500, r.status)
	require.Contains(t, r.body, "CUDA out of memory")
	require.EqualValues(t, 1, e.State().OOMs)
	require.NoError(t, e.SetKnobs(DefaultKnobs()))
	require.Eventually(t, func() bool { return send(t, "GET", "http://"+e.Addr()+"/health", "").status == 200 },
		5*time.Second, 5*time.Millisecond)
	require.Equal(t, 200, send(t, "POST", chatURL(e), plainBody).status)
}

func TestRestartingEngineSays503(t *testing.T) {
	t.Parallel()
	e := startEngine(t, func(o *Options) {
		o.Knobs.FragmentationRatio, o.TimeScale = 0.95, 1
	})
	require.Equal(t, 500, send(t, "POST", chatURL(e), plainBody).status)
	r := send(t, "POST", chatURL(e), plainBody)
	require.Equal(t, 503, r.status)
	require.Regexp(t, `^(1?[1-9]|10|20)$`, r.header.Get("Retry-After"), "the rest of the restart in seconds")
	require.Equal(t, 503, send(t, "GET", "http://"+e.Addr()+"/health", "").status)
	require.Equal(t, StatusRestarting, e.State().Status)
	require.Zero(t, e.State().Capacity.SurvivingRPS)
	require.Zero(t, metric(t, e, "enginesim_up"))
}

func TestFullQueueSays503(t *testing.T) {
	t.Parallel()
	e := startEngine(t, func(o *Options) {
		o.Profile.Slots, o.Profile.QueueLimit, o.TimeScale = 1, 0, 1
		o.Profile.DecodeBase = time.Minute
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := post(ctx, t, chatURL(e), plainBody)
	require.Eventually(t, func() bool { return e.State().Running == 1 }, 5*time.Second, time.Millisecond)
	r := send(t, "POST", chatURL(e), plainBody)
	require.Equal(t, 503, r.status)
	require.Contains(t, r.body, "queue_full")
	require.Equal(t, 1, metric(t, e, "enginesim_requests_failed_total", "reason", "queue_full"))
	cancel()
	<-done
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	e := startEngine(t, nil)
	require.Equal(t, 200, send(t, "POST", chatURL(e), plainBody).status)
	body := send(t, "GET", "http://"+e.Addr()+"/metrics", "").body
	for _, name := range []string{
		"vllm:num_requests_waiting", "vllm:num_requests_running", "vllm:kv_cache_usage_perc",
		"vllm:num_preemptions_total", "vllm:cache_config_info", "vllm:inter_token_latency_seconds_bucket",
		"vllm:request_queue_time_seconds_count", "enginesim_allocator_fragmentation_ratio",
		"enginesim_allocator_reserved_bytes", "enginesim_allocator_free_bytes",
	} {
		require.Regexp(t, `(?m)^`+name+`\{[^}]*model_name="demo-model"`, body)
	}
	require.Zero(t, metric(t, e, "vllm:num_preemptions_total"))
	require.Equal(t, 7, metric(t, e, "vllm:prompt_tokens_total"))
	require.Equal(t, 5, metric(t, e, "vllm:generation_tokens_total"))
	require.Equal(t, 1, metric(t, e, "vllm:request_success_total", "finished_reason", "length"))
	require.Equal(t, 1, metric(t, e, "vllm:time_to_first_token_seconds"))
	require.Equal(t, 4, metric(t, e, "vllm:inter_token_latency_seconds"))
}

// metric reads a counter or gauge, or the count of a histogram, from /metrics.
func metric(t *testing.T, e *Engine, name string, labels ...string) int {
	t.Helper()
	body := send(t, "GET", "http://"+e.Addr()+"/metrics", "").body
	parser := expfmt.NewTextParser(pmodel.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	require.NoError(t, err)
	require.Contains(t, families, name)
	for _, m := range families[name].GetMetric() {
		match := len(labels) == 0
		for _, l := range m.GetLabel() {
			match = match || (l.GetName() == labels[0] && l.GetValue() == labels[1])
		}
		if match {
			return int(m.GetCounter().GetValue()+m.GetGauge().GetValue()) + int(m.GetHistogram().GetSampleCount())
		}
	}
	t.Fatalf("no series %s%v", name, labels)
	return 0
}

func TestPortInUse(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	for option, change := range map[string]func(*Options){
		"Listen":      func(o *Options) { o.Listen = l.Addr().String() },
		"AdminListen": func(o *Options) { o.Listen, o.AdminListen = "127.0.0.1:0", l.Addr().String() },
	} {
		o := DefaultOptions()
		change(&o)
		e, err := New(o)
		require.NoError(t, err)
		err = e.Start(t.Context())
		var listenErr *ListenError
		require.ErrorAs(t, err, &listenErr)
		require.ErrorIs(t, err, syscall.EADDRINUSE)
		require.Equal(t, option, listenErr.Option)
		require.NoError(t, e.Stop(t.Context()))
	}
}

func TestStopLetsRunningRequestsFinish(t *testing.T) {
	t.Parallel()
	e := startEngine(t, func(o *Options) { o.TimeScale = 10 })
	body := strings.Replace(plainBody, `"max_tokens":5`, `"max_tokens":100`, 1)
	done := post(t.Context(), t, chatURL(e), body)
	require.Eventually(t, func() bool { return e.State().Running == 1 || len(done) == 1 }, 5*time.Second, time.Millisecond)
	require.NoError(t, e.Stop(t.Context()))
	require.Equal(t, 200, (<-done).status)
	require.ErrorIs(t, e.Start(t.Context()), errStarted)
}

// Behind a server of its own, Stop still ends what is in flight.
func TestStopWithoutStart(t *testing.T) {
	t.Parallel()
	o := DefaultOptions()
	o.Profile.DecodeBase = time.Minute
	e, err := New(o)
	require.NoError(t, err)
	server := httptest.NewServer(e.Handler())
	defer server.Close()
	done := post(t.Context(), t, server.URL+"/v1/chat/completions", plainBody)
	require.Eventually(t, func() bool { return e.State().Running == 1 }, 5*time.Second, time.Millisecond)
	require.NoError(t, e.Stop(t.Context()))
	r := <-done
	require.Equal(t, 503, r.status)
	require.Contains(t, r.body, "shutting_down")
	require.NoError(t, e.Stop(t.Context()), "twice is harmless")
	require.Equal(t, 503, send(t, "POST", server.URL+"/v1/chat/completions", plainBody).status)
	require.Equal(t, 503, send(t, "GET", server.URL+"/health", "").status)
}

func TestStopCutsWhatDoesNotFinish(t *testing.T) {
	t.Parallel()
	o := DefaultOptions()
	o.Listen = "127.0.0.1:0"
	e, err := New(o)
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context()))
	body := strings.Replace(streamBody, `"max_tokens":5`, `"max_tokens":30000`, 1)
	done := post(t.Context(), t, chatURL(e), body)
	require.Eventually(t, func() bool { return e.State().Running == 1 }, 5*time.Second, time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, e.Stop(ctx), context.DeadlineExceeded)
	r := <-done
	require.Error(t, r.err)
	require.NotContains(t, r.body, "[DONE]")
	require.Zero(t, e.State().Running)
}

func TestNewRefusesBadOptions(t *testing.T) {
	t.Parallel()
	tests := map[string]func(*Options){
		"Listen is":                      func(o *Options) { o.Listen = "nope" },
		"reachable from other":           func(o *Options) { o.AdminListen = "0.0.0.0:1" },
		"Model is empty":                 func(o *Options) { o.Model = "" },
		"TimeScale is NaN":               func(o *Options) { o.TimeScale = math.NaN() },
		"Slots is 0":                     func(o *Options) { o.Profile.Slots = 0 },
		"MaxContextTokens is 32768, wh":  func(o *Options) { o.Profile.KVBlocks = 10 },
		"decode_multiplier is 0":         func(o *Options) { o.Knobs.DecodeMultiplier = 0 },
		"fragmentation_ratio is NaN":     func(o *Options) { o.Knobs.FragmentationRatio = math.NaN() },
		"EmbeddingDimensions is 1000000": func(o *Options) { o.EmbeddingDimensions = 1000000 },
	}
	for want, change := range tests {
		o := DefaultOptions()
		change(&o)
		_, err := New(o)
		require.ErrorContains(t, err, want)
		require.True(t, errors.Is(err, ErrInvalidOptions) || errors.Is(err, ErrInvalidKnobs))
	}
}
