package slacksim

import (
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// params are the arguments of one call. Nested JSON values stay JSON text, so
// that a form field and a JSON property read the same.
type params map[string]string

func (p params) has(key string) bool { _, ok := p[key]; return ok }

func (p params) bool(key string) bool {
	return p[key] == "1" || strings.EqualFold(p[key], "true")
}

// int returns a number within bounds, and the default for anything else.
func (p params) int(key string, def, low, high int) int {
	n, err := strconv.Atoi(p[key])
	if err != nil || n < low || n > high {
		return def
	}
	return n
}

// reply is the answer to one call.
type reply struct {
	body       map[string]any
	retryAfter int // seconds; not 0 answers 429
}

// method is one Web API method.
type method struct {
	tier    tier
	scope   string
	handler func(*Sim, params) reply
}

// methods are the Web API methods the simulator knows.
var methods = map[string]method{
	"auth.test":             {tierNone, "", (*Sim).authTest},
	"chat.postMessage":      {tierMessage, "chat:write", (*Sim).chatPostMessage},
	"chat.postEphemeral":    {tier4, "chat:write", (*Sim).chatPostEphemeral},
	"chat.update":           {tier3, "chat:write", (*Sim).chatUpdate},
	"chat.delete":           {tier3, "chat:write", (*Sim).chatDelete},
	"conversations.list":    {tier2, "channels:read", (*Sim).conversationsList},
	"conversations.info":    {tier3, "channels:read", (*Sim).conversationsInfo},
	"conversations.history": {tier3, "channels:history", (*Sim).conversationsHistory},
	"conversations.replies": {tier3, "channels:history", (*Sim).conversationsReplies},
	"conversations.open":    {tier3, "im:write", (*Sim).conversationsOpen},
	"users.info":            {tier4, "users:read", (*Sim).usersInfo},
	"users.list":            {tier2, "users:read", (*Sim).usersList},
	"views.open":            {tier4, "", (*Sim).viewsOpen},
	"views.push":            {tier4, "", (*Sim).viewsPush},
	"views.update":          {tier4, "", (*Sim).viewsUpdate},
}

// allScopes returns the scopes the methods need.
func allScopes() []string {
	return []string{"channels:history", "channels:read", "chat:write", "commands", "im:write", "users:read"}
}

// handleAPI serves /api/{method}.
func (s *Sim) handleAPI(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("method")
	w.Header().Set("X-Oauth-Scopes", strings.Join(s.opts.Scopes, ","))
	p, err := readParams(w, r)
	if err != nil {
		writeAPI(w, apiError(err.Error()))
		return
	}
	if problem := s.checkToken(r, p); problem != "" {
		writeAPI(w, apiError(problem))
		return
	}
	m, ok := methods[name]
	if !ok {
		body := apiError("unknown_method")
		body["req_method"] = name
		writeAPI(w, body)
		return
	}
	if m.scope != "" && !slices.Contains(s.opts.Scopes, m.scope) {
		body := apiError("missing_scope")
		body["needed"], body["provided"] = m.scope, strings.Join(s.opts.Scopes, ",")
		writeAPI(w, body)
		return
	}
	s.withFault(name, w, r, func(w http.ResponseWriter, _ *http.Request) {
		s.callMethod(w, name, m, p)
	})
}

func (s *Sim) callMethod(w http.ResponseWriter, name string, m method, p params) {
	if wait := s.limiter.method(name, m.tier); wait > 0 {
		s.log.Debug("rate limited", "method", name, "retry_after_seconds", wait)
		writeRateLimited(w, wait)
		return
	}
	out := m.handler(s, p)
	if out.retryAfter > 0 {
		s.log.Debug("rate limited", "method", name, "retry_after_seconds", out.retryAfter)
		writeRateLimited(w, out.retryAfter)
		return
	}
	s.log.Debug("answered", "method", name, "ok", out.body["ok"], "error", out.body["error"])
	writeAPI(w, out.body)
}

// checkToken returns Slack's error name, or "" for the right token. The token
// may come as a bearer token or as a form field.
func (s *Sim) checkToken(r *http.Request, p params) string {
	token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !bearer {
		token = p["token"]
	}
	token = strings.TrimSpace(token)
	switch {
	case token == "":
		return "not_authed"
	case subtle.ConstantTimeCompare([]byte(token), []byte(s.opts.BotToken)) != 1:
		return "invalid_auth"
	}
	return ""
}

// readParams reads form or JSON arguments. Its errors are Slack's error names.
func readParams(w http.ResponseWriter, r *http.Request) (params, error) {
	p := params{}
	addValues(p, r.URL.Query())
	if r.Method == http.MethodGet {
		return p, nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBodyBytes))
	if err != nil {
		if _, tooBig := errors.AsType[*http.MaxBytesError](err); tooBig {
			return nil, errors.New("request_too_large")
		}
		return nil, errors.New("request_timeout")
	}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch kind {
	case "application/json":
		return p, addJSON(p, body)
	case "application/x-www-form-urlencoded", "":
		values, err := url.ParseQuery(string(body))
		if err != nil {
			return nil, errors.New("invalid_form_data")
		}
		addValues(p, values)
		return p, nil
	}
	return nil, errors.New("invalid_post_type")
}

func addValues(p params, values url.Values) {
	for key, list := range values {
		if len(list) > 0 {
			p[key] = list[0]
		}
	}
}

func addJSON(p params, body []byte) error {
	var obj map[string]json.RawMessage
	if err := json.Unmarshal(body, &obj); err != nil {
		if json.Valid(body) {
			return errors.New("json_not_object")
		}
		return errors.New("invalid_json")
	}
	for key, raw := range obj {
		var text string
		switch {
		case string(raw) == "null":
		case json.Unmarshal(raw, &text) == nil:
			p[key] = text
		default:
			p[key] = string(raw)
		}
	}
	return nil
}

// okReply answers ok:true with more fields.
func okReply(fields map[string]any) reply {
	if fields == nil {
		fields = map[string]any{}
	}
	fields["ok"] = true
	return reply{body: fields}
}

func failReply(name string) reply { return reply{body: apiError(name)} }

func apiError(name string) map[string]any { return map[string]any{"ok": false, "error": name} }

// problemReply answers with the faults of an argument in Slack's two places.
func problemReply(name string, problems []string) reply {
	body := apiError(name)
	body["errors"] = problems
	messages := make([]string, len(problems))
	for i, p := range problems {
		messages[i] = "[ERROR] " + p
	}
	body["response_metadata"] = map[string]any{"messages": messages}
	return reply{body: body}
}

func writeAPI(w http.ResponseWriter, body map[string]any) { writeJSON(w, http.StatusOK, body) }

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	// The client may be gone; there is nobody to tell.
	_ = json.NewEncoder(w).Encode(body)
}

// page returns one page of a list and the cursor of the next.
func page[T any](list []T, p params, defLimit, maxLimit int) (out []T, next string, ok bool) {
	start := 0
	if c := p["cursor"]; c != "" {
		n, err := strconv.Atoi(strings.TrimPrefix(c, cursorPrefix))
		if err != nil || !strings.HasPrefix(c, cursorPrefix) || n < 0 || n > len(list) {
			return nil, "", false
		}
		start = n
	}
	end := min(len(list), start+p.int("limit", defLimit, 1, maxLimit))
	if end < len(list) {
		next = cursorPrefix + strconv.Itoa(end)
	}
	return list[start:end], next, true
}

const cursorPrefix = "next:"
