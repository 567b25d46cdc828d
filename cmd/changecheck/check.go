package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mrand "math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/server/api/client"
)

// checkFlags are the flags of the check itself.
type checkFlags struct {
	service, env, kind, runID, summary, start, actor, link string
	duration, wait                                         time.Duration
	dryRun                                                 bool
	onUnreachable                                          string
}

var kinds = []string{"deploy", "scale", "flag", "config", "migration", "rebalance", "traffic_event", "rollback"}

func (f *checkFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.service, "service", "", "what is changed; a name of the service catalogue (required)")
	fl.StringVar(&f.env, "env", "", "environment, such as prod (required)")
	fl.StringVar(&f.kind, "kind", "deploy", "kind of change: "+strings.Join(kinds, ", "))
	fl.DurationVar(&f.duration, "duration", 30*time.Minute, "how long the change takes, at most 168h")
	fl.StringVar(&f.runID, "run-id", "", "identity of the run; asking again with it is the same claim (default: made up and printed)")
	fl.StringVar(&f.summary, "summary", "", "one line for people")
	fl.StringVar(&f.start, "start", "", "start, RFC 3339 with zone (default: now)")
	fl.StringVar(&f.actor, "actor", "", "handle of the person behind the run: who may then not confirm it")
	fl.StringVar(&f.link, "link", "", "URL of the run")
	fl.DurationVar(&f.wait, "wait", 0, "keep asking for so long while the answer is confirm or deny")
	fl.BoolVar(&f.dryRun, "dry-run", false, "ask only, claim nothing")
	fl.StringVar(&f.onUnreachable, "on-unreachable", "fail", "what to do when the server is not reachable: fail or allow")
	for _, name := range []string{"service", "env"} {
		_ = cmd.MarkFlagRequired(name)
	}
	_ = cmd.RegisterFlagCompletionFunc("kind", cobra.FixedCompletions(kinds, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("on-unreachable", cobra.FixedCompletions([]string{"fail", "allow"}, cobra.ShellCompDirectiveNoFileComp))
}

// request validates the flags and turns them into the API's form.
func (f *checkFlags) request() (client.ChangeRequest, error) {
	if !slices.Contains(kinds, f.kind) {
		return client.ChangeRequest{}, exitf(exitUsage, "--kind %q: want one of %s", f.kind, strings.Join(kinds, ", "))
	}
	if f.onUnreachable != "fail" && f.onUnreachable != "allow" {
		return client.ChangeRequest{}, exitf(exitUsage, "--on-unreachable %q: want fail or allow", f.onUnreachable)
	}
	if f.duration < 0 || f.duration > 168*time.Hour {
		return client.ChangeRequest{}, exitf(exitUsage, "--duration %s: want 0s to 168h", f.duration)
	}
	if f.wait < 0 {
		return client.ChangeRequest{}, exitf(exitUsage, "--wait %s: want 0s or more", f.wait)
	}
	if f.runID == "" {
		f.runID = "local-" + strings.ToLower(rand32())
	}
	kind, duration := client.ChangeKind(f.kind), f.duration.String()
	req := client.ChangeRequest{
		Service: f.service, Environment: f.env, RunId: f.runID, Kind: &kind, Duration: &duration,
		Summary: optional(f.summary), Actor: optional(f.actor), Url: optional(f.link),
	}
	if f.start != "" {
		t, err := time.Parse(time.RFC3339, f.start)
		if err != nil {
			return req, exitf(exitUsage, "--start %q: want RFC 3339 with zone, such as 2026-02-03T14:00:00Z", f.start)
		}
		req.Start = &t
	}
	return req, nil
}

func rand32() string { return rand.Text() }

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func (a *app) check(ctx context.Context, f checkFlags) error {
	req, err := f.request()
	if err != nil {
		return err
	}
	c, err := a.connect()
	if err != nil {
		return err
	}
	ask := c.claim
	if f.dryRun {
		ask = c.check
	}
	d, err := a.askUntil(ctx, ask, req, f.wait)
	if err != nil {
		return a.unreachable(err, f, req)
	}
	if err := a.printDecision(d, req, f.dryRun); err != nil {
		return err
	}
	return verdictError(d)
}

// askUntil asks, and asks again with jitter while the answer is not allow and time is left.
func (a *app) askUntil(ctx context.Context, ask askFunc, req client.ChangeRequest, wait time.Duration) (*client.ChangeDecision, error) {
	deadline := time.Now().Add(wait)
	for {
		d, err := ask(ctx, req)
		left := time.Until(deadline)
		if err != nil || d.Decision == client.Allow || left <= 0 {
			return d, err
		}
		a.progress(d, left)
		if err := a.pause(ctx, min(left, jittered(5*time.Second))); err != nil {
			return d, nil //nolint:nilerr // interrupted while waiting: the last answer stands
		}
	}
}

// jittered spreads waiting pipelines over ±20 % so that they do not ask in step.
func jittered(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*mrand.Float64()))
}

// unreachable applies --on-unreachable to what is the server's or the network's fault.
func (a *app) unreachable(err error, f checkFlags, req client.ChangeRequest) error {
	var e *exitError
	if f.onUnreachable != "allow" || !errors.As(err, &e) || e.code != exitUnreachable || errors.Is(err, errCredentials) {
		return err
	}
	fmt.Fprintf(a.err, "changecheck: WARNING: allowed without an answer (--on-unreachable allow): %v\n", err)
	return a.printUnchecked(req)
}

func verdictError(d *client.ChangeDecision) error {
	switch d.Decision {
	case client.Allow:
		return nil
	case client.Confirm:
		return exitf(exitConfirm, "confirmation needed: %s", firstReason(d))
	default:
		return exitf(exitDenied, "denied: %s", firstReason(d))
	}
}

func firstReason(d *client.ChangeDecision) string {
	if len(d.Reasons) == 0 {
		return d.ReasonCode
	}
	return d.Reasons[0].Text
}
