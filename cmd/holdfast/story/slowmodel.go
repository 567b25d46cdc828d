package story

import (
	"context"
	"fmt"
	"time"

	"holdfast/gpuguard/enginesim"
	"holdfast/server/api/client"
)

// slowModel plays outage A.
func (p *player) slowModel(ctx context.Context) error {
	for _, part := range []func(context.Context) error{
		p.healthy, p.rollOut, p.alarm, p.measure, p.calm, p.rollBack, p.end,
	} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (p *player) figures() string {
	s := p.callers.tally.window(time.Now(), lookBack)
	return fmt.Sprintf("goodput %.1f/s, %.0f %% of calls fail, %.1f/s refused, %.1f/s degraded, %.1f attempts per call",
		s.GoodPerSecond, s.FailedRatio*100, s.RefusedPerSecond, s.DegradedPerSecond, s.AttemptsPerCall)
}

func (p *player) healthy(ctx context.Context) error {
	p.tell("begin", "story %s, seed %d: %d calls/s, a read timeout of %s at the gateway, SDKs that try up to %d times", p.Name, p.Seed, callRate, ReadTimeout, callRetries+1)
	if err := p.wait(ctx, p.Warmup); err != nil {
		return err
	}
	p.tell("before", "all is well: %s", p.figures())
	return nil
}

// rollOut puts the slow version on the engine. The pipeline has asked before and
// has finished: nobody can pause it any more.
func (p *player) rollOut(ctx context.Context) error {
	now := time.Now()
	run := fmt.Sprintf("story-%d-%d", p.Seed, now.Unix())
	decision, err := deploy(ctx, p.Server, p.CIToken, service, environment, run, "model v2.1.0")
	if err != nil {
		return fmt.Errorf("enter the deploy: %w", err)
	}
	if err := p.Engine.SetKnobs(slowKnobs(p.Seed)); err != nil {
		return err
	}
	p.fault = time.Now()
	note := "the calendar allowed it and has it"
	if decision != client.Allow {
		note = fmt.Sprintf("the calendar said %s because of other changes; in this story nobody waited", decision)
	}
	p.tell("fault", "model v2.1.0 is live on every engine (%s); it decodes four times slower", note)
	return nil
}

// alarm waits for the alert that nobody posts, and for its card.
func (p *player) alarm(ctx context.Context) error {
	var found *client.Incident
	err := p.until(ctx, patience, func() (bool, error) {
		in, err := p.watch.incident(ctx, service, p.fault)
		found = in
		return in != nil, err
	}, func() { p.tell("worse", "no alert yet: %s", p.figures()) })
	if err != nil {
		return fmt.Errorf("wait for the alert: %w", err)
	}
	p.tell("alert", "the golden signals fired by themselves: incident #%d, %s", found.Number, found.Title)
	var at time.Time
	err = p.until(ctx, time.Minute, func() (ok bool, err error) {
		at, ok = p.Card(p.fault)
		return ok, nil
	}, nil)
	if err != nil {
		return fmt.Errorf("wait for the card: %w", err)
	}
	p.tell("card", "the card is in the channel %.2f s after the incident was opened: %s", at.Sub(found.OpenedAt).Seconds(), p.figures())
	p.tell("cue", "stop the bleeding: press \"Set rate limit\" or \"Trip breaker\" on the card (%s),", p.Slack)
	p.tell("cue", "or open the incident and start the runbook \"slow model\" (%s/incidents/%s)", p.Console, found.Id)
	return nil
}

// measure waits for a person's action to be in force.
func (p *player) measure(ctx context.Context) error {
	var run client.ActionRun
	err := p.until(ctx, 0, func() (bool, error) {
		runs, err := p.watch.runs(ctx, p.fault)
		for _, r := range runs {
			if r.EnforcedAt != nil && live(r) {
				run = r
				return true, nil
			}
		}
		return false, err
	}, func() { p.tell("waiting", "nobody has acted yet: %s", p.figures()) })
	if err != nil {
		return err
	}
	p.tell("during", "until now: %s", p.figures())
	p.tell("enforced", "%s asked for \"%s\"; every gateway enforces it %.2f s after the click", run.Requester, run.Summary, run.EnforcedAt.Sub(run.AcceptedAt).Seconds())
	return nil
}

// calm waits until few calls fail.
func (p *player) calm(ctx context.Context) error {
	err := p.until(ctx, 0, func() (bool, error) {
		s := p.callers.tally.window(time.Now(), lookBack)
		return s.Calls > 0 && s.FailedRatio < calmRatio, nil
	}, func() { p.tell("waiting", "still failing: %s; another measure may be needed", p.figures()) })
	if err != nil {
		return err
	}
	p.tell("calm", "fewer than 5 %% of calls fail: %s", p.figures())
	return nil
}

// rollBack gives the engine its old version back, as the people who look for
// the cause would.
func (p *player) rollBack(ctx context.Context) error {
	p.tell("cue", "the model's team rolls back to v2.0.4; it takes %s. Watch the lease count down, renew or revert it in the console", p.Hold)
	if err := p.wait(ctx, p.Hold); err != nil {
		return err
	}
	if err := p.Engine.SetKnobs(enginesim.DefaultKnobs()); err != nil {
		return err
	}
	p.tell("rollback", "v2.0.4 is back: %s", p.figures())
	return nil
}

// end waits until the alert is over and the measures are taken back.
func (p *player) end(ctx context.Context) error {
	err := p.until(ctx, 0, func() (bool, error) {
		in, err := p.watch.incident(ctx, service, p.fault)
		return in != nil && in.Firing == 0, err
	}, nil)
	if err != nil {
		return err
	}
	p.tell("resolved", "the alerts are over: %s", p.figures())
	told := false
	err = p.until(ctx, 0, func() (bool, error) {
		runs, err := p.watch.runs(ctx, p.fault)
		if err != nil {
			return false, err
		}
		for _, r := range runs {
			if live(r) {
				if !told {
					told = true
					p.tell("cue", "revert \"%s\" to let everybody in again, or let its lease end at %s", r.Summary, value(r.ExpiresAt).Local().Format(time.TimeOnly))
				}
				return false, nil
			}
		}
		return true, nil
	}, nil)
	if err != nil {
		return err
	}
	if err := p.wait(ctx, lookBack+2*time.Second); err != nil {
		return err
	}
	p.tell("after", "the measures are taken back: %s", p.figures())
	p.tell("end", "the story is over; the demo goes on")
	return nil
}
