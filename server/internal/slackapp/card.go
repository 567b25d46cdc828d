package slackapp

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"holdfast/actions"
	"holdfast/runbooks"
	"holdfast/server/change"
	"holdfast/server/chat"
	"holdfast/server/incident"
)

// message is one drawn message.
type message struct {
	// Text is the notification text, escaped.
	Text   string
	Blocks []slack.Block
	// URL leads to the whole text in the console.
	URL string
}

// Limits of a card. Slack takes 50 blocks and, all texts together, about 13,200
// characters (slackapi/bolt-js#2509); these keep below both at their worst.
const (
	maxSummary = 1500
	maxAlerts  = 1800
	maxRuns    = 5
	// maxRunbookRuns is how many live runbooks are shown.
	maxRunbookRuns = 2
	maxRunTitle    = 120
	maxRunState    = 250
	maxLinks       = 1500
	maxPlace       = 200
	maxPending     = 5
)

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
	title := oneLine(fmt.Sprintf("%s #%d %s", mark, in.Number, in.Title))
	blocks := []slack.Block{
		slack.NewHeaderBlock(plain(title, maxHeader)),
		slack.NewSectionBlock(nil, incidentFields(c), nil),
	}
	if in.Summary != "" {
		blocks = append(blocks, slack.NewSectionBlock(plain(in.Summary, maxSummary), nil, nil))
	}
	if len(c.Alerts) > 0 {
		blocks = append(blocks, slack.NewSectionBlock(plain(alertLines(c), maxAlerts+60), nil, nil))
	}
	blocks = append(blocks, runBlocks(c)...)
	blocks = append(blocks, runbookBlocks(c)...)
	if len(c.Pending) > 0 {
		blocks = append(blocks, slack.NewContextBlock("", plain(pendingLines(c.Pending), maxText)))
	}
	if len(c.Buttons) > 0 {
		blocks = append(blocks, buttonBlock(c.Buttons))
	}
	blocks = append(blocks, slack.NewContextBlock("", mrkdwn(incidentLinks(c), maxText)))
	return message{Text: escapeClip(fmt.Sprintf("%s (%s, %s)", clip(title, 300), in.Severity, in.Status), maxFallback), Blocks: blocks, URL: c.URL}
}

// runBlocks show what was done: the plan in words, literally, then how it stands.
func runBlocks(c chat.IncidentCard) []slack.Block {
	var blocks []slack.Block
	for _, r := range c.Runs[:min(maxRuns, len(c.Runs))] {
		blocks = append(blocks, slack.NewSectionBlock(plain(clip(oneLine(r.Plan.Summary), maxRunTitle)+" – "+clip(r.Requester.Name, 60), maxText), nil, nil))
		state := []slack.MixedElement{mrkdwn(runState(r, c.Now), maxRunState)}
		if detail := runDetail(r); detail != "" {
			state = append(state, plain(detail, maxRunState))
		}
		blocks = append(blocks, slack.NewContextBlock("", state...))
		if b := buttonsOf(c.RunButtons, "run:"+r.ID); len(b) > 0 {
			blocks = append(blocks, buttonBlock(b))
		}
	}
	if more := len(c.Runs) - maxRuns; more > 0 {
		blocks = append(blocks, slack.NewContextBlock("", plain(fmt.Sprintf("and %d more actions", more), maxText)))
	}
	return blocks
}

// runbookBlocks show where each live runbook stands and what it asks, literally,
// and lead to those that would fit.
func runbookBlocks(c chat.IncidentCard) []slack.Block {
	var blocks []slack.Block
	for _, r := range c.RunbookRuns[:min(maxRunbookRuns, len(c.RunbookRuns))] {
		blocks = append(blocks,
			slack.NewSectionBlock(plain(runbookStep(r.Run), maxText), nil, nil),
			slack.NewContextBlock("", mrkdwn(joinClip([]string{runbookState(r.Run), link(r.URL, "Open the runbook")}, " · ", maxLinks), maxLinks)))
	}
	if more := len(c.RunbookRuns) - maxRunbookRuns; more > 0 {
		blocks = append(blocks, slack.NewContextBlock("", plain(fmt.Sprintf("and %d more runbooks", more), maxText)))
	}
	if len(c.Runbooks) == 0 {
		return blocks
	}
	parts := []string{"📘 *Runbook for this*"}
	for _, b := range c.Runbooks {
		parts = append(parts, link(b.URL, clip(oneLine(b.Title), maxRunTitle)))
	}
	return append(blocks, slack.NewContextBlock("", mrkdwn(joinClip(parts, " · ", maxLinks), maxLinks)))
}

// runbookStep names the step in progress and what it asks or has seen last. It
// may hold foreign words and is shown literally.
func runbookStep(r runbooks.Run) string {
	line := "📘 " + clip(oneLine(r.Runbook.Title), maxRunTitle)
	if r.Current >= len(r.Steps) || r.Current >= len(r.Runbook.Steps) {
		return line
	}
	step, state := r.Filled(r.Current), r.Steps[r.Current]
	line += fmt.Sprintf(" – step %d of %d: %s", r.Current+1, len(r.Steps), clip(oneLine(step.Title), maxRunTitle))
	said := state.Detail
	if state.Status == runbooks.StepAsking {
		said = step.Question
		if said == "" {
			said = step.Command
		}
	}
	return line + prefixed("\n", clip(oneLine(said), maxRunState))
}

// runbookState says what is awaited; our own words only.
func runbookState(r runbooks.Run) string {
	if r.Status != runbooks.StatusWaiting || r.Current >= len(r.Steps) {
		return "*running*"
	}
	switch r.Steps[r.Current].Status {
	case runbooks.StepFailed, runbooks.StepInconclusive:
		return "*" + string(r.Steps[r.Current].Status) + "*: somebody must say whether to retry, skip or stop"
	default:
		return "*waits for an answer*"
	}
}

func pendingLines(pending []chat.Click) string {
	var lines []string
	for _, p := range pending[:min(maxPending, len(pending))] {
		lines = append(lines, fmt.Sprintf("⏳ accepted from %s at %s", clip(p.PersonName, 60), clockUTC(p.ReceivedAt)))
	}
	if more := len(pending) - maxPending; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "\n")
}

// oneLine keeps line breaks out of headings.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func incidentFields(c chat.IncidentCard) []*slack.TextBlockObject {
	in := c.Incident
	status := string(in.Status)
	switch in.Status {
	case incident.StatusAcknowledged:
		status += " by " + clip(in.AckedBy, 60)
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
		field("Alerts", firing), mrkdwn("Since\n"+slackTime(in.OpenedAt), maxField),
	}
	if in.Service != "" {
		where := in.Service
		if in.Environment != "" {
			where += " in " + in.Environment
		}
		fields = append(fields, field("Service", where))
	}
	return fields
}

// field shows its value literally.
func field(name, value string) *slack.TextBlockObject {
	return plain(name+"\n"+oneLine(value), maxPlace)
}

func alertLines(c chat.IncidentCard) string {
	var b strings.Builder
	shown := 0
	for _, a := range c.Alerts {
		line := "• " + clip(oneLine(a), 350) + "\n"
		if utf8.RuneCountInString(b.String())+utf8.RuneCountInString(line) > maxAlerts {
			break
		}
		b.WriteString(line)
		shown++
	}
	if more := c.Incident.Firing + c.Incident.Resolved - shown; more > 0 {
		fmt.Fprintf(&b, "and %d more", more)
	}
	return strings.TrimRight(b.String(), "\n")
}

// runState says how a run stands and how long it still holds; our own words only.
func runState(r actions.Run, now time.Time) string {
	switch r.Status {
	case actions.StatusAccepted:
		return "*accepted*, not yet in force"
	case actions.StatusExecuting:
		return fmt.Sprintf("*revision %d is out*", r.Revision)
	case actions.StatusActive:
		return fmt.Sprintf("*in force* since revision %d%s · ends %s (in %s)", r.Revision, appliedIn(r), slackTime(r.ExpiresAt), max(0, r.ExpiresAt.Sub(now)).Round(time.Second))
	case actions.StatusReverting:
		return fmt.Sprintf("*being taken back* with revision %d", r.RevertRevision)
	case actions.StatusEnded:
		return "*ended* (" + escapeClip(string(r.EndReason), 60) + ") at " + clockUTC(r.EndedAt)
	case actions.StatusFailed:
		return "*failed* (" + escapeClip(string(r.EndReason), 60) + ")"
	}
	return escapeClip(string(r.Status), 60)
}

// runDetail adds what may hold foreign words; it is shown literally.
func runDetail(r actions.Run) string {
	switch r.Status {
	case actions.StatusExecuting:
		return "waiting for " + names(r.Missing)
	case actions.StatusActive:
		return verdict(r.Verification)
	case actions.StatusEnded:
		by := prefixed("by ", clip(r.EndedBy, 60))
		if r.Verification.Verdict == "" {
			return by
		}
		return joinClip([]string{by, verdict(r.Verification)}, " · ", maxRunState)
	case actions.StatusFailed:
		return r.EndDetail
	case actions.StatusAccepted, actions.StatusReverting:
	}
	return ""
}

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

func appliedIn(r actions.Run) string {
	if r.EnforcedAt.IsZero() || r.AcceptedAt.IsZero() {
		return ""
	}
	return fmt.Sprintf(", enforced %s after the click", r.EnforcedAt.Sub(r.AcceptedAt).Round(time.Millisecond))
}

func verdict(v actions.Verification) string {
	detail := prefixed(": ", clip(oneLine(v.Detail), 300))
	switch v.Verdict {
	case actions.Verified:
		return "✔ verified" + detail
	case actions.NotVerified:
		return "✖ not verified" + detail
	case actions.Inconclusive:
		return "❔ inconclusive" + detail
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
	return joinClip(append(parts, "as of "+clockUTC(c.Now)), " · ", maxLinks)
}

// drawChange draws the card of a change that waits for a confirmation.
func drawChange(c chat.ChangeCard) message {
	ch := c.Change
	title := oneLine(fmt.Sprintf("%s of %s in %s: %s", ch.Kind, ch.Service, ch.Environment, ch.Status))
	times := "*When* " + slackTime(ch.Start) + " to " + slackTime(ch.End)
	if ch.Status == change.StatusHeld && !ch.ConfirmBy.IsZero() {
		times += "\n*Confirm by* " + slackTime(ch.ConfirmBy)
	}
	blocks := []slack.Block{
		slack.NewHeaderBlock(plain("📅 "+title, maxHeader)),
		slack.NewSectionBlock(mrkdwn(times+"\n*Run* "+runName(ch.RunID, ch.URL), maxText), nil, nil),
		slack.NewSectionBlock(plain(changeLines(c), maxText), nil, nil),
	}
	if len(c.Buttons) > 0 {
		blocks = append(blocks, buttonBlock(c.Buttons))
	}
	blocks = append(blocks, slack.NewContextBlock("", mrkdwn(link(c.URL, "Open in holdfast")+" · as of "+clockUTC(c.Now), maxText)))
	return message{Text: escapeClip(title, maxFallback), Blocks: blocks, URL: c.URL}
}

// changeLines hold the words of others; they are shown literally.
func changeLines(c chat.ChangeCard) string {
	ch := c.Change
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if ch.RequesterName != "" {
		add("Asked by %s", clip(ch.RequesterName, 100))
	}
	if ch.Summary != "" {
		add("Summary: %s", clip(oneLine(ch.Summary), 600))
	}
	const shown = 8
	for _, b := range c.Blockers[:min(shown, len(c.Blockers))] {
		add("In the way: %s %s (%s), %s to %s", clip(b.Service, 100), b.Kind, b.Status, minuteUTC(b.Start), minuteUTC(b.End))
	}
	if more := len(c.Blockers) - shown; more > 0 {
		add("In the way: %d more", more)
	}
	if ch.DecidedBy != "" {
		add("Decided by %s at %s", clip(ch.DecidedBy, 100), clockUTC(ch.DecidedAt))
	}
	return joinClip(lines, "\n", maxText)
}

func minuteUTC(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

func runName(id, url string) string {
	if url == "" {
		return escapeClip(id, 100)
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
