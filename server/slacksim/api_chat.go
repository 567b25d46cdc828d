package slacksim

import (
	"encoding/json"
	"fmt"
)

// content is what a posting call wants to show. A nil part was not sent.
type content struct {
	text        *string
	blocks      *blockList
	attachments *[]Attachment
	metadata    *Metadata
	dropMeta    bool // an empty metadata object was sent
}

type blockList struct {
	raw    json.RawMessage
	parsed []Block
}

// readContent checks the content arguments; a non-nil reply is the refusal.
func (s *Sim) readContent(p params) (content, *reply) {
	var c content
	if p.has("text") {
		text := p["text"]
		c.text = &text
	}
	count := 0
	if raw := p["blocks"]; raw != "" {
		filled, blocks, v, err := parseBlocks([]byte(raw), "/blocks", surfaceMessage, s.state.newBlockID)
		if bad := blocksProblem(v, err); bad != nil {
			return c, bad
		}
		c.blocks, count = &blockList{rawOrNil(filled), blocks}, v.textRunes
	}
	if raw := p["attachments"]; raw != "" {
		list, n, bad := s.readAttachments(raw)
		if bad != nil {
			return c, bad
		}
		c.attachments, count = &list, count+n
	}
	if count > MaxBlocksText {
		bad := failReply("msg_blocks_too_long")
		return c, &bad
	}
	if raw := p["metadata"]; raw != "" {
		if bad := c.readMetadata(raw); bad != nil {
			return c, bad
		}
	}
	return c, nil
}

func blocksProblem(v *validator, err error) *reply {
	var bad reply
	switch {
	case err != nil:
		bad = failReply(err.Error())
	case len(v.problems) > 0:
		bad = problemReply("invalid_blocks", v.problems)
	default:
		return nil
	}
	return &bad
}

func (s *Sim) readAttachments(raw string) ([]Attachment, int, *reply) {
	var list []Attachment
	if err := json.Unmarshal([]byte(raw), &list); err != nil {
		bad := failReply("invalid_attachments")
		return nil, 0, &bad
	}
	if len(list) > MaxAttachments {
		bad := failReply("too_many_attachments")
		return nil, 0, &bad
	}
	count := 0
	for i := range list {
		a := &list[i]
		a.ID = i + 1
		count += runes(a.Text)
		if rawOrNil(a.RawBlocks) == nil || string(a.RawBlocks) == "null" {
			a.RawBlocks = nil
			continue
		}
		filled, blocks, v, err := parseBlocks(a.RawBlocks, fmt.Sprintf("/attachments/%d/blocks", i), surfaceMessage, s.state.newBlockID)
		if bad := blocksProblem(v, err); bad != nil {
			return nil, 0, bad
		}
		a.RawBlocks, a.Blocks = filled, blocks
		count += v.textRunes
	}
	return list, count, nil
}

func (c *content) readMetadata(raw string) *reply {
	var bad reply
	if len(raw) > MaxMetadataBytes {
		bad = failReply("metadata_too_large")
		return &bad
	}
	var m Metadata
	if err := json.Unmarshal([]byte(raw), &m); err != nil {
		bad = failReply("invalid_metadata_format")
		return &bad
	}
	if m.EventType == "" {
		c.dropMeta = true
		return nil
	}
	var payload map[string]any
	if err := json.Unmarshal(m.EventPayload, &payload); err != nil || payload == nil {
		bad = failReply("invalid_metadata_schema")
		return &bad
	}
	c.metadata = &m
	return nil
}

// empty says whether nothing would be shown.
func (c content) empty() bool {
	return (c.text == nil || *c.text == "") &&
		(c.blocks == nil || c.blocks.raw == nil) &&
		(c.attachments == nil || len(*c.attachments) == 0)
}

// newMessage builds a message of the app's bot.
func (s *Sim) newMessage(c content) Message {
	m := Message{UserID: s.opts.BotUserID, BotID: s.opts.BotID, Metadata: c.metadata}
	if c.text != nil {
		m.Text = *c.text
	}
	if c.blocks != nil {
		m.Blocks, m.RawBlocks = c.blocks.parsed, c.blocks.raw
	}
	if c.attachments != nil {
		m.Attachments = *c.attachments
	}
	return m
}

func (s *Sim) chatPostMessage(p params) reply {
	st := s.state
	st.mu.Lock()
	c, problem := st.target(p["channel"])
	st.mu.Unlock()
	if problem != "" {
		return failReply(problem)
	}
	if wait := s.limiter.message(c.ID); wait > 0 {
		return reply{retryAfter: wait}
	}
	body, bad := s.readContent(p)
	if bad != nil {
		return *bad
	}
	if problem := body.postProblem(); problem != "" {
		return failReply(problem)
	}
	m := s.newMessage(body)
	m.ThreadTS, m.Broadcast = p["thread_ts"], p.bool("reply_broadcast")
	st.mu.Lock()
	m = st.add(c, m)
	st.mu.Unlock()
	return okReply(map[string]any{"channel": c.ID, "ts": m.TS, "message": s.wire(m, true)})
}

// postProblem returns the error name of content that cannot be posted.
func (c content) postProblem() string {
	switch {
	case c.empty():
		return "no_text"
	case c.text != nil && runes(*c.text) > MaxPostText:
		return "msg_too_long"
	case c.dropMeta:
		return "invalid_metadata_format"
	}
	return ""
}

func (s *Sim) chatPostEphemeral(p params) reply {
	st := s.state
	st.mu.Lock()
	c, problem := st.target(p["channel"])
	_, known := st.userLocked(p["user"])
	st.mu.Unlock()
	switch {
	case problem != "":
		return failReply(problem)
	case !known:
		return failReply("user_not_in_channel")
	}
	body, bad := s.readContent(p)
	if bad != nil {
		return *bad
	}
	if problem := body.postProblem(); problem != "" {
		return failReply(problem)
	}
	m := s.newMessage(body)
	m.EphemeralTo, m.ThreadTS = p["user"], p["thread_ts"]
	st.mu.Lock()
	m = st.add(c, m)
	st.mu.Unlock()
	return okReply(map[string]any{"message_ts": m.TS})
}

func (s *Sim) chatUpdate(p params) reply {
	body, bad := s.readContent(p)
	if bad != nil {
		return *bad
	}
	if body.text != nil && len(*body.text) > MaxUpdateTextBytes {
		return failReply("msg_too_long")
	}
	st := s.state
	st.mu.Lock()
	defer st.mu.Unlock()
	c, m, problem := st.own(p, s.opts.BotID, "cant_update_message")
	if problem != "" {
		return failReply(problem)
	}
	if body.text == nil && body.blocks == nil && body.attachments == nil {
		return failReply("no_text")
	}
	next := *m
	next.apply(body)
	if body.text != nil && body.blocks == nil && *body.text != m.Text {
		next.EditedTS = st.nextTS()
	}
	if next.Text == "" && next.RawBlocks == nil && len(next.Attachments) == 0 {
		return failReply("no_text")
	}
	*m = next
	st.hub.changed()
	return okReply(map[string]any{"channel": c.ID, "ts": m.TS, "text": m.Text, "message": s.wire(*m, true)})
}

// apply changes a message as chat.update does. Text without blocks removes
// the old blocks; leaving both out keeps them. Attachments and metadata stay
// unless sent; an empty metadata object removes it.
func (m *Message) apply(c content) {
	m.Updates++
	if c.text != nil {
		m.Text = *c.text
	}
	switch {
	case c.blocks != nil:
		m.Blocks, m.RawBlocks = c.blocks.parsed, c.blocks.raw
	case c.text != nil:
		m.Blocks, m.RawBlocks = nil, nil
	}
	if c.attachments != nil {
		m.Attachments = *c.attachments
	}
	switch {
	case c.metadata != nil:
		m.Metadata = c.metadata
	case c.dropMeta:
		m.Metadata = nil
	}
}

func (s *Sim) chatDelete(p params) reply {
	st := s.state
	st.mu.Lock()
	defer st.mu.Unlock()
	c, m, problem := st.own(p, s.opts.BotID, "cant_delete_message")
	if problem != "" {
		return failReply(problem)
	}
	ts := m.TS
	st.remove(c, m)
	return okReply(map[string]any{"channel": c.ID, "ts": ts})
}

// own finds the app's own message to change. These methods take ids only. The
// caller holds the lock.
func (st *state) own(p params, botID, notOwn string) (*channel, *Message, string) {
	c := st.find(p["channel"], false)
	if c == nil {
		return nil, nil, "channel_not_found"
	}
	if c.IsArchived {
		return nil, nil, "is_archived"
	}
	m := c.message(p["ts"], false)
	if m == nil || m.Tombstone {
		return nil, nil, "message_not_found"
	}
	if m.BotID != botID {
		return nil, nil, notOwn
	}
	return c, m, ""
}

// wire renders a message for the API.
func (s *Sim) wire(m Message, withMetadata bool) wireMessage {
	return m.wire(s.opts.TeamID, s.opts.AppID, withMetadata)
}
