package slackapp

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// actionPrefix stands before a button's id in action_id.
const actionPrefix = "btn_"

// errPayload wraps what is wrong with a verified request.
var errPayload = errors.New("not a Slack payload")

// interaction is the part of Slack's interactivity payload that is trusted:
// ids, never names.
type interaction struct {
	Type string `json:"type"`
	Team struct {
		ID string `json:"id"`
	} `json:"team"`
	User struct {
		ID     string `json:"id"`
		TeamID string `json:"team_id"`
	} `json:"user"`
	APIAppID  string `json:"api_app_id"`
	TriggerID string `json:"trigger_id"`
	Channel   struct {
		ID string `json:"id"`
	} `json:"channel"`
	Container struct {
		ChannelID string `json:"channel_id"`
		MessageTS string `json:"message_ts"`
	} `json:"container"`
	Actions []struct {
		ActionID string `json:"action_id"`
		Type     string `json:"type"`
		Value    string `json:"value"`
	} `json:"actions"`
	View struct {
		CallbackID      string `json:"callback_id"`
		PrivateMetadata string `json:"private_metadata"`
		State           struct {
			Values map[string]map[string]viewValue `json:"values"`
		} `json:"state"`
	} `json:"view"`
}

type viewValue struct {
	Value          string `json:"value"`
	SelectedOption struct {
		Value string `json:"value"`
	} `json:"selected_option"`
}

// parseInteraction reads the payload from the verified bytes alone: a payload in
// the URL's query is not signed and is never looked at (R18).
func parseInteraction(body []byte) (interaction, error) {
	var in interaction
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return in, fmt.Errorf("%w: the body is not a form", errPayload)
	}
	payload := form["payload"]
	if len(payload) != 1 {
		return in, fmt.Errorf("%w: want exactly one form field \"payload\" in the body", errPayload)
	}
	if err := json.Unmarshal([]byte(payload[0]), &in); err != nil {
		return in, fmt.Errorf("%w: the field \"payload\" is not the JSON object it should be", errPayload)
	}
	if in.Type == "" || in.User.ID == "" {
		return in, fmt.Errorf("%w: type and user.id are required", errPayload)
	}
	return in, nil
}

// button returns the opaque id that was pressed.
func (in interaction) button() (string, error) {
	if len(in.Actions) != 1 {
		return "", fmt.Errorf("%w: want exactly one action, got %d", errPayload, len(in.Actions))
	}
	a := in.Actions[0]
	id, ok := strings.CutPrefix(a.ActionID, actionPrefix)
	if !ok || id == "" || id != a.Value || len(id) > 64 {
		return "", fmt.Errorf("%w: not one of our buttons", errPayload)
	}
	return id, nil
}

func (in interaction) channel() string {
	if in.Container.ChannelID != "" {
		return in.Container.ChannelID
	}
	return in.Channel.ID
}

// command is a slash command.
type command struct {
	TeamID, UserID, ChannelID, AppID, Command, Text string
}

func parseCommand(body []byte) (command, error) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return command{}, fmt.Errorf("%w: the body is not a form", errPayload)
	}
	c := command{
		TeamID: form.Get("team_id"), UserID: form.Get("user_id"), ChannelID: form.Get("channel_id"),
		AppID: form.Get("api_app_id"), Command: form.Get("command"), Text: strings.TrimSpace(form.Get("text")),
	}
	if c.UserID == "" || !strings.HasPrefix(c.Command, "/") {
		return c, fmt.Errorf("%w: command and user_id are required", errPayload)
	}
	return c, nil
}
