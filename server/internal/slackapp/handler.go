package slackapp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"holdfast/server/audit"
	"holdfast/server/chat"
)

// maxBody caps every request from Slack (R28).
const maxBody = 1 << 20

// Handler serves /slack/interactions, /slack/commands and /slack/events. Every
// route goes through the same verification (C38).
func (a *App) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /slack/interactions", a.verified(a.interactions))
	mux.Handle("POST /slack/commands", a.verified(a.commands))
	mux.Handle("POST /slack/events", a.verified(a.events))
	return mux
}

// verified reads the raw body, checks the signature over it and lets each signed request through once.
//
// next is false when there was no room for the request: it may come again.
func (a *App) verified(next func(http.ResponseWriter, *http.Request, []byte) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
				a.refuse(w, http.StatusRequestEntityTooLarge, "too_large", "the request is larger than 1 MiB")
				return
			}
			a.refuse(w, http.StatusBadRequest, "unreadable", "the request broke off")
			return
		}
		key, err := a.verifier.verify(r.Header, body)
		if err != nil {
			a.opts.Logger.Warn("unsigned request refused", "path", r.URL.Path, "remote", r.RemoteAddr)
			a.refuse(w, http.StatusUnauthorized, "unsigned", errSignature.Error())
			return
		}
		if !a.replays.first(key) {
			a.refuse(w, http.StatusOK, "duplicate", "duplicate")
			return
		}
		if !next(w, r, body) {
			a.replays.forget(key)
		}
	})
}

func (a *App) refuse(w http.ResponseWriter, status int, result, text string) {
	a.metrics.requests.WithLabelValues(result).Inc()
	writeText(w, status, text)
}

func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n")
}

// enqueue hands the work to a worker and acknowledges; a full queue is said aloud.
func (a *App) enqueue(w http.ResponseWriter, job func(context.Context)) bool {
	if !a.jobs.offer(job) {
		return a.busy(w, "overloaded")
	}
	a.metrics.requests.WithLabelValues("accepted").Inc()
	w.WriteHeader(http.StatusOK)
	return true
}

func (a *App) busy(w http.ResponseWriter, result string) bool {
	w.Header().Set("Retry-After", "2")
	a.refuse(w, http.StatusServiceUnavailable, result, "busy; please press again in a moment")
	return false
}

// malformed answers 400: what is wrong stays wrong when it comes again.
func (a *App) malformed(w http.ResponseWriter, text string) bool {
	a.refuse(w, http.StatusBadRequest, "malformed", text)
	return true
}

// ok acknowledges what asks for nothing.
func (a *App) ok(w http.ResponseWriter) bool {
	a.metrics.requests.WithLabelValues("ignored").Inc()
	w.WriteHeader(http.StatusOK)
	return true
}

func (a *App) interactions(w http.ResponseWriter, _ *http.Request, body []byte) bool {
	in, err := parseInteraction(body)
	if err != nil {
		return a.malformed(w, err.Error())
	}
	if a.teams.Load() == nil {
		return a.busy(w, "unready")
	}
	if reason := a.stranger(in.Team.ID, in.User.TeamID, in.APIAppID); reason != "" {
		return a.enqueue(w, func(ctx context.Context) {
			a.deny(ctx, in.Team.ID, in.User.ID, reason)
			a.whisper(in.channel(), in.User.ID, "Refused: "+reason+".")
		})
	}
	switch in.Type {
	case "block_actions":
		if in.View.CallbackID != "" {
			return a.ok(w) // a choice inside a form; only its submission counts
		}
		id, err := in.button()
		if err != nil {
			return a.malformed(w, err.Error())
		}
		return a.enqueue(w, func(ctx context.Context) { a.press(ctx, in, id) })
	case "view_submission":
		return a.submission(w, in)
	case "view_closed":
		return a.ok(w)
	default:
		return a.malformed(w, fmt.Sprintf("interaction type %q is not used by holdfast", clip(in.Type, 40)))
	}
}

// stranger says why a verified request is still not from one of our people:
// another workspace, another app, or a guest of a shared channel (R19).
func (a *App) stranger(team, userTeam, app string) string {
	switch {
	case !(*a.teams.Load())[team]:
		return "this workspace is not connected to holdfast"
	case userTeam != "" && userTeam != team:
		return "guests of shared channels cannot act"
	case a.opts.AppID != "" && app != a.opts.AppID:
		return "the request came from another Slack app"
	default:
		return ""
	}
}

// deny records a refused request; it is worth a row even where nothing was asked for.
func (a *App) deny(ctx context.Context, team, user, reason string) {
	err := a.opts.Desk.Denied(ctx, audit.Entry{
		ActorID: "slack:" + clip(team, 40) + ":" + clip(user, 40), ActorName: "unknown Slack user", Channel: "slack",
		Verb: "slack.interaction", Subject: "slack", Decision: audit.Denied, Reason: reason,
	})
	if err != nil {
		a.opts.Logger.Error("denial not recorded", "error", err)
	}
}

// press commits a click and tells the presser what became of it.
func (a *App) press(ctx context.Context, in interaction, id string) {
	ans, err := a.opts.Chat.Accept(ctx, chat.Press{
		ButtonID: id, Team: in.Team.ID, User: in.User.ID, Channel: in.channel(), MessageTS: in.Container.MessageTS,
	})
	if err != nil {
		a.opts.Logger.Error("click not committed", "error", err)
		a.whisper(in.channel(), in.User.ID, "Nothing was done: holdfast could not record the click. Please press again.")
		return
	}
	if ans.OpenForm {
		a.reply(func(ctx context.Context) {
			if err := a.openForm(ctx, in.TriggerID, ans.Subject); err != nil {
				a.opts.Logger.Error("form not opened", "reason", a.reason(err))
				a.whisper(in.channel(), in.User.ID, "The form could not be opened. Please press More… again, or use the console.")
			}
		})
		return
	}
	a.whisper(in.channel(), in.User.ID, ans.Text)
}

// whisper tells one user something; it never fails loudly, since the card is what counts.
func (a *App) whisper(channel, user, text string) {
	if text == "" || channel == "" || user == "" {
		return
	}
	a.reply(func(ctx context.Context) {
		if err := a.tell(ctx, channel, user, text); err != nil {
			a.opts.Logger.Warn("private answer not delivered", "reason", a.reason(err))
		}
	})
}

// reply sends something to Slack apart from the commits of clicks.
func (a *App) reply(job func(context.Context)) {
	if !a.replies.offer(job) {
		a.opts.Logger.Warn("private answer dropped: too many are waiting for Slack")
	}
}

// commandTimeout leaves room below the three seconds in which Slack wants its answer.
const commandTimeout = 2 * time.Second

func (a *App) commands(w http.ResponseWriter, r *http.Request, body []byte) bool {
	c, err := parseCommand(body)
	if err != nil {
		return a.malformed(w, err.Error())
	}
	if a.teams.Load() == nil {
		return a.busy(w, "unready")
	}
	ctx, cancel := context.WithTimeout(r.Context(), commandTimeout)
	defer cancel()
	if reason := a.stranger(c.TeamID, "", c.AppID); reason != "" {
		a.deny(ctx, c.TeamID, c.UserID, reason)
		a.metrics.requests.WithLabelValues("denied").Inc()
		writeJSON(w, ephemeral("Refused: "+reason+"."))
		return true
	}
	text, err := a.commandText(ctx, c)
	if err != nil {
		a.opts.Logger.Error("command failed", "error", err)
		text = "holdfast could not answer just now. Please try again."
	}
	a.metrics.requests.WithLabelValues("accepted").Inc()
	writeJSON(w, ephemeral(text))
	return true
}

func ephemeral(text string) map[string]string {
	return map[string]string{"response_type": "ephemeral", "text": text}
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(v)
}

// commandText answers "/holdfast" and "/holdfast status".
func (a *App) commandText(ctx context.Context, c command) (string, error) {
	if c.Text != "" && c.Text != "status" {
		return "`" + escapeClip(c.Command, 40) + " status` lists open incidents. Everything else is on the cards and in the " + link(a.opts.PublicURL, "console") + ".", nil
	}
	open, err := a.opts.Desk.OpenIncidents(ctx)
	if err != nil {
		return "", err
	}
	if len(open) == 0 {
		return "No open incidents. " + link(a.opts.PublicURL, "Open the console"), nil
	}
	const shown = 20
	lines := make([]string, 0, shown+1)
	for _, in := range open[:min(shown, len(open))] {
		lines = append(lines, fmt.Sprintf("%s #%d %s (%s)", severityMark[in.Severity], in.Number, link(a.opts.PublicURL+"/incidents/"+in.ID, clip(in.Title, 80)), in.Status))
	}
	if more := len(open) - shown; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return joinClip(lines, "\n", maxCommand), nil
}

// events answers the Events API's address check; no event type is subscribed to.
func (a *App) events(w http.ResponseWriter, _ *http.Request, body []byte) bool {
	var e struct {
		Type      string `json:"type"`
		Challenge string `json:"challenge"`
	}
	if err := json.Unmarshal(body, &e); err != nil || e.Type == "" {
		return a.malformed(w, "want a JSON object with a type")
	}
	if e.Type == "url_verification" {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, clip(e.Challenge, 200))
		return true
	}
	return a.ok(w)
}
