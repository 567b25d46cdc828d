package slacksim

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeClock stands still until moved.
type fakeClock struct {
	mu  sync.Mutex
	now time.Time
}

func newFakeClock() *fakeClock {
	return &fakeClock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
}

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

const (
	alice     = "U0000ALICE"
	bob       = "U000000BOB"
	eve       = "U000000EVE"
	incidents = "C0INCIDENTS"
)

// startSim runs a simulator without rate limits unless change says otherwise.
func startSim(t *testing.T, change func(*Options)) *Sim {
	t.Helper()
	o := DefaultOptions()
	o.Rates.Off = true
	if change != nil {
		change(&o)
	}
	s, err := New(o)
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context()))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		require.NoError(t, s.Stop(ctx))
	})
	return s
}

// client returns the real Slack client pointed at the simulator.
func client(t *testing.T, s *Sim) *slack.Client {
	t.Helper()
	h := &http.Client{Transport: &http.Transport{}, Timeout: 10 * time.Second}
	t.Cleanup(h.CloseIdleConnections)
	return slack.New(s.opts.BotToken, slack.OptionAPIURL(s.APIURL()), slack.OptionHTTPClient(h))
}

// call posts JSON to a method and returns status, header and body.
func call(t *testing.T, s *Sim, method string, args map[string]any) (int, http.Header, map[string]any) {
	t.Helper()
	raw, err := json.Marshal(args)
	require.NoError(t, err)
	return post(t, s, "/api/"+method, "application/json; charset=utf-8", string(raw))
}

func post(t *testing.T, s *Sim, path, contentType, body string) (int, http.Header, map[string]any) {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("Authorization", "Bearer "+s.opts.BotToken)
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	var out map[string]any
	if strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") {
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &out))
	}
	return w.Code, w.Header(), out
}

// app is the receiving side of a test: it keeps every request.
type app struct {
	*httptest.Server
	mu       sync.Mutex
	requests []appRequest
	answer   func(http.ResponseWriter, appRequest)
}

type appRequest struct {
	header http.Header
	query  string
	body   []byte
	form   url.Values
}

// payload decodes the payload field.
func (r appRequest) payload(t *testing.T) map[string]any {
	t.Helper()
	var out map[string]any
	require.NoError(t, json.Unmarshal([]byte(r.form.Get("payload")), &out))
	return out
}

func startApp(t *testing.T, s *Sim, answer func(http.ResponseWriter, appRequest)) *app {
	t.Helper()
	a := &app{answer: answer}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		req := appRequest{header: r.Header.Clone(), query: r.URL.RawQuery, body: body}
		req.form, _ = url.ParseQuery(string(body))
		a.mu.Lock()
		a.requests = append(a.requests, req)
		a.mu.Unlock()
		if a.answer != nil {
			a.answer(w, req)
		}
	}))
	t.Cleanup(a.Close)
	require.NoError(t, s.SetInteractivityURL(a.URL+"/slack/interactions"))
	require.NoError(t, s.SetCommandsURL(a.URL+"/slack/commands"))
	require.NoError(t, s.SetEventsURL(a.URL+"/slack/events"))
	return a
}

func (a *app) all() []appRequest {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]appRequest(nil), a.requests...)
}

func (a *app) last(t *testing.T) appRequest {
	t.Helper()
	all := a.all()
	require.NotEmpty(t, all, "the app got no request")
	return all[len(all)-1]
}

// card posts a message with two buttons and returns its ts.
func card(t *testing.T, s *Sim) string {
	t.Helper()
	_, _, out := call(t, s, "chat.postMessage", map[string]any{"channel": incidents, "text": "incident", "blocks": []any{
		section("latency is high"), actions(button("ack", "Acknowledge"), button("trip", "Trip breaker")),
	}})
	require.Equal(t, true, out["ok"], out)
	return out["ts"].(string)
}

func mrkdwn(s string) map[string]any { return map[string]any{"type": "mrkdwn", "text": s} }
func plain(s string) map[string]any  { return map[string]any{"type": "plain_text", "text": s} }
func section(s string) map[string]any {
	return map[string]any{"type": "section", "text": mrkdwn(s)}
}

func actions(elements ...any) map[string]any {
	return map[string]any{"type": "actions", "elements": append([]any{}, elements...)}
}

func button(id, label string) map[string]any {
	return map[string]any{"type": "button", "action_id": id, "text": plain(label), "value": "opaque-" + id}
}

func with(m map[string]any, key string, value any) map[string]any {
	out := maps.Clone(m)
	out[key] = value
	return out
}

func option(text, value string) map[string]any {
	return map[string]any{"text": plain(text), "value": value}
}

func repeat(n int, item func(i int) any) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = item(i)
	}
	return out
}
