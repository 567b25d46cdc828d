package alert

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"holdfast/server/incident"
)

// reopenWithin: a group that fires again this soon after its incident was
// resolved is the same trouble, and goes on in the same incident and thread;
// later it is a new incident.
const reopenWithin = 10 * time.Minute

// grouping keeps the one unresolved incident of a group in step with its members.
type grouping struct {
	tx  Tx
	n   Notification
	b   *batch
	now time.Time
	// current is the group's unresolved incident; nil when there is none.
	current *incident.Incident
	// before is how each incident was stored when this delivery found it.
	before map[string]shown
}

// assign finds or makes the incident for what is new in a delivery, and stores
// all occurrences. After it g.current is the group's unresolved incident.
func (g *grouping) assign() error {
	if err := g.findUnresolved(); err != nil {
		return err
	}
	if fresh := g.b.stillFresh(); len(fresh) > 0 {
		if err := g.join(fresh); err != nil {
			return err
		}
	}
	id := ""
	if g.current != nil {
		id = g.current.ID
	}
	return g.b.adopt(id)
}

func (g *grouping) findUnresolved() error {
	in, err := g.tx.UnresolvedIncident(g.n.GroupKey)
	if errors.Is(err, incident.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	g.before[in.ID] = shownOf(in)
	g.current = &in
	return nil
}

// join brings newly firing alerts into the current incident, the one resolved
// just now, or a new one.
func (g *grouping) join(fresh []Occurrence) error {
	worst := worstOf(fresh)
	if g.current != nil {
		g.current.Severity = incident.Worse(g.current.Severity, worst)
		return incident.AlertsChanged(g.tx, g.current.ID, g.text("started", fresh))
	}
	in, err := g.tx.LatestIncident(g.n.GroupKey)
	if err != nil && !errors.Is(err, incident.ErrNotFound) {
		return err
	}
	if err == nil && in.Status == incident.StatusResolved && g.now.Sub(in.ResolvedAt) < reopenWithin {
		g.before[in.ID] = shownOf(in)
		in.Severity = worst
		err = incident.Reopen(g.tx, &in, g.text("started", fresh))
	} else {
		in, err = incident.Open(g.tx, g.draft(worst, fresh), g.text("started", fresh))
		g.before[in.ID] = shownOf(in)
	}
	g.current = &in
	return err
}

// draft is a new incident. What the group has in common describes it; the first
// alert fills what the group leaves open.
func (g *grouping) draft(worst incident.Severity, fresh []Occurrence) incident.Incident {
	labels := merged(fresh[0].Labels, g.n.CommonLabels, g.n.GroupLabels)
	notes := merged(fresh[0].Annotations, g.n.CommonAnnotations)
	source := g.n.ExternalURL
	if source == "" {
		source = fresh[0].GeneratorURL
	}
	return incident.Incident{
		Title: title(g.n.GroupLabels, labels), Severity: worst, GroupKey: g.n.GroupKey,
		Service: serviceOf(labels), Environment: environmentOf(labels),
		RunbookURL: webURL(firstLabel(notes, "runbook_url", "runbook")), SourceURL: source,
		Summary: firstLabel(notes, "summary", "description", "message"),
		Firing:  len(fresh), Truncated: g.n.Truncated,
	}
}

func merged(layers ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range layers {
		maps.Copy(out, m)
	}
	return out
}

const maxTitle = 200

// title is the alert's name and the labels it was grouped by, or those that
// place it when it was grouped by its name alone.
func title(group, labels map[string]string) string {
	name := labels["alertname"]
	if name == "" {
		name = "Alert"
	}
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(group)) {
		if k != "alertname" && group[k] != "" {
			parts = append(parts, k+"="+group[k])
		}
	}
	if len(parts) == 0 {
		if s := serviceOf(labels); s != "" {
			parts = append(parts, s)
		}
		if e := environmentOf(labels); e != "" {
			parts = append(parts, e)
		}
	}
	if len(parts) > 0 {
		name += " (" + strings.Join(parts, ", ") + ")"
	}
	return cut(strings.Join(strings.Fields(name), " "), maxTitle)
}

func worstOf(list []Occurrence) incident.Severity {
	worst := incident.SeverityInfo
	for _, o := range list {
		worst = incident.Worse(worst, o.Severity)
	}
	return worst
}

const maxNamed = 5

// text is one line about some alerts, however many there are.
func (g *grouping) text(verb string, list []Occurrence) string {
	names := make([]string, 0, maxNamed)
	for _, o := range list[:min(len(list), maxNamed)] {
		names = append(names, g.nameOf(o))
	}
	more := ""
	if n := len(list) - len(names); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	text := fmt.Sprintf("%s %s: %s%s.", count(len(list), "alert"), verb, strings.Join(names, "; "), more)
	if g.n.Truncated > 0 {
		shown := len(g.n.Alerts)
		text += fmt.Sprintf(" %d of %d shown by the source.", shown, shown+g.n.Truncated)
	}
	if verb == "started" && len(g.b.notes) > 0 {
		text += " " + strings.Join(g.b.notes, " ")
	}
	return text
}

const maxNameOf = 200

// nameOf tells an alert from the others of its group: the labels that are not common.
func (g *grouping) nameOf(o Occurrence) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(o.Labels)) {
		if _, common := g.n.CommonLabels[k]; !common && k != "alertname" {
			parts = append(parts, k+"="+o.Labels[k])
		}
	}
	name := o.Labels["alertname"]
	if name == "" {
		name = o.Fingerprint
	}
	if len(parts) > 0 {
		name += " " + strings.Join(parts, ",")
	}
	return cut(name, maxNameOf)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// refresh recounts one incident, and ends it when all its alerts are over and
// the source left none out. A refresh that changes nothing writes nothing: a
// repetition must not edit the card.
func (g *grouping) refresh(in incident.Incident) (incident.Incident, error) {
	var err error
	if in.Firing, in.Resolved, err = g.tx.CountOccurrences(in.ID); err != nil {
		return in, err
	}
	if in.GroupKey == g.n.GroupKey {
		in.Truncated = g.n.Truncated
	}
	switch {
	case in.Status == incident.StatusResolved:
	case in.Firing == 0 && in.Truncated == 0:
		err = incident.AutoResolve(g.tx, &in, "All alerts are over ("+count(in.Resolved, "alert")+").")
	default:
		err = g.tellEnded(in)
	}
	if err != nil || shownOf(in) == g.before[in.ID] {
		return in, err
	}
	return in, incident.Save(g.tx, &in)
}

// shown is what a delivery can change about an incident.
type shown struct {
	status                      incident.Status
	severity                    incident.Severity
	firing, resolved, truncated int
}

func shownOf(in incident.Incident) shown {
	return shown{in.Status, in.Severity, in.Firing, in.Resolved, in.Truncated}
}

// tellEnded notes the alerts that ended while others of the incident go on.
func (g *grouping) tellEnded(in incident.Incident) error {
	var list []Occurrence
	for _, k := range g.b.ended {
		if o := g.b.known[k]; o.IncidentID == in.ID {
			list = append(list, *o)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return incident.AlertsChanged(g.tx, in.ID, g.text("ended", list))
}
