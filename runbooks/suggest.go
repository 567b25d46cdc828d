package runbooks

import (
	"fmt"
	"slices"
	"strings"

	"holdfast/actions"
)

// annotations by which an alert names its runbooks: one id or a comma list.
var suggestAnnotations = []string{"runbook", "runbook_id"}

// mostSuggested bounds what is read from one annotation.
const mostSuggested = 10

// Suggest proposes the runbooks that an alert names in its annotation "runbook"
// or "runbook_id". Parameters are filled in from its labels, from what its
// annotation suggested_actions proposes for an action of the runbook, and from
// defaults. Ids that are not there give nothing.
func (l *Library) Suggest(labels, annotations map[string]string) []Suggestion {
	found := []Suggestion{}
	for _, annotation := range suggestAnnotations {
		for i, id := range strings.Split(annotations[annotation], ",") {
			if i == mostSuggested {
				break
			}
			id = strings.TrimSpace(id)
			entry, ok := l.books[id]
			if !ok || slices.ContainsFunc(found, func(s Suggestion) bool { return s.Runbook == id }) {
				continue
			}
			found = append(found, entry.book.suggestion(labels, annotations, fmt.Sprintf("the alert names it in its annotation %s", annotation)))
		}
	}
	return found
}

func (b Runbook) suggestion(labels, annotations map[string]string, why string) Suggestion {
	proposed := b.proposed(actions.ParseSuggested(annotations[actions.SuggestedActions]))
	s := Suggestion{Runbook: b.ID, Title: b.Title, Params: map[string]string{}, Missing: []string{}, Why: why}
	for _, p := range b.Params {
		switch value := p.fromLabels(labels); {
		case value != "":
			s.Params[p.Name] = value
		case proposed[p.Name] != "":
			s.Params[p.Name] = proposed[p.Name]
		case p.Default != "":
			s.Params[p.Name] = p.Default
		case p.Required:
			s.Missing = append(s.Missing, p.Name)
		}
	}
	return s
}

// proposed takes what an alert proposes for an action to the parameters that the
// runbook's first step with that action stands on: a limit of 7 requests/s fills
// the parameter behind "requests_per_second: ${surviving_rps}".
func (b Runbook) proposed(measures []actions.Proposed) map[string]string {
	found := map[string]string{}
	for _, measure := range measures {
		i := slices.IndexFunc(b.Steps, func(s Step) bool { return s.Kind == StepAction && s.Action == measure.Action })
		if i < 0 {
			continue
		}
		for _, p := range b.Params {
			for name, text := range b.Steps[i].Params {
				if text != "${"+p.Name+"}" || found[p.Name] != "" {
					continue
				}
				if value, problem := p.checked(measure.Params[name]); problem == "" {
					found[p.Name] = value
				}
			}
		}
	}
	return found
}

// fromLabels is the first label that gives a value of the right kind.
func (p Param) fromLabels(labels map[string]string) string {
	for _, name := range p.FromLabels {
		if value, problem := p.checked(labels[name]); problem == "" && value != "" {
			return value
		}
	}
	return ""
}
