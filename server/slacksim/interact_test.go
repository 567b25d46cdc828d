package slacksim

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"
)

// The example of Slack's own documentation on verifying requests.
func TestSignMatchesSlacksPublishedExample(t *testing.T) {
	t.Parallel()
	body := "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar" +
		"&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands" +
		"%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
	got := Sign("8f742231b10e8888abcd99yyyzzz85a5", time.Unix(1531420618, 0), []byte(body))
	require.Equal(t, "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503", got)
}

func TestClickIsSignedOverTheRawBody(t *testing.T) {
	t.Parallel()
	clock := newFakeClock()
	s := startSim(t, func(o *Options) { o.Clock = clock })
	a := startApp(t, s, nil)
	res, err := s.Click(t.Context(), ClickRequest{Channel: incidents, TS: card(t, s), ActionID: "ack", UserID: alice})
	require.NoError(t, err)
	require.True(t, res.Acked())
	req := a.last(t)
	require.Equal(t, strconv.FormatInt(clock.Now().Unix(), 10), req.header.Get("X-Slack-Request-Timestamp"))
	mac := hmac.New(sha256.New, []byte("slacksim-signing-secret"))
	fmt.Fprintf(mac, "v0:%d:%s", clock.Now().Unix(), req.body)
	require.Equal(t, "v0="+hex.EncodeToString(mac.Sum(nil)), req.header.Get("X-Slack-Signature"))
	require.Equal(t, "application/x-www-form-urlencoded", req.header.Get("Content-Type"))
	require.True(t, bytes.HasPrefix(req.body, []byte("payload=%7B")), "the payload is urlencoded JSON")
}

func TestRealVerifierAndParserAcceptAClick(t *testing.T) {
	t.Parallel()
	s := startSim(t, nil)
	a := startApp(t, s, nil)
	ts := card(t, s)
	_, err := s.Click(t.Context(), ClickRequest{Channel: "incidents", TS: ts, ActionID: "trip", UserID: alice})
	require.NoError(t, err)
	req := a.last(t)
	v, err := slack.NewSecretsVerifier(req.header, s.opts.SigningSecret)
	require.NoError(t, err)
	_, _ = v.Write(req.body)
	require.NoError(t, v.Ensure())
	var cb slack.InteractionCallback
	require.NoError(t, json.Unmarshal([]byte(req.form.Get("payload")), &cb))
	require.Equal(t, slack.InteractionTypeBlockActions, cb.Type)
	require.Equal(t, ts, cb.Container.MessageTs)
	require.Equal(t, ts, cb.Message.Timestamp)
	require.Equal(t, alice, cb.User.ID)
	require.Equal(t, "T0HOLDFAST", cb.User.TeamID)
	require.Len(t, cb.ActionCallback.BlockActions, 1)
	require.Equal(t, "opaque-trip", cb.ActionCallback.BlockActions[0].Value)
}

// Every field facts list for block_actions is there, and nothing else.
func TestBlockActionsShape(t *testing.T) {
	t.Parallel()
	s := startSim(t, nil)
	a := startApp(t, s, nil)
	ts := card(t, s)
	_, _, out := call(t, s, "chat.postMessage", map[string]any{
		"channel": incidents, "text": "r", "thread_ts": ts, "attachments": []any{map[string]any{"color": "#ff0000", "blocks": []any{
			actions(with(button("go", "Go"), "style", "danger")),
		}}},
	})
	res, err := s.Click(t.Context(), ClickRequest{Channel: incidents, TS: out["ts"].(string), ActionID: "go", UserID: eve})
	require.NoError(t, err)
	p := a.last(t).payload(t)
	keys := func(v any) []string { return slices.Sorted(maps.Keys(v.(map[string]any))) }
	require.Empty(t, cmp.Diff([]string{
		"actions", "api_app_id", "channel", "container", "enterprise", "is_enterprise_install", "message", "response_url", "state",
		"team", "token", "trigger_id", "type", "user",
	}, keys(p)))
	require.Nil(t, p["enterprise"])
	require.Equal(t, []string{"domain", "id"}, keys(p["team"]))
	require.Equal(t, map[string]any{"id": eve, "username": "eve", "name": "eve", "team_id": "T0PARTNERS"}, p["user"])
	require.Equal(t, map[string]any{
		"type": "message_attachment", "message_ts": out["ts"], "channel_id": incidents, "is_ephemeral": false,
		"thread_ts": ts, "attachment_id": 1.0, "is_app_unfurl": false,
	}, p["container"])
	action := p["actions"].([]any)[0]
	require.Equal(t, []string{"action_id", "action_ts", "block_id", "style", "text", "type", "value"}, keys(action))
	require.Equal(t, res.ActionTS, action.(map[string]any)["action_ts"])
	require.Subset(t, keys(p["message"]), []string{"attachments", "bot_id", "team", "text", "thread_ts", "ts", "type", "user"})
	require.Equal(t, map[string]any{"values": map[string]any{}}, p["state"])
	require.Equal(t, res.TriggerID, p["trigger_id"])
	require.True(t, strings.HasPrefix(p["response_url"].(string), s.ResponseURLPrefix()))
}

func TestMenusSendTheirChoiceAndRememberIt(t *testing.T) {
	t.Parallel()
	s := startSim(t, nil)
	a := startApp(t, s, nil)
	_, _, out := call(t, s, "chat.postMessage", map[string]any{"channel": incidents, "text": "m", "blocks": []any{
		map[string]any{"type": "actions", "block_id": "b", "elements": []any{
			map[string]any{"type": "static_select", "action_id": "ttl", "options": []any{option("15 min", "15m"), option("1 h", "1h")}, "initial_option": option("1 h", "1h")},
			map[string]any{"type": "overflow", "action_id": "more", "options": []any{option("Silence", "silence")}},
			map[string]any{"type": "users_select", "action_id": "who"},
			map[string]any{"type": "datepicker", "action_id": "day"},
			map[string]any{"type": "checkboxes", "action_id": "boxes", "options": []any{option("A", "a"), option("B", "b")}},
		}},
	}})
	ts := out["ts"].(string)
	use := func(action string, values ...string) map[string]any {
		_, err := s.Click(t.Context(), ClickRequest{Channel: incidents, TS: ts, ActionID: action, UserID: alice, Values: values})
		require.NoError(t, err)
		return a.last(t).payload(t)
	}
	first := func(p map[string]any) map[string]any { return p["actions"].([]any)[0].(map[string]any) }
	state := func(p map[string]any, action string) map[string]any {
		return p["state"].(map[string]any)["values"].(map[string]any)["b"].(map[string]any)[action].(map[string]any)
	}
	p := use("more", "silence")
	require.Equal(t, "silence", first(p)["selected_option"].(map[string]any)["value"])
	require.Equal(t, "1h", state(p, "ttl")["selected_option"].(map[string]any)["value"], "the initial option is part of the state")
	require.Nil(t, state(p, "who")["selected_user"])
	p = use("ttl", "15m")
	require.Equal(t, "15m", first(p)["selected_option"].(map[string]any)["value"])
	require.Equal(t, bob, first(use("who", bob))["selected_user"])
	require.Equal(t, "2026-03-01", first(use("day", "2026-03-01"))["selected_date"])
	p = use("boxes", "a", "b")
	require.Len(t, first(p)["selected_options"], 2)
	require.Equal(t, "15m", state(p, "ttl")["selected_option"].(map[string]any)["value"], "an earlier choice is remembered")
	require.Equal(t, bob, state(p, "who")["selected_user"])

	for _, in := range []ClickRequest{{ActionID: "ttl", Value: "2h"}, {ActionID: "ttl"}, {ActionID: "day"}} {
		in.Channel, in.TS, in.UserID = incidents, ts, alice
		_, err := s.Click(t.Context(), in)
		require.ErrorIs(t, err, ErrInput)
	}
}

func TestClicksThatSlackWouldNotOffer(t *testing.T) {
	t.Parallel()
	s := startSim(t, func(o *Options) { o.Users = append(o.Users, User{ID: "U000000GON", Name: "gone", Deleted: true}) })
	a := startApp(t, s, nil)
	ts := card(t, s)
	_, _, out := call(t, s, "chat.postEphemeral", map[string]any{"channel": incidents, "user": alice, "text": "x", "blocks": []any{actions(button("ok", "OK"))}})
	private := out["message_ts"].(string)
	tests := []struct {
		in   ClickRequest
		want error
	}{
		{ClickRequest{Channel: incidents, TS: ts, ActionID: "ack", UserID: "U0NOBODY"}, ErrNotFound},
		{ClickRequest{Channel: incidents, TS: ts, ActionID: "ack", UserID: "U000000GON"}, ErrNotAllowed},
		{ClickRequest{Channel: incidents, TS: ts, ActionID: "nope", UserID: alice}, ErrNotFound},
		{ClickRequest{Channel: incidents, TS: "1.000000", ActionID: "ack", UserID: alice}, ErrNotFound},
		{ClickRequest{Channel: "C0NOSUCH", TS: ts, ActionID: "ack", UserID: alice}, ErrNotFound},
		{ClickRequest{Channel: incidents, TS: private, ActionID: "ok", UserID: bob}, ErrNotAllowed},
		{ClickRequest{ViewID: "V0NOSUCH", ActionID: "ok", UserID: bob}, ErrNotFound},
	}
	for _, tc := range tests {
		_, err := s.Click(t.Context(), tc.in)
		require.ErrorIs(t, err, tc.want, "%+v", tc.in)
	}
	require.Empty(t, a.all())
	_, err := s.Click(t.Context(), ClickRequest{Channel: incidents, TS: private, ActionID: "ok", UserID: alice})
	require.NoError(t, err)
	p := a.last(t).payload(t)
	require.NotContains(t, p, "message", "a click on an ephemeral message carries no message")
	require.Equal(t, true, p["container"].(map[string]any)["is_ephemeral"])
	require.NoError(t, s.SetInteractivityURL(""))
	_, err = s.Click(t.Context(), ClickRequest{Channel: incidents, TS: ts, ActionID: "ack", UserID: alice})
	require.ErrorIs(t, err, ErrNoURL)
}

func TestAckIsDueInTime(t *testing.T) {
	t.Parallel()
	s := startSim(t, func(o *Options) { o.AckTimeout = 30 * time.Millisecond })
	release := make(chan struct{})
	a := startApp(t, s, func(http.ResponseWriter, appRequest) { <-release })
	t.Cleanup(func() { close(release) })
	res, err := s.Click(t.Context(), ClickRequest{Channel: incidents, TS: card(t, s), ActionID: "ack", UserID: alice})
	require.ErrorIs(t, err, ErrAckTimeout)
	require.False(t, res.Acked())
	require.Len(t, a.all(), 1, "the app got the click and may have acted")
	d := s.Deliveries()
	require.Equal(t, "no answer in time", d[len(d)-1].Problem)
	require.Equal(t, AckLimit, must(New(DefaultOptions())).opts.AckTimeout, "three seconds unless set")
}

func must(s *Sim, err error) *Sim {
	if err != nil {
		panic(err)
	}
	return s
}

func TestStatusOtherThan200IsNoAck(t *testing.T) {
	t.Parallel()
	s := startSim(t, nil)
	startApp(t, s, func(w http.ResponseWriter, _ appRequest) {
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(http.StatusFound)
	})
	res, err := s.Click(t.Context(), ClickRequest{Channel: incidents, TS: card(t, s), ActionID: "ack", UserID: alice})
	require.NoError(t, err)
	require.Equal(t, http.StatusFound, res.Status, "redirects are not followed")
	require.False(t, res.Acked())
	require.NoError(t, s.SetInteractivityURL("http://127.0.0.1:1/closed"))
	_, err = s.Click(t.Context(), ClickRequest{Channel: incidents, TS: card(t, s), ActionID: "ack", UserID: alice})
	require.ErrorContains(t, err, "cannot be reached")
}

// verify is an independent implementation of the app's side: it says what an
// app that does its duty makes of a request.
func verify(s *Sim, r appRequest, now time.Time) string {
	ts, err := strconv.ParseInt(r.header.Get(HeaderTimestamp), 10, 64)
	if err != nil {
		return "no timestamp"
	}
	if d := now.Unix() - ts; d > 300 || d < -300 {
		return "stale"
	}
	mac := hmac.New(sha256.New, []byte(s.opts.SigningSecret))
	fmt.Fprintf(mac, "v0:%d:%s", ts, r.body)
	want := "v0=" + hex.EncodeToString(mac.Sum(nil))
	if !hmac.Equal([]byte(want), []byte(r.header.Get(HeaderSignature))) {
		return "forged"
	}
	return "ok"
}

func TestTampering(t *testing.T) {
	t.Parallel()
	clock := newFakeClock()
	s := startSim(t, func(o *Options) { o.Clock = clock })
	a := startApp(t, s, nil)
	ts := card(t, s)
	click := func(tamper Tamper) appRequest {
		_, err := s.Click(t.Context(), ClickRequest{Channel: incidents, TS: ts, ActionID: "ack", UserID: alice, Tamper: tamper})
		require.NoError(t, err)
		return a.last(t)
	}
	for name, tc := range map[string]struct {
		tamper Tamper
		want   string
	}{
		"untouched":       {Tamper{}, "ok"},
		"299 s ago":       {Tamper{TimestampShift: -299 * time.Second}, "ok"},
		"301 s ago":       {Tamper{TimestampShift: -301 * time.Second}, "stale"},
		"other secret":    {Tamper{Secret: "other"}, "forged"},
		"unsigned":        {Tamper{Unsigned: true}, "no timestamp"},
		"short signature": {Tamper{Signature: "v0=00"}, "forged"},
		"one byte off":    {Tamper{Body: func(b []byte) []byte { b[len(b)-1] ^= 1; return b }}, "forged"},
	} {
		require.Equal(t, tc.want, verify(s, click(tc.tamper), clock.Now()), name)
	}
	p := click(Tamper{TeamID: "T0OTHER", UserTeamID: "T0FOREIGN", AppID: "A0OTHER"}).payload(t)
	require.Equal(t, "T0OTHER", p["team"].(map[string]any)["id"])
	require.Equal(t, "T0FOREIGN", p["user"].(map[string]any)["team_id"])
	require.Equal(t, "A0OTHER", p["api_app_id"])
	forged := click(Tamper{Query: "payload=%7B%22forged%22%3A1%7D"})
	require.Equal(t, "payload=%7B%22forged%22%3A1%7D", forged.query)
	require.Equal(t, "ok", verify(s, forged, clock.Now()), "the query is not signed")
}

func TestReplaySendsTheSameBytes(t *testing.T) {
	t.Parallel()
	s := startSim(t, nil)
	a := startApp(t, s, nil)
	res, err := s.Click(t.Context(), ClickRequest{Channel: incidents, TS: card(t, s), ActionID: "ack", UserID: alice})
	require.NoError(t, err)
	again, err := s.Replay(t.Context(), res)
	require.NoError(t, err)
	require.True(t, again.Acked())
	all := a.all()
	require.Equal(t, all[0].body, all[1].body)
	require.Equal(t, all[0].header.Get(HeaderSignature), all[1].header.Get(HeaderSignature))
	require.Equal(t, all[0].header.Get(HeaderTimestamp), all[1].header.Get(HeaderTimestamp))
	_, err = s.Replay(t.Context(), ClickResult{})
	require.ErrorIs(t, err, ErrNotFound)
}

func TestSlashCommand(t *testing.T) {
	t.Parallel()
	s := startSim(t, nil)
	answer := ""
	a := startApp(t, s, func(w http.ResponseWriter, _ appRequest) { _, _ = io.WriteString(w, answer) })
	run := func(body string) {
		answer = body
		res, err := s.Slash(t.Context(), "/holdfast", "status now", alice, "incidents")
		require.NoError(t, err)
		require.True(t, res.Acked())
	}
	run("plain words")
	require.Equal(t, "plain words", s.Ephemerals(alice)[0].Text)
	run(`{"response_type":"in_channel","text":"for all"}`)
	require.Equal(t, "for all", s.Messages(incidents)[0].Text)
	run("")
	require.Len(t, s.Messages(incidents), 1)
	form := a.last(t).form
	for field, want := range map[string]string{
		"command": "/holdfast", "text": "status now", "user_id": alice, "user_name": "alice", "team_id": "T0HOLDFAST", "team_domain": "holdfast-demo",
		"channel_id": incidents, "channel_name": "incidents", "api_app_id": "A0HOLDFAST", "is_enterprise_install": "false",
	} {
		require.Equal(t, want, form.Get(field), field)
	}
	require.NotEmpty(t, form.Get("trigger_id"))
	require.NotEmpty(t, form.Get("response_url"))
	cmd, err := slack.SlashCommandParse(requestOf(a.last(t)))
	require.NoError(t, err)
	require.Equal(t, "/holdfast", cmd.Command)

	answer = `{"text":"x","blocks":[{"type":"nope"}]}`
	_, err = s.Slash(t.Context(), "/holdfast", "", alice, incidents)
	require.ErrorContains(t, err, "invalid_blocks")
	for _, bad := range []string{"holdfast", "/", "/a b"} {
		_, err = s.Slash(t.Context(), bad, "", alice, incidents)
		require.ErrorIs(t, err, ErrInput)
	}
}

func requestOf(r appRequest) *http.Request {
	req, _ := http.NewRequest(http.MethodPost, "http://app/", bytes.NewReader(r.body))
	req.Header = r.header.Clone()
	return req
}

func TestResponseURL(t *testing.T) {
	t.Parallel()
	clock := newFakeClock()
	s := startSim(t, func(o *Options) { o.Clock = clock })
	startApp(t, s, nil)
	ts := card(t, s)
	click := func() string {
		res, err := s.Click(t.Context(), ClickRequest{Channel: incidents, TS: ts, ActionID: "ack", UserID: alice})
		require.NoError(t, err)
		return strings.TrimPrefix(res.ResponseURL, s.URL())
	}
	use := func(path, body string) (int, string) {
		status, _, out := post(t, s, path, "application/json", body)
		name, _ := out["error"].(string)
		return status, name
	}
	u := click()
	for i := range MaxResponseURLUses {
		status, _ := use(u, fmt.Sprintf(`{"text":"private %d"}`, i))
		require.Equal(t, http.StatusOK, status)
	}
	status, name := use(u, `{"text":"one too many"}`)
	require.Equal(t, http.StatusNotFound, status)
	require.Equal(t, "used_url", name)
	require.Len(t, s.Ephemerals(alice), MaxResponseURLUses)

	u = click()
	clock.advance(ResponseURLLife + time.Second)
	_, name = use(u, `{"text":"late"}`)
	require.Equal(t, "expired_url", name)

	u = click()
	status, _ = use(u, `{"replace_original":true,"text":"done by alice"}`)
	require.Equal(t, http.StatusOK, status)
	m, _ := s.Message(incidents, ts)
	require.Equal(t, "done by alice", m.Text)
	require.Empty(t, m.Elements(), "text without blocks removes the buttons here too")
	status, _ = use(u, `{"response_type":"in_channel","text":"for all","thread_ts":"`+ts+`"}`)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "for all", s.Thread(incidents, ts)[0].Text)
	_, name = use(u, `{"blocks":[{"type":"nope"}]}`)
	require.Equal(t, "invalid_blocks", name)
	status, _ = use(u, `not json`)
	require.Equal(t, http.StatusBadRequest, status)
	_, name = use("/response/unknown", `{"text":"x"}`)
	require.Equal(t, "expired_url", name)
}

func TestResponseURLWithTheRealClient(t *testing.T) {
	t.Parallel()
	s := startSim(t, nil)
	startApp(t, s, nil)
	ts := card(t, s)
	res, err := s.Click(t.Context(), ClickRequest{Channel: incidents, TS: ts, ActionID: "ack", UserID: alice})
	require.NoError(t, err)
	c := client(t, s)
	_, _, _, err = c.SendMessageContext(t.Context(), "", slack.MsgOptionReplaceOriginal(res.ResponseURL), slack.MsgOptionText("replaced", false), slack.MsgOptionBlocks(slackBlocks()[1]))
	require.NoError(t, err)
	m, _ := s.Message(incidents, ts)
	require.Equal(t, "replaced", m.Text)
	require.Len(t, m.Blocks, 1)
	require.NoError(t, s.AddFault(Fault{Method: "response_url", Status: 500}))
	_, _, _, err = c.SendMessageContext(t.Context(), "", slack.MsgOptionResponseURL(res.ResponseURL, "ephemeral"), slack.MsgOptionText("x", false))
	require.Error(t, err)
	_, _, _, err = c.SendMessageContext(t.Context(), "", slack.MsgOptionDeleteOriginal(res.ResponseURL))
	require.NoError(t, err)
	require.Empty(t, s.Messages(incidents))
}

// modalView is a view as the real client builds it.
func modalView() slack.ModalViewRequest {
	txt := func(s string) *slack.TextBlockObject { return slack.NewTextBlockObject("plain_text", s, false, false) }
	reason := slack.NewInputBlock("reason", txt("Reason"), nil, &slack.PlainTextInputBlockElement{Type: "plain_text_input", ActionID: "text", MinLength: 3})
	ttl := slack.NewInputBlock("ttl", txt("How long"), nil, slack.NewOptionsSelectBlockElement("static_select", nil, "choice", slack.NewOptionBlockObject("15m", txt("15 min"), nil)))
	ttl.Optional = true
	return slack.ModalViewRequest{
		Type: slack.VTModal, Title: txt("Trip breaker"), Submit: txt("Trip"), Close: txt("Cancel"), CallbackID: "trip", PrivateMetadata: "opaque",
		NotifyOnClose: true, Blocks: slack.Blocks{BlockSet: []slack.Block{reason, ttl}},
	}
}

func TestModal(t *testing.T) {
	t.Parallel()
	clock := newFakeClock()
	s := startSim(t, func(o *Options) { o.Clock = clock })
	ack := ""
	a := startApp(t, s, func(w http.ResponseWriter, _ appRequest) { _, _ = io.WriteString(w, ack) })
	c := client(t, s)
	ts := card(t, s)
	open := func() *slack.ViewResponse {
		res, err := s.Click(t.Context(), ClickRequest{Channel: incidents, TS: ts, ActionID: "trip", UserID: alice})
		require.NoError(t, err)
		clock.advance(TriggerLife)
		v, err := c.OpenViewContext(t.Context(), res.TriggerID, modalView())
		require.NoError(t, err)
		return v
	}
	submit := func(id string, values map[string][]string) error {
		_, err := s.SubmitView(t.Context(), SubmitRequest{ViewID: id, UserID: alice, Values: values})
		return err
	}
	good := map[string][]string{"text": {"flood"}, "ttl/choice": {"15m"}}

	v := open()
	shown, ok := s.OpenView(alice)
	require.True(t, ok)
	require.Equal(t, v.ID, shown.ID)
	_, ok = s.OpenView(bob)
	require.False(t, ok, "a modal is one person's")

	sent := len(a.all())
	require.ErrorIs(t, submit(v.ID, nil), ErrInput, "a required input is empty")
	require.ErrorIs(t, submit(v.ID, map[string][]string{"text": {"ab"}}), ErrInput, "too short")
	require.ErrorIs(t, submit(v.ID, map[string][]string{"text": {"abc"}, "choice": {"never"}}), ErrInput)
	require.Len(t, a.all(), sent, "Slack's client holds these back")

	ack = `{"response_action":"errors","errors":{"reason":"say more"}}`
	require.NoError(t, submit(v.ID, good))
	shown, _ = s.OpenView(alice)
	require.Equal(t, "say more", shown.Errors["reason"])
	ack = `{"response_action":"errors","errors":{"nope":"x"}}`
	require.ErrorContains(t, submit(v.ID, good), "no input of the view")

	var cb slack.InteractionCallback
	require.NoError(t, json.Unmarshal([]byte(a.last(t).form.Get("payload")), &cb))
	require.Equal(t, slack.InteractionTypeViewSubmission, cb.Type)
	require.Equal(t, "flood", cb.View.State.Values["reason"]["text"].Value)
	require.Equal(t, "15m", cb.View.State.Values["ttl"]["choice"].SelectedOption.Value)
	require.Equal(t, []string{"trip", "opaque", v.ID}, []string{cb.View.CallbackID, cb.View.PrivateMetadata, cb.View.RootViewID})
	p := a.last(t).payload(t)
	require.NotContains(t, p, "message")
	require.NotContains(t, p, "channel")

	ack = `{"response_action":"update","view":` + string(mustJSON(t, modalView())) + `}`
	require.NoError(t, submit(v.ID, good))
	shown, _ = s.OpenView(alice)
	require.Equal(t, v.ID, shown.ID)
	require.NotEqual(t, v.Hash, shown.Hash)

	ack = `{"response_action":"push","view":` + string(mustJSON(t, modalView())) + `}`
	require.NoError(t, submit(v.ID, good))
	pushed, _ := s.OpenView(alice)
	require.Equal(t, []string{v.ID, v.ID}, []string{pushed.RootID, pushed.PreviousID})

	ack = ""
	require.NoError(t, submit(pushed.ID, good), "an empty answer closes the view")
	shown, _ = s.OpenView(alice)
	require.Equal(t, v.ID, shown.ID, "and shows the one below")
	ack = `{"response_action":"clear"}`
	require.NoError(t, submit(v.ID, good))
	_, ok = s.OpenView(alice)
	require.False(t, ok)

	ack = `{"response_action":"dance"}`
	require.ErrorContains(t, submit(open().ID, good), "dance")
	ack = "ok"
	require.Error(t, submit(open().ID, good), "the answer must be JSON or empty")

	ack = ""
	v = open()
	res, err := s.CloseView(t.Context(), SubmitRequest{ViewID: v.ID, UserID: alice})
	require.NoError(t, err)
	require.True(t, res.Acked())
	require.Equal(t, "view_closed", a.last(t).payload(t)["type"])
	_, err = s.CloseView(t.Context(), SubmitRequest{ViewID: v.ID, UserID: alice})
	require.ErrorIs(t, err, ErrNotFound)
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	return raw
}

func TestTriggersAndViewUpdates(t *testing.T) {
	t.Parallel()
	clock := newFakeClock()
	s := startSim(t, func(o *Options) { o.Clock = clock })
	startApp(t, s, nil)
	c := client(t, s)
	ts := card(t, s)
	trigger := func() string {
		res, err := s.Click(t.Context(), ClickRequest{Channel: incidents, TS: ts, ActionID: "trip", UserID: alice})
		require.NoError(t, err)
		return res.TriggerID
	}
	late := trigger()
	clock.advance(TriggerLife + time.Millisecond)
	_, err := c.OpenViewContext(t.Context(), late, modalView())
	require.EqualError(t, err, "expired_trigger_id")
	once := trigger()
	v, err := c.OpenViewContext(t.Context(), once, modalView())
	require.NoError(t, err)
	_, err = c.OpenViewContext(t.Context(), once, modalView())
	require.EqualError(t, err, "exchanged_trigger_id")
	_, err = c.OpenViewContext(t.Context(), "1.2.3", modalView())
	require.EqualError(t, err, "invalid_trigger_id")
	_, err = c.PushViewContext(t.Context(), trigger(), modalView())
	require.EqualError(t, err, "no_view_to_push")

	updated, err := c.UpdateViewContext(t.Context(), modalView(), "", v.Hash, v.ID)
	require.NoError(t, err)
	_, err = c.UpdateViewContext(t.Context(), modalView(), "", v.Hash, v.ID)
	require.EqualError(t, err, "hash_conflict")
	require.NotEqual(t, v.Hash, updated.Hash)
	_, err = c.UpdateViewContext(t.Context(), modalView(), "", "", "V0NOSUCH")
	require.EqualError(t, err, "not_found")
}

func TestViewLimitsAtTheirBoundary(t *testing.T) {
	t.Parallel()
	base := func() map[string]any {
		return map[string]any{"type": "modal", "title": plain("t"), "submit": plain("s"), "blocks": []any{section("x")}}
	}
	tests := []struct {
		name    string
		max     int
		build   func(n int) map[string]any
		pointer string
	}{
		{"title", MaxViewTitle, func(n int) map[string]any { return with(base(), "title", plain(text(n))) }, "/view/title/text]"},
		{"submit", MaxViewTitle, func(n int) map[string]any { return with(base(), "submit", plain(text(n))) }, "/view/submit/text]"},
		{"close", MaxViewTitle, func(n int) map[string]any { return with(base(), "close", plain(text(n))) }, "/view/close/text]"},
		{"callback_id", MaxCallbackID, func(n int) map[string]any { return with(base(), "callback_id", text(n)) }, "/view/callback_id]"},
		{"external_id", MaxCallbackID, func(n int) map[string]any { return with(base(), "external_id", text(n)) }, "/view/external_id]"},
		{"private_metadata", MaxPrivateMetadata, func(n int) map[string]any { return with(base(), "private_metadata", text(n)) }, "/view/private_metadata]"},
		{"blocks", MaxViewBlocks, func(n int) map[string]any {
			return with(base(), "blocks", repeat(n, func(int) any { return map[string]any{"type": "divider"} }))
		}, "/view/blocks]"},
		{"input label", MaxInputLabel, func(n int) map[string]any {
			return with(base(), "blocks", []any{map[string]any{"type": "input", "label": plain(text(n)), "element": map[string]any{"type": "plain_text_input", "max_length": 3000}}})
		}, "/view/blocks/0/label/text]"},
		{"input length", MaxInputLength, func(n int) map[string]any {
			return with(base(), "blocks", []any{map[string]any{"type": "input", "label": plain("l"), "element": map[string]any{"type": "plain_text_input", "max_length": n}}})
		}, "/view/blocks/0/element/max_length]"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := startSim(t, nil)
			open := func(view map[string]any) map[string]any {
				s.state.mu.Lock()
				trigger := s.state.newTrigger(alice, "")
				s.state.mu.Unlock()
				_, _, out := call(t, s, "views.open", map[string]any{"trigger_id": trigger, "view": view})
				return out
			}
			out := open(tc.build(tc.max))
			require.Equal(t, true, out["ok"], out)
			out = open(tc.build(tc.max + 1))
			require.Equal(t, "invalid_arguments", out["error"])
			require.Contains(t, fmt.Sprint(out["response_metadata"]), tc.pointer)
		})
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	s := startSim(t, nil)
	status := http.StatusOK
	a := startApp(t, s, func(w http.ResponseWriter, r appRequest) {
		var in struct{ Challenge string }
		_ = json.Unmarshal(r.body, &in)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, in.Challenge)
	})
	require.NoError(t, s.VerifyEventsURL(t.Context()))
	require.Equal(t, "ok", verify(s, a.last(t), time.Now()))
	m, err := s.Say(t.Context(), "incidents", bob, "a <b> & @holdfast", "")
	require.NoError(t, err)
	require.Equal(t, "a &lt;b&gt; &amp; <@U0HOLDFAST>", m.Text)
	require.Len(t, a.all(), 3, "the handshake, message and app_mention")
	var last struct {
		Type    string `json:"type"`
		EventID string `json:"event_id"`
		Event   struct{ Type, TS, Channel string }
	}
	require.NoError(t, json.Unmarshal(a.last(t).body, &last))
	require.Equal(t, "app_mention", last.Event.Type)
	require.Equal(t, m.TS, last.Event.TS)

	status = http.StatusInternalServerError
	_, err = s.Say(t.Context(), "incidents", bob, "again", "")
	require.Error(t, err)
	retried := a.all()
	require.Len(t, retried, 5)
	require.Empty(t, retried[3].header.Get(HeaderRetryNum))
	require.Equal(t, "1", retried[4].header.Get(HeaderRetryNum))
	require.Equal(t, "http_error", retried[4].header.Get(HeaderRetryReason))
	require.Equal(t, retried[3].body, retried[4].body, "a retry is the same event")
}

func TestWaitMessage(t *testing.T) {
	t.Parallel()
	s := startSim(t, nil)
	ts := card(t, s)
	found := make(chan Message, 1)
	go func() {
		m, err := s.WaitMessage(t.Context(), func(m Message) bool { return m.TS == ts && len(m.Elements()) == 0 })
		if err == nil {
			found <- m
		}
		close(found)
	}()
	call(t, s, "chat.update", map[string]any{"channel": incidents, "ts": ts, "text": "done"})
	m, ok := <-found
	require.True(t, ok)
	require.Equal(t, "done", m.Text)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := s.WaitMessage(ctx, func(Message) bool { return false })
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "among 1")
}

func TestDeliveriesHoldNoSecrets(t *testing.T) {
	t.Parallel()
	var logged bytes.Buffer
	s := startSim(t, func(o *Options) { o.Logger = testLogger(&logged) })
	startApp(t, s, nil)
	res, err := s.Click(t.Context(), ClickRequest{Channel: incidents, TS: card(t, s), ActionID: "ack", UserID: alice})
	require.NoError(t, err)
	for _, secret := range []string{s.opts.SigningSecret, s.opts.BotToken, res.Request.Header.Get(HeaderSignature), res.TriggerID} {
		require.NotContains(t, logged.String(), secret)
		require.NotContains(t, fmt.Sprintf("%+v", s.Deliveries()), secret)
	}
	require.NotEmpty(t, logged.String())
	for range maxDeliveries + 10 {
		s.record(Delivery{Kind: "event"})
	}
	require.Len(t, s.Deliveries(), maxDeliveries)
}
