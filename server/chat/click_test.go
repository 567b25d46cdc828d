package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/actions"
	"holdfast/server/change"
	"holdfast/server/identity"
	"holdfast/server/incident"
	"holdfast/server/outbox"
)

func TestC31_OneClickRunsOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	trip := f.button(ButtonAction)
	var wg sync.WaitGroup
	answers := make([]Answer, 2)
	for i := range answers { // twice within 50 ms
		wg.Go(func() { answers[i] = f.press("U1", trip.ID) })
	}
	wg.Wait()
	require.NotEqual(t, answers[0].Accepted, answers[1].Accepted)
	require.NotContains(t, labels(f.card().Buttons), "Trip breaker", "removed before the work begins")
	f.runs.Advance(2 * time.Second)
	third := f.press("U1", trip.ID)
	require.True(t, third.Duplicate)
	require.Equal(t, "Already running: asked by Alice at 12:00:00 UTC.", third.Text)
	f.settle()
	f.runs.Advance(time.Second)
	fourth := f.press("U2", trip.ID)
	require.True(t, fourth.Duplicate)
	require.Equal(t, "Already done: asked by Alice at 12:00:00 UTC.", fourth.Text)
	f.settle()
	require.Len(t, f.allRuns(), 1)
	require.Equal(t, actions.StatusActive, f.allRuns()[0].Status)
	require.Equal(t, trip.ID, f.allRuns()[0].Key)
	require.Equal(t, "button on incident #3: Model slow", f.allRuns()[0].Reason)
	require.Equal(t, actions.Actor{PersonID: "p-U1", Name: "Alice", Channel: "slack"}, f.allRuns()[0].Requester)
}

func TestR20_TwentyConcurrentClicksByFivePeopleRunOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.m.edit(func(st *memoryState) {
		for _, u := range []string{"U3", "U4"} {
			p := st.people["p-"+u]
			p.Role, p.Disabled = identity.RoleResponder, false
			st.people[p.ID] = p
			f.runs.SetRole(p.ID, "responder")
		}
	})
	trip := f.button(ButtonAction)
	answers := make([]Answer, 20)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() { answers[i] = f.press(fmt.Sprintf("U%d", i%5+1), trip.ID) })
	}
	wg.Go(f.process)
	wg.Wait()
	f.settle()
	accepted, told := 0, 0
	for _, a := range answers {
		switch {
		case a.Accepted:
			accepted++
		case a.Duplicate && strings.HasPrefix(a.Text, "Already "):
			told++
		}
	}
	require.Equal(t, 1, accepted)
	require.Equal(t, 19, told)
	require.Len(t, f.allRuns(), 1)
	require.Len(t, f.m.read().clicks, 1)
}

func TestR23_ButtonOfAResolvedIncidentOrAnExpiredOneIsRefused(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*fixture)
		text   string
	}{
		{"resolved", func(f *fixture) { f.setStatus(incident.StatusResolved) }, "this incident is resolved"},
		{"expired after 24 h", func(f *fixture) { f.runs.Advance(day) }, "this button has expired"},
		{"redrawn away", func(f *fixture) { f.setStatus(incident.StatusResolved); f.card(); f.setStatus(incident.StatusOpen) }, "out of date"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, nil)
			trip := f.button(ButtonAction)
			tt.change(f)
			before := len(f.m.read().outbox)
			a := f.press("U1", trip.ID)
			require.False(t, a.Accepted)
			require.Contains(t, a.Text, tt.text)
			require.Len(t, f.denials(), 1)
			sent := f.m.read().outbox[before:]
			require.Len(t, sent, 1)
			require.Equal(t, outbox.Card("incident:inc1"), sent[0], "the card is drawn again without it")
			f.process()
			require.Empty(t, f.allRuns())
		})
	}
}

func TestWhoMayPress(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	trip := f.button(ButtonAction)

	a := f.press("U9", trip.ID)
	require.False(t, a.Accepted)
	_, code, found := strings.Cut(a.Text, "https://holdfast.example/link/slack?code=")
	require.True(t, found, a.Text)
	links := f.m.read().links
	require.Len(t, links, 1)
	require.Equal(t, identity.HashCode(code), links[0].Hash)
	require.Equal(t, identity.LinkSlack, links[0].Purpose)
	require.Equal(t, "U9", links[0].SlackUser)
	require.Equal(t, f.runs.Now().Add(15*time.Minute), links[0].ExpiresAt)
	for _, e := range f.m.read().audit {
		require.NotContains(t, fmt.Sprint(e), code, "the code is nowhere but in the private answer")
	}

	require.Contains(t, f.press("U4", trip.ID).Text, "disabled")
	require.Contains(t, f.press("U3", trip.ID).Text, `"Trip breaker: llm" needs the role responder and you have viewer`)
	require.Contains(t, f.press("U1", "nobody-knows-this").Text, "not known")
	require.Contains(t, f.press("U1", strings.Repeat("x", 1000)).Text, "not known")
	require.Len(t, f.denials(), 4)
	require.Empty(t, f.m.read().clicks)
	require.True(t, f.press("U1", trip.ID).Accepted, "refused presses use nothing up")
}

func TestRoleIsCheckedAgainAtExecution(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*fixture){
		"role taken away": func(f *fixture) { f.runs.SetRole("p-U1", "viewer") },
		"disabled": func(f *fixture) {
			f.m.edit(func(st *memoryState) { p := st.people["p-U1"]; p.Disabled = true; st.people["p-U1"] = p })
		},
		"deleted": func(f *fixture) { f.m.edit(func(st *memoryState) { delete(st.people, "p-U1") }) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, nil)
			f.press("U1", f.button(ButtonAction).ID)
			change(f)
			f.process()
			require.Empty(t, f.allRuns())
			for _, c := range f.m.read().clicks {
				require.Equal(t, ClickRefused, c.Status)
			}
			require.Len(t, f.sent(outbox.KindEphemeral), 1)
			require.Contains(t, f.sent(outbox.KindEphemeral)[0], `"Trip breaker: llm" was refused: not allowed`)
			require.Contains(t, strings.Join(f.sent(outbox.KindThread), "\n"), "asked by Alice was refused")
			require.NotEmpty(t, f.denials())
		})
	}
}

func TestEachButtonDoesItsWork(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.press("U1", f.button(ButtonAck).ID)
	f.process()
	require.Equal(t, []string{"acknowledge inc1 by Alice on slack"}, f.calls.calls)

	more := f.press("U1", f.button(ButtonMore).ID)
	require.True(t, more.OpenForm)
	require.Equal(t, "incident:inc1", more.Subject)
	require.True(t, f.press("U1", f.button(ButtonMore).ID).OpenForm, "More… is not used up")

	f.press("U1", f.button(ButtonAction).ID)
	f.settle()
	f.runs.Advance(5 * time.Minute)
	expires := f.allRuns()[0].ExpiresAt
	f.press("U2", f.button(ButtonRenew).ID)
	f.process()
	require.Equal(t, expires.Add(5*time.Minute), f.allRuns()[0].ExpiresAt)
	f.press("U2", f.button(ButtonRevert).ID)
	f.process()
	require.Equal(t, actions.EndReverted, f.allRuns()[0].EndReason)
	require.Equal(t, "Bob", f.allRuns()[0].EndedBy)

	c, err := f.s.ChangeCard(context.Background(), "ch1")
	require.NoError(t, err)
	f.calls.err = fmt.Errorf("change ch1: %w", change.ErrSelfConfirm)
	f.press("U5", c.Buttons[1].ID)
	f.process()
	require.Contains(t, f.sent(outbox.KindEphemeral)[0], "the requester cannot confirm their own change")
}

func TestFormIsCommittedOncePerForm(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	form := FormSubmission{
		FormID: "form-0123456789", Subject: "incident:inc1", Action: "set_rate_limit",
		Params: json.RawMessage(`{"target":"global","requests_per_second":500}`), Reason: "queue grows", Team: team, User: "U1",
	}
	submit := func(change func(*FormSubmission)) Answer {
		sub := form
		if change != nil {
			change(&sub)
		}
		a, err := f.s.SubmitForm(context.Background(), sub)
		require.NoError(t, err)
		return a
	}
	for want, change := range map[string]func(*FormSubmission){
		"no action":                         func(s *FormSubmission) { s.Action = "reboot" },
		"say why":                           func(s *FormSubmission) { s.Reason = "  " },
		"needs requests_per_second":         func(s *FormSubmission) { s.Params = json.RawMessage(`{"target":"global"}`) },
		"could not be read":                 func(s *FormSubmission) { s.Params = json.RawMessage(`[`) },
		"not known":                         func(s *FormSubmission) { s.FormID = "x" },
		"needs the role responder and you ": func(s *FormSubmission) { s.User = "U3" },
		"link/slack?code=":                  func(s *FormSubmission) { s.User = "U9" },
	} {
		a := submit(change)
		require.False(t, a.Accepted, want)
		require.Contains(t, a.Text, want)
	}
	require.Empty(t, f.m.read().clicks)
	require.True(t, submit(nil).Accepted)
	second := submit(nil)
	require.True(t, second.Duplicate)
	require.Contains(t, second.Text, "asked by Alice")
	f.settle()
	require.Len(t, f.allRuns(), 1)
	require.Equal(t, "queue grows", f.allRuns()[0].Reason)

	refused := submit(func(s *FormSubmission) { s.FormID, s.User = "form-another-one", "U2" })
	require.True(t, refused.Accepted)
	f.settle()
	require.Len(t, f.allRuns(), 1)
	require.Contains(t, f.sent(outbox.KindEphemeral)[0], "leased by Alice")
}

func TestFaultIsRetriedAndGivenUpInTheEnd(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.calls.err = errors.New("database is away")
	f.press("U1", f.button(ButtonAck).ID)
	_, err := f.s.Process(context.Background())
	require.ErrorIs(t, err, f.calls.err)
	f.process() // not due before its pause is over
	require.Len(t, f.calls.calls, 1)
	f.runs.Advance(2 * time.Second)
	_, err = f.s.Process(context.Background())
	require.Error(t, err)
	require.Len(t, f.calls.calls, 2)
	require.Empty(t, f.sent(outbox.KindEphemeral))
	f.runs.Advance(10 * time.Minute)
	_, err = f.s.Process(context.Background())
	require.Error(t, err)
	require.Contains(t, f.sent(outbox.KindEphemeral)[0], "could not be done within 10m0s")
	f.runs.Advance(time.Hour)
	f.process()
	require.Len(t, f.calls.calls, 3)
}

var errKilled = errors.New("killed")

// TestKilledAnywhereAClickTakesEffectOnce kills the process at random calls
// between the press and its effect. What was answered as accepted is done once.
func TestKilledAnywhereAClickTakesEffectOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		f := newFixture(t, nil)
		arm := func() {
			left := rapid.IntRange(0, 30).Draw(rt, "calls before the kill")
			die := func(string) error {
				if left--; left < 0 {
					return errKilled
				}
				return nil
			}
			f.m.fault = die
			f.runs.SetFault(die)
		}
		disarm := func() { f.m.fault = nil; f.runs.SetFault(nil); f.restart() }
		trip := f.button(ButtonAction)
		accepted := false
		for !accepted {
			if rapid.Bool().Draw(rt, "kill") {
				arm()
			}
			a, err := f.s.Accept(context.Background(), Press{ButtonID: trip.ID, Team: team, User: "U1", Channel: "C1"})
			disarm()
			accepted = err == nil && (a.Accepted || a.Duplicate)
		}
		for range rapid.IntRange(0, 6).Draw(rt, "kills") {
			arm()
			_, _ = f.s.Process(context.Background())
			_, _ = f.m.engine.Tick(context.Background())
			disarm()
			f.runs.Advance(time.Duration(rapid.IntRange(0, 12).Draw(rt, "seconds")) * time.Second)
		}
		f.runs.Advance(time.Minute) // past every lease and pause
		f.settle()
		runs := f.allRuns()
		require.Len(t, runs, 1)
		require.Equal(t, actions.StatusActive, runs[0].Status)
		require.Equal(t, 1, f.runs.Inserted(runs[0].ID))
		clicks := f.m.read().clicks
		require.Len(t, clicks, 1)
		for _, c := range clicks {
			require.Equal(t, ClickDone, c.Status)
		}
	})
}

func TestRevertCutOffAfterItsEffectIsDoneAndNotRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.press("U1", f.button(ButtonAction).ID)
	f.settle()
	f.press("U1", f.button(ButtonRevert).ID)
	commits := 0
	f.m.fault = func(op string) error {
		if op == "commit" {
			if commits++; commits == 2 { // the claim is committed, the mark is not
				return errKilled
			}
		}
		return nil
	}
	_, err := f.s.Process(context.Background())
	require.ErrorIs(t, err, errKilled)
	require.Equal(t, actions.EndReverted, f.allRuns()[0].EndReason)
	f.m.fault = nil
	f.restart()
	f.runs.Advance(time.Minute)
	f.process()
	require.Empty(t, f.sent(outbox.KindEphemeral), "nobody is told that it was refused")
	for _, c := range f.m.read().clicks {
		require.Equal(t, ClickDone, c.Status, c.Detail)
	}
}

func TestStartedServiceWorksClicksOffAtOnceAndStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, time.Now)
		f.s.Start(t.Context())
		f.s.Start(t.Context())
		defer f.s.Stop()
		synctest.Wait()
		ack := f.button(ButtonAck)
		f.press("U1", ack.ID)
		synctest.Wait()
		require.Len(t, f.calls.calls, 1, "woken by the commit, without waiting for the poll")
		f.s.Stop()
	})
}
