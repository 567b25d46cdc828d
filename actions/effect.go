package actions

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"holdfast/gpuguard/signals"
)

// judgeEffect looks whether a run that the gateways report as in force has the
// effect its plan names. The rules' windows still hold what was before, so until
// the effect had time to show its absence leaves the verdict open. No data is
// inconclusive, never a success.
func (e *Engine) judgeEffect(ctx context.Context, run Run, enforced Verification, now time.Time) Verification {
	c := run.Plan.Criterion
	if c == nil || e.data == nil {
		return enforced
	}
	answer, err := e.data.Query(ctx, c.Query, time.Time{})
	if err != nil {
		return open(run, Verification{Verdict: Inconclusive, Detail: clip("in force; its effect could not be judged: "+err.Error(), 300)}, now, e.timing)
	}
	j := c.Judge(answer)
	switch j.Verdict {
	case signals.Pass:
		return Verification{Verdict: Verified, Detail: enforced.Detail + "; " + seen(c, *j.Value)}
	case signals.Fail:
		return open(run, Verification{Verdict: NotVerified, Detail: "in force, but " + seen(c, *j.Value)}, now, e.timing)
	default:
		return open(run, Verification{Verdict: Inconclusive, Detail: "in force; no data to judge its effect by (" + c.String() + ")"}, now, e.timing)
	}
}

// open keeps a verdict back while the effect may still be on its way.
func open(run Run, found Verification, now time.Time, t timing) Verification {
	if now.Before(run.EnforcedAt.Add(t.settle)) {
		found.Verdict = ""
	}
	return found
}

// seen says what a criterion saw, such as "errors of llm are 2.1 %, wanted < 5 %".
func seen(c *signals.Criterion, value float64) string {
	what := c.Title
	if what == "" {
		what = c.Query
	}
	return fmt.Sprintf("%s: %s, wanted %s %s", what, amount(value, c.Unit), c.Is, amount(c.Value, c.Unit))
}

// amount writes a value with its unit; ratios as a percentage.
func amount(v float64, unit string) string {
	switch unit {
	case "ratio":
		return strconv.FormatFloat(v*100, 'f', 1, 64) + " %"
	case "":
		return strconv.FormatFloat(v, 'g', 4, 64)
	default:
		return strconv.FormatFloat(v, 'g', 4, 64) + " " + unit
	}
}
