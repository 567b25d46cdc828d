package slacksim

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// state is the workspace: everything that survives a request. Each method
// locks for itself; messages leave as copies.
type state struct {
	clock Clock
	hub   *hub

	mu        sync.Mutex
	lastMicro int64
	serial    int
	users     []User
	channels  []*channel
	triggers  map[string]*trigger
	responses map[string]*responseURL
	views     map[string]*view
	stacks    map[string][]string // user → ids of open views, the top last
}

// channel is a conversation with its messages in order of TS.
type channel struct {
	Channel
	isIM     bool
	imUser   string
	messages []*Message
	// chosen remembers what a person picked in a message's menus, because
	// Slack sends it along with every later click as state.values.
	chosen map[choiceKey]any
}

func newState(o Options, h *hub) *state {
	st := &state{
		clock: o.Clock, hub: h, users: slices.Clone(o.Users),
		triggers: map[string]*trigger{}, responses: map[string]*responseURL{},
		views: map[string]*view{}, stacks: map[string][]string{},
	}
	for i := range st.users {
		if st.users[i].TeamID == "" {
			st.users[i].TeamID = o.TeamID
		}
		if st.users[i].RealName == "" {
			st.users[i].RealName = st.users[i].Name
		}
	}
	for _, c := range o.Channels {
		st.channels = append(st.channels, &channel{Channel: c})
	}
	return st
}

// maxMessages bounds a channel; the oldest message goes first.
const maxMessages = 10000

// nextTS returns a timestamp never given before and greater than all others.
// The caller holds the lock.
func (st *state) nextTS() string {
	st.lastMicro = max(st.clock.Now().UnixMicro(), st.lastMicro+1)
	return fmt.Sprintf("%d.%06d", st.lastMicro/1e6, st.lastMicro%1e6)
}

// nextID returns a short id unique in the workspace. The caller holds the lock.
func (st *state) nextID(prefix string) string {
	st.serial++
	return fmt.Sprintf("%s%06X", prefix, st.serial)
}

// newBlockID fills in a missing block_id or action_id.
func (st *state) newBlockID() string {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.nextID("auto")
}

func (st *state) user(id string) (User, bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.userLocked(id)
}

func (st *state) userLocked(id string) (User, bool) {
	i := slices.IndexFunc(st.users, func(u User) bool { return u.ID == id })
	if i < 0 {
		return User{}, false
	}
	return st.users[i], true
}

func (st *state) listUsers() []User {
	st.mu.Lock()
	defer st.mu.Unlock()
	return slices.Clone(st.users)
}

// find returns a channel by id; by "#name" as well where names are allowed.
// The caller holds the lock.
func (st *state) find(id string, names bool) *channel {
	for _, c := range st.channels {
		if c.ID == id || (names && !c.isIM && c.Name == strings.TrimPrefix(id, "#")) {
			return c
		}
	}
	return nil
}

// openIM returns the direct conversation with a user, opening it if needed.
// The caller holds the lock.
func (st *state) openIM(userID string) (c *channel, opened bool) {
	for _, c := range st.channels {
		if c.isIM && c.imUser == userID {
			return c, false
		}
	}
	c = &channel{Channel: Channel{ID: st.nextID("D0"), IsPrivate: true}, isIM: true, imUser: userID}
	st.channels = append(st.channels, c)
	return c, true
}

// target resolves the channel argument of a posting method, which may also be
// a channel name or a user id. It returns Slack's error name when it cannot.
// The caller holds the lock.
func (st *state) target(id string) (*channel, string) {
	if id == "" {
		return nil, "channel_not_found"
	}
	if _, ok := st.userLocked(id); ok {
		c, _ := st.openIM(id)
		return c, ""
	}
	c := st.find(id, true)
	switch {
	case c == nil:
		return nil, "channel_not_found"
	case c.IsArchived:
		return nil, "is_archived"
	case c.BotMissing:
		return nil, "not_in_channel"
	}
	return c, ""
}

// message returns a message by ts. Ephemeral messages are found only when
// asked for: the API does not know them.
func (c *channel) message(ts string, ephemeral bool) *Message {
	i := slices.IndexFunc(c.messages, func(m *Message) bool {
		return m.TS == ts && (ephemeral || m.EphemeralTo == "")
	})
	if i < 0 {
		return nil
	}
	return c.messages[i]
}

// parent returns the thread's parent for a thread_ts that may name a reply.
func (c *channel) parent(threadTS string) *Message {
	m := c.message(threadTS, false)
	if m != nil && m.ThreadTS != "" && m.ThreadTS != m.TS {
		return c.message(m.ThreadTS, false)
	}
	return m
}

// add stores a message and gives it its ts. The caller holds the lock.
func (st *state) add(c *channel, m Message) Message {
	m.Channel, m.TS = c.ID, st.nextTS()
	if m.ThreadTS != "" && m.EphemeralTo == "" {
		// A reply to a parent that is gone is posted in the channel.
		if p := c.parent(m.ThreadTS); p != nil {
			p.ThreadTS = p.TS
			p.ReplyCount++
			m.ThreadTS = p.TS
		} else {
			m.ThreadTS, m.Broadcast = "", false
		}
	}
	if len(c.messages) >= maxMessages {
		c.messages = slices.Delete(c.messages, 0, 1)
	}
	c.messages = append(c.messages, &m)
	st.hub.changed()
	return m
}

// remove deletes a message; a parent with replies leaves a tombstone. The
// caller holds the lock.
func (st *state) remove(c *channel, m *Message) {
	defer st.hub.changed()
	if m.ReplyCount > 0 {
		m.Tombstone, m.Text = true, "This message was deleted."
		m.Blocks, m.RawBlocks, m.Attachments, m.Metadata = nil, nil, nil, nil
		return
	}
	if p := c.message(m.ThreadTS, false); p != nil && p != m {
		p.ReplyCount--
	}
	c.messages = slices.DeleteFunc(c.messages, func(x *Message) bool { return x == m })
}

// messages returns copies of a channel's messages that match, oldest first.
func (st *state) messages(channelID string, match func(Message) bool) []Message {
	st.mu.Lock()
	defer st.mu.Unlock()
	var out []Message
	for _, c := range st.channels {
		if channelID != "" && c.ID != channelID && c.Name != strings.TrimPrefix(channelID, "#") {
			continue
		}
		for _, m := range c.messages {
			if match(*m) {
				out = append(out, *m)
			}
		}
	}
	return out
}

// choiceKey identifies one person's choice in one menu.
type choiceKey struct{ user, ts, block, action string }

// choose remembers a choice. The caller holds the lock.
func (c *channel) choose(key choiceKey, value any) {
	if c.chosen == nil {
		c.chosen = map[choiceKey]any{}
	}
	c.chosen[key] = value
}

// rawOrNil keeps "no blocks" out of JSON.
func rawOrNil(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || string(raw) == "[]" {
		return nil
	}
	return raw
}
