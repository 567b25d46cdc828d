package slacksim

import (
	"context"
	"fmt"
)

// Messages returns what everyone in a channel sees, thread replies included,
// oldest first. The channel is an id or a name; empty means all.
func (s *Sim) Messages(channel string) []Message {
	return s.state.messages(channel, func(m Message) bool { return m.EphemeralTo == "" })
}

// Message returns one message by channel id or name and ts.
func (s *Sim) Message(channel, ts string) (Message, bool) {
	list := s.state.messages(channel, func(m Message) bool { return m.TS == ts })
	if len(list) == 0 {
		return Message{}, false
	}
	return list[0], true
}

// Thread returns the replies to a message, oldest first, without the parent.
func (s *Sim) Thread(channel, ts string) []Message {
	return s.state.messages(channel, func(m Message) bool {
		return m.EphemeralTo == "" && m.ThreadTS == ts && m.TS != ts
	})
}

// Ephemerals returns the messages only one person sees, oldest first.
func (s *Sim) Ephemerals(userID string) []Message {
	return s.state.messages("", func(m Message) bool { return m.EphemeralTo == userID })
}

// WaitMessage returns the first message, ephemeral ones included, that
// matches, waiting for it until the context ends. It sees updates: a message
// that comes to match later is found.
func (s *Sim) WaitMessage(ctx context.Context, match func(Message) bool) (Message, error) {
	for {
		_, changed := s.hub.wait()
		if found := s.state.messages("", match); len(found) > 0 {
			return found[0], nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Message{}, fmt.Errorf("slacksim: no message matched among %d: %w",
				len(s.state.messages("", func(Message) bool { return true })), ctx.Err())
		}
	}
}

// SetArchived archives or restores a channel given by id or name.
func (s *Sim) SetArchived(channel string, archived bool) error {
	st := s.state
	st.mu.Lock()
	defer st.mu.Unlock()
	c := st.find(channel, true)
	if c == nil {
		return fmt.Errorf("slacksim: no channel %q", channel)
	}
	c.IsArchived = archived
	st.hub.changed()
	return nil
}
