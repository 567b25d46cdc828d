package slacksim

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

//go:embed page
var assets embed.FS

var pageTemplate = template.Must(template.ParseFS(assets, "page/*.html"))

// contentPolicy lets the page load its own files and nothing else.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// guard adds security headers and refuses foreign host names: without a login,
// the name in the address bar is what keeps other sites out.
func (s *Sim) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		if !s.hostAllowed(r.Host) {
			http.Error(w, "slacksim: this host name is not allowed; use the IP address, localhost, or add the name to AllowedHosts", http.StatusMisdirectedRequest)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, MaxBodyBytes)
		next.ServeHTTP(w, r)
	})
}

func (s *Sim) hostAllowed(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") || net.ParseIP(host) != nil {
		return true
	}
	return slices.Contains(s.opts.AllowedHosts, host)
}

// pageFor builds the page a request asks for: ?channel= and ?as=.
func (s *Sim) pageFor(q url.Values) pageData {
	return s.newRenderer(s.person(q.Get("as"))).build(q.Get("channel"))
}

// person returns the chosen person, or the first.
func (s *Sim) person(id string) User {
	if u, ok := s.state.user(id); ok && !u.Deleted {
		return u
	}
	return s.state.listUsers()[0]
}

func (s *Sim) handlePage(w http.ResponseWriter, r *http.Request) {
	s.render(w, "page", s.pageFor(r.URL.Query()))
}

func (s *Sim) render(w http.ResponseWriter, name string, data any) {
	out, err := renderTemplate(name, data)
	if err != nil {
		s.log.Error("page cannot be rendered", "template", name, "error", err)
		http.Error(w, "slacksim: the page cannot be rendered", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(out)
}

// renderTemplate renders whole or not at all.
func renderTemplate(name string, data any) ([]byte, error) {
	var buf bytes.Buffer
	if err := pageTemplate.ExecuteTemplate(&buf, name, data); err != nil {
		return nil, fmt.Errorf("template %s: %w", name, err)
	}
	return buf.Bytes(), nil
}

// handleFragment returns the page's changing parts for the script to swap in.
func (s *Sim) handleFragment(w http.ResponseWriter, r *http.Request) {
	data := s.pageFor(r.URL.Query())
	parts := map[string]string{}
	for _, name := range []string{"channels", "messages", "modal", "deliveries"} {
		out, err := renderTemplate(name, data)
		if err != nil {
			s.log.Error("page cannot be rendered", "template", name, "error", err)
			http.Error(w, "slacksim: the page cannot be rendered", http.StatusInternalServerError)
			return
		}
		parts[name] = string(out)
	}
	writeJSON(w, http.StatusOK, parts)
}

// keepAlive is how often an idle event stream says that it is alive.
const keepAlive = 15 * time.Second

// handleEvents tells the page that something changed, as server-sent events.
func (s *Sim) handleEvents(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w)
	tick := time.NewTicker(keepAlive)
	defer tick.Stop()
	version, changed := s.hub.wait()
	if _, err := fmt.Fprintf(w, "retry: 1000\ndata: %d\n\n", version); err != nil || flush.Flush() != nil {
		return
	}
	for {
		message := ": alive\n\n"
		select {
		case <-changed:
			version, changed = s.hub.wait()
			message = fmt.Sprintf("data: %d\n\n", version)
		case <-tick.C:
		case <-r.Context().Done():
			return
		case <-s.stopping:
			return
		}
		if _, err := fmt.Fprint(w, message); err != nil || flush.Flush() != nil {
			return
		}
	}
}

var assetTypes = map[string]string{
	"app.css": "text/css; charset=utf-8", "app.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml",
}

func handleAsset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	kind, ok := assetTypes[name]
	if !ok {
		http.NotFound(w, r)
		return
	}
	data, err := assets.ReadFile("page/" + name)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(data)
}

func (s *Sim) handleClick(w http.ResponseWriter, r *http.Request) {
	s.act(w, r, func(ctx context.Context, f url.Values) (ClickResult, error) {
		in := ClickRequest{
			Channel: f.Get("channel"), TS: f.Get("ts"), ViewID: f.Get("view"),
			BlockID: f.Get("block"), ActionID: f.Get("action"), UserID: f.Get("as"), Values: withoutEmpty(f["value"]),
		}
		return s.Click(ctx, in)
	})
}

func (s *Sim) handleSubmit(w http.ResponseWriter, r *http.Request) {
	s.act(w, r, func(ctx context.Context, f url.Values) (ClickResult, error) {
		values := map[string][]string{}
		for key, list := range f {
			// Unchecked boxes send nothing, so each input announces itself.
			if name, ok := strings.CutPrefix(key, "input:"); ok {
				values[name] = withoutEmpty(list)
			}
		}
		return s.SubmitView(ctx, SubmitRequest{ViewID: f.Get("view"), UserID: f.Get("as"), Values: values})
	})
}

func (s *Sim) handleClose(w http.ResponseWriter, r *http.Request) {
	s.act(w, r, func(ctx context.Context, f url.Values) (ClickResult, error) {
		return s.CloseView(ctx, SubmitRequest{ViewID: f.Get("view"), UserID: f.Get("as")})
	})
}

// handleSay serves the composer: a slash command or a message.
func (s *Sim) handleSay(w http.ResponseWriter, r *http.Request) {
	s.act(w, r, func(ctx context.Context, f url.Values) (ClickResult, error) {
		text := strings.TrimSpace(f.Get("text"))
		if strings.HasPrefix(text, "/") {
			command, rest, _ := strings.Cut(text, " ")
			return s.Slash(ctx, command, strings.TrimSpace(rest), f.Get("as"), f.Get("channel"))
		}
		_, err := s.Say(ctx, f.Get("channel"), f.Get("as"), text, f.Get("thread_ts"))
		return ClickResult{}, err
	})
}

// act runs one act of a person and says how it went: to the script as JSON, to
// a browser without script by going back to the page.
func (s *Sim) act(w http.ResponseWriter, r *http.Request, do func(context.Context, url.Values) (ClickResult, error)) {
	if err := r.ParseForm(); err != nil {
		http.Error(w, "slacksim: the form cannot be read", http.StatusBadRequest)
		return
	}
	res, err := do(r.Context(), r.PostForm)
	ok, message := verdict(res, err)
	if strings.Contains(r.Header.Get("Accept"), "application/json") {
		writeJSON(w, http.StatusOK, map[string]any{"ok": ok, "message": message})
		return
	}
	back := url.Values{"channel": {r.PostForm.Get("channel")}, "as": {r.PostForm.Get("as")}}
	http.Redirect(w, r, "/?"+back.Encode(), http.StatusSeeOther)
}

// verdict says in words how an act went.
func verdict(res ClickResult, err error) (bool, string) {
	switch {
	case errors.Is(err, ErrNoURL):
		return false, "The app has no request URL for this yet, so Slack could not deliver it."
	case errors.Is(err, ErrAckTimeout):
		return false, "The app did not answer in time. It may still have acted."
	case err != nil:
		return false, strings.TrimPrefix(err.Error(), "slacksim: ")
	case res.Status == 0:
		return true, ""
	case !res.Acked():
		return false, fmt.Sprintf("The app answered %d instead of 200.", res.Status)
	}
	return true, fmt.Sprintf("Delivered, answered in %d ms.", res.Took.Milliseconds())
}
