package runbooks

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"holdfast/gpuguard/signals"
	"holdfast/strict"
)

// Bounds of a runbook.
const (
	maxParams  = 20
	maxSteps   = 50
	maxChoices = 10
	// maxLine is for titles and what stands on one line, in characters; maxLabel
	// is what fits a button; maxText is for everything else.
	maxLine  = 120
	maxLabel = 75
	maxText  = 4000
	// minTime and maxTime bound timeouts, waits and leases.
	minTime = time.Second
	maxTime = 24 * time.Hour
)

// gotoEnd is where a choice leads that ends the run well.
const gotoEnd = "end"

var (
	bookID    = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}$`)
	paramName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)
	labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]{0,127}$`)
)

// phases in their order; a step never belongs to an earlier one than the step before it.
var phases = []Phase{PhaseIsolate, PhaseLocate, PhaseRestore}

// reserved are the answers that every step may ask for; no choice may be named so.
var reserved = []string{AnswerRun, AnswerRetry, AnswerSkip, AnswerStop}

// validator collects what is wrong with a file that could be read.
type validator struct {
	errs   strict.Errors
	book   fileBook
	params map[string]fileParam
}

func validate(in fileBook) strict.Errors {
	v := &validator{book: in, params: map[string]fileParam{}}
	v.id("id", in.ID)
	v.line("title", in.Title, maxLine)
	v.text("summary", in.Summary, true)
	if in.Owner != "" {
		v.line("owner", in.Owner, maxLine)
	}
	if len(in.Params) > maxParams {
		v.errs.Addf("params", "are %d: at most %d are asked for", len(in.Params), maxParams)
	}
	for i, p := range in.Params {
		v.param(strict.Index("params", i), p)
	}
	if n := len(in.Steps); n == 0 || n > maxSteps {
		v.errs.Addf("steps", "are %d: want 1 to %d", n, maxSteps)
	}
	seen, phase := map[string]int{}, 0
	for i, s := range in.Steps {
		at := strict.Index("steps", i)
		v.id(at+".id", s.ID)
		if first, twice := seen[s.ID]; twice && s.ID != "" {
			v.errs.Addf(at+".id", "%q is the id of steps[%d] as well", s.ID, first)
		}
		seen[s.ID] = i
		phase = v.phase(at+".phase", s.Phase, phase)
		v.step(at, i, s)
	}
	return v.errs
}

func (v *validator) id(path, id string) {
	switch {
	case id == "":
		v.errs.Addf(path, "is missing")
	case !bookID.MatchString(id):
		v.errs.Addf(path, "is %q: want lower-case letters, digits and hyphens, beginning with a letter, at most 63", clip(id, 80))
	case id == gotoEnd:
		v.errs.Addf(path, "is %q, which stands for the end of the run", id)
	}
}

// line wants one line of text.
func (v *validator) line(path, text string, most int) {
	switch n := utf8.RuneCountInString(text); {
	case strings.TrimSpace(text) == "":
		v.errs.Addf(path, "is missing")
	case n > most:
		v.errs.Addf(path, "is %d characters long: at most %d fit", n, most)
	case strings.ContainsFunc(text, unicode.IsControl):
		v.errs.Addf(path, "has line breaks or control characters: want one line")
	}
}

// text wants text of any number of lines.
func (v *validator) text(path, text string, required bool) {
	odd := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }
	switch n := utf8.RuneCountInString(text); {
	case required && strings.TrimSpace(text) == "":
		v.errs.Addf(path, "is missing")
	case n > maxText:
		v.errs.Addf(path, "is %d characters long: at most %d are read", n, maxText)
	case strings.ContainsFunc(text, odd):
		v.errs.Addf(path, "has control characters")
	}
}

func (v *validator) param(at string, p fileParam) {
	switch _, twice := v.params[p.Name]; {
	case p.Name == "":
		v.errs.Addf(at+".name", "is missing")
	case !paramName.MatchString(p.Name):
		v.errs.Addf(at+".name", "is %q: want lower-case letters, digits and underscores, beginning with a letter", clip(p.Name, 80))
	case twice:
		v.errs.Addf(at+".name", "%q is given twice", p.Name)
	}
	v.params[p.Name] = p
	v.oneOf(at+".kind", p.Kind, kinds)
	v.line(at+".help", p.Help, 2*maxLine)
	if p.Unit != "" {
		v.line(at+".unit", p.Unit, maxLine)
	}
	switch _, problem := Param(p).checked(p.Default); {
	case p.Default == "":
	case p.Required:
		v.errs.Addf(at+".default", "is given for a required parameter: only one of both makes sense")
	case problem != "":
		v.errs.Addf(at+".default", "%s", problem)
	}
	for i, label := range p.FromLabels {
		if !labelName.MatchString(label) {
			v.errs.Addf(strict.Index(at+".from_labels", i), "is %q, which is no name of a label", clip(label, 80))
		}
	}
}

func (v *validator) oneOf(path, value string, known []string) {
	switch near := strict.Nearest(value, known); {
	case slices.Contains(known, value):
	case value == "":
		v.errs.Addf(path, "is missing: want one of %s", strings.Join(known, ", "))
	case near != "" && len(value) > 2:
		v.errs.Addf(path, "is %q: did you mean %q?", clip(value, 40), near)
	default:
		v.errs.Addf(path, "is %q: want one of %s", clip(value, 40), strings.Join(known, ", "))
	}
}

// phase checks the order and gives the position of the phase reached.
func (v *validator) phase(path, name string, reached int) int {
	names := make([]string, len(phases))
	for i, p := range phases {
		names[i] = string(p)
	}
	i := slices.Index(names, name)
	switch {
	case i < 0:
		v.oneOf(path, name, names)
		return reached
	case i < reached:
		v.errs.Addf(path, "is %q after %q: the order is %s", name, names[reached], strings.Join(names, ", "))
		return reached
	default:
		return i
	}
}

// stepKinds are the kinds of steps with the keys that each may have besides the common ones.
var stepKinds = map[StepKind]struct{ required, optional []string }{
	StepAction:   {[]string{"action"}, []string{"params", "ttl", "automatic", "criterion", "timeout", "on_failure"}},
	StepCheck:    {[]string{"criterion"}, []string{"timeout", "on_failure"}},
	StepDecision: {[]string{"question", "choices"}, []string{"timeout", "on_failure"}},
	StepNote:     {[]string{"text"}, nil},
	StepWait:     {[]string{"wait"}, nil},
}

func (v *validator) step(at string, i int, s fileStep) {
	v.line(at+".title", s.Title, maxLine)
	v.text(at+".command", s.Command, true)
	v.text(at+".expect", s.Expect, true)
	v.oneOf(at+".kind", s.Kind, []string{string(StepAction), string(StepCheck), string(StepDecision), string(StepNote), string(StepWait)})
	v.keys(at, s)
	if s.OnFailure != "" {
		v.oneOf(at+".on_failure", s.OnFailure, []string{string(FailAsk), string(FailStop), string(FailContinue)})
	}
	v.duration(at+".timeout", s.Timeout)
	v.duration(at+".ttl", s.TTL)
	v.duration(at+".wait", s.Wait)
	v.text(at+".question", s.Question, false)
	v.text(at+".text", s.Text, false)
	for name, template := range s.Params {
		v.text(strict.Join(at+".params", name), template, true)
	}
	if s.Criterion != nil {
		v.criterion(at+".criterion", *s.Criterion)
	}
	v.choices(at+".choices", i, s.Choices)
	v.references(at, s)
}

// keys wants what the kind needs and refuses what it has no use for.
func (v *validator) keys(at string, s fileStep) {
	known, ok := stepKinds[StepKind(s.Kind)]
	if !ok {
		return
	}
	for _, k := range []struct {
		name  string
		given bool
	}{
		{"criterion", s.Criterion != nil},
		{"timeout", s.Timeout != nil},
		{"on_failure", s.OnFailure != ""},
		{"action", s.Action != ""},
		{"params", s.Params != nil},
		{"ttl", s.TTL != nil},
		{"automatic", s.Automatic},
		{"question", strings.TrimSpace(s.Question) != ""},
		{"choices", len(s.Choices) > 0},
		{"text", strings.TrimSpace(s.Text) != ""},
		{"wait", s.Wait != nil},
	} {
		switch required := slices.Contains(known.required, k.name); {
		case required && !k.given:
			v.errs.Addf(at+"."+k.name, "is missing: a step of kind %s needs it", s.Kind)
		case k.given && !required && !slices.Contains(known.optional, k.name):
			v.errs.Addf(at+"."+k.name, "has no use in a step of kind %s", s.Kind)
		}
	}
}

func (v *validator) duration(path string, d *duration) {
	if t := d.value(); d != nil && (t < minTime || t > maxTime) {
		v.errs.Addf(path, "is %s: want %s to %s", t, minTime, maxTime)
	}
}

func (v *validator) criterion(at string, c fileCriterion) {
	v.text(at+".query", c.Query, true)
	if !signals.Comparison(c.Is).Valid() {
		v.oneOf(at+".is", c.Is, []string{string(signals.Below), string(signals.AtMost), string(signals.Above), string(signals.AtLeast)})
	}
	switch {
	case c.Value == nil:
		v.errs.Addf(at+".value", "is missing: want the number to compare with")
	case !signals.IsData(*c.Value):
		v.errs.Addf(at+".value", "is no number to compare with")
	}
	if c.Unit != "" {
		v.line(at+".unit", c.Unit, maxLine)
	}
}

func (v *validator) choices(at string, step int, choices []fileChoice) {
	if len(choices) > maxChoices {
		v.errs.Addf(at, "are %d: at most %d are offered", len(choices), maxChoices)
	}
	seen := map[string]bool{}
	for i, c := range choices {
		path := strict.Index(at, i)
		v.id(path+".id", c.ID)
		switch {
		case slices.Contains(reserved, c.ID):
			v.errs.Addf(path+".id", "is %q, which every step has already: choose another word", c.ID)
		case seen[c.ID] && c.ID != "":
			v.errs.Addf(path+".id", "%q is given twice", c.ID)
		}
		seen[c.ID] = true
		v.line(path+".label", c.Label, maxLabel)
		v.target(path+".goto", step, c.Goto)
	}
}

// target wants a later step: a run never goes back.
func (v *validator) target(path string, step int, id string) {
	if id == "" || id == gotoEnd {
		return
	}
	at := slices.IndexFunc(v.book.Steps, func(s fileStep) bool { return s.ID == id })
	switch {
	case at < 0:
		var later []string
		for _, s := range v.book.Steps[step+1:] {
			later = append(later, s.ID)
		}
		v.errs.Addf(path, "no step has the id %q: want %q or a later step%s", clip(id, 80), gotoEnd, hint(id, later))
	case at <= step:
		v.errs.Addf(path, "%q is not a later step: a run never goes back", id)
	}
}

func hint(name string, known []string) string {
	if near := strict.Nearest(name, known); near != "" {
		return fmt.Sprintf(", such as %q", near)
	}
	return ""
}
