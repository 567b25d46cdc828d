package actions

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// SuggestedActions is the annotation by which an alert rule names its measures:
// a comma list of action names, each with its parameters if need be, such as
// "trip_breaker:dependency=llm, set_rate_limit:target=global;requests_per_second=500".
const SuggestedActions = "suggested_actions"

// suggestLabels are the labels that may name a dependency or its service, best first.
var suggestLabels = []string{"dependency", "service", "model"}

// mostSuggested bounds what is read from one annotation.
const mostSuggested = 20

// Suggester is an Action that can propose itself for a dependency in trouble.
type Suggester interface {
	// Suggest gives parameters and says why in a few words; false when it has nothing to propose.
	Suggest(dependency string, snap Snapshot) (params json.RawMessage, why string, ok bool)
}

// Suggest proposes at most n actions with filled-in parameters for an alert:
// those its annotation suggested_actions names, else those that fit the
// dependency its labels name. What could not be run now is left out.
func (e *Engine) Suggest(ctx context.Context, labels, annotations map[string]string, n int) ([]Suggestion, error) {
	snap, err := e.snapshot(ctx)
	if err != nil {
		return nil, fmt.Errorf("suggest actions: %w", err)
	}
	label, dependency, _ := labelled(labels, snap)
	proposals := e.annotated(annotations[SuggestedActions], dependency)
	if len(proposals) == 0 && dependency != "" {
		proposals = e.fitting(label, dependency, snap)
	}
	found := []Suggestion{}
	for _, s := range proposals {
		if len(found) >= n {
			break
		}
		if s, ok := e.runnable(ctx, s, snap); ok && !contains(found, s) {
			found = append(found, s)
		}
	}
	return found, nil
}

// labelled finds the dependency the labels speak of.
func labelled(labels map[string]string, snap Snapshot) (label, dependency string, ok bool) {
	for _, label := range suggestLabels {
		if name, ok := DependencyNamed(snap.Effective, labels[label]); ok {
			return label, name, true
		}
	}
	return "", "", false
}

// fitting asks each action that can propose itself.
func (e *Engine) fitting(label, dependency string, snap Snapshot) []Suggestion {
	var found []Suggestion
	for _, a := range e.registry.all() {
		s, can := a.(Suggester)
		if !can {
			continue
		}
		if params, why, ok := s.Suggest(dependency, snap); ok {
			found = append(found, Suggestion{
				Action: a.Spec().Name, Params: params,
				Why: fmt.Sprintf("the label %s means the dependency %s; %s", label, dependency, why),
			})
		}
	}
	return found
}

// Proposed is one measure as an annotation names it.
type Proposed struct {
	Action string
	// Params are texts as written, by name.
	Params map[string]string
}

// ParseSuggested reads the annotation suggested_actions. Names and parameters are
// not checked: what does not fit is left out by whoever plans it.
func ParseSuggested(text string) []Proposed {
	var found []Proposed
	for i, item := range strings.Split(text, ",") {
		if i == mostSuggested {
			break
		}
		name, given, _ := strings.Cut(strings.TrimSpace(item), ":")
		if name == "" {
			continue
		}
		p := Proposed{Action: name, Params: map[string]string{}}
		for pair := range strings.SplitSeq(given, ";") {
			if param, value, ok := strings.Cut(pair, "="); ok {
				p.Params[strings.TrimSpace(param)] = strings.TrimSpace(value)
			}
		}
		found = append(found, p)
	}
	return found
}

// annotated reads the annotation. A required parameter that takes a dependency
// and is not given takes the one the labels name.
func (e *Engine) annotated(text, dependency string) []Suggestion {
	var found []Suggestion
	for _, proposed := range ParseSuggested(text) {
		a, err := e.registry.Get(proposed.Action)
		if err != nil {
			continue
		}
		params := typed(a.Spec(), proposed.Params)
		for _, p := range a.Spec().Params {
			if _, there := params[p.Name]; !there && p.Required && p.Kind == "dependency" && dependency != "" {
				params[p.Name] = dependency
			}
		}
		raw, err := json.Marshal(params)
		if err != nil {
			continue
		}
		found = append(found, Suggestion{Action: proposed.Action, Params: raw, Why: "the alert rule names it"})
	}
	return found
}

// typed turns texts into numbers by the kind of the parameter.
func typed(spec Spec, given map[string]string) map[string]any {
	params := map[string]any{}
	for name, value := range given {
		params[name] = value
		for _, p := range spec.Params {
			number := p.Kind == "number" || p.Kind == "integer"
			if _, err := strconv.ParseFloat(value, 64); p.Name == name && number && err == nil && json.Valid([]byte(value)) {
				params[name] = json.Number(value)
			}
		}
	}
	return params
}

// runnable plans a proposal; what does not plan or is leased already is none.
func (e *Engine) runnable(ctx context.Context, s Suggestion, snap Snapshot) (Suggestion, bool) {
	a, err := e.registry.Get(s.Action)
	if err != nil {
		return s, false
	}
	plan, err := planOn(ctx, a, s.Params, 0, snap)
	if err != nil || len(plan.Leased) > 0 {
		return s, false
	}
	s.Params = plan.Params
	s.Title = TitleOf(a.Spec(), plan.Params)
	return s, true
}

func contains(list []Suggestion, s Suggestion) bool {
	for _, other := range list {
		if other.Action == s.Action && string(other.Params) == string(s.Params) {
			return true
		}
	}
	return false
}

// TitleOf is the button text of an action with its parameters: the title and
// the values of the required ones, such as "Trip breaker: llm".
func TitleOf(spec Spec, params json.RawMessage) string {
	var values map[string]any
	if json.Unmarshal(params, &values) != nil {
		return spec.Title
	}
	var shown []string
	for _, p := range spec.Params {
		if v, ok := values[p.Name]; ok && p.Required {
			text := fmt.Sprint(v)
			if f, isNumber := v.(float64); isNumber {
				text = strconv.FormatFloat(f, 'f', -1, 64)
			}
			if p.Unit != "" {
				text += " " + p.Unit
			}
			shown = append(shown, text)
		}
	}
	if len(shown) == 0 {
		return spec.Title
	}
	return spec.Title + ": " + strings.Join(shown, ", ")
}
