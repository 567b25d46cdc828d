package chat

import (
	"context"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/actions"
	"holdfast/runbooks"
	"holdfast/server/alert"
	"holdfast/server/change"
	"holdfast/server/incident"
)

func (f *fixture) setStatus(s incident.Status) {
	f.m.edit(func(st *memoryState) {
		in := st.incidents["inc1"]
		in.Status = s
		st.incidents = map[string]incident.Incident{"inc1": in}
	})
}

func TestButtonsFollowTheState(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.m.edit(func(st *memoryState) {
		st.occurrences[0].Annotations = map[string]string{"suggested_actions": "trip_breaker,set_rate_limit:target=global;requests_per_second=500,close_breaker"}
	})
	c := f.card()
	require.Equal(t, "Acknowledge | Trip breaker: llm | Set rate limit: global, 500 requests/s | More…", labels(c.Buttons))
	require.Equal(t, "https://holdfast.example/incidents/inc1", c.URL)
	require.Equal(t, []string{"ModelSlow dependency=llm"}, c.Alerts)
	for _, b := range c.Buttons {
		require.Len(t, b.ID, 26)
		require.Equal(t, f.runs.Now().Add(day), b.ExpiresAt)
	}
	require.Equal(t, c.Buttons, f.card().Buttons, "stable across redraws")

	f.setStatus(incident.StatusAcknowledged)
	c = f.card()
	require.Equal(t, "Trip breaker: llm | Set rate limit: global, 500 requests/s | More…", labels(c.Buttons))

	require.True(t, f.press("U1", c.Buttons[0].ID).Accepted)
	c = f.card()
	require.Equal(t, "Set rate limit: global, 500 requests/s | Close breaker: llm | More…", labels(c.Buttons), "the pressed button is gone before the work begins")
	require.Len(t, c.Pending, 1)
	f.settle()
	c = f.card()
	require.Empty(t, c.Pending)
	require.Equal(t, "Set rate limit: global, 500 requests/s | More…", labels(c.Buttons), "trip and close exclude each other")
	require.Equal(t, "Revert | Renew for 15m0s", labels(c.RunButtons))
	require.Len(t, c.Runs, 1)

	f.setStatus(incident.StatusResolved)
	c = f.card()
	require.Empty(t, c.Buttons)
	require.Empty(t, c.RunButtons)
	for _, b := range f.m.read().buttons {
		require.False(t, b.UsedAt.IsZero() && b.RetiredAt.IsZero(), "all retired")
	}
}

func TestRunbooksOnTheCard(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	require.Empty(t, f.card().Runbooks)
	f.m.edit(func(st *memoryState) {
		st.occurrences = []alert.Occurrence{
			{Status: alert.StatusFiring, Annotations: map[string]string{"runbook": "slow-model"}},
			{Status: alert.StatusFiring, Annotations: map[string]string{"runbook": "slow-model,a&b"}},
			{Status: alert.StatusFiring, Annotations: map[string]string{"runbook": "one-too-many"}},
			{Status: alert.StatusResolved, Annotations: map[string]string{"runbook": "over"}},
		}
	})
	require.Equal(t, []RunbookLink{
		{Title: "The slow-model", URL: "https://holdfast.example/incidents/inc1?runbook=slow-model"},
		{Title: "The a&b", URL: "https://holdfast.example/incidents/inc1?runbook=a%26b"},
	}, f.card().Runbooks, "each once, two at most, none of what is over")

	run := runbooks.Run{ID: "b1", IncidentID: "inc1", Runbook: runbooks.Runbook{ID: "slow-model"}, Status: runbooks.StatusWaiting}
	other := run
	other.IncidentID = "inc2"
	f.m.edit(func(st *memoryState) { st.runbookRuns = []runbooks.Run{run, other} })
	c := f.card()
	require.Equal(t, []RunbookRun{{Run: run, URL: "https://holdfast.example/runbooks/runs/b1"}}, c.RunbookRuns)
	require.Equal(t, "The a&b", c.Runbooks[0].Title, "what runs is not proposed again")

	run.Status = runbooks.StatusSucceeded
	f.m.edit(func(st *memoryState) { st.runbookRuns = []runbooks.Run{run} })
	require.Empty(t, f.card().RunbookRuns)
	f.setStatus(incident.StatusResolved)
	require.Empty(t, f.card().Runbooks, "nothing is proposed once it is over")
}

func TestButtonKeepsItsFiguresWhileTheProposalMoves(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	propose := func(rate string) Button {
		f.m.edit(func(st *memoryState) {
			st.occurrences = []alert.Occurrence{{Annotations: map[string]string{"suggested_actions": "set_rate_limit:target=global;requests_per_second=" + rate}}}
		})
		return f.button(ButtonAction)
	}
	first := propose("500")
	f.runs.Advance(time.Minute)
	require.Equal(t, first, propose("480"), "it does not change under the finger")
	f.runs.Advance(10 * time.Minute)
	later := propose("300")
	require.NotEqual(t, first.ID, later.ID)
	require.Contains(t, later.Label, "300")
	require.Contains(t, f.press("U1", first.ID).Text, "out of date")
}

func TestEndedRunStaysOnTheCardForAnHour(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.press("U1", f.button(ButtonAction).ID)
	f.settle()
	revert := f.button(ButtonRevert)
	require.True(t, f.press("U2", revert.ID).Accepted)
	require.Empty(t, f.card().RunButtons, "asked for")
	f.settle()
	c := f.card()
	require.Equal(t, actions.StatusEnded, c.Runs[0].Status)
	require.Equal(t, "Bob", c.Runs[0].EndedBy)
	require.Contains(t, labels(c.Buttons), "Trip breaker: llm", "it can be asked for again")
	f.runs.Advance(time.Hour)
	require.Empty(t, f.card().Runs)
}

func TestChangeCard(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	f := newFixture(t, nil)
	c, err := f.s.ChangeCard(ctx, "ch1")
	require.NoError(t, err)
	require.Equal(t, "Confirm | Reject", labels(c.Buttons))
	require.Equal(t, "h1", c.Buttons[0].Hash)
	require.Equal(t, c.Change.ConfirmBy, c.Buttons[0].ExpiresAt)
	require.Len(t, c.Blockers, 1)
	require.Equal(t, "https://holdfast.example/changes/ch1", c.URL)

	require.Contains(t, f.press("U1", c.Buttons[0].ID).Text, "needs the role approver and you have responder")
	require.True(t, f.press("U5", c.Buttons[0].ID).Accepted)
	f.process()
	require.Equal(t, []string{"confirm ch1 h1 by Ada on slack"}, f.calls.calls)

	f.m.edit(func(st *memoryState) {
		ch := st.changes["ch1"]
		ch.Status = change.StatusClaimed
		st.changes = map[string]change.Change{"ch1": ch, "ch0": st.changes["ch0"]}
	})
	require.Contains(t, f.press("U5", c.Buttons[1].ID).Text, "this change is claimed already")
	c, err = f.s.ChangeCard(ctx, "ch1")
	require.NoError(t, err)
	require.Empty(t, c.Buttons)
	_, err = f.s.ChangeCard(ctx, "absent")
	require.ErrorIs(t, err, ErrNotFound)
	_, err = f.s.IncidentCard(ctx, "absent")
	require.ErrorIs(t, err, ErrNotFound)
}

// TestCardHoldsItsBounds draws incidents with any labels, states and runs.
func TestCardHoldsItsBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		f := newFixture(t, nil)
		f.m.edit(func(st *memoryState) {
			st.occurrences = nil
			for range rapid.IntRange(0, 8).Draw(rt, "alerts") {
				l := rapid.MapOf(rapid.String(), rapid.String()).Draw(rt, "labels")
				l["dependency"] = rapid.SampledFrom([]string{"llm", "milvus", "nope"}).Draw(rt, "dependency")
				st.occurrences = append(st.occurrences, alert.Occurrence{Labels: l, Annotations: map[string]string{"suggested_actions": rapid.SampledFrom([]string{"", "trip_breaker", "close_breaker,trip_breaker"}).Draw(rt, "suggested")}})
			}
		})
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			c := f.card()
			require.LessOrEqual(t, len(c.Buttons), 4)
			require.LessOrEqual(t, len(c.RunButtons), 5)
			require.LessOrEqual(t, len(c.Alerts), 5)
			ids := map[string]bool{}
			for _, b := range append(c.Buttons, c.RunButtons...) {
				require.False(t, ids[b.ID])
				ids[b.ID] = true
				require.LessOrEqual(t, utf8.RuneCountInString(b.Label), 75)
				require.True(t, b.UsedAt.IsZero() && b.RetiredAt.IsZero())
			}
			live := 0
			for _, b := range f.m.read().buttons {
				if b.UsedAt.IsZero() && b.RetiredAt.IsZero() && b.ExpiresAt.After(f.runs.Now()) {
					live++
				}
			}
			require.Equal(t, len(ids), live, "no live button that is not on the card")
			switch all := append(c.Buttons, c.RunButtons...); {
			case len(all) > 0 && rapid.Bool().Draw(rt, "press"):
				f.press("U1", rapid.SampledFrom(all).Draw(rt, "button").ID)
			case rapid.Bool().Draw(rt, "settle"):
				f.settle()
			case rapid.Bool().Draw(rt, "wait"):
				f.runs.Advance(time.Duration(rapid.IntRange(1, 100).Draw(rt, "minutes")) * time.Minute)
			default:
				f.setStatus(rapid.SampledFrom([]incident.Status{incident.StatusOpen, incident.StatusAcknowledged, incident.StatusResolved}).Draw(rt, "status"))
			}
		}
	})
}

func TestClipCutsByRune(t *testing.T) {
	t.Parallel()
	require.Equal(t, "ab", clip("ab", 2))
	require.Equal(t, "é…", clip("ééé", 2))
	require.Len(t, []rune(clip(strings.Repeat("界", 100), maxLabel)), maxLabel)
}
