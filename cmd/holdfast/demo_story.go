package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/cmd/holdfast/story"
	"holdfast/gpuguard/policy"
)

// storyFile takes one JSON object per event of the story, in the state folder.
const storyFile = "story.jsonl"

// storyFlags choose an outage to be played.
type storyFlags struct {
	name         string
	seed         uint64
	warmup, hold time.Duration
}

func (f *storyFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.name, "story", "", "outage to play: "+strings.Join(story.Names(), ", "))
	fl.Uint64Var(&f.seed, "story-seed", 1, "fixes the story's arrivals and faults")
	fl.DurationVar(&f.warmup, "story-warmup", time.Minute, "healthy time before the fault")
	fl.DurationVar(&f.hold, "story-hold", 90*time.Second, "time from the end of the bleeding to the rollback of the model")
	_ = cmd.RegisterFlagCompletionFunc("story", cobra.FixedCompletions(story.Names(), cobra.ShellCompDirectiveNoFileComp))
}

func (f *storyFlags) validate() error {
	switch {
	case f.name != "" && !slices.Contains(story.Names(), f.name):
		return usagef("--story %q: want one of %s", f.name, strings.Join(story.Names(), ", "))
	case f.warmup < 10*time.Second || f.warmup > time.Hour:
		return usagef("--story-warmup %s: want 10s to 1h; the rules look at the last minute", f.warmup)
	case f.hold < 0 || f.hold > time.Hour:
		return usagef("--story-hold %s: want 0s to 1h", f.hold)
	}
	return nil
}

// dayOf makes the policy what it was on the day of the outage: a read timeout
// below the real inference time, and no breaker that opens by itself (INCIDENTS A).
func (f *storyFlags) dayOf(doc *policy.Document) {
	if f.name == "" {
		return
	}
	d := doc.Dependencies["llm"]
	d.Breaker.FailureRate, d.Breaker.MinimumCalls, d.Breaker.ConsecutiveFailures = 1, 10000, 10000
	limit := policy.Duration(story.ReadTimeout)
	d.Timeouts.FirstByte, d.Timeouts.Idle, d.Timeouts.Total = limit, limit, limit
	doc.Dependencies["llm"] = d
}

// playStory plays it in front of the person at the terminal. When it is over the demo goes on.
func (d *demoRun) playStory(ctx context.Context) error {
	f := d.flags.story
	link, err := d.server.LoginLink(ctx, "mallory", time.Minute)
	if err != nil {
		return err
	}
	events, err := os.Create(filepath.Join(d.flags.state, storyFile))
	if err != nil {
		return err
	}
	defer events.Close()
	gateways := make([]string, len(d.guards))
	for i, g := range d.guards {
		gateways[i] = "http://" + g.Addr()
	}
	slack := "in your Slack"
	if d.sim != nil {
		slack = d.sim.URL()
	}
	fmt.Fprintf(d.app.out, "\nStory %s (events also in %s):\n", f.name, events.Name())
	err = story.Play(ctx, story.Options{
		Name: f.name, Seed: f.seed, Gateways: gateways, Key: demoKeyAcme, Engine: d.llm,
		Server: d.server.URL(), Login: link, CIToken: d.facts.CIToken, Card: d.cardSince,
		Slack: slack, Console: d.server.URL(), Warmup: f.warmup, Hold: f.hold, Out: d.app.out, Events: events,
	})
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return nil
	}
	return err
}

// cardSince finds the first message posted since a time. With real Slack it
// cannot be seen from here, and counts as posted at once.
func (d *demoRun) cardSince(since time.Time) (time.Time, bool) {
	if d.sim == nil {
		return time.Now(), true
	}
	for _, m := range d.sim.Messages(d.opts.Config.Slack.Channel) {
		if at, ok := messageTime(m.TS); ok && !at.Before(since) && (m.ThreadTS == "" || m.ThreadTS == m.TS) {
			return at, true
		}
	}
	return time.Time{}, false
}

// messageTime reads Slack's message id, which is a time in seconds with microseconds.
func messageTime(ts string) (time.Time, bool) {
	seconds, micros, ok := strings.Cut(ts, ".")
	s, err := strconv.ParseInt(seconds, 10, 64)
	us, err2 := strconv.ParseInt(micros, 10, 64)
	return time.Unix(s, us*1000), ok && err == nil && err2 == nil
}
