package slacksim

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"time"
)

// responseURL is where an app may answer one interaction.
type responseURL struct {
	channel, ts, user string // ts is empty for a slash command
	expires           time.Time
	uses              int
}

// newResponseURL returns a fresh URL. The caller holds the lock.
func (s *Sim) newResponseURL(channel, ts, user string) string {
	st := s.state
	now := st.clock.Now()
	maps.DeleteFunc(st.responses, func(_ string, r *responseURL) bool { return now.Sub(r.expires) > ResponseURLLife })
	token := randomHex(16)
	st.responses[token] = &responseURL{channel: channel, ts: ts, user: user, expires: now.Add(ResponseURLLife)}
	return s.ResponseURLPrefix() + token
}

// responseMessage is what an app posts to a response_url.
type responseMessage struct {
	ResponseType    string          `json:"response_type"`
	ReplaceOriginal bool            `json:"replace_original"`
	DeleteOriginal  bool            `json:"delete_original"`
	Text            *string         `json:"text"`
	Blocks          json.RawMessage `json:"blocks"`
	Attachments     json.RawMessage `json:"attachments"`
	ThreadTS        string          `json:"thread_ts"`
}

func (m responseMessage) params() params {
	p := params{}
	if m.Text != nil {
		p["text"] = *m.Text
	}
	for key, raw := range map[string]json.RawMessage{"blocks": m.Blocks, "attachments": m.Attachments} {
		if len(raw) > 0 && string(raw) != "null" {
			p[key] = string(raw)
		}
	}
	return p
}

// handleResponseURL serves POST /response/{token}.
func (s *Sim) handleResponseURL(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBodyBytes))
	if err != nil {
		http.Error(w, "invalid_payload", http.StatusRequestEntityTooLarge)
		return
	}
	s.withFault(faultResponseURL, w, r, func(w http.ResponseWriter, r *http.Request) {
		status, problem := s.respond(r.PathValue("token"), raw)
		switch {
		case problem == nil:
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			_, _ = io.WriteString(w, "ok")
		default:
			writeJSON(w, status, problem.body)
		}
	})
}

// respond carries a response out. A nil reply is success.
func (s *Sim) respond(token string, raw []byte) (int, *reply) {
	fail := func(status int, name string) (int, *reply) {
		bad := failReply(name)
		return status, &bad
	}
	var in responseMessage
	if err := json.Unmarshal(raw, &in); err != nil {
		return fail(http.StatusBadRequest, "invalid_payload")
	}
	target, problem := s.useResponseURL(token)
	if problem != "" {
		return fail(http.StatusNotFound, problem)
	}
	body, bad := s.readContent(in.params())
	if bad != nil {
		return http.StatusBadRequest, bad
	}
	if !in.DeleteOriginal && body.empty() {
		return fail(http.StatusBadRequest, "no_text")
	}
	if problem := s.applyResponse(target, in, body); problem != "" {
		return fail(http.StatusNotFound, problem)
	}
	return http.StatusOK, nil
}

// useResponseURL counts one use.
func (s *Sim) useResponseURL(token string) (responseURL, string) {
	st := s.state
	st.mu.Lock()
	defer st.mu.Unlock()
	r := st.responses[token]
	switch {
	case r == nil || st.clock.Now().After(r.expires):
		return responseURL{}, "expired_url"
	case r.uses >= MaxResponseURLUses:
		return responseURL{}, "used_url"
	}
	r.uses++
	return *r, ""
}

// applyResponse replaces, deletes or posts.
func (s *Sim) applyResponse(target responseURL, in responseMessage, body content) string {
	st := s.state
	st.mu.Lock()
	defer st.mu.Unlock()
	c := st.find(target.channel, false)
	if c == nil {
		return "channel_not_found"
	}
	original := c.message(target.ts, true)
	if in.DeleteOriginal || in.ReplaceOriginal {
		if original == nil {
			return "message_not_found"
		}
		if in.DeleteOriginal {
			st.remove(c, original)
			return ""
		}
		original.apply(body)
		st.hub.changed()
		return ""
	}
	m := s.newMessage(body)
	m.ThreadTS = in.ThreadTS
	if in.ResponseType != "in_channel" {
		m.EphemeralTo = target.user
	}
	st.add(c, m)
	return ""
}
