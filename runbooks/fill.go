package runbooks

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// refEnd and refStart enclose the name of a parameter: "${name}".
const (
	refStart = "${"
	refEnd   = "}"
)

// fragment is a piece of a template: literal text, or the name of a parameter.
type fragment struct {
	text string
	// ref is the parameter that stands here; empty for literal text.
	ref string
}

// split cuts a template at its references. It fails on "${" that begins none.
func split(template string) ([]fragment, error) {
	var parts []fragment
	for {
		before, after, found := strings.Cut(template, refStart)
		if before != "" {
			parts = append(parts, fragment{text: before})
		}
		if !found {
			return parts, nil
		}
		name, rest, closed := strings.Cut(after, refEnd)
		if !closed || !paramName.MatchString(name) {
			return nil, fmt.Errorf(`has a "${" that begins no reference: want "${name}" with the name of a parameter`)
		}
		parts = append(parts, fragment{ref: name})
		template = rest
	}
}

// fillText fills values into a text for people or a parameter of an action.
// What does not parse is left as it is; the loader refuses it.
func fillText(template string, values map[string]string) string {
	parts, err := split(template)
	if err != nil {
		return template
	}
	var b strings.Builder
	for _, p := range parts {
		if p.ref != "" {
			b.WriteString(values[p.ref])
			continue
		}
		b.WriteString(p.text)
	}
	return b.String()
}

// place is where in a PromQL query a reference stands.
type place int

const (
	// outside of quotes only numbers may be filled in.
	outside place = iota
	// quoted is inside a double-quoted text.
	quoted
	// pattern is inside a double-quoted regular expression.
	pattern
	// refused is where nothing may be filled in.
	refused
)

// scanner follows a PromQL query as far as quoting is concerned.
type scanner struct {
	// quote is the quotation mark of the text it is in; 0 outside.
	quote byte
	// escaped says that a backslash came before.
	escaped bool
	comment bool
	// last are the last characters outside of quotes that are not space, to see the operator before a text.
	last    string
	matcher bool
}

func (s *scanner) text(t string) {
	for i := range len(t) {
		s.byte(t[i])
	}
}

func (s *scanner) byte(c byte) {
	switch {
	case s.comment:
		s.comment = c != '\n'
	case s.quote != 0:
		s.within(c)
	case c == '#':
		s.comment = true
	case c == '"' || c == '\'' || c == '`':
		s.quote, s.matcher = c, strings.HasSuffix(s.last, "=~") || strings.HasSuffix(s.last, "!~")
	case c > ' ':
		s.last = s.last[max(0, len(s.last)-1):] + string([]byte{c})
	}
}

func (s *scanner) within(c byte) {
	switch {
	case s.escaped:
		s.escaped = false
	case c == '\\' && s.quote != '`':
		s.escaped = true
	case c == s.quote:
		s.quote, s.last = 0, ""
	}
}

func (s *scanner) place() place {
	switch {
	case s.comment, s.escaped, s.quote == '\'', s.quote == '`':
		return refused
	case s.quote == '"' && s.matcher:
		return pattern
	case s.quote == '"':
		return quoted
	default:
		return outside
	}
}

// fillQuery fills values into PromQL so that none can change what the query
// asks: inside double quotes they are escaped, in regular expressions they stand
// for themselves, and anywhere else only numbers are let in.
func fillQuery(template string, kinds map[string]string, values map[string]string) (string, error) {
	parts, err := split(template)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	var s scanner
	for _, p := range parts {
		if p.ref == "" {
			s.text(p.text)
			b.WriteString(p.text)
			continue
		}
		value := values[p.ref]
		switch s.place() {
		case quoted:
			b.WriteString(escaped(value))
		case pattern:
			b.WriteString(escaped(regexp.QuoteMeta(value)))
		case outside:
			number := kinds[p.ref] == kindNumber || kinds[p.ref] == kindInteger
			if _, err := strconv.ParseFloat(value, 64); err != nil || !number {
				return "", fmt.Errorf("has ${%s} outside of quotes, where only numbers are filled in: write \"${%s}\"", p.ref, p.ref)
			}
			b.WriteString(value)
		default:
			return "", fmt.Errorf(`has ${%s} in single quotes, in backquotes, after a backslash or in a comment: put it in double quotes`, p.ref)
		}
		s.last = ""
	}
	return b.String(), nil
}

// escaped is what stands between double quotes for a value.
func escaped(value string) string {
	q := strconv.Quote(value)
	return q[1 : len(q)-1]
}

// kindsOf are the kinds of the parameters by name.
func (b Runbook) kindsOf() map[string]string {
	kinds := map[string]string{}
	for _, p := range b.Params {
		kinds[p.Name] = p.Kind
	}
	return kinds
}

// Filled is step i with the values of the run filled in: texts, query and
// parameters of the action. What it returns is a copy.
func (r Run) Filled(i int) Step { return r.Runbook.filled(i, r.Params) }

func (b Runbook) filled(i int, values map[string]string) Step {
	s := b.Steps[i]
	for _, text := range []*string{&s.Title, &s.Command, &s.Expect, &s.Question, &s.Text} {
		*text = fillText(*text, values)
	}
	if s.Params != nil {
		s.Params = maps.Clone(s.Params)
		for name, template := range s.Params {
			s.Params[name] = fillText(template, values)
		}
	}
	if s.Criterion != nil {
		c := *s.Criterion
		// The loader and the start of the run have filled it in before; an empty query has no data.
		c.Query, _ = fillQuery(c.Query, b.kindsOf(), values)
		s.Criterion = &c
	}
	s.Choices = slices.Clone(s.Choices)
	for j := range s.Choices {
		s.Choices[j].Label = fillText(s.Choices[j].Label, values)
	}
	return s
}
