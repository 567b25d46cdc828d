package slacksim

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func testLogger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func get(t *testing.T, s *Sim, target string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1:8082"+target, nil))
	return w
}

func TestMrkdwn(t *testing.T) {
	t.Parallel()
	tests := []struct{ in, html, plain string }{
		{"*bold* _it_ ~no~ `code`", "<b>bold</b> <i>it</i> <s>no</s> <code>code</code>", "bold it no code"},
		{"snake_case_name 2*3*4", "snake_case_name 2*3*4", "snake_case_name 2*3*4"},
		{"* not bold * and _open", "* not bold * and _open", "* not bold * and _open"},
		{"*_both_*", "<b><i>both</i></b>", "both"},
		{"`*literal* &lt;x&gt;`", "<code>*literal* &lt;x&gt;</code>", "*literal* <x>"},
		{"```a\n*b*```", "<pre>a\n*b*</pre>", "a\n*b*"},
		{"a\nb", "a<br>b", "a\nb"},
		{"&gt; quoted\nplain", "<blockquote>quoted</blockquote>plain", "quoted\nplain"},
		{"a&amp;b&lt;c&gt;\"d'", "a&amp;b&lt;c&gt;&#34;d&#39;", `a&b<c>"d'`},
		{"&amp;amp;", "&amp;amp;", "&amp;"},
		{"<https://x.example/?a=1&amp;b=2|run book>", `<a href="https://x.example/?a=1&amp;b=2" target="_blank" rel="noopener noreferrer">run book</a>`, "run book"},
		{"<https://x.example/>", `<a href="https://x.example/" target="_blank" rel="noopener noreferrer">https://x.example/</a>`, "https://x.example/"},
		{"<javascript:alert(1)|click>", "click", "click"},
		{"<data:text/html,x>", "data:text/html,x", "data:text/html,x"},
		{"<img src=x onerror=alert(1)>", "img src=x onerror=alert(1)", "img src=x onerror=alert(1)"},
		{"<!channel> <!here>", `<span class="notify">@channel</span> <span class="notify">@here</span>`, "@channel @here"},
		{"&lt;!channel&gt;", "&lt;!channel&gt;", "<!channel>"},
		{"<@U1> in <#C1|x>", `<span class="mention">@n-U1</span> in <span class="mention">#n-C1</span>`, "@U1 in #C1"},
		{"<!date^1^{date}|fallback>", "fallback", "fallback"},
		{":fire: :unknown_thing: 10:30:00", "🔥 :unknown_thing: 10:30:00", "🔥 :unknown_thing: 10:30:00"},
		{"<", "&lt;", "<"},
		{"a < b", "a &lt; b", "a < b"},
	}
	for _, tc := range tests {
		require.Equal(t, tc.html, string(mrkdwnHTML(tc.in, func(id string) string { return "n-" + id })), tc.in)
		require.Equal(t, tc.plain, plainMrkdwn(tc.in), tc.in)
	}
}

// FuzzMrkdwn: whatever is posted, only known tags come out.
func FuzzMrkdwn(f *testing.F) {
	for _, seed := range []string{"*a*", "<a|b>", "```x```", "<script>", "*_~`*_~`", "<https://a/\"onx=1|b>", "&gt;<!x|<b>>"} {
		f.Add(seed)
	}
	allowed := []string{"b", "/b", "i", "/i", "s", "/s", "code", "/code", "pre", "/pre", "br", "blockquote", "/blockquote", "/a", "/span", `span class="mention"`, `span class="notify"`}
	f.Fuzz(func(t *testing.T, in string) {
		out := string(mrkdwnHTML(in, func(id string) string { return id }))
		for _, piece := range strings.Split(out, "<")[1:] {
			tag, _, closed := strings.Cut(piece, ">")
			link := strings.HasPrefix(tag, `a href="http`) || strings.HasPrefix(tag, `a href="mailto:`)
			link = link && strings.Count(tag, `"`) == 6 && strings.HasSuffix(tag, `" target="_blank" rel="noopener noreferrer"`)
			if !closed || (!link && !slices.Contains(allowed, tag)) {
				t.Fatalf("%q let <%s> through: %s", in, tag, out)
			}
		}
		_ = plainMrkdwn(in)
	})
}

func TestNotifiesFindsLeaks(t *testing.T) {
	t.Parallel()
	s := startSim(t, nil)
	_, _, out := call(t, s, "chat.postMessage", map[string]any{"channel": incidents, "text": "&lt;!channel&gt;", "blocks": []any{
		section("pod &lt;!here&gt; by <@" + alice + ">"), map[string]any{"type": "header", "text": plain("<!everyone>")},
	}})
	require.Equal(t, true, out["ok"])
	require.Equal(t, []string{alice}, s.Messages(incidents)[0].Notifies(), "escaped labels and plain text notify nobody")
	call(t, s, "chat.postMessage", map[string]any{"channel": incidents, "text": "x", "blocks": []any{section("pod <!channel>")}})
	require.Equal(t, []string{"channel"}, s.Messages(incidents)[1].Notifies())
}

func TestPageShowsAndEscapes(t *testing.T) {
	t.Parallel()
	s := startSim(t, func(o *Options) { o.EmptyHint = "Post a sample alert: `holdfast demo alert`" })
	w := get(t, s, "/")
	require.Equal(t, http.StatusOK, w.Code)
	require.Contains(t, w.Body.String(), "<code>holdfast demo alert</code>", "an empty channel says what to do next")
	policy := w.Header().Get("Content-Security-Policy")
	require.Contains(t, policy, "default-src 'none'")
	require.NotContains(t, policy, "unsafe")
	require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"))

	evil := `<script>alert(1)</script>"'><img src=x onerror=alert(2)>`
	call(t, s, "chat.postMessage", map[string]any{"channel": incidents, "text": evil, "blocks": []any{
		section(evil),
		map[string]any{"type": "header", "text": plain(evil)},
		actions(with(with(button("x", evil), "value", evil), "confirm", map[string]any{"title": plain(evil), "text": mrkdwn(evil), "confirm": plain("y"), "deny": plain("n")}),
			with(button("link", "Runbook"), "url", "https://x.example/?a=1&b=2"),
			map[string]any{"type": "static_select", "action_id": "s", "placeholder": plain("More"), "options": []any{option("Scale <out>", `"v"`)}},
			map[string]any{"type": "overflow", "action_id": "o", "options": []any{option("Silence", "silence")}}),
		map[string]any{"type": "image", "image_url": "https://x.example/i.png", "alt_text": "a graph"},
	}})
	call(t, s, "chat.postMessage", map[string]any{"channel": incidents, "attachments": []any{map[string]any{"color": `"/><script>`, "text": evil}}})
	call(t, s, "chat.postEphemeral", map[string]any{"channel": incidents, "user": alice, "text": "secret for alice"})
	body := get(t, s, "/?as="+alice).Body.String()
	require.NotContains(t, body, "<script>")
	require.NotContains(t, body, "<img src=x")
	require.NotContains(t, body, " style=", "inline styles would not pass the policy")
	require.NotContains(t, body, `src="http`, "nothing is loaded from elsewhere")
	require.NotContains(t, body, "opaque-", "button values stay on the server")
	require.Contains(t, body, "Scale &lt;out&gt;")
	require.Contains(t, body, "secret for alice")
	require.NotContains(t, get(t, s, "/?as="+bob).Body.String(), "secret for alice")

	fragment := get(t, s, "/sim/view?as="+alice)
	require.Contains(t, fragment.Body.String(), "secret for alice")
	for _, asset := range []string{"app.css", "app.js", "icon.svg"} {
		require.Equal(t, http.StatusOK, get(t, s, "/sim/assets/"+asset).Code)
	}
	for _, missing := range []string{"/sim/assets/page.html", "/sim/assets/..%2foptions.go", "/nowhere"} {
		require.Equal(t, http.StatusNotFound, get(t, s, missing).Code, missing)
	}
}

func TestForeignHostNamesAreRefused(t *testing.T) {
	t.Parallel()
	s := startSim(t, func(o *Options) { o.AllowedHosts = []string{"slack.internal"} })
	for host, want := range map[string]int{
		"127.0.0.1:8082": 200, "localhost:8082": 200, "[::1]:8082": 200, "slack.internal": 200, "evil.example:8082": 421, "": 421,
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = host
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		require.Equal(t, want, w.Code, host)
	}
}

func TestPressingAButtonOnThePage(t *testing.T) {
	t.Parallel()
	s := startSim(t, nil)
	a := startApp(t, s, nil)
	ts := card(t, s)
	press := func(form url.Values, header map[string]string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:8082/sim/click", strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", formType)
		for key, value := range header {
			r.Header.Set(key, value)
		}
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		return w
	}
	form := url.Values{"channel": {incidents}, "ts": {ts}, "action": {"ack"}, "as": {alice}}
	w := press(form, map[string]string{"Sec-Fetch-Site": "cross-site"})
	require.Equal(t, http.StatusForbidden, w.Code)
	w = press(form, map[string]string{"Origin": "https://evil.example"})
	require.Equal(t, http.StatusForbidden, w.Code)
	require.Empty(t, a.all(), "another site must not be able to click")

	w = press(form, map[string]string{"Sec-Fetch-Site": "same-origin", "Accept": "application/json"})
	require.JSONEq(t, `{"ok":true,"message":"`+deliveredMessage(s)+`"}`, w.Body.String())
	require.Equal(t, alice, a.last(t).payload(t)["user"].(map[string]any)["id"])
	w = press(form, nil)
	require.Equal(t, http.StatusSeeOther, w.Code, "without script the browser goes back to the page")
	require.Equal(t, "/?as="+alice+"&channel="+incidents, w.Header().Get("Location"))
	form.Set("action", "gone")
	w = press(form, map[string]string{"Accept": "application/json"})
	require.Contains(t, w.Body.String(), `"ok":false`)
}

func deliveredMessage(s *Sim) string {
	d := s.Deliveries()
	_, message := verdict(ClickResult{Status: 200, Took: d[len(d)-1].Took}, nil)
	return message
}

func TestComposerAndModalForms(t *testing.T) {
	t.Parallel()
	s := startSim(t, nil)
	a := startApp(t, s, nil)
	do := func(path string, form url.Values) {
		form.Set("as", alice)
		form.Set("channel", incidents)
		r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:8082"+path, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", formType)
		r.Header.Set("Accept", "application/json")
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		require.Contains(t, w.Body.String(), `"ok":true`, w.Body.String())
	}
	do("/sim/say", url.Values{"text": {"hello"}})
	require.Equal(t, "hello", s.Messages(incidents)[0].Text)
	do("/sim/say", url.Values{"text": {"/holdfast  status all"}})
	require.Equal(t, "status all", a.last(t).form.Get("text"))
	s.state.mu.Lock()
	trigger := s.state.newTrigger(alice, "")
	s.state.mu.Unlock()
	v, err := client(t, s).OpenViewContext(t.Context(), trigger, modalView())
	require.NoError(t, err)
	page := get(t, s, "/?as="+alice).Body.String()
	require.Contains(t, page, `name="input:reason/text"`)
	require.NotContains(t, get(t, s, "/?as="+bob).Body.String(), "input:reason/text")
	do("/sim/submit", url.Values{"view": {v.ID}, "input:reason/text": {"", "because"}, "input:ttl/choice": {""}})
	_, open := s.OpenView(alice)
	require.False(t, open)
	values := a.last(t).payload(t)["view"].(map[string]any)["state"].(map[string]any)["values"].(map[string]any)
	require.Equal(t, "because", values["reason"].(map[string]any)["text"].(map[string]any)["value"])
}

func TestEventStreamTellsOfChangesAndEndsOnStop(t *testing.T) {
	t.Parallel()
	o := DefaultOptions()
	s, err := New(o)
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context()))
	h := &http.Client{Transport: &http.Transport{}}
	defer h.CloseIdleConnections()
	resp, err := h.Get(s.URL() + "/sim/events")
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, "text/event-stream", resp.Header.Get("Content-Type"))
	lines := bufio.NewScanner(resp.Body)
	data := func() string {
		for lines.Scan() {
			if v, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return v
			}
		}
		return ""
	}
	first := data()
	_, err = s.Say(t.Context(), "incidents", alice, "hi", "")
	require.NoError(t, err)
	require.NotEqual(t, first, data())
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	require.NoError(t, s.Stop(ctx), "an open page must not hold the stop up")
	require.Empty(t, data())
	require.NoError(t, s.Stop(ctx), "stopping twice is fine")
}

func TestStopWaitsForAClickUnderWay(t *testing.T) {
	t.Parallel()
	s := startSim(t, nil)
	entered, release := make(chan struct{}), make(chan struct{})
	startApp(t, s, func(http.ResponseWriter, appRequest) {
		close(entered)
		<-release
	})
	form := url.Values{"channel": {incidents}, "ts": {card(t, s)}, "action": {"ack"}, "as": {alice}}
	h := &http.Client{Transport: &http.Transport{}}
	defer h.CloseIdleConnections()
	clicked := make(chan error, 1)
	go func() {
		req, _ := http.NewRequest(http.MethodPost, s.URL()+"/sim/click", strings.NewReader(form.Encode()))
		req.Header.Set("Content-Type", formType)
		req.Header.Set("Accept", "application/json")
		resp, err := h.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		clicked <- err
	}()
	<-entered
	stopped := make(chan error, 1)
	go func() { stopped <- s.Stop(context.Background()) }()
	<-s.stopping
	require.NotEmpty(t, s.URL(), "handlers must be able to ask for the address while Stop waits")
	close(release)
	require.NoError(t, <-clicked)
	require.NoError(t, <-stopped)
}

func TestOldMessagesGoFirst(t *testing.T) {
	t.Parallel()
	o := DefaultOptions()
	st := newState(o.withDefaults(), newHub())
	st.mu.Lock()
	c := st.find("incidents", true)
	first := st.add(c, Message{Text: "first"})
	for range maxMessages {
		st.add(c, Message{Text: "x"})
	}
	st.mu.Unlock()
	require.Len(t, c.messages, maxMessages)
	require.Nil(t, c.message(first.TS, false))
}
