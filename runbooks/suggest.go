package runbooks

import (
	"fmt"
	"slices"
	"strings"
)

// annotations by which an alert names its runbooks: one id or a comma list.
var suggestAnnotations = []string{"runbook", "runbook_id"}

// mostSuggested bounds what is read from one annotation.
const mostSuggested = 10

// Suggest proposes the runbooks that an alert names in its annotation "runbook"
// or "runbook_id", with parameters filled in from its labels and from defaults.
// Ids that are not there give nothing.
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
			found = append(found, entry.book.suggestion(labels, fmt.Sprintf("the alert names it in its annotation %s", annotation)))
		}
	}
	return found
}

func (b Runbook) suggestion(labels map[string]string, why string) Suggestion {
	s := Suggestion{Runbook: b.ID, Title: b.Title, Params: map[string]string{}, Missing: []string{}, Why: why}
	for _, p := range b.Params {
		switch value := p.fromLabels(labels); {
		case value != "":
			s.Params[p.Name] = value
		case p.Default != "":
			s.Params[p.Name] = p.Default
		case p.Required:
			s.Missing = append(s.Missing, p.Name)
		}
	}
	return s
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
