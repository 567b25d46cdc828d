package slackapp

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/server/outbox"
	"holdfast/server/slacksim"
)

func TestLinesWaitForTheirCard(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{idle: true})
	w.queue.add(line("opened"))
	w.round()
	require.Empty(t, w.sim.Messages(incidents))
	card := w.posted()
	w.clock.advance(time.Second)
	w.round()
	thread := w.sim.Thread(incidents, card.TS)
	require.Len(t, thread, 1)
	require.Equal(t, "opened", thread[0].Text)
}

func TestR10_RetryAfterPausesTheChannelAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{idle: true})
	card := w.posted()
	require.NoError(t, w.sim.AddFault(slacksim.Fault{Method: "chat.postMessage", RetryAfter: 30 * time.Second}))
	w.queue.add(line("one"))
	w.round()
	w.clock.advance(29 * time.Second)
	w.queue.add(outbox.Card(card1))
	w.queue.add(outbox.Message{Topic: outbox.TopicChat, Key: "user:x", Kind: outbox.KindEphemeral, Subject: card1, Payload: []byte(`{"text":"hi","user":"` + alice + `"}`)})
	w.round()
	require.Empty(t, w.sim.Thread(incidents, card.TS), "the channel is silent")
	updated, _ := w.sim.Message(incidents, card.TS)
	require.Equal(t, 1, updated.Updates, "edits go on")
	require.Len(t, w.sim.Ephemerals(alice), 1, "private answers go on")
	require.Zero(t, w.app.pace.take(changes, false), "another channel goes on")
	w.clock.advance(2 * time.Second)
	w.round()
	require.Len(t, w.sim.Thread(incidents, card.TS), 1)
}

func TestA429OfEditsDoesNotHoldPosts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{idle: true})
	card := w.posted()
	require.NoError(t, w.sim.AddFault(slacksim.Fault{Method: "chat.update", RetryAfter: 30 * time.Second}))
	w.queue.add(outbox.Card(card1))
	w.queue.add(line("one"))
	w.round()
	require.Len(t, w.sim.Thread(incidents, card.TS), 1)
	w.clock.advance(31 * time.Second)
	w.round()
	updated, _ := w.sim.Message(incidents, card.TS)
	require.Equal(t, 1, updated.Updates)
}

func TestR11_APostWhoseAnswerWasLostIsFoundNotRepeated(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{idle: true})
	require.NoError(t, w.sim.AddFault(slacksim.Fault{Method: "chat.postMessage", Drop: true}))
	w.queue.add(outbox.Card(card1))
	w.round()
	require.Len(t, w.sim.Messages(incidents), 1, "Slack took it")
	require.Empty(t, w.domain.refs[card1].TS)
	w.clock.advance(time.Minute)
	w.round()
	list := w.sim.Messages(incidents)
	require.Len(t, list, 1)
	require.Equal(t, list[0].TS, w.domain.refs[card1].TS)

	require.NoError(t, w.sim.AddFault(slacksim.Fault{Method: "chat.postMessage", Drop: true}))
	w.queue.add(line("only once"))
	w.round()
	w.clock.advance(time.Minute)
	w.round()
	require.Len(t, w.sim.Thread(incidents, list[0].TS), 1)
	require.Empty(t, w.queue.waiting())
}

func TestAProcessThatDiedWhilePostingPostsNothingTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{idle: true})
	card := w.posted()
	w.queue.add(line("only once"))
	batch := w.app.claim(t.Context(), 1)
	require.NoError(t, w.app.send(t.Context(), batch[0])) // sent, then killed before it was settled
	w.clock.advance(deliverLease + time.Second)
	w.round()
	require.Len(t, w.sim.Thread(incidents, card.TS), 1)
	require.Empty(t, w.queue.waiting())
}

func TestPacedLinesAreNotLookedUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{idle: true, rates: true})
	card := w.posted()
	// A look-up would fail and be seen as a failure.
	require.NoError(t, w.sim.AddFault(slacksim.Fault{Method: "conversations.replies", Count: 100, Error: "fatal_error"}))
	for range 10 {
		w.queue.add(line("line"))
	}
	for range 40 {
		w.round()
		w.clock.advance(500 * time.Millisecond)
	}
	require.Len(t, w.sim.Thread(incidents, card.TS), 10)
	require.Zero(t, w.counter("holdfast_slack_deliveries_total", "ratelimited"), "Slack never had to refuse")
	require.Zero(t, w.counter("holdfast_slack_deliveries_total", "failed"))
}

func TestCardsAreNotHeldByLines(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{idle: true, rates: true})
	card := w.posted()
	for range 20 {
		w.queue.add(line("line"))
	}
	for range 3 {
		w.round()
	}
	w.queue.add(outbox.Card(card1))
	w.round()
	updated, _ := w.sim.Message(incidents, card.TS)
	require.Equal(t, 1, updated.Updates, "an edit is not bound by the rate of posts")
	two := openCard()
	two.Incident.ID = "2"
	w.domain.cards["2"] = two
	w.queue.add(outbox.Card("incident:2"))
	for range 3 {
		w.round()
		w.clock.advance(time.Second)
	}
	require.NotEmpty(t, w.domain.refs["incident:2"].TS, "a new card goes before the lines that wait")
}

func TestPaceKeepsTheRate(t *testing.T) {
	t.Parallel()
	clock := &fakeClock{now: noon}
	p := newPace(clock.Now)
	sent := 0
	for range 100 {
		if p.take("C", false) == 0 {
			sent++
		}
		clock.advance(100 * time.Millisecond)
	}
	require.LessOrEqual(t, sent, paceBurst+10)
	require.GreaterOrEqual(t, sent, paceBurst+9)
}

func TestC39_FailedUpdates(t *testing.T) {
	t.Parallel()
	t.Run("lost card is posted anew", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, setup{idle: true})
		old := w.posted()
		require.NoError(t, w.sim.AddFault(slacksim.Fault{Method: "chat.update", Error: "message_not_found"}))
		w.queue.add(outbox.Card(card1))
		w.round()
		list := w.sim.Messages(incidents)
		require.Len(t, list, 2)
		require.NotEqual(t, old.TS, w.domain.refs[card1].TS)
	})
	t.Run("card that cannot be edited is continued", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, setup{idle: true})
		w.posted()
		require.NoError(t, w.sim.AddFault(slacksim.Fault{Method: "chat.update", Error: "cant_update_message"}))
		w.queue.add(outbox.Card(card1))
		w.round()
		list := w.sim.Messages(incidents)
		require.Len(t, list, 2)
		require.Contains(t, list[1].Visible(), "an earlier message")
	})
	t.Run("archived channel without another alarms and is set aside", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, setup{idle: true})
		require.NoError(t, w.sim.SetArchived(incidents, true))
		w.queue.add(outbox.Card(card1))
		w.round()
		require.Len(t, w.queue.set(), 1)
		require.InDelta(t, 1, w.counter("holdfast_slack_operator_alarms_total", "is_archived"), 0)
		require.Contains(t, w.logs.String(), "level=ERROR")
		require.Contains(t, w.logs.String(), "unarchive")
	})
	t.Run("archived channel falls back to another", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, setup{idle: true, app: func(o *Options) { o.FallbackChannel = changes }})
		w.posted()
		require.NoError(t, w.sim.SetArchived(incidents, true))
		w.queue.add(outbox.Card(card1))
		two := openCard()
		two.Incident.ID = "2"
		w.domain.cards["2"] = two
		w.queue.add(outbox.Card("incident:2"))
		w.round()
		require.Len(t, w.sim.Messages(changes), 2)
		require.InDelta(t, 2, w.counter("holdfast_slack_operator_alarms_total", "is_archived"), 0)
	})
}

func TestABadTokenAlarmsAndIsTriedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{idle: true})
	require.NoError(t, w.sim.AddFault(slacksim.Fault{Method: "chat.postMessage", Error: "invalid_auth"}))
	w.queue.add(outbox.Card(card1))
	w.round()
	require.Len(t, w.queue.waiting(), 1)
	require.InDelta(t, 1, w.counter("holdfast_slack_operator_alarms_total", "invalid_auth"), 0)
	w.clock.advance(time.Minute)
	w.round()
	require.Len(t, w.sim.Messages(incidents), 1)
}

func TestRefusedBlocksFallBackToText(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{idle: true})
	require.NoError(t, w.sim.AddFault(slacksim.Fault{Method: "chat.postMessage", Error: "invalid_blocks"}))
	w.queue.add(outbox.Card(card1))
	w.round()
	list := w.sim.Messages(incidents)
	require.Len(t, list, 1)
	require.Empty(t, list[0].Blocks)
	require.Contains(t, list[0].Text, "LLM backend down")
	require.Contains(t, list[0].Text, "https://holdfast.example/incidents/1")
}

func TestOutagesBackOffAndSayNoSecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{idle: true})
	for _, f := range []slacksim.Fault{{Status: 503}, {Drop: true}, {Error: "internal_error"}} {
		f.Method = "chat.postMessage"
		require.NoError(t, w.sim.AddFault(f))
	}
	w.queue.add(outbox.Card(card1))
	for range 6 {
		w.round()
		w.clock.advance(time.Minute)
	}
	require.Len(t, w.sim.Messages(incidents), 1)
	require.Empty(t, w.queue.waiting())
	require.NotContains(t, w.logs.String(), w.sim.Options().BotToken)
	require.NotContains(t, w.logs.String(), "5xx above", "what is sent is not logged")
	require.Contains(t, w.logs.String(), "HTTP status 503")
}

func TestStaleLinesAndUnknownSubjectsAreSetAside(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{idle: true})
	w.queue.add(line("its card never came"))
	w.queue.add(outbox.Card("incident:gone"))
	w.queue.add(outbox.Card("odd"))
	w.queue.add(outbox.Message{Topic: outbox.TopicChat, Key: "x", Kind: "odd"})
	w.queue.add(outbox.Message{Topic: outbox.TopicChat, Key: "y", Kind: outbox.KindThread, Subject: card1, Payload: []byte(`{}`)})
	w.round()
	require.Len(t, w.queue.set(), 4)
	for range 3 {
		w.clock.advance(13 * time.Hour)
		w.round()
	}
	require.Empty(t, w.queue.waiting())
	require.Len(t, w.queue.set(), 5)
}

func TestTheLoopDeliversWhenWoken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.queue.add(outbox.Card(card1))
	_, err := w.sim.WaitMessage(t.Context(), func(m slacksim.Message) bool { return strings.Contains(m.Text, "LLM backend down") })
	require.NoError(t, err)
}

func TestLinesAreLiteral(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{idle: true})
	card := w.posted()
	w.queue.add(line("a&b <!channel> *x* \"q\""))
	w.round()
	thread := w.sim.Thread(incidents, card.TS)
	require.Len(t, thread, 1)
	require.Equal(t, `a&amp;b &lt;!channel&gt; *x* "q"`, thread[0].Text)
	require.Empty(t, thread[0].Notifies())
}
