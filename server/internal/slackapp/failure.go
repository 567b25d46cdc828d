package slackapp

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/slack-go/slack"
)

// methodPost is the method whose rate is kept per channel.
const methodPost = "chat.postMessage"

// permanent are Slack's errors that no repetition mends.
var permanent = map[string]bool{
	"channel_not_found": true, "is_archived": true, "not_in_channel": true, "invalid_blocks": true,
	"msg_too_long": true, "msg_blocks_too_long": true, "no_text": true, "user_not_in_channel": true, "user_not_found": true,
	"restricted_action": true, "invalid_arguments": true,
}

// alarming are errors that an operator has to mend; those that are not permanent
// are tried again meanwhile.
var alarming = map[string]bool{
	"channel_not_found": true, "is_archived": true, "not_in_channel": true, "restricted_action": true,
	"invalid_auth": true, "not_authed": true, "account_inactive": true, "token_revoked": true,
	"token_expired": true, "missing_scope": true, "no_permission": true, "org_login_required": true,
	"invalid_blocks": true, "msg_too_long": true, "msg_blocks_too_long": true,
}

// hints say what to do.
var hints = map[string]string{
	"channel_not_found": "check the channel id in the configuration and invite the app",
	"is_archived":       "unarchive the channel or configure another one",
	"not_in_channel":    "invite the app to the channel",
	"restricted_action": "let the app post to the channel",
	"invalid_auth":      "check SLACK_BOT_TOKEN", "not_authed": "check SLACK_BOT_TOKEN",
	"account_inactive": "install the app again", "token_revoked": "install the app again", "token_expired": "install the app again",
	"missing_scope": "give the app the scopes of its manifest", "no_permission": "give the app the scopes of its manifest",
	"org_login_required": "Slack is migrating the workspace; wait",
	"invalid_blocks":     "report this: the text alone was sent", "msg_too_long": "report this: the text alone was sent",
	"msg_blocks_too_long": "report this: the text alone was sent",
}

// ambiguous are errors after which Slack may still have done what was asked.
var ambiguous = map[string]bool{
	"internal_error": true, "fatal_error": true, "service_unavailable": true, "request_timeout": true, "team_added_to_org": true,
}

// gone says that a place for cards takes none.
func gone(code string) bool {
	return code == "is_archived" || code == "channel_not_found" || code == "not_in_channel"
}

// callError names the method and the channel that a call failed on.
type callError struct {
	method, channel string
	err             error
}

func (e *callError) Error() string { return e.method + ": " + e.err.Error() }
func (e *callError) Unwrap() error { return e.err }

func called(method, channel string, err error) error {
	if err == nil {
		return nil
	}
	return &callError{method, channel, err}
}

// failure is what is known of a failed call.
type failure struct {
	// code is Slack's error name; empty for transport errors.
	code string
	// refused is true when Slack surely did nothing.
	refused bool
	// limited is how long Slack asked to wait.
	limited time.Duration
	method  string
	channel string
}

func failureOf(err error) failure {
	var f failure
	if call, ok := errors.AsType[*callError](err); ok {
		f.method, f.channel = call.method, call.channel
	}
	if limited, ok := errors.AsType[*slack.RateLimitedError](err); ok {
		f.limited, f.refused = max(limited.RetryAfter, time.Second), true
	}
	if answer, ok := errors.AsType[slack.SlackErrorResponse](err); ok {
		f.code, f.refused = answer.Err, !ambiguous[answer.Err]
	}
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		f.refused = true // never connected
	}
	return f
}

// pauses is what a 429 holds: the channel for posts, else the method.
func (f failure) pauses(channel string) string {
	switch {
	case f.method != methodPost:
		return f.method
	case f.channel != "":
		return f.channel
	default:
		return channel
	}
}

// reason describes an error for logs and the outbox: Slack's error name or the
// cause alone, never what was sent, and never the token.
func (a *App) reason(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	var answer slack.SlackErrorResponse
	var status slack.StatusCodeError
	var address *url.Error
	switch {
	case errors.As(err, &answer):
		text = answer.Err
	case errors.As(err, &status):
		text = fmt.Sprintf("HTTP status %d", status.Code)
	case errors.As(err, &address):
		text = address.Err.Error()
	}
	if f := failureOf(err); f.method != "" {
		text = f.method + ": " + text
	}
	for _, secret := range []string{a.opts.BotToken, a.opts.SigningSecret} {
		text = strings.ReplaceAll(text, secret, "[secret]")
	}
	return clip(text, 400)
}
