package slackapp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/slack-go/slack"

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
func (a *App) verified(next func(http.ResponseWriter, *http.Request, []byte)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			var tooBig *http.MaxBytesError
			if errors.As(err, &tooBig) {
				a.refuse(w, http.StatusRequestEntityTooLarge, "too_large", "the request is larger than 1 MiB")
				return
			}
			a.refuse(w, http.StatusBadRequest, "unreadable", "the request broke off")
			return
		}
		if err := a.verifier.verify(r.Header, body); err != nil {
			a.opts.Logger.Warn("unsigned request refused", "component", "slack", "path", r.URL.Path, "remote", r.RemoteAddr)
			a.refuse(w, http.StatusUnauthorized, "unsigned", errSignature.Error())
			return
		}
		if !a.replays.first(r.Header) {
			a.metrics.requests.WithLabelValues("duplicate").Inc()
			writeText(w, http.StatusOK, "duplicate")
			return
		}
		next(w, r, body)
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
func (a *App) enqueue(w http.ResponseWriter, job func(context.Context)) {
	select {
	case a.jobs <- job:
		a.metrics.requests.WithLabelValues("accepted").Inc()
		w.WriteHeader(http.StatusOK)
	default:
		w.Header().Set("Retry-After", "2")
		a.refuse(w, http.StatusServiceUnavailable, "overloaded", "busy; please press again in a moment")
	}
}

func (a *App) interactions(w http.ResponseWriter, _ *http.Request, body []byte) {
	in, err := parseInteraction(body)
	if err != nil {
		a.refuse(w, http.StatusBadRequest, "malformed", err.Error())
		return
	}
	if reason := a.stranger(in.Team.ID, in.User.TeamID, in.APIAppID); reason != "" {
		a.enqueue(w, func(ctx context.Context) { a.deny(ctx, in, reason) })
		return
	}
	switch in.Type {
	case "block_actions":
		if len(in.Actions) == 1 && in.View.CallbackID != "" {
			w.WriteHeader(http.StatusOK) // a choice inside a form; only its submission counts
			return
		}
		id, err := in.button()
		if err != nil {
			a.refuse(w, http.StatusBadRequest, "malformed", err.Error())
			return
		}
		a.enqueue(w, func(ctx context.Context) { a.press(ctx, in, id) })
	case "view_submission":
		a.submission(w, in)
	case "view_closed":
		w.WriteHeader(http.StatusOK)
	default:
		a.refuse(w, http.StatusBadRequest, "malformed", fmt.Sprintf("interaction type %q is not used by holdfast", clip(in.Type, 40)))
	}
}

// stranger says why a verified request is still not from one of our people:
// another workspace, another app, or a guest of a shared channel (R19).
func (a *App) stranger(team, userTeam, app string) string {
	switch {
	case !a.teams[team]:
		return "this workspace is not connected to holdfast"
	case userTeam != "" && userTeam != team:
		return "guests of shared channels cannot act"
	case a.appID != "" && app != a.appID:
		return "the request came from another Slack app"
	default:
		return ""
	}
}

func (a *App) deny(ctx context.Context, in interaction, reason string) {
	err := a.opts.Desk.Denied(ctx, audit.Entry{
		ActorID: "slack:" + clip(in.Team.ID, 40) + ":" + clip(in.User.ID, 40), ActorName: "unknown Slack user", Channel: "slack",
		Verb: "slack.interaction", Subject: "slack", Decision: audit.Denied, Reason: reason,
	})
	if err != nil {
		a.opts.Logger.Error("denial not recorded", "component", "slack", "error", err)
	}
	a.whisper(ctx, in.channel(), in.User.ID, "Refused: "+reason+".")
}

// press commits a click and tells the presser what became of it.
func (a *App) press(ctx context.Context, in interaction, id string) {
	ans, err := a.opts.Chat.Accept(ctx, chat.Press{
		ButtonID: id, Team: in.Team.ID, User: in.User.ID, Channel: in.channel(), MessageTS: in.Container.MessageTS,
	})
	if err != nil {
		a.opts.Logger.Error("click not committed", "component", "slack", "error", err)
		a.whisper(ctx, in.channel(), in.User.ID, "Nothing was done: holdfast could not record the click. Please press again.")
		return
	}
	if ans.OpenForm {
		if err := a.openForm(ctx, in.TriggerID, ans.Subject); err != nil {
			a.opts.Logger.Error("form not opened", "component", "slack", "error", err)
			a.whisper(ctx, in.channel(), in.User.ID, "The form could not be opened. Please press More… again, or use the console.")
		}
		return
	}
	a.whisper(ctx, in.channel(), in.User.ID, ans.Text)
}

// whisper tells one user something; it never fails loudly, since the card is what counts.
func (a *App) whisper(ctx context.Context, channel, user, text string) {
	if text == "" || channel == "" || user == "" {
		return
	}
	_, err := a.api.PostEphemeralContext(ctx, channel, user, slack.MsgOptionText(escapeClip(text, maxText), false))
	if err != nil {
		a.opts.Logger.Warn("private answer not delivered", "component", "slack", "error", err)
	}
}

func (a *App) commands(w http.ResponseWriter, r *http.Request, body []byte) {
	c, err := parseCommand(body)
	if err != nil {
		a.refuse(w, http.StatusBadRequest, "malformed", err.Error())
		return
	}
	if reason := a.stranger(c.TeamID, "", c.AppID); reason != "" {
		writeJSON(w, ephemeral("Refused: "+reason+"."))
		return
	}
	text, err := a.commandText(r.Context(), c)
	if err != nil {
		a.opts.Logger.Error("command failed", "component", "slack", "error", err)
		text = "holdfast could not answer just now. Please try again."
	}
	a.metrics.requests.WithLabelValues("accepted").Inc()
	writeJSON(w, ephemeral(text))
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
	lines := make([]string, 0, len(open))
	for _, in := range open {
		lines = append(lines, fmt.Sprintf("%s #%d %s (%s)", severityMark[in.Severity], in.Number, link(a.opts.PublicURL+"/incidents/"+in.ID, in.Title), in.Status))
	}
	return joinClip(lines, "\n", maxText), nil
}

// events answers the Events API's address check; no event type is subscribed to.
func (a *App) events(w http.ResponseWriter, _ *http.Request, body []byte) {
	var e struct {
		Type      string `json:"type"`
		Challenge string `json:"challenge"`
	}
	if err := json.Unmarshal(body, &e); err != nil || e.Type == "" {
		a.refuse(w, http.StatusBadRequest, "malformed", "want a JSON object with a type")
		return
	}
	if e.Type == "url_verification" {
		writeText(w, http.StatusOK, clip(e.Challenge, 200))
		return
	}
	w.WriteHeader(http.StatusOK)
}
