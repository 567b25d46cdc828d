package slacksim

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// slackBlocks is a card as the real client builds it.
func slackBlocks() []slack.Block {
	ack := slack.NewButtonBlockElement("ack", "opaque-1", slack.NewTextBlockObject("plain_text", "Acknowledge", true, false))
	ack.Style = slack.StylePrimary
	trip := slack.NewButtonBlockElement("trip", "opaque-2", slack.NewTextBlockObject("plain_text", "Trip", false, false))
	trip.Confirm = slack.NewConfirmationBlockObject(
		slack.NewTextBlockObject("plain_text", "Sure?", false, false), slack.NewTextBlockObject("mrkdwn", "It *trips*.", false, false),
		slack.NewTextBlockObject("plain_text", "Yes", false, false), slack.NewTextBlockObject("plain_text", "No", false, false))
	more := slack.NewOverflowBlockElement("more", slack.NewOptionBlockObject("silence", slack.NewTextBlockObject("plain_text", "Silence", false, false), nil))
	return []slack.Block{
		slack.NewHeaderBlock(slack.NewTextBlockObject("plain_text", "Latency", false, false)),
		slack.NewSectionBlock(slack.NewTextBlockObject("mrkdwn", "*p99* is high", false, false), nil, nil),
		slack.NewContextBlock("", slack.NewTextBlockObject("mrkdwn", "incident 1", false, false)),
		slack.NewDividerBlock(),
		slack.NewActionBlock("", ack, trip, more),
	}
}

func TestRealClientSpeaksEveryMethod(t *testing.T) {
	t.Parallel()
	s := startSim(t, nil)
	c := client(t, s)
	ctx := t.Context()

	who, err := c.AuthTestContext(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"T0HOLDFAST", "U0HOLDFAST", "B0HOLDFAST"}, []string{who.TeamID, who.UserID, who.BotID})
	require.NotEmpty(t, who.Header.Get("X-Oauth-Scopes"))

	meta := slack.SlackMetadata{EventType: "holdfast_outbox", EventPayload: map[string]any{"id": "01J"}}
	ch, ts, err := c.PostMessageContext(ctx, incidents, slack.MsgOptionText("fallback", false), slack.MsgOptionBlocks(slackBlocks()...), slack.MsgOptionMetadata(meta))
	require.NoError(t, err)
	require.Equal(t, incidents, ch)
	_, replyTS, err := c.PostMessageContext(ctx, incidents, slack.MsgOptionText("in thread", false), slack.MsgOptionTS(ts))
	require.NoError(t, err)

	history, err := c.GetConversationHistoryContext(ctx, &slack.GetConversationHistoryParameters{ChannelID: incidents, IncludeAllMetadata: true})
	require.NoError(t, err)
	require.Len(t, history.Messages, 1, "a thread reply is not in the channel's history")
	require.Equal(t, "holdfast_outbox", history.Messages[0].Metadata.EventType)
	require.Equal(t, "01J", history.Messages[0].Metadata.EventPayload["id"])
	require.Len(t, history.Messages[0].Blocks.BlockSet, 5)
	require.Equal(t, 1, history.Messages[0].ReplyCount)
	history, err = c.GetConversationHistoryContext(ctx, &slack.GetConversationHistoryParameters{ChannelID: incidents})
	require.NoError(t, err)
	require.Empty(t, history.Messages[0].Metadata.EventType, "metadata comes only when asked for")

	replies, _, _, err := c.GetConversationRepliesContext(ctx, &slack.GetConversationRepliesParameters{ChannelID: incidents, Timestamp: ts})
	require.NoError(t, err)
	require.Equal(t, []string{ts, replyTS}, []string{replies[0].Timestamp, replies[1].Timestamp})

	_, _, newText, err := c.UpdateMessageContext(ctx, incidents, ts, slack.MsgOptionText("changed", false), slack.MsgOptionBlocks(slackBlocks()[:2]...))
	require.NoError(t, err)
	require.Equal(t, "changed", newText)
	m, ok := s.Message("incidents", ts)
	require.True(t, ok)
	require.Len(t, m.Blocks, 2)
	require.Empty(t, m.EditedTS, "editing through blocks leaves no edited mark")
	require.NotNil(t, m.Metadata, "metadata stays unless replaced")

	privateTS, err := c.PostEphemeralContext(ctx, incidents, alice, slack.MsgOptionText("only you", false))
	require.NoError(t, err)
	require.Equal(t, privateTS, s.Ephemerals(alice)[0].TS)
	require.Empty(t, s.Ephemerals(bob))

	_, _, err = c.DeleteMessageContext(ctx, incidents, replyTS)
	require.NoError(t, err)
	require.Empty(t, s.Thread(incidents, ts))

	channels, _, err := c.GetConversationsContext(ctx, &slack.GetConversationsParameters{Limit: 1})
	require.NoError(t, err)
	require.Equal(t, "incidents", channels[0].Name)
	info, err := c.GetConversationInfoContext(ctx, &slack.GetConversationInfoInput{ChannelID: incidents})
	require.NoError(t, err)
	require.Equal(t, "incidents", info.Name)

	dm, _, open, err := c.OpenConversationContext(ctx, &slack.OpenConversationParameters{Users: []string{alice}, ReturnIM: true})
	require.NoError(t, err)
	require.False(t, open)
	require.Equal(t, alice, dm.User)
	_, _, open, err = c.OpenConversationContext(ctx, &slack.OpenConversationParameters{Users: []string{alice}})
	require.NoError(t, err)
	require.True(t, open)
	_, _, err = c.PostMessageContext(ctx, dm.ID, slack.MsgOptionText("hi", false))
	require.NoError(t, err)

	u, err := c.GetUserInfoContext(ctx, eve)
	require.NoError(t, err)
	require.Equal(t, "T0PARTNERS", u.TeamID)
	users, err := c.GetUsersContext(ctx)
	require.NoError(t, err)
	require.Len(t, users, 5)
	require.True(t, users[0].IsBot)
}

func TestErrorNames(t *testing.T) {
	t.Parallel()
	s := startSim(t, func(o *Options) {
		o.Channels = append(o.Channels,
			Channel{ID: "C00ARCHIVED", Name: "archived", IsArchived: true}, Channel{ID: "C00MISSING0", Name: "missing", BotMissing: true})
		o.Users = append(o.Users, User{ID: "U000000GON", Name: "gone", Deleted: true})
	})
	said, err := s.Say(t.Context(), "incidents", bob, "hello", "")
	require.NoError(t, err)
	own := card(t, s)
	tests := []struct {
		method string
		args   map[string]any
		want   string
	}{
		{"chat.postMessage", map[string]any{"text": "x"}, "channel_not_found"},
		{"chat.postMessage", map[string]any{"channel": "C0NOSUCH", "text": "x"}, "channel_not_found"},
		{"chat.postMessage", map[string]any{"channel": "archived", "text": "x"}, "is_archived"},
		{"chat.postMessage", map[string]any{"channel": "C00MISSING0", "text": "x"}, "not_in_channel"},
		{"chat.postMessage", map[string]any{"channel": incidents}, "no_text"},
		{"chat.postMessage", map[string]any{"channel": incidents, "text": "", "blocks": []any{}}, "no_text"},
		{"chat.postMessage", map[string]any{"channel": incidents, "text": "x", "metadata": "no json"}, "invalid_metadata_format"},
		{"chat.postMessage", map[string]any{"channel": incidents, "text": "x", "metadata": map[string]any{}}, "invalid_metadata_format"},
		{"chat.postMessage", map[string]any{"channel": incidents, "text": "x", "metadata": map[string]any{"event_type": "t"}}, "invalid_metadata_schema"},
		{"chat.postMessage", map[string]any{"channel": incidents, "attachments": "nope"}, "invalid_attachments"},
		{"chat.postEphemeral", map[string]any{"channel": incidents, "user": "U0NOBODY", "text": "x"}, "user_not_in_channel"},
		{"chat.postEphemeral", map[string]any{"channel": "C0NOSUCH", "user": alice, "text": "x"}, "channel_not_found"},
		{"chat.update", map[string]any{"channel": incidents, "ts": "1.000000", "text": "x"}, "message_not_found"},
		{"chat.update", map[string]any{"channel": incidents, "ts": said.TS, "text": "x"}, "cant_update_message"},
		{"chat.update", map[string]any{"channel": "incidents", "ts": own, "text": "x"}, "channel_not_found"},
		{"chat.update", map[string]any{"channel": "C00ARCHIVED", "ts": own, "text": "x"}, "is_archived"},
		{"chat.update", map[string]any{"channel": incidents, "ts": own}, "no_text"},
		{"chat.update", map[string]any{"channel": incidents, "ts": own, "text": strings.Repeat("x", MaxUpdateTextBytes+1)}, "msg_too_long"},
		{"chat.update", map[string]any{"channel": incidents, "ts": own, "text": strings.Repeat("é", MaxUpdateTextBytes/2+1)}, "msg_too_long"},
		{"chat.delete", map[string]any{"channel": incidents, "ts": said.TS}, "cant_delete_message"},
		{"conversations.info", map[string]any{"channel": "C0NOSUCH"}, "channel_not_found"},
		{"conversations.history", map[string]any{"channel": "C00MISSING0"}, "not_in_channel"},
		{"conversations.history", map[string]any{"channel": incidents, "cursor": "zzz"}, "invalid_cursor"},
		{"conversations.replies", map[string]any{"channel": incidents, "ts": "1.000000"}, "thread_not_found"},
		{"conversations.open", map[string]any{}, "users_list_not_supplied"},
		{"conversations.open", map[string]any{"users": "U0NOBODY"}, "user_not_found"},
		{"conversations.open", map[string]any{"users": "U000000GON"}, "user_disabled"},
		{"users.info", map[string]any{"user": "U0NOBODY"}, "user_not_found"},
		{"views.open", map[string]any{"trigger_id": "1.2.3"}, "invalid_arguments"},
		{"chat.scheduleMessage", map[string]any{"channel": incidents}, "unknown_method"},
	}
	for _, tc := range tests {
		status, _, out := call(t, s, tc.method, tc.args)
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, tc.want, out["error"], "%s %v: %v", tc.method, tc.args, out)
		require.Equal(t, false, out["ok"])
	}
	m, _ := s.Message(incidents, own)
	require.Len(t, m.Blocks, 2, "no refused update may change the message")
}

func TestTokenAndEncoding(t *testing.T) {
	t.Parallel()
	s := startSim(t, func(o *Options) { o.Scopes = []string{"chat:write"} })
	form := url.Values{"channel": {incidents}, "text": {"x"}}
	tests := []struct {
		name, auth, contentType, body, want string
	}{
		{"no token", "", formType, form.Encode(), "not_authed"},
		{"wrong token", "Bearer xoxb-other", formType, form.Encode(), "invalid_auth"},
		{"wrong token in form", "", formType, form.Encode() + "&token=xoxb-other", "invalid_auth"},
		{"token in form", "", formType, form.Encode() + "&token=" + s.opts.BotToken, ""},
		{"bearer and form", "Bearer " + s.opts.BotToken, formType, form.Encode(), ""},
		{"bearer and json", "Bearer " + s.opts.BotToken, "application/json", `{"channel":"C0INCIDENTS","text":"x","unfurl_links":false}`, ""},
		{"broken json", "Bearer " + s.opts.BotToken, "application/json", `{"channel":`, "invalid_json"},
		{"json array", "Bearer " + s.opts.BotToken, "application/json", `[]`, "json_not_object"},
		{"broken form", "Bearer " + s.opts.BotToken, formType, "text=%zz", "invalid_form_data"},
		{"xml", "Bearer " + s.opts.BotToken, "text/xml", "<a/>", "invalid_post_type"},
		{"too large", "Bearer " + s.opts.BotToken, formType, "text=" + strings.Repeat("x", MaxBodyBytes), "request_too_large"},
	}
	for _, tc := range tests {
		r := httptest.NewRequest(http.MethodPost, "/api/chat.postMessage", strings.NewReader(tc.body))
		r.Header.Set("Content-Type", tc.contentType)
		r.Header.Set("Authorization", tc.auth)
		if tc.auth == "" {
			r.Header.Del("Authorization")
		}
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		require.Equal(t, http.StatusOK, w.Code, tc.name)
		if tc.want == "" {
			require.Contains(t, w.Body.String(), `"ok":true`, tc.name)
		} else {
			require.Contains(t, w.Body.String(), `"`+tc.want+`"`, tc.name)
		}
	}
	_, _, out := call(t, s, "users.info", map[string]any{"user": alice})
	require.Equal(t, "missing_scope", out["error"])
	require.Equal(t, "users:read", out["needed"])
}

func TestUpdateTextWithoutBlocksRemovesBlocks(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name        string
		args        map[string]any
		blocks      int
		attachments int
		text        string
		edited      bool
	}{
		{"text alone removes the blocks", map[string]any{"text": "new"}, 0, 1, "new", true},
		{"same text alone removes them too", map[string]any{"text": "old"}, 0, 1, "old", false},
		{"both omitted keeps them", map[string]any{"attachments": []any{}}, 1, 0, "old", false},
		{"blocks alone keep the text", map[string]any{"blocks": []any{section("a"), section("b")}}, 2, 1, "old", false},
		{"empty blocks remove them", map[string]any{"blocks": []any{}}, 0, 1, "old", false},
		{"text and blocks", map[string]any{"text": "new", "blocks": []any{section("a"), section("b")}}, 2, 1, "new", false},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := startSim(t, nil)
			_, _, out := call(t, s, "chat.postMessage", map[string]any{
				"channel": incidents, "text": "old", "blocks": []any{section("s")}, "attachments": []any{map[string]any{"text": "a"}},
			})
			ts := out["ts"].(string)
			tc.args["channel"], tc.args["ts"] = incidents, ts
			_, _, out = call(t, s, "chat.update", tc.args)
			require.Equal(t, true, out["ok"], out)
			m, _ := s.Message(incidents, ts)
			require.Len(t, m.Blocks, tc.blocks)
			require.Len(t, m.Attachments, tc.attachments)
			require.Equal(t, tc.text, m.Text)
			require.Equal(t, tc.edited, m.EditedTS != "")
			require.Equal(t, 1, m.Updates)
		})
	}
}

func TestUpdateTextAtItsLimit(t *testing.T) {
	t.Parallel()
	s := startSim(t, nil)
	_, _, out := call(t, s, "chat.update", map[string]any{"channel": incidents, "ts": card(t, s), "text": strings.Repeat("x", MaxUpdateTextBytes)})
	require.Equal(t, true, out["ok"], out)
}

func TestMetadataIsKeptReplacedAndRemoved(t *testing.T) {
	t.Parallel()
	s := startSim(t, nil)
	_, _, out := call(t, s, "chat.postMessage", map[string]any{
		"channel": incidents, "text": "x", "metadata": map[string]any{"event_type": "a", "event_payload": map[string]any{"k": 1}},
	})
	ts := out["ts"].(string)
	update := func(extra map[string]any) *Metadata {
		extra["channel"], extra["ts"], extra["text"] = incidents, ts, "y"
		_, _, out := call(t, s, "chat.update", extra)
		require.Equal(t, true, out["ok"], out)
		m, _ := s.Message(incidents, ts)
		return m.Metadata
	}
	require.Equal(t, "a", update(map[string]any{}).EventType)
	require.Equal(t, "b", update(map[string]any{"metadata": map[string]any{"event_type": "b", "event_payload": map[string]any{}}}).EventType)
	require.Nil(t, update(map[string]any{"metadata": map[string]any{}}))
}

func TestThreads(t *testing.T) {
	t.Parallel()
	s := startSim(t, nil)
	parent := card(t, s)
	reply := func(to string, broadcast bool) string {
		_, _, out := call(t, s, "chat.postMessage", map[string]any{"channel": incidents, "text": "r", "thread_ts": to, "reply_broadcast": broadcast})
		return out["ts"].(string)
	}
	first := reply(parent, false)
	nested := reply(first, true)
	require.Len(t, s.Thread(incidents, parent), 2, "a reply to a reply joins the thread")
	_, _, out := call(t, s, "conversations.history", map[string]any{"channel": incidents})
	require.Len(t, out["messages"], 2, "the broadcast reply is also in the channel")

	_, _, out = call(t, s, "chat.delete", map[string]any{"channel": incidents, "ts": parent})
	require.Equal(t, true, out["ok"])
	m, ok := s.Message(incidents, parent)
	require.True(t, ok)
	require.True(t, m.Tombstone)
	require.Empty(t, m.Elements(), "a deleted card has no buttons")
	_, _, out = call(t, s, "chat.update", map[string]any{"channel": incidents, "ts": parent, "text": "back"})
	require.Equal(t, "message_not_found", out["error"])

	call(t, s, "chat.delete", map[string]any{"channel": incidents, "ts": first})
	call(t, s, "chat.delete", map[string]any{"channel": incidents, "ts": nested})
	orphan := reply("1.000000", false)
	m, _ = s.Message(incidents, orphan)
	require.Empty(t, m.ThreadTS, "a reply to nothing is posted in the channel")
}

func TestHistoryRangesAndPages(t *testing.T) {
	t.Parallel()
	s := startSim(t, nil)
	var stamps []string
	for range 5 {
		stamps = append(stamps, card(t, s))
	}
	slices.Reverse(stamps)
	read := func(args map[string]any) ([]string, string) {
		args["channel"] = incidents
		_, _, out := call(t, s, "conversations.history", args)
		require.Equal(t, true, out["ok"], out)
		var got []string
		for _, m := range out["messages"].([]any) {
			got = append(got, m.(map[string]any)["ts"].(string))
		}
		return got, out["response_metadata"].(map[string]any)["next_cursor"].(string)
	}
	all, next := read(map[string]any{})
	require.Empty(t, cmp.Diff(stamps, all), "newest first")
	require.Empty(t, next)
	got, _ := read(map[string]any{"oldest": stamps[3], "latest": stamps[1]})
	require.Equal(t, stamps[2:3], got)
	got, _ = read(map[string]any{"oldest": stamps[3], "latest": stamps[1], "inclusive": true})
	require.Equal(t, stamps[1:4], got)
	var paged []string
	for cursor := ""; ; {
		part, next := read(map[string]any{"limit": 2, "cursor": cursor})
		require.LessOrEqual(t, len(part), 2)
		paged = append(paged, part...)
		if cursor = next; cursor == "" {
			break
		}
	}
	require.Equal(t, stamps, paged)
}

// Property: whatever the clock does, timestamps are unique and increase, also
// when many callers post at once.
func TestTimestampsAreUniqueAndIncreasing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		clock := newFakeClock()
		o := DefaultOptions()
		o.Clock = clock
		st := newState(o.withDefaults(), newHub())
		last := ""
		for range rapid.IntRange(1, 200).Draw(rt, "n") {
			clock.advance(time.Duration(rapid.IntRange(-2_000_000, 2_000_000).Draw(rt, "step")) * time.Microsecond)
			st.mu.Lock()
			ts := st.nextTS()
			st.mu.Unlock()
			if last != "" && compareTS(last, ts) >= 0 {
				rt.Fatalf("%s does not follow %s", ts, last)
			}
			if _, frac, ok := strings.Cut(ts, "."); !ok || len(frac) != 6 {
				rt.Fatalf("%s is not seconds.micros", ts)
			}
			last = ts
		}
	})
	s := startSim(t, func(o *Options) { o.Clock = newFakeClock() })
	const workers, each = 16, 25
	var wg sync.WaitGroup
	var mu sync.Mutex
	seen := map[string]bool{}
	for range workers {
		wg.Go(func() {
			last := ""
			for range each {
				_, _, out := call(t, s, "chat.postMessage", map[string]any{"channel": incidents, "text": "x"})
				ts, _ := out["ts"].(string)
				mu.Lock()
				if seen[ts] || compareTS(ts, last) <= 0 {
					t.Errorf("%s after %s: taken before or not increasing", ts, last)
				}
				seen[ts], last = true, ts
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	require.Len(t, seen, workers*each)
}

func TestMessageRatePerChannel(t *testing.T) {
	t.Parallel()
	clock := newFakeClock()
	s := startSim(t, func(o *Options) { o.Rates.Off, o.Clock = false, clock })
	send := func(ch string) (int, string) {
		status, h, out := call(t, s, "chat.postMessage", map[string]any{"channel": ch, "text": "x"})
		if status == http.StatusTooManyRequests {
			require.Equal(t, "ratelimited", out["error"])
		}
		return status, h.Get("Retry-After")
	}
	for range 3 {
		status, _ := send(incidents)
		require.Equal(t, http.StatusOK, status, "a short burst passes")
	}
	status, after := send(incidents)
	require.Equal(t, http.StatusTooManyRequests, status)
	require.Equal(t, "1", after)
	status, _ = send("C000CHANGES")
	require.Equal(t, http.StatusOK, status, "another channel is not held up")
	clock.advance(999 * time.Millisecond)
	status, _ = send(incidents)
	require.Equal(t, http.StatusTooManyRequests, status)
	clock.advance(time.Millisecond)
	status, _ = send(incidents)
	require.Equal(t, http.StatusOK, status, "the promised second is enough")
	require.Len(t, s.Messages(incidents), 4, "refused messages are not stored")

	_, _, err := client(t, s).PostMessageContext(t.Context(), incidents, slack.MsgOptionText("x", false))
	var limited *slack.RateLimitedError
	require.ErrorAs(t, err, &limited)
	require.Equal(t, time.Second, limited.RetryAfter)
}

func TestWorkspaceCapAndTiers(t *testing.T) {
	t.Parallel()
	clock := newFakeClock()
	l := newLimiter(RateLimits{}.withDefaults(), clock)
	for i := range 300 {
		require.Zero(t, l.message(fmt.Sprint("c", i)))
	}
	require.Equal(t, 1, l.message("another"), "the workspace cap holds over all channels")
	clock.advance(200 * time.Millisecond)
	require.Zero(t, l.message("another"), "a refused call must not use up its channel's token")

	for tr, perMinute := range map[tier]int{tier1: 1, tier2: 20, tier3: 50, tier4: 100} {
		name := fmt.Sprint("m", tr)
		for range perMinute {
			require.Zero(t, l.method(name, tr))
		}
		wait := l.method(name, tr)
		require.Equal(t, max(1, (60+perMinute-1)/perMinute), wait)
		clock.advance(time.Duration(wait) * time.Second)
		require.Zero(t, l.method(name, tr), "obeying Retry-After is enough")
	}
	require.Zero(t, l.method("auth.test", tierNone))
}

// Property: a caller that obeys Retry-After is never refused twice in a row.
func TestObeyingRetryAfterAlwaysWorks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		clock := newFakeClock()
		l := newLimiter(RateLimits{
			MessagesPerSecond: rapid.Float64Range(0.05, 5).Draw(rt, "rate"), MessageBurst: rapid.IntRange(1, 5).Draw(rt, "burst"),
			WorkspacePerMinute: rapid.IntRange(1, 300).Draw(rt, "cap"),
		}, clock)
		for range 30 {
			clock.advance(time.Duration(rapid.IntRange(0, 1500).Draw(rt, "ms")) * time.Millisecond)
			if wait := l.message("c"); wait > 0 {
				clock.advance(time.Duration(wait) * time.Second)
				if again := l.message("c"); again > 0 {
					rt.Fatalf("told to wait %d s, then %d s more", wait, again)
				}
			}
		}
	})
}

func TestScriptedFaults(t *testing.T) {
	t.Parallel()
	s := startSim(t, nil)
	c := client(t, s)
	send := func() error {
		_, _, err := c.PostMessageContext(t.Context(), incidents, slack.MsgOptionText("x", false))
		return err
	}
	require.NoError(t, s.AddFault(Fault{Method: "chat.postMessage", Count: 2, Status: 503}))
	require.NoError(t, s.AddFault(Fault{Method: "chat.postMessage", Error: "fatal_error"}))
	require.NoError(t, s.AddFault(Fault{Method: "*", RetryAfter: 30 * time.Second}))
	require.NoError(t, s.AddFault(Fault{Method: "chat.update", Error: "cant_update_message"}))
	for range 2 {
		var status slack.StatusCodeError
		require.ErrorAs(t, send(), &status)
		require.Equal(t, 503, status.Code)
	}
	require.EqualError(t, send(), "fatal_error")
	var limited *slack.RateLimitedError
	require.ErrorAs(t, send(), &limited)
	require.Equal(t, 30*time.Second, limited.RetryAfter)
	require.Empty(t, s.Messages(incidents), "refused calls leave nothing behind")
	require.NoError(t, send(), "the script is used up")
	require.Len(t, s.PendingFaults(), 1, "a fault of another method waits")
	s.ClearFaults()
	require.Empty(t, s.PendingFaults())
}

func TestDropAndHangAcceptFirst(t *testing.T) {
	t.Parallel()
	s := startSim(t, nil)
	require.NoError(t, s.AddFault(Fault{Method: "chat.postMessage", Drop: true}))
	require.NoError(t, s.AddFault(Fault{Method: "chat.postMessage", Hang: true}))
	c := client(t, s)
	_, _, err := c.PostMessageContext(t.Context(), incidents, slack.MsgOptionText("dropped", false))
	require.Error(t, err)
	require.Len(t, s.Messages(incidents), 1, "the post was accepted although the caller got no answer")

	h := &http.Client{Transport: &http.Transport{}, Timeout: 50 * time.Millisecond}
	defer h.CloseIdleConnections()
	impatient := slack.New(s.opts.BotToken, slack.OptionAPIURL(s.APIURL()), slack.OptionHTTPClient(h))
	_, _, err = impatient.PostMessageContext(t.Context(), incidents, slack.MsgOptionText("hung", false))
	var timeout interface{ Timeout() bool }
	require.True(t, errors.As(err, &timeout) && timeout.Timeout(), "%v", err)
	require.Len(t, s.Messages(incidents), 2)
}

func TestFaultsAreChecked(t *testing.T) {
	t.Parallel()
	s := startSim(t, func(o *Options) { o.AllowFaults = true })
	for _, f := range []Fault{
		{},
		{Method: "chat.update"},
		{Method: "chat.uptade", Status: 500},
		{Method: "*", Status: 404},
		{Method: "*", Status: 500, Error: "x"},
		{Method: "*", RetryAfter: time.Millisecond},
		{Method: "*", Delay: time.Hour},
		{Method: "*", Count: -1, Drop: true},
	} {
		require.Error(t, s.AddFault(f), "%+v", f)
	}
	status, _, _ := post(t, s, "/sim/faults", "application/json", `{"method":"chat.update","count":2,"status":503}`)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, []Fault{{Method: "chat.update", Count: 2, Status: 503}}, s.PendingFaults())
	for _, body := range []string{`{"method":"chat.update","stauts":503}`, `{`, `{"method":"nope","status":503}`} {
		status, _, _ = post(t, s, "/sim/faults", "application/json", body)
		require.Equal(t, http.StatusBadRequest, status)
	}
	off := startSim(t, nil)
	status, _, _ = post(t, off, "/sim/faults", "application/json", `{"method":"chat.update","status":503}`)
	require.NotEqual(t, http.StatusOK, status, "faults over HTTP must be off unless allowed")
	require.Empty(t, off.PendingFaults())
}

func TestDelayFault(t *testing.T) {
	t.Parallel()
	s := startSim(t, nil)
	require.NoError(t, s.AddFault(Fault{Method: "auth.test", Delay: 20 * time.Millisecond}))
	start := time.Now()
	_, err := client(t, s).AuthTestContext(t.Context())
	require.NoError(t, err)
	require.GreaterOrEqual(t, time.Since(start), 20*time.Millisecond)
}

func TestOptionsReportEveryProblem(t *testing.T) {
	t.Parallel()
	_, err := New(Options{
		Addr: "nowhere", TeamID: "x", AppID: "y", InteractivityURL: "ftp://x", AckTimeout: -1,
		Channels: []Channel{{ID: "bad", Name: "Bad Name"}, {ID: "C0AAAAA", Name: "a"}, {ID: "C0AAAAA", Name: "a"}},
		Users:    []User{{ID: "bad", Name: "ok"}, {ID: "U0HOLDFAST", Name: "bot"}, {ID: "U0000ALICE", Name: "", TeamID: "z"}},
		Rates:    RateLimits{Tier1: -1},
	})
	require.Error(t, err)
	for _, want := range []string{
		"Addr", "SigningSecret is empty", "BotToken is empty", "TeamID", "AppID", "InteractivityURL", "AckTimeout", "Channels[0].ID",
		"Channels[0].Name", "Channels[2]", "Users[0].ID", "Users[1].ID", "Users[2].Name", "Users[2].TeamID", "Rates",
	} {
		require.ErrorContains(t, err, want)
	}
	_, err = New(DefaultOptions())
	require.NoError(t, err)
}

func TestPortInUseIsExplained(t *testing.T) {
	t.Parallel()
	first := startSim(t, nil)
	o := DefaultOptions()
	o.Addr = first.Addr()
	second, err := New(o)
	require.NoError(t, err)
	require.ErrorContains(t, second.Start(t.Context()), first.Addr())
	require.ErrorIs(t, first.Start(t.Context()), ErrRunning)
	require.NoError(t, second.Stop(t.Context()), "stopping what never ran is fine")
}
