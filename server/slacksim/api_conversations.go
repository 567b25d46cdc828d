package slacksim

import (
	"slices"
	"strings"
)

// wireChannel renders a conversation.
func (s *Sim) wireChannel(c *channel) map[string]any {
	out := map[string]any{
		"id": c.ID, "created": 1700000000, "is_im": c.isIM, "is_archived": c.IsArchived,
		"context_team_id": s.opts.TeamID,
	}
	if c.isIM {
		out["user"], out["is_open"] = c.imUser, true
		return out
	}
	out["name"], out["name_normalized"] = c.Name, c.Name
	out["is_channel"], out["is_group"], out["is_mpim"] = true, false, false
	out["is_private"], out["is_general"] = c.IsPrivate, false
	out["is_member"], out["creator"] = !c.BotMissing, s.opts.BotUserID
	out["topic"] = map[string]any{"value": c.Topic, "creator": "", "last_set": 0}
	out["purpose"] = map[string]any{"value": "", "creator": "", "last_set": 0}
	return out
}

func (s *Sim) conversationsList(p params) reply {
	types := strings.Split(p["types"], ",")
	if p["types"] == "" {
		types = []string{"public_channel"}
	}
	st := s.state
	st.mu.Lock()
	defer st.mu.Unlock()
	var list []map[string]any
	for _, c := range st.channels {
		kind := "public_channel"
		switch {
		case c.isIM:
			kind = "im"
		case c.IsPrivate:
			kind = "private_channel"
		}
		if slices.Contains(types, kind) && !(c.IsArchived && p.bool("exclude_archived")) {
			list = append(list, s.wireChannel(c))
		}
	}
	list, next, ok := page(list, p, 100, 999)
	if !ok {
		return failReply("invalid_cursor")
	}
	return okReply(map[string]any{"channels": orEmpty(list), "response_metadata": map[string]any{"next_cursor": next}})
}

func (s *Sim) conversationsInfo(p params) reply {
	st := s.state
	st.mu.Lock()
	defer st.mu.Unlock()
	c := st.find(p["channel"], false)
	if c == nil {
		return failReply("channel_not_found")
	}
	return okReply(map[string]any{"channel": s.wireChannel(c)})
}

func (s *Sim) conversationsHistory(p params) reply {
	return s.history(p, func(c *channel) ([]*Message, string) {
		var list []*Message
		for _, m := range slices.Backward(c.messages) {
			if m.EphemeralTo == "" && (m.ThreadTS == "" || m.ThreadTS == m.TS || m.Broadcast) {
				list = append(list, m)
			}
		}
		return list, ""
	})
}

func (s *Sim) conversationsReplies(p params) reply {
	return s.history(p, func(c *channel) ([]*Message, string) {
		parent := c.parent(p["ts"])
		if parent == nil {
			return nil, "thread_not_found"
		}
		list := []*Message{parent}
		for _, m := range c.messages {
			if m.EphemeralTo == "" && m.ThreadTS == parent.TS && m != parent {
				list = append(list, m)
			}
		}
		return list, ""
	})
}

// history answers the two reading methods: selection, time range, one page.
func (s *Sim) history(p params, pick func(*channel) ([]*Message, string)) reply {
	st := s.state
	st.mu.Lock()
	defer st.mu.Unlock()
	c := st.find(p["channel"], false)
	switch {
	case c == nil:
		return failReply("channel_not_found")
	case c.BotMissing:
		return failReply("not_in_channel")
	}
	list, problem := pick(c)
	if problem != "" {
		return failReply(problem)
	}
	list = slices.DeleteFunc(list, func(m *Message) bool { return !inRange(m.TS, p) })
	list, next, ok := page(list, p, 100, 999)
	if !ok {
		return failReply("invalid_cursor")
	}
	out := make([]wireMessage, len(list))
	for i, m := range list {
		out[i] = s.wire(*m, p.bool("include_all_metadata"))
	}
	return okReply(map[string]any{
		"messages": out, "has_more": next != "", "pin_count": 0,
		"response_metadata": map[string]any{"next_cursor": next},
	})
}

// inRange applies oldest, latest and inclusive.
func inRange(ts string, p params) bool {
	inclusive := p.bool("inclusive")
	if o := p["oldest"]; o != "" && o != "0" {
		if d := compareTS(ts, o); d < 0 || (d == 0 && !inclusive) {
			return false
		}
	}
	if l := p["latest"]; l != "" && l != "now" {
		if d := compareTS(ts, l); d > 0 || (d == 0 && !inclusive) {
			return false
		}
	}
	return true
}

// compareTS orders two "seconds.micros" strings without going through floats,
// which would lose the last digits.
func compareTS(a, b string) int {
	as, af, _ := strings.Cut(a, ".")
	bs, bf, _ := strings.Cut(b, ".")
	if len(as) != len(bs) {
		return len(as) - len(bs)
	}
	if d := strings.Compare(as, bs); d != 0 {
		return d
	}
	return strings.Compare((af + "000000")[:max(6, len(af))], (bf + "000000")[:max(6, len(bf))])
}

func (s *Sim) conversationsOpen(p params) reply {
	st := s.state
	st.mu.Lock()
	defer st.mu.Unlock()
	var c *channel
	opened := false
	switch users := strings.Split(p["users"], ","); {
	case p["channel"] != "":
		if c = st.find(p["channel"], false); c == nil || !c.isIM {
			return failReply("channel_not_found")
		}
	case p["users"] == "":
		return failReply("users_list_not_supplied")
	case len(users) > 1:
		// Group conversations are outside what the app needs.
		return failReply("not_enough_users")
	default:
		u, ok := st.userLocked(users[0])
		if !ok {
			return failReply("user_not_found")
		}
		if u.Deleted {
			return failReply("user_disabled")
		}
		c, opened = st.openIM(u.ID)
	}
	out := map[string]any{"id": c.ID}
	if p.bool("return_im") {
		out = s.wireChannel(c)
	}
	fields := map[string]any{"channel": out}
	if !opened {
		fields["no_op"], fields["already_open"] = true, true
	}
	return okReply(fields)
}

// orEmpty keeps an empty list from becoming null in JSON.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
