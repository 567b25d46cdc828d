package builtin

import (
	"fmt"
	"slices"
	"strings"

	"holdfast/actions"
)

// reports sorts the live gateways by what they report about a run.
type reports struct {
	// current reported after they took the revision; late did not yet.
	current []actions.Gateway
	late    []string
}

func reportsOf(run actions.Run, snap actions.Snapshot) reports {
	var r reports
	for _, g := range snap.Gateways {
		switch {
		case !g.Live:
		case g.Lineage != run.Lineage || g.Revision < run.Revision || g.StateAt.Before(run.ExecutedAt):
			r.late = append(r.late, g.Name)
		default:
			r.current = append(r.current, g)
		}
	}
	slices.Sort(r.late)
	slices.SortFunc(r.current, func(a, b actions.Gateway) int { return strings.Compare(a.Name, b.Name) })
	return r
}

// verdict weighs the reports: one gateway that shows the opposite is enough for
// not verified; a missing report leaves it open, because no data is no success.
func (r reports) verdict(wrong []string, good string) actions.Verification {
	switch {
	case len(wrong) > 0:
		return actions.Verification{Verdict: actions.NotVerified, Detail: strings.Join(wrong, "; ")}
	case len(r.late) > 0:
		return actions.Verification{Verdict: actions.Inconclusive, Detail: "no report since the revision from " + strings.Join(r.late, ", ")}
	case len(r.current) == 0:
		return actions.Verification{Verdict: actions.Inconclusive, Detail: "no live gateway"}
	default:
		return actions.Verification{Verdict: actions.Verified, Detail: good}
	}
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
