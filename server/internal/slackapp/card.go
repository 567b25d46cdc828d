package slackapp

import (
	"fmt"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"holdfast/actions"
	"holdfast/server/chat"
	"holdfast/server/incident"
)

// message is one drawn message.
type message struct {
	// Text is the notification text, escaped.
	Text   string
	Blocks []slack.Block
}

var severityMark = map[incident.Severity]string{
	incident.SeverityCritical: "🔴", incident.SeverityError: "🟠",
	incident.SeverityWarning: "🟡", incident.SeverityInfo: "🔵",
}

// drawIncident draws the card of an incident. Untrusted text stands in
// plain_text objects, where Slack parses nothing.
func drawIncident(c chat.IncidentCard) message {
	in := c.Incident
	mark := severityMark[in.Severity]
	if in.Status == incident.StatusResolved {
		mark = "✅"
	}
	title := fmt.Sprintf("%s #%d %s", mark, in.Number, in.Title)
	blocks := []slack.Block{
		slack.NewHeaderBlock(plain(title, maxHeader)),
		slack.NewSectionBlock(nil, incidentFields(c), nil),
	}
	if in.Summary != "" {
		blocks = append(blocks, slack.NewSectionBlock(plain(in.Summary, maxText), nil, nil))
	}
	if len(c.Alerts) > 0 {
		blocks = append(blocks, slack.NewSectionBlock(plain(alertLines(c), maxText), nil, nil))
	}
	for _, r := range c.Runs {
		blocks = append(blocks, slack.NewSectionBlock(mrkdwn(runLine(r, c.Now), maxText), nil, nil))
		if b := buttonsOf(c.RunButtons, "run:"+r.ID); len(b) > 0 {
			blocks = append(blocks, buttonBlock(b))
		}
	}
	for _, p := range c.Pending {
		line := fmt.Sprintf("⏳ *accepted* from %s at %s", escape(p.PersonName), clockUTC(p.ReceivedAt))
		blocks = append(blocks, slack.NewContextBlock("", mrkdwn(line, maxText)))
	}
	if len(c.Buttons) > 0 {
		blocks = append(blocks, buttonBlock(c.Buttons))
	}
	blocks = append(blocks, slack.NewContextBlock("", mrkdwn(incidentLinks(c), maxText)))
	return message{Text: escapeClip(fmt.Sprintf("%s (%s, %s)", title, in.Severity, in.Status), maxText), Blocks: blocks}
}

func incidentFields(c chat.IncidentCard) []*slack.TextBlockObject {
	in := c.Incident
	status := string(in.Status)
	switch in.Status {
	case incident.StatusAcknowledged:
		status += " by " + escape(in.AckedBy)
	case incident.StatusResolved:
		status += " at " + clockUTC(in.ResolvedAt)
	case incident.StatusOpen:
	}
	firing := fmt.Sprintf("%d firing, %d resolved", in.Firing, in.Resolved)
	if in.Truncated > 0 {
		firing += fmt.Sprintf(" (%d of %d shown)", in.Firing+in.Resolved, in.Firing+in.Resolved+in.Truncated)
	}
	fields := []*slack.TextBlockObject{
		field("Severity", string(in.Severity)), field("Status", status),
		field("Alerts", firing), field("Since", slackTime(in.OpenedAt)),
	}
	if in.Service != "" {
		where := in.Service
		if in.Environment != "" {
			where += " in " + in.Environment
		}
		fields = append(fields, field("Service", escape(where)))
	}
	return fields
}

// field expects its value to be mrkdwn already.
func field(name, value string) *slack.TextBlockObject {
	return mrkdwn("*"+name+"*\n"+joinClip([]string{value}, "", maxField-len(name)-3), maxField)
}

func alertLines(c chat.IncidentCard) string {
	lines := make([]string, 0, len(c.Alerts)+1)
	for _, a := range c.Alerts {
		lines = append(lines, "• "+clip(a, 400))
	}
	if more := c.Incident.Firing + c.Incident.Resolved - len(c.Alerts); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "\n")
}

// runLine says in one line what a run did and how long it still holds.
func runLine(r actions.Run, now time.Time) string {
	parts := []string{"*" + escapeClip(r.Plan.Summary, 500) + "*", "by " + escapeClip(r.Requester.Name, 100)}
	switch r.Status {
	case actions.StatusAccepted:
		parts = append(parts, "*accepted*, not yet in force")
	case actions.StatusExecuting:
		parts = append(parts, fmt.Sprintf("revision %d is out, waiting for %s", r.Revision, escapeClip(names(r.Missing), 300)))
	case actions.StatusActive:
		parts = append(parts, fmt.Sprintf("*in force* since revision %d%s", r.Revision, appliedIn(r)), verdict(r.Verification),
			"ends "+slackTime(r.ExpiresAt)+" (in "+r.ExpiresAt.Sub(now).Round(time.Second).String()+")")
	case actions.StatusReverting:
		parts = append(parts, fmt.Sprintf("being taken back with revision %d", r.RevertRevision))
	case actions.StatusEnded:
		end := "*ended* (" + string(r.EndReason) + ") at " + clockUTC(r.EndedAt)
		if r.EndedBy != "" {
			end += " by " + escapeClip(r.EndedBy, 100)
		}
		parts = append(parts, end)
	case actions.StatusFailed:
		parts = append(parts, "*failed* ("+string(r.EndReason)+"): "+escapeClip(r.EndDetail, 800))
	}
	return joinClip(parts, " · ", maxText)
}

func appliedIn(r actions.Run) string {
	if r.EnforcedAt.IsZero() || r.AcceptedAt.IsZero() {
		return ""
	}
	return fmt.Sprintf(", enforced %s after the click", r.EnforcedAt.Sub(r.AcceptedAt).Round(time.Millisecond))
}

func verdict(v actions.Verification) string {
	switch v.Verdict {
	case actions.Verified:
		return "✔ verified: " + escapeClip(v.Detail, 500)
	case actions.NotVerified:
		return "✖ *not verified*: " + escapeClip(v.Detail, 500)
	case actions.Inconclusive:
		return "❔ inconclusive: " + escapeClip(v.Detail, 500)
	default:
		return "verification pending"
	}
}

func names(list []string) string {
	if len(list) == 0 {
		return "the gateways"
	}
	return strings.Join(list, ", ")
}

func incidentLinks(c chat.IncidentCard) string {
	parts := []string{link(c.URL, "Open in holdfast")}
	if c.Incident.RunbookURL != "" {
		parts = append(parts, link(c.Incident.RunbookURL, "Runbook"))
	}
	if c.Incident.SourceURL != "" {
		parts = append(parts, link(c.Incident.SourceURL, "Source"))
	}
	return joinClip(append(parts, "as of "+clockUTC(c.Now)), " · ", maxText)
}

// drawChange draws the card of a change that waits for a confirmation.
func drawChange(c chat.ChangeCard) message {
	ch := c.Change
	title := fmt.Sprintf("%s of %s in %s: %s", ch.Kind, ch.Service, ch.Environment, ch.Status)
	lines := []string{
		fmt.Sprintf("*When* %s to %s", slackTime(ch.Start), slackTime(ch.End)),
		"*Run* " + runName(ch.RunID, ch.URL),
	}
	if ch.RequesterName != "" {
		lines = append(lines, "*Asked by* "+escapeClip(ch.RequesterName, 100))
	}
	if ch.Summary != "" {
		lines = append(lines, "*Summary* "+escapeClip(ch.Summary, 600))
	}
	for _, b := range c.Blockers {
		lines = append(lines, fmt.Sprintf("*In the way* %s %s (%s) %s to %s", escapeClip(b.Service, 100), b.Kind, b.Status, slackTime(b.Start), slackTime(b.End)))
	}
	if ch.DecidedBy != "" {
		lines = append(lines, fmt.Sprintf("*%s* by %s at %s", ch.Status, escapeClip(ch.DecidedBy, 100), clockUTC(ch.DecidedAt)))
	}
	blocks := []slack.Block{
		slack.NewHeaderBlock(plain("📅 "+title, maxHeader)),
		slack.NewSectionBlock(mrkdwn(joinClip(lines, "\n", maxText), maxText), nil, nil),
	}
	if len(c.Buttons) > 0 {
		blocks = append(blocks, buttonBlock(c.Buttons))
	}
	blocks = append(blocks, slack.NewContextBlock("", mrkdwn(link(c.URL, "Open in holdfast"), maxText)))
	return message{Text: escapeClip(title, maxText), Blocks: blocks}
}

func runName(id, url string) string {
	if url == "" {
		return escapeClip(id, 300)
	}
	return link(url, clip(id, 100))
}

func buttonsOf(all []chat.Button, subject string) []chat.Button {
	var out []chat.Button
	for _, b := range all {
		if b.Subject == subject {
			out = append(out, b)
		}
	}
	return out
}

// buttonBlock draws buttons; only the opaque id travels.
func buttonBlock(buttons []chat.Button) *slack.ActionBlock {
	elements := make([]slack.BlockElement, 0, len(buttons))
	for _, b := range buttons {
		el := slack.NewButtonBlockElement(actionPrefix+b.ID, b.ID, plain(b.Label, maxButtonText))
		el.Style = slack.Style(b.Style)
		if b.Confirm != "" {
			el.Confirm = slack.NewConfirmationBlockObject(plain(b.Label+"?", 100), plain(b.Confirm, 300), plain("Yes, do it", 30), plain("Not now", 30))
		}
		elements = append(elements, el)
	}
	return slack.NewActionBlock("", elements...)
}

// plain is text in which Slack parses nothing.
func plain(s string, limit int) *slack.TextBlockObject {
	if strings.TrimSpace(s) == "" {
		s = "–"
	}
	return slack.NewTextBlockObject(slack.PlainTextType, clip(s, limit), false, false)
}

// mrkdwn takes text that is escaped and already within its limit.
func mrkdwn(s string, limit int) *slack.TextBlockObject {
	if strings.TrimSpace(s) == "" {
		s = "–"
	}
	return slack.NewTextBlockObject(slack.MarkdownType, clip(s, limit), false, true)
}

func clockUTC(t time.Time) string { return t.UTC().Format("15:04:05 UTC") }

// slackTime shows the reader's own local time, with UTC where that cannot be.
func slackTime(t time.Time) string {
	return fmt.Sprintf("<!date^%d^{date_short_pretty} {time_secs}|%s>", t.Unix(), t.UTC().Format("2006-01-02 15:04:05 UTC"))
}
