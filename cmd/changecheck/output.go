package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"holdfast/server/api/client"
)

// both shows an instant in UTC and, where it differs, in local time.
func both(t time.Time) string {
	utc := t.UTC().Format("2006-01-02 15:04:05Z")
	local := t.Local()
	if _, offset := local.Zone(); offset == 0 {
		return utc
	}
	return utc + local.Format(" (15:04:05 MST)")
}

func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.out)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// decisionJSON is the decision plus what the caller needs for the next commands.
type decisionJSON struct {
	*client.ChangeDecision
	RunID     string `json:"run_id"`
	DryRun    bool   `json:"dry_run,omitempty"`
	Unchecked bool   `json:"unchecked,omitempty"`
}

func (a *app) printDecision(d *client.ChangeDecision, req client.ChangeRequest, dryRun bool) error {
	if a.json {
		return a.printJSON(decisionJSON{ChangeDecision: d, RunID: req.RunId, DryRun: dryRun})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s in %s\n", a.paint(d.Decision), req.Service, req.Environment)
	for _, r := range d.Reasons {
		fmt.Fprintf(&b, "  %s\n", r.Text)
	}
	for _, c := range d.Blockers {
		fmt.Fprintf(&b, "  in the way: %s %s (%s) %s to %s\n", c.Service, c.Kind, c.Status, both(c.Start), both(c.End))
	}
	if d.NextOpen != nil {
		fmt.Fprintf(&b, "  next free start: %s\n", both(*d.NextOpen))
	}
	if d.ConfirmUrl != nil {
		fmt.Fprintf(&b, "  to be confirmed by another person: %s\n", *d.ConfirmUrl)
	}
	if d.ChangeId != nil {
		fmt.Fprintf(&b, "  change %s, run id %s\n", *d.ChangeId, req.RunId)
	}
	_, err := fmt.Fprint(a.out, b.String())
	return err
}

func (a *app) printUnchecked(req client.ChangeRequest) error {
	if a.json {
		return a.printJSON(decisionJSON{
			ChangeDecision: &client.ChangeDecision{
				Decision: client.Allow, ReasonCode: "unreachable", Blockers: []client.Change{}, ExpiresAt: time.Now().UTC(),
				Reasons: []client.Reason{{Code: "unreachable", Text: "the server was not reachable; allowed by --on-unreachable"}},
			},
			RunID: req.RunId, Unchecked: true,
		})
	}
	_, err := fmt.Fprintf(a.out, "allow (unchecked)  %s in %s\n", req.Service, req.Environment)
	return err
}

func (a *app) printChange(c *client.Change) error {
	if c == nil {
		return exitf(exitUnreachable, "the server answered without a change")
	}
	if a.json {
		return a.printJSON(c)
	}
	_, err := fmt.Fprintf(a.out, "%s  change %s: %s in %s, %s to %s\n", c.Status, c.Id, c.Service, c.Environment, both(c.Start), both(c.End))
	return err
}

// progress tells a waiting person what is being waited for.
func (a *app) progress(d *client.ChangeDecision, left time.Duration) {
	fmt.Fprintf(a.err, "changecheck: %s, %s left: %s\n", d.Decision, left.Round(time.Second), firstReason(d))
}

// paint colours a verdict on a terminal only.
func (a *app) paint(v client.Verdict) string {
	f, ok := a.out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return string(v)
	}
	colour := map[client.Verdict]string{client.Allow: "32", client.Confirm: "33", client.Deny: "31"}[v]
	return "\x1b[1;" + colour + "m" + string(v) + "\x1b[0m"
}
