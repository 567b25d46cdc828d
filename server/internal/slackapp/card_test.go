package slackapp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"holdfast/actions"
	"holdfast/runbooks"
	"holdfast/server/change"
	"holdfast/server/chat"
	"holdfast/server/incident"
	"holdfast/server/slacksim"
)

// golden compares JSON with testdata/<name>.json.
func golden(t *testing.T, name string, v any) {
	t.Helper()
	var got bytes.Buffer
	enc := json.NewEncoder(&got)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	require.NoError(t, enc.Encode(v))
	path := filepath.Join("testdata", name+".json")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o750))
		require.NoError(t, os.WriteFile(path, got.Bytes(), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run go test -update to write it")
	require.Empty(t, cmp.Diff(string(want), got.String()), "run go test -update when this is meant")
}

type drawn struct {
	Text   string        `json:"text"`
	Blocks []slack.Block `json:"blocks"`
}

func run(status actions.Status) actions.Run {
	return actions.Run{
		ID: "r1", Plan: actions.Plan{Summary: "Force the breaker of llm open for 15m0s"}, Requester: actions.Actor{Name: "Alice Andersson"},
		Status: status, Revision: 42, RevertRevision: 43, AcceptedAt: noon.Add(-5 * time.Minute), EnforcedAt: noon.Add(-5*time.Minute + 1200*time.Millisecond),
		ExpiresAt: noon.Add(10 * time.Minute), Missing: []string{"gw-1", "gw-2"},
	}
}

func withRun(r actions.Run, buttons ...chat.Button) chat.IncidentCard {
	c := openCard()
	c.Runs, c.RunButtons = []actions.Run{r}, buttons
	return c
}

func runButtons() []chat.Button {
	return []chat.Button{
		{ID: "REVERTBUTTON", Subject: "run:r1", Label: "Revert", Style: "primary"},
		{ID: "RENEWBUTTON", Subject: "run:r1", Label: "Renew for 15m0s"},
	}
}

func incidentCards() map[string]chat.IncidentCard {
	verified := func(v actions.Verdict, detail string) actions.Run {
		r := run(actions.StatusActive)
		r.Verification = actions.Verification{Verdict: v, Detail: detail, At: noon}
		return r
	}
	cards := map[string]chat.IncidentCard{
		"open":             openCard(),
		"run_accepted":     withRun(run(actions.StatusAccepted), runButtons()[0]),
		"run_executing":    withRun(run(actions.StatusExecuting), runButtons()[0]),
		"run_active":       withRun(run(actions.StatusActive), runButtons()...),
		"run_verified":     withRun(verified(actions.Verified, "0 of 120 requests reached llm"), runButtons()...),
		"run_not_verified": withRun(verified(actions.NotVerified, "17 of 120 requests reached llm"), runButtons()...),
		"run_inconclusive": withRun(verified(actions.Inconclusive, "no traffic"), runButtons()...),
		"run_reverting":    withRun(run(actions.StatusReverting)),
	}
	acked := openCard()
	acked.Incident.Status, acked.Incident.AckedBy = incident.StatusAcknowledged, "Alice Andersson"
	acked.Buttons = acked.Buttons[1:]
	cards["acknowledged"] = acked
	ended := run(actions.StatusEnded)
	ended.EndReason, ended.EndedBy, ended.EndedAt = "reverted", "Bob Berger", noon.Add(-time.Minute)
	cards["run_ended"] = withRun(ended)
	failed := run(actions.StatusFailed)
	failed.EndReason, failed.EndDetail, failed.EndedAt = "invalid", "dependency llm is not in the policy", noon
	cards["run_failed"] = withRun(failed)
	pending := openCard()
	pending.Buttons = pending.Buttons[1:]
	pending.Pending = []chat.Click{{PersonName: "Alice Andersson", ReceivedAt: noon}}
	cards["pending"] = pending
	resolved := openCard()
	resolved.Incident.Status, resolved.Incident.ResolvedAt = incident.StatusResolved, noon
	resolved.Incident.Firing, resolved.Incident.Resolved, resolved.Buttons = 0, 2, nil
	cards["resolved"] = resolved
	suggested := openCard()
	suggested.Runbooks = []chat.RunbookLink{
		{Title: "Slow model <service>", URL: "https://holdfast.example/incidents/1?runbook=slow-model"},
		{Title: "Bad deploy", URL: "https://holdfast.example/incidents/1?runbook=bad-deploy"},
	}
	cards["runbook_suggested"] = suggested
	for name, state := range map[string]runbooks.StepState{
		"asks":     {Status: runbooks.StepAsking, Attempt: 1},
		"running":  {Status: runbooks.StepRunning, Attempt: 1, Detail: "23 % (want < 5 %)"},
		"failed":   {Status: runbooks.StepFailed, Attempt: 2, Detail: "23 % (want < 5 %)"},
		"decision": {Status: runbooks.StepAsking, Attempt: 1},
	} {
		cards["runbook_"+name] = withRunbook(name, state)
	}
	truncated := openCard()
	truncated.Incident.Truncated = 40
	cards["truncated"] = truncated
	return cards
}

// runbookRun stands at the second of three steps.
func runbookRun(kind runbooks.StepKind, state runbooks.StepState) runbooks.Run {
	step := runbooks.Step{ID: "trip", Title: "Trip the breaker of ${dependency}", Kind: kind, Command: "trip_breaker dependency=${dependency}"}
	if kind == runbooks.StepDecision {
		step.Title, step.Question = "Where is it?", "Which part of *${dependency}* is slow, <engine> or gateway?"
	}
	status := runbooks.StatusWaiting
	if state.Status == runbooks.StepRunning {
		status = runbooks.StatusRunning
	}
	return runbooks.Run{
		ID: "b1", Runbook: runbooks.Runbook{
			ID: "slow-model", Title: "Slow model",
			Params: []runbooks.Param{{Name: "dependency", Kind: "dependency"}}, Steps: []runbooks.Step{{ID: "look"}, step, {ID: "after"}},
		},
		Params: map[string]string{"dependency": "llm"}, Status: status, Current: 1,
		Steps: []runbooks.StepState{{Status: runbooks.StepPassed}, state, {Status: runbooks.StepPending}},
	}
}

func withRunbook(name string, state runbooks.StepState) chat.IncidentCard {
	kind := runbooks.StepAction
	if name == "decision" {
		kind = runbooks.StepDecision
	}
	c := openCard()
	c.RunbookRuns = []chat.RunbookRun{{Run: runbookRun(kind, state), URL: "https://holdfast.example/runbooks/runs/b1"}}
	return c
}

func changeCards() map[string]chat.ChangeCard {
	held := chat.ChangeCard{
		Change: change.Change{
			ID: "c1", Service: "chat-api", Environment: "prod", Kind: "deploy", Status: change.StatusHeld, Start: noon, End: noon.Add(time.Hour),
			RunID: "github/1234", URL: "https://ci.example/runs/1234?a=1&b=2", Summary: "Roll out *v2* of <router>", RequesterName: "Bob Berger", ConfirmBy: noon.Add(time.Hour),
		},
		Blockers: []change.Change{{Service: "llm", Kind: "deploy", Status: change.StatusHeld, Start: noon.Add(-time.Hour), End: noon.Add(time.Hour)}},
		Buttons: []chat.Button{
			{ID: "CONFIRMBUTTON", Subject: "change:c1", Label: "Confirm", Style: "primary", Confirm: "Let it go ahead although other changes are near."},
			{ID: "REJECTBUTTON", Subject: "change:c1", Label: "Reject", Style: "danger"},
		},
		URL: "https://holdfast.example/changes/c1", Now: noon,
	}
	decided := func(s change.Status) chat.ChangeCard {
		c := held
		c.Change.Status, c.Change.DecidedBy, c.Change.DecidedAt, c.Buttons = s, "Alice Andersson", noon, nil
		return c
	}
	return map[string]chat.ChangeCard{"held": held, "confirmed": decided("confirmed"), "rejected": decided("rejected")}
}

func TestGoldenCards(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{idle: true})
	for name, c := range incidentCards() {
		m := drawIncident(c)
		golden(t, "incident_"+name, drawn{m.Text, m.Blocks})
		w.accepts(m)
	}
	for name, c := range changeCards() {
		m := drawChange(c)
		golden(t, "change_"+name, drawn{m.Text, m.Blocks})
		w.accepts(m)
	}
}

// accepts posts and then edits, as Slack would take it, and gives what stands.
func (w *world) accepts(m message) slacksim.Message {
	w.Helper()
	got, err := w.tryPost(m)
	require.NoError(w, err)
	return got
}

func (w *world) tryPost(m message) (slacksim.Message, error) {
	_, ts, err := w.app.api.PostMessageContext(w.Context(), incidents, slack.MsgOptionText(m.Text, false), slack.MsgOptionBlocks(m.Blocks...))
	if err != nil {
		return slacksim.Message{}, fmt.Errorf("post: %w", err)
	}
	_, _, _, err = w.app.api.UpdateMessageContext(w.Context(), incidents, ts, slack.MsgOptionText(m.Text, false), slack.MsgOptionBlocks(m.Blocks...))
	if err != nil {
		return slacksim.Message{}, fmt.Errorf("update: %w", err)
	}
	got, _ := w.sim.Message(incidents, ts)
	return got, nil
}

func TestC34_LongTextsAlwaysPost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{idle: true})
	for name, summary := range map[string]string{
		"3001 ASCII characters": strings.Repeat("x", 3001),
		"1501 times é":          strings.Repeat("é", 1501),
		"cut inside an entity":  strings.Repeat("x", 2997) + "&" + strings.Repeat("y", 20),
		"cut inside a link":     strings.Repeat("x", 2990) + "<https://a.example|text>" + strings.Repeat("y", 20),
		"entities alone":        strings.Repeat("&", 5000),
	} {
		c := openCard()
		c.Incident.Summary, c.Incident.Title = summary, summary
		got := w.accepts(drawIncident(c))
		require.Contains(t, string(got.RawBlocks), "https://holdfast.example/incidents/1", name+": the full text is one link away")
		require.Contains(t, got.Visible(), ellipsis, name)

		cut := escapeClip(summary, maxText)
		require.LessOrEqual(t, len([]rune(cut)), maxText, name)
		require.NotRegexp(t, `&(a|am|amp|l|lt|g|gt)?…`, cut, name)
	}
}

func TestC36_LabelsAreShownLiterally(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{idle: true})
	c := openCard()
	c.Incident.Title = `a&b<c>"d' <!channel>`
	c.Incident.Summary = "*bold* _x_ |pipe"
	c.Incident.Service = "<!here> a&b"
	c.Incident.RunbookURL = "https://runbooks.example/x?a=1&b=2"
	c.Alerts = []string{`Down model=a&b<c>"d' pod=<!channel> @here`}
	got := w.accepts(drawIncident(c))
	seen := got.Visible()
	require.Contains(t, seen, `a&b<c>"d' <!channel>`)
	require.Contains(t, seen, "*bold* _x_ |pipe")
	require.Contains(t, seen, `Down model=a&b<c>"d' pod=<!channel> @here`)
	require.NotContains(t, seen, "&amp;")
	require.Empty(t, got.Notifies())
	require.Contains(t, drawIncident(c).Text, `a&amp;b&lt;c&gt;"d'`)
	require.NotContains(t, drawIncident(c).Text, "&amp;amp;")
	require.Equal(t, "<https://runbooks.example/x?a=1&amp;b=2|Runbook>", link(c.Incident.RunbookURL, "Runbook"))
	require.Equal(t, "Run/book &amp; co", strings.ReplaceAll(link("javascript:alert(1)", "Run/book & co"), "|", ""), "no link to anything but http")
}

func TestR22_HugeCardsAreValid(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{idle: true})
	c := openCard()
	c.Incident.Firing = 200
	c.Incident.Summary = strings.Repeat("模型🔥<!channel>@here ", 1000)
	c.Alerts = nil
	for range 200 {
		c.Alerts = append(c.Alerts, strings.Repeat("告警🔥 pod=<!channel> @here ", 500))
	}
	got := w.accepts(drawIncident(c))
	require.Empty(t, got.Notifies())
	require.Contains(t, got.Visible(), "more")
}

// Each text is at its longest at once: the sum must stay below Slack's, too.
func TestTheLargestCardIsAccepted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{idle: true})
	for _, unit := range []string{"x", "&", "模", "🔥"} {
		huge := strings.Repeat(unit, 10_000)
		c := openCard()
		c.Incident.Title, c.Incident.Summary, c.Incident.Service, c.Incident.AckedBy = huge, huge, huge, huge
		c.Incident.Status, c.Incident.Truncated, c.Incident.Firing = incident.StatusAcknowledged, 1_000_000, 1_000_000
		c.Incident.RunbookURL = "https://r.example/" + strings.Repeat("x", 1450)
		c.Incident.SourceURL = c.Incident.RunbookURL
		c.Alerts = []string{huge, huge, huge, huge, huge, huge}
		for i, status := range []actions.Status{actions.StatusActive, actions.StatusActive, actions.StatusExecuting, actions.StatusFailed, actions.StatusEnded, actions.StatusActive} {
			r := run(status)
			r.ID, r.Plan.Summary, r.Requester.Name, r.EndDetail, r.EndReason, r.EndedBy = fmt.Sprint("r", i), huge, huge, huge, actions.EndReason(huge), huge
			r.Missing, r.Verification = []string{huge}, actions.Verification{Verdict: actions.NotVerified, Detail: huge}
			c.Runs = append(c.Runs, r)
			if i < 5 {
				c.RunButtons = append(c.RunButtons, chat.Button{ID: fmt.Sprint("RUN", i), Subject: "run:" + r.ID, Label: huge})
			}
			c.Pending = append(c.Pending, chat.Click{PersonName: huge, ReceivedAt: noon})
		}
		for range 5 {
			r := runbookRun(runbooks.StepDecision, runbooks.StepState{Status: runbooks.StepFailed, Detail: huge})
			r.Runbook.Title, r.Runbook.Steps[1].Title, r.Runbook.Steps[1].Question = huge, huge, huge
			c.RunbookRuns = append(c.RunbookRuns, chat.RunbookRun{Run: r, URL: "https://holdfast.example/runbooks/runs/" + strings.Repeat("x", 100)})
			c.Runbooks = append(c.Runbooks, chat.RunbookLink{Title: huge, URL: "https://holdfast.example/incidents/1?runbook=" + strings.Repeat("x", 64)})
		}
		for i := range c.Buttons {
			c.Buttons[i].Label, c.Buttons[i].Confirm = huge, huge
		}
		w.accepts(drawIncident(c))

		h := changeCards()["held"]
		h.Change.Service, h.Change.Summary, h.Change.RunID, h.Change.RequesterName = huge, huge, huge, huge
		h.Blockers[0].Service = huge
		for range 20 {
			h.Blockers = append(h.Blockers, h.Blockers[0])
		}
		w.accepts(drawChange(h))
	}
}

// nasty generates text that has broken Slack messages elsewhere.
func nasty(limit int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		unit := rapid.SampledFrom([]string{"x", "é", "模", "🔥", "&", "<", ">", "<!channel>", "@here", "<@U0000ALICE>", "*b*", "`", "|", "\n", " ", "\x00", "\xff", "<https://a|b>"}).Draw(t, "unit")
		n := rapid.IntRange(0, limit).Draw(t, "n")
		return strings.Repeat(unit, n) + rapid.StringN(0, 20, -1).Draw(t, "tail")
	})
}

func TestR22_EveryCardIsAcceptedBySlack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{idle: true})
	rapid.Check(t, func(t *rapid.T) {
		got, err := w.tryPost(drawIncident(anyCard(t)))
		if err != nil {
			t.Fatalf("%v", err)
		}
		if who := got.Notifies(); len(who) > 0 {
			t.Fatalf("notifies %v", who)
		}
	})
}

func anyCard(t *rapid.T) chat.IncidentCard {
	text := func(name string) string { return nasty(1000).Draw(t, name) }
	c := openCard()
	c.Incident.Title, c.Incident.Summary, c.Incident.Service = text("title"), text("summary"), text("service")
	c.Incident.Environment, c.Incident.AckedBy = text("environment"), text("acked by")
	c.Incident.RunbookURL, c.Incident.SourceURL = "https://r.example/"+text("runbook"), "https://s.example/"+text("source")
	c.Incident.Status = rapid.SampledFrom([]incident.Status{incident.StatusOpen, incident.StatusAcknowledged, incident.StatusResolved}).Draw(t, "status")
	c.Incident.Firing = rapid.IntRange(0, 100_000).Draw(t, "firing")
	alert := text("alert")
	for range rapid.IntRange(0, 10).Draw(t, "alerts") {
		c.Alerts = append(c.Alerts, alert)
	}
	detail, label := text("detail"), rapid.StringN(0, 75, -1).Draw(t, "label")
	status := rapid.SampledFrom([]actions.Status{actions.StatusAccepted, actions.StatusExecuting, actions.StatusActive, actions.StatusReverting, actions.StatusEnded, actions.StatusFailed, "odd"})
	for i := range rapid.IntRange(0, 10).Draw(t, "runs") {
		r := run(status.Draw(t, "run status"))
		r.ID = fmt.Sprint("r", i)
		r.Plan.Summary, r.Requester.Name, r.EndDetail, r.EndedBy, r.EndReason = detail, detail, detail, detail, actions.EndReason(detail)
		r.Missing, r.Verification = []string{detail}, actions.Verification{Verdict: actions.NotVerified, Detail: detail}
		c.Runs = append(c.Runs, r)
		if i < 5 { // chat makes no more
			c.RunButtons = append(c.RunButtons, chat.Button{ID: fmt.Sprint("RUN", i), Subject: "run:" + r.ID, Label: label})
		}
	}
	state := rapid.SampledFrom([]runbooks.StepStatus{runbooks.StepPending, runbooks.StepAsking, runbooks.StepRunning, runbooks.StepFailed, runbooks.StepInconclusive})
	for range rapid.IntRange(0, 4).Draw(t, "runbook runs") {
		r := runbookRun(rapid.SampledFrom([]runbooks.StepKind{runbooks.StepAction, runbooks.StepDecision}).Draw(t, "step kind"),
			runbooks.StepState{Status: state.Draw(t, "step status"), Detail: detail})
		r.Runbook.Title, r.Params["dependency"], r.Current = detail, detail, rapid.IntRange(0, 3).Draw(t, "current")
		c.RunbookRuns = append(c.RunbookRuns, chat.RunbookRun{Run: r, URL: "https://holdfast.example/runbooks/runs/b1"})
		c.Runbooks = append(c.Runbooks, chat.RunbookLink{Title: detail, URL: "https://holdfast.example/incidents/1?runbook=" + label})
	}
	for range rapid.IntRange(0, 10).Draw(t, "pending") {
		c.Pending = append(c.Pending, chat.Click{PersonName: detail, ReceivedAt: noon})
	}
	for i := range c.Buttons {
		c.Buttons[i].Label, c.Buttons[i].Confirm = label, rapid.SampledFrom([]string{"", detail}).Draw(t, "confirm")
	}
	return c
}

func TestR22_EveryChangeCardIsAcceptedBySlack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{idle: true})
	rapid.Check(t, func(t *rapid.T) {
		text := func(name string) string { return nasty(700).Draw(t, name) }
		c := changeCards()["held"]
		c.Change.Service, c.Change.Environment, c.Change.Summary = text("service"), text("environment"), text("summary")
		c.Change.RunID, c.Change.RequesterName, c.Change.DecidedBy = text("run"), text("requester"), text("decider")
		c.Change.URL = rapid.SampledFrom([]string{"", "https://ci.example/", "javascript:"}).Draw(t, "scheme") + text("url")
		b := c.Blockers[0]
		b.Service = text("blocker")
		for range rapid.IntRange(0, 20).Draw(t, "blockers") {
			c.Blockers = append(c.Blockers, b)
		}
		got, err := w.tryPost(drawChange(c))
		if err != nil {
			t.Fatalf("%v", err)
		}
		if who := got.Notifies(); len(who) > 0 {
			t.Fatalf("notifies %v", who)
		}
	})
}
