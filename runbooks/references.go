package runbooks

import (
	"maps"
	"slices"

	"holdfast/strict"
)

// template is a value in which parameters may be filled in.
type template struct {
	path, text string
	// whole says that an empty value must not stand in it.
	whole bool
}

// references checks every "${name}" of a step: the parameter is known, and it
// has a value wherever an empty one would change the meaning.
func (v *validator) references(at string, s fileStep) {
	list := []template{
		{path: at + ".title", text: s.Title},
		{path: at + ".command", text: s.Command},
		{path: at + ".expect", text: s.Expect},
		{path: at + ".question", text: s.Question},
		{path: at + ".text", text: s.Text},
	}
	for i, c := range s.Choices {
		list = append(list, template{path: strict.Index(at+".choices", i) + ".label", text: c.Label})
	}
	for _, name := range slices.Sorted(maps.Keys(s.Params)) {
		text := s.Params[name]
		parts, _ := split(text)
		// A parameter that is nothing but an optional value is left out when that is empty.
		alone := len(parts) == 1 && parts[0].ref != ""
		list = append(list, template{path: strict.Join(at+".params", name), text: text, whole: !alone})
	}
	if s.Criterion != nil {
		list = append(list, template{path: at + ".criterion.query", text: s.Criterion.Query, whole: true})
	}
	sound := true
	for _, t := range list {
		sound = v.template(t) && sound
	}
	if s.Criterion != nil && sound {
		v.query(at+".criterion.query", s.Criterion.Query)
	}
}

func (v *validator) template(t template) bool {
	parts, err := split(t.text)
	if err != nil {
		v.errs.Addf(t.path, "%s", err)
		return false
	}
	sound := true
	for _, p := range parts {
		if p.ref == "" {
			continue
		}
		param, known := v.params[p.ref]
		switch near := strict.Nearest(p.ref, slices.Sorted(maps.Keys(v.params))); {
		case !known && near != "":
			v.errs.Addf(t.path, "no parameter is named %q: did you mean %q?", p.ref, near)
		case !known:
			v.errs.Addf(t.path, "no parameter is named %q", p.ref)
		case t.whole && !param.Required && param.Default == "":
			v.errs.Addf(t.path, "uses ${%s}, which may be empty: make it required or give it a default", p.ref)
		default:
			continue
		}
		sound = false
	}
	return sound
}

// query checks where in the query parameters stand.
func (v *validator) query(path, text string) {
	b := Runbook{}
	for _, p := range v.book.Params {
		if !slices.Contains(kinds, p.Kind) {
			return // it is told where it stands, and what it may fill in is not known
		}
		b.Params = append(b.Params, Param(p))
	}
	if _, err := fillQuery(text, b.kindsOf(), b.samples()); err != nil {
		v.errs.Addf(path, "%s", err)
	}
}
