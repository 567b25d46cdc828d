package servertest

import (
	"context"
	"strings"

	"github.com/stretchr/testify/require"

	"holdfast/server/slacksim"
)

// WaitCard waits until a top-level message of the channel matches.
func (s *System) WaitCard(what string, match func(slacksim.Message) bool) slacksim.Message {
	s.t.Helper()
	return s.waitMessage(what, func(m slacksim.Message) bool {
		return m.Channel == Channel && (m.ThreadTS == "" || m.ThreadTS == m.TS) && m.EphemeralTo == "" && match(m)
	})
}

// WaitCardSays waits until a card shows all of the words.
func (s *System) WaitCardSays(words ...string) slacksim.Message {
	s.t.Helper()
	return s.WaitCard("a card that says "+strings.Join(words, ", "), func(m slacksim.Message) bool { return says(m, words...) })
}

// WaitButton waits until a card has a button with this label.
func (s *System) WaitButton(label string) (slacksim.Message, slacksim.Element) {
	s.t.Helper()
	m := s.WaitCard("a card with the button "+label, func(m slacksim.Message) bool { _, ok := m.Button(label); return ok })
	b, _ := m.Button(label)
	return m, b
}

// WaitWhisper waits until a user was told privately something with all of the words.
func (s *System) WaitWhisper(user string, words ...string) slacksim.Message {
	s.t.Helper()
	return s.waitMessage("a private answer to "+user+" that says "+strings.Join(words, ", "), func(m slacksim.Message) bool {
		return m.EphemeralTo == user && says(m, words...)
	})
}

func says(m slacksim.Message, words ...string) bool {
	text := m.Visible()
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

func (s *System) waitMessage(what string, match func(slacksim.Message) bool) slacksim.Message {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	m, err := s.Sim.WaitMessage(ctx, match)
	if err != nil {
		var have []string
		for _, m := range s.Sim.Messages("") {
			have = append(have, m.Visible())
		}
		s.t.Fatalf("servertest: waited for %s: %v\nmessages:\n%s\n%s", what, err, strings.Join(have, "\n---\n"), s.lastLogs())
	}
	return m
}

// Click presses a button as a user and requires that it was answered 200.
func (s *System) Click(m slacksim.Message, b slacksim.Element, user string) slacksim.ClickResult {
	s.t.Helper()
	res, err := s.Sim.Click(s.t.Context(), slacksim.ClickRequest{Channel: m.Channel, TS: m.TS, ActionID: b.ActionID, UserID: user})
	require.NoError(s.t, err)
	require.True(s.t, res.Acked(), "the click was answered %d: %s", res.Status, res.Response)
	return res
}

// Press waits for a button with this label, presses it as a user and gives the card as it was.
func (s *System) Press(label, user string) slacksim.Message {
	s.t.Helper()
	m, b := s.WaitButton(label)
	s.Click(m, b, user)
	return m
}
