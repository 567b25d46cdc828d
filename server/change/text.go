package change

import (
	"fmt"
	"time"

	"holdfast/server/incident"
)

// name says a change in words, such as "deploy of checkout by alice (change …)".
func (c Change) name() string {
	who := c.RequesterName
	if who == "" {
		who = "unknown"
	}
	service := c.Service
	if service == "" {
		service = c.Environment
	}
	return fmt.Sprintf("%s of %s by %s (change %s)", c.Kind, service, who, c.ID)
}

func (in Input) blockerText(b Change, start, end time.Time) string {
	owner := ""
	if o := in.Catalogue.Services[b.Service].Owner; o != "" {
		owner = ", service owned by " + o
	}
	text := fmt.Sprintf("%s, %s, %s%s", b.name(), window(b.Start, in.endOf(b)), b.Status, owner)
	return fmt.Sprintf("%s %s; %s keeps %s between changes", text, apart(distance(start, end, b.Start, in.endOf(b))), in.Request.Environment, in.band())
}

func apart(d time.Duration) string {
	if d < 0 {
		return "overlaps"
	}
	return fmt.Sprintf("is %s away", d)
}

func freezeText(f Freeze) string {
	until := "until it is lifted"
	if !f.End.IsZero() {
		until = "until " + stamp(f.End)
	}
	return fmt.Sprintf("frozen by %s from %s %s: %s", f.CreatedBy, stamp(f.Start), until, f.Reason)
}

func incidentText(i incident.Incident) string {
	where := i.Service
	if where == "" {
		where = i.Environment
	}
	return fmt.Sprintf("incident %d (%s) on %s is critical since %s; only rollbacks and emergency actions go on", i.Number, i.Title, where, stamp(i.OpenedAt))
}
