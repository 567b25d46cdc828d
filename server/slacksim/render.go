package slacksim

import (
	"fmt"
	"hash/fnv"
	"html/template"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// pageData is what the page template shows.
type pageData struct {
	Team, App  string
	Me         User
	People     []personItem
	Channels   []channelItem
	Channel    channelItem
	Messages   []messageItem
	Hint       template.HTML
	Modal      *modalItem
	Deliveries []deliveryItem
	CanPost    bool
}

type personItem struct {
	ID, Label string
	Selected  bool
}

type channelItem struct {
	ID, Name, Topic string
	Sign            string // "#" or "@"
	Count           int
	Active          bool
	Archived        bool
}

type messageItem struct {
	Key                  string
	Author, Initials     string
	Avatar               int
	IsApp, IsMe          bool
	Time, Stamp          string
	Ephemeral, Tombstone bool
	Edited, Broadcast    bool
	Text                 template.HTML
	Blocks               []blockItem
	Attachments          []attachmentItem
	Replies              []messageItem
	ReplyLabel           string
}

type attachmentItem struct {
	Color  string
	Text   template.HTML
	Blocks []blockItem
}

type blockItem struct {
	Kind      string
	Text      template.HTML
	Fields    []template.HTML
	Elements  []elementItem
	Accessory *elementItem
	Image     *imageItem
	// Input blocks only.
	Label, Hint string
	Optional    bool
	Error       string
	InputID     string
}

type imageItem struct{ Alt, URL, Title string }

type elementItem struct {
	ID                         string // unique on the page
	Kind                       string
	Channel, TS, View          string
	Block, Action, As, Field   string
	Text                       template.HTML
	Label, Style, URL          string
	Value, Placeholder         string
	Options                    []optionItem
	Groups                     []groupItem
	Confirm                    *confirmItem
	Multiline, Multi, Required bool
	MaxLength                  int
	InputType                  string
	Image                      *imageItem
}

type optionItem struct {
	Text, Value, Description string
	Selected                 bool
}

type groupItem struct {
	Label   string
	Options []optionItem
}

type confirmItem struct{ Title, Text, Confirm, Deny, Style string }

type modalItem struct {
	ID, Hash, Title, Submit, Close string
	As, Channel                    string
	Blocks                         []blockItem
}

type deliveryItem struct {
	What, Who, Outcome, Time string
	Bad                      bool
}

// renderer builds the page for one person looking at one channel.
type renderer struct {
	sim   *Sim
	users map[string]User
	me    User
	names func(string) string
}

func (s *Sim) newRenderer(me User) *renderer {
	r := &renderer{sim: s, users: map[string]User{}, me: me}
	bot := s.botUser()
	r.users[bot.ID] = bot
	for _, u := range s.state.listUsers() {
		r.users[u.ID] = u
	}
	r.names = func(id string) string {
		if u, ok := r.users[id]; ok {
			return u.Name
		}
		s.state.mu.Lock()
		defer s.state.mu.Unlock()
		if c := s.state.find(id, false); c != nil {
			return channelName(c)
		}
		return id
	}
	return r
}

// build collects the page.
func (r *renderer) build(channelID string) pageData {
	s := r.sim
	d := pageData{Team: s.opts.TeamName, App: s.opts.BotName, Me: r.me, Hint: mrkdwnHTML(s.opts.EmptyHint, r.names)}
	for _, u := range s.state.listUsers() {
		if !u.Deleted {
			d.People = append(d.People, personItem{u.ID, personLabel(u, s.opts.TeamID), u.ID == r.me.ID})
		}
	}
	d.Channels = r.channels(channelID)
	for _, c := range d.Channels {
		if c.Active {
			d.Channel = c
		}
	}
	d.CanPost = !d.Channel.Archived
	d.Messages = r.messages(d.Channel.ID)
	d.Modal = r.modal(d.Channel.ID)
	d.Deliveries = r.deliveries()
	return d
}

func personLabel(u User, team string) string {
	switch {
	case u.TeamID != team:
		return u.Name + " (other workspace)"
	case u.IsGuest:
		return u.Name + " (guest)"
	}
	return u.Name
}

func (r *renderer) channels(active string) []channelItem {
	st := r.sim.state
	st.mu.Lock()
	defer st.mu.Unlock()
	var out []channelItem
	for _, c := range st.channels {
		if c.isIM && c.imUser != r.me.ID {
			continue
		}
		item := channelItem{ID: c.ID, Name: c.Name, Topic: c.Topic, Sign: "#", Archived: c.IsArchived}
		if c.isIM {
			item.Name, item.Sign, item.Topic = r.sim.opts.BotName, "@", "Direct messages from the app"
		}
		for _, m := range c.messages {
			if m.EphemeralTo == "" {
				item.Count++
			}
		}
		item.Active = c.ID == active
		out = append(out, item)
	}
	if len(out) > 0 && !slices.ContainsFunc(out, func(c channelItem) bool { return c.Active }) {
		out[0].Active = true
	}
	return out
}

// shownMessages is how many of the latest messages the page shows.
const shownMessages = 200

func (r *renderer) messages(channelID string) []messageItem {
	all := r.sim.state.messages(channelID, func(m Message) bool {
		return m.EphemeralTo == "" || m.EphemeralTo == r.me.ID
	})
	replies := map[string][]Message{}
	var top []Message
	parents := map[string]bool{}
	for _, m := range all {
		parents[m.TS] = true
	}
	for _, m := range all {
		if m.ThreadTS != "" && m.ThreadTS != m.TS && parents[m.ThreadTS] {
			replies[m.ThreadTS] = append(replies[m.ThreadTS], m)
			continue
		}
		top = append(top, m)
	}
	top = top[max(0, len(top)-shownMessages):]
	out := make([]messageItem, 0, len(top))
	for _, m := range top {
		item := r.message(m)
		for _, reply := range replies[m.TS] {
			item.Replies = append(item.Replies, r.message(reply))
		}
		if n := len(item.Replies); n == 1 {
			item.ReplyLabel = "1 reply"
		} else if n > 1 {
			item.ReplyLabel = strconv.Itoa(n) + " replies"
		}
		out = append(out, item)
	}
	return out
}

func (r *renderer) message(m Message) messageItem {
	author := r.users[m.UserID]
	at := tsTime(m.TS)
	item := messageItem{
		Key: "m" + strings.ReplaceAll(m.TS, ".", "-"), Author: or(author.RealName, m.UserID), IsApp: m.BotID != "",
		IsMe: m.UserID == r.me.ID, Avatar: avatar(m.UserID), Time: at.Format("15:04:05"), Stamp: at.Format(time.RFC3339),
		Ephemeral: m.EphemeralTo != "", Tombstone: m.Tombstone, Edited: m.EditedTS != "", Broadcast: m.Broadcast,
	}
	item.Initials = initials(item.Author)
	if len(m.Blocks) == 0 {
		item.Text = mrkdwnHTML(m.Text, r.names)
	}
	where := place{channel: m.Channel, ts: m.TS, as: r.me.ID, key: item.Key}
	item.Blocks = r.blocks(m.Blocks, where)
	for _, a := range m.Attachments {
		item.Attachments = append(item.Attachments, attachmentItem{
			Color: attachmentColor(a.Color), Text: r.attachmentText(a), Blocks: r.blocks(a.Blocks, where),
		})
	}
	return item
}

func (r *renderer) attachmentText(a Attachment) template.HTML {
	if len(a.Blocks) > 0 {
		return ""
	}
	return mrkdwnHTML(or(a.Text, a.Fallback), r.names)
}

var hexColor = regexp.MustCompile(`^#?([0-9a-fA-F]{6})$`)

// attachmentColor returns a colour that is safe in an SVG attribute.
func attachmentColor(s string) string {
	switch s {
	case "good":
		return "#2eb67d"
	case "warning":
		return "#ecb22e"
	case "danger":
		return "#e01e5a"
	}
	if match := hexColor.FindStringSubmatch(s); match != nil {
		return "#" + match[1]
	}
	return "#9aa0a6"
}

// place is where an element sits and who would use it.
type place struct {
	channel, ts, view, as, key string
	errors                     map[string]string
	state                      map[string]map[string]any
}

func (r *renderer) blocks(blocks []Block, at place) []blockItem {
	out := make([]blockItem, 0, len(blocks))
	for i, b := range blocks {
		out = append(out, r.block(b, at, at.key+"-"+strconv.Itoa(i)))
	}
	return out
}

func (r *renderer) block(b Block, at place, key string) blockItem {
	item := blockItem{Kind: b.Type}
	if b.Text != nil {
		item.Text = r.text(*b.Text)
	}
	for _, f := range b.Fields {
		item.Fields = append(item.Fields, r.text(f))
	}
	for i, e := range b.Elements {
		item.Elements = append(item.Elements, r.element(b, e, at, key+"-"+strconv.Itoa(i)))
	}
	if b.Accessory != nil {
		e := r.element(b, *b.Accessory, at, key+"-a")
		item.Accessory = &e
	}
	if b.Type == "image" {
		item.Image = &imageItem{Alt: b.AltText, URL: b.ImageURL}
		if b.Title != nil {
			item.Image.Title = visible(*b.Title)
		}
	}
	if b.Type == "input" && b.Element != nil {
		e := r.element(b, *b.Element, at, key+"-i")
		e.Required = !b.Optional
		item.Elements = []elementItem{e}
		item.InputID, item.Optional, item.Error = e.ID, b.Optional, at.errors[b.BlockID]
		if b.Label != nil {
			item.Label = visible(*b.Label)
		}
		if b.Hint != nil {
			item.Hint = visible(*b.Hint)
		}
	}
	return item
}

// text renders a text object.
func (r *renderer) text(t Text) template.HTML {
	if t.Type == "plain_text" {
		return plainHTML(unescape(t.Text))
	}
	return mrkdwnHTML(t.Text, r.names)
}

// plainHTML escapes words, keeps line breaks and shows known emoji.
func plainHTML(s string) template.HTML {
	m := &markup{asHTML: true}
	start := 0
	for i := 0; i < len(s); i++ {
		if s[i] == '\n' {
			m.word(s[start:i])
			m.tag("<br>")
			start = i + 1
		} else if glyph, n := emojiAt(s[i:]); n > 0 {
			m.word(s[start:i] + glyph)
			start = i + n
			i += n - 1
		}
	}
	m.word(s[start:])
	return template.HTML(m.out.String()) //nolint:gosec // built from escaped pieces only
}

func (r *renderer) element(b Block, e Element, at place, id string) elementItem {
	item := elementItem{
		ID: id, Kind: e.Type, Channel: at.channel, TS: at.ts, View: at.view, As: at.as,
		Block: b.BlockID, Action: e.ActionID, Field: b.BlockID + "/" + e.ActionID,
		Style: e.Style, URL: e.URL, Value: e.InitialValue, Multiline: e.Multiline, MaxLength: e.MaxLength, InputType: "text",
		Label: e.AccessibilityLabel,
	}
	if e.Text != nil {
		item.Text = r.text(*e.Text)
	}
	if e.Placeholder != nil {
		item.Placeholder = visible(*e.Placeholder)
	}
	if e.Type == "image" {
		item.Image = &imageItem{Alt: e.AltText, URL: e.ImageURL}
	}
	if c := e.Confirm; c != nil {
		item.Confirm = &confirmItem{visible(c.Title), visible(c.Text), visible(c.Confirm), visible(c.Deny), c.Style}
	}
	r.fillChoices(&item, e, at.state[b.BlockID][e.ActionID])
	return item
}

// fillChoices adds options and the present value of menus and inputs.
func (r *renderer) fillChoices(item *elementItem, e Element, state any) {
	selected := selectedValues(e, state)
	toItems := func(options []Option) []optionItem {
		var out []optionItem
		for _, o := range options {
			oi := optionItem{Text: visible(o.Text), Value: o.Value, Selected: slices.Contains(selected, o.Value)}
			if o.Description != nil {
				oi.Description = visible(*o.Description)
			}
			out = append(out, oi)
		}
		return out
	}
	item.Options = toItems(e.Options)
	for _, g := range e.OptionGroups {
		item.Groups = append(item.Groups, groupItem{visible(g.Label), toItems(g.Options)})
	}
	switch e.Type {
	case "users_select":
		for _, u := range r.sim.state.listUsers() {
			item.Options = append(item.Options, optionItem{Text: u.RealName, Value: u.ID, Selected: slices.Contains(selected, u.ID)})
		}
	case "multi_static_select":
		item.Multi = true
	case "datepicker":
		item.InputType = "date"
	case "timepicker":
		item.InputType = "time"
	case "number_input":
		item.InputType = "number"
	case "email_text_input":
		item.InputType = "email"
	case "url_text_input":
		item.InputType = "url"
	}
	if len(selected) > 0 && len(item.Options) == 0 && len(item.Groups) == 0 {
		item.Value = selected[0]
	}
}

// selectedValues returns what is chosen now: the state, or the initial value.
func selectedValues(e Element, state any) []string {
	m, ok := state.(map[string]any)
	if !ok {
		m = initialState(e)
	}
	var out []string
	for key, value := range m {
		if key == "type" {
			continue
		}
		switch v := value.(type) {
		case string:
			out = append(out, v)
		case Option:
			out = append(out, v.Value)
		case *Option:
			if v != nil {
				out = append(out, v.Value)
			}
		case []Option:
			for _, o := range v {
				out = append(out, o.Value)
			}
		}
	}
	return out
}

func (r *renderer) modal(channelID string) *modalItem {
	st := r.sim.state
	st.mu.Lock()
	stack := st.stacks[r.me.ID]
	if len(stack) == 0 {
		st.mu.Unlock()
		return nil
	}
	top := st.views[stack[len(stack)-1]]
	v, values := top.View, top.values
	st.mu.Unlock()
	item := &modalItem{ID: v.ID, Hash: v.Hash, Close: "Cancel", As: r.me.ID, Channel: channelID}
	if v.Title != nil {
		item.Title = visible(*v.Title)
	}
	if v.Submit != nil {
		item.Submit = visible(*v.Submit)
	}
	if v.Close != nil {
		item.Close = visible(*v.Close)
	}
	item.Blocks = r.blocks(v.Blocks, place{
		channel: channelID, view: v.ID, as: r.me.ID, key: "v" + v.ID, errors: v.Errors, state: values,
	})
	return item
}

// shownDeliveries is how many requests to the app the page lists.
const shownDeliveries = 8

func (r *renderer) deliveries() []deliveryItem {
	list := r.sim.Deliveries()
	var out []deliveryItem
	for _, d := range slices.Backward(list) {
		if len(out) == shownDeliveries {
			break
		}
		item := deliveryItem{
			What: or(d.What, d.Kind), Who: r.names(d.UserID), Time: d.At.UTC().Format("15:04:05"), Bad: d.Problem != "",
			Outcome: fmt.Sprintf("%d in %d ms", d.Status, d.Took.Milliseconds()),
		}
		if d.Problem != "" {
			item.Outcome = d.Problem
		}
		out = append(out, item)
	}
	return out
}

// tsTime reads the time out of a ts.
func tsTime(ts string) time.Time {
	seconds, _, _ := strings.Cut(ts, ".")
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(n, 0).UTC()
}

func initials(name string) string {
	out := ""
	for word := range strings.FieldsSeq(name) {
		if c, _ := utf8.DecodeRuneInString(word); unicode.IsLetter(c) && runes(out) < 2 {
			out += string(unicode.ToUpper(c))
		}
	}
	return or(out, "?")
}

// avatar picks one of eight colours.
func avatar(id string) int {
	h := fnv.New32a()
	h.Write([]byte(id))
	return int(h.Sum32() % 8)
}
