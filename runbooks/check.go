package runbooks

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"holdfast/actions"
	"holdfast/strict"
)

// Checks is what runbooks are checked against once it is known.
type Checks struct {
	// Specs are the actions there are.
	Specs []actions.Spec
	// CheckQuery says what is wrong with a PromQL query; nil accepts all.
	CheckQuery func(query string) error
}

// Check checks that the actions of every runbook are there, that their parameters
// and leases fit, and that queries are PromQL once filled in. The error is
// strict.Errors, all at once, with file and line.
func (l *Library) Check(c Checks) error {
	var errs strict.Errors
	for _, id := range l.ids() {
		errs = append(errs, l.books[id].file.Locate(c.book(l.books[id].book))...)
	}
	return errs.Err()
}

func (c Checks) book(b Runbook) strict.Errors {
	var errs strict.Errors
	values := b.samples()
	for i := range b.Steps {
		at, filled := strict.Index("steps", i), b.filled(i, values)
		if filled.Kind == StepAction {
			c.action(&errs, at, filled)
		}
		if filled.Criterion != nil && c.CheckQuery != nil {
			if err := c.CheckQuery(filled.Criterion.Query); err != nil {
				errs.Addf(at+".criterion.query", "is not PromQL: %s", clip(err.Error(), 300))
			}
		}
	}
	return errs
}

func (c Checks) action(errs *strict.Errors, at string, s Step) {
	i := slices.IndexFunc(c.Specs, func(spec actions.Spec) bool { return spec.Name == s.Action })
	if i < 0 {
		names := make([]string, len(c.Specs))
		for j, spec := range c.Specs {
			names[j] = spec.Name
		}
		errs.Addf(at+".action", "%s", actions.NoSuch("action", s.Action, names))
		return
	}
	spec := c.Specs[i]
	if s.TTL > spec.MaxTTL {
		errs.Addf(at+".ttl", "is %s: %s takes at most %s", s.TTL, spec.Name, spec.MaxTTL)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Params)) {
		if !slices.ContainsFunc(spec.Params, func(p actions.Param) bool { return p.Name == name }) {
			errs.Addf(strict.Join(at+".params", name), "%s has no parameter of that name", spec.Name)
		}
	}
	for _, p := range spec.Params {
		switch value, given := s.Params[p.Name]; {
		case !given && p.Required:
			errs.Addf(at+".params", "lack %s, which %s needs", p.Name, spec.Name)
		case value != "":
			if _, problem := ofKind(p.Kind, value); problem != "" {
				errs.Addf(strict.Join(at+".params", p.Name), "%s", problem)
			}
		}
	}
}

// actionParams writes the filled-in parameters of an action step as JSON, each
// by its kind; empty ones are left out.
func actionParams(spec actions.Spec, filled map[string]string) (json.RawMessage, error) {
	out := map[string]any{}
	for name, value := range filled {
		if value == "" {
			continue
		}
		out[name] = value
		i := slices.IndexFunc(spec.Params, func(p actions.Param) bool { return p.Name == name })
		if i < 0 || spec.Params[i].Kind != kindNumber && spec.Params[i].Kind != kindInteger {
			continue
		}
		canonical, problem := ofKind(spec.Params[i].Kind, value)
		if problem != "" {
			return nil, fmt.Errorf("%w: %w", actions.ErrInvalidParams, errors.New(name+" "+problem))
		}
		out[name] = json.Number(canonical)
	}
	return json.Marshal(out)
}
