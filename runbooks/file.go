package runbooks

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast/gpuguard/signals"
	"holdfast/strict"
	"holdfast/strict/yamlfile"
)

// The shape of a file. schema.json describes the same; a test keeps both in step.
type (
	fileBook struct {
		ID      string      `json:"id"`
		Title   string      `json:"title"`
		Summary string      `json:"summary"`
		Owner   string      `json:"owner"`
		Params  []fileParam `json:"params"`
		Steps   []fileStep  `json:"steps"`
	}
	fileParam struct {
		Name       string   `json:"name"`
		Kind       string   `json:"kind"`
		Required   bool     `json:"required"`
		Default    string   `json:"default"`
		Help       string   `json:"help"`
		Unit       string   `json:"unit"`
		FromLabels []string `json:"from_labels"`
	}
	fileStep struct {
		ID        string            `json:"id"`
		Phase     string            `json:"phase"`
		Title     string            `json:"title"`
		Kind      string            `json:"kind"`
		Command   string            `json:"command"`
		Expect    string            `json:"expect"`
		Criterion *fileCriterion    `json:"criterion"`
		Timeout   *duration         `json:"timeout"`
		OnFailure string            `json:"on_failure"`
		Action    string            `json:"action"`
		Params    map[string]string `json:"params"`
		TTL       *duration         `json:"ttl"`
		Automatic bool              `json:"automatic"`
		Question  string            `json:"question"`
		Choices   []fileChoice      `json:"choices"`
		Text      string            `json:"text"`
		Wait      *duration         `json:"wait"`
	}
	fileCriterion struct {
		Query string   `json:"query"`
		Is    string   `json:"is"`
		Value *float64 `json:"value"`
		Unit  string   `json:"unit"`
	}
	fileChoice struct {
		ID    string `json:"id"`
		Label string `json:"label"`
		Goto  string `json:"goto"`
	}
)

// Defaults of a step that names no timeout, by kind. A decision has none.
const (
	// defaultActionTimeout is longer than the two minutes for which the action
	// engine judges a run that the data does not confirm.
	defaultActionTimeout = 150 * time.Second
	defaultCheckTimeout  = time.Minute
)

// Parse reads one runbook from YAML (or JSON); name stands for the file in
// messages. What is wrong is strict.Errors, all at once, each with file, line and
// path. Whether actions and queries are right is checked by Library.Check.
func Parse(name string, data []byte) (Runbook, error) {
	l, err := parse(name, data)
	return l.book, err
}

func parse(name string, data []byte) (loaded, error) {
	file, err := yamlfile.Parse(name, data)
	if err != nil {
		return loaded{}, err
	}
	var in fileBook
	var errs strict.Errors
	if err := file.Decode(&in); err != nil && !errors.As(err, &errs) {
		return loaded{}, err
	}
	if !slices.ContainsFunc(errs, func(e strict.FieldError) bool { return e.Path == "" }) {
		errs = append(errs, besides(errs, file.Locate(validate(in)))...)
	}
	if len(errs) > 0 {
		slices.SortStableFunc(errs, func(a, b strict.FieldError) int { return a.Line - b.Line })
		return loaded{}, capped(errs)
	}
	book := in.runbook()
	book.Version = versionOf(book)
	return loaded{book: book, file: file}, nil
}

// besides leaves out what is only wrong because the value could not be read.
func besides(read, found strict.Errors) strict.Errors {
	return slices.DeleteFunc(found, func(f strict.FieldError) bool {
		return slices.ContainsFunc(read, func(r strict.FieldError) bool {
			return f.Path == r.Path || strings.HasPrefix(f.Path, r.Path+".") || strings.HasPrefix(f.Path, r.Path+"[")
		})
	})
}

func capped(errs strict.Errors) strict.Errors {
	if len(errs) <= strict.MaxErrors {
		return errs
	}
	errs = errs[:strict.MaxErrors:strict.MaxErrors]
	return append(errs, strict.FieldError{File: errs[0].File, Message: fmt.Sprintf("more than %d problems: the rest is not shown", strict.MaxErrors)})
}

// runbook is the file with defaults filled in; it has been validated.
func (in fileBook) runbook() Runbook {
	b := Runbook{
		ID: in.ID, Title: in.Title, Summary: strings.TrimSpace(in.Summary), Owner: in.Owner,
		Params: make([]Param, 0, len(in.Params)), Steps: make([]Step, 0, len(in.Steps)),
	}
	for _, p := range in.Params {
		b.Params = append(b.Params, Param(p))
	}
	for _, s := range in.Steps {
		b.Steps = append(b.Steps, s.step())
	}
	return b
}

func (in fileStep) step() Step {
	s := Step{
		ID: in.ID, Phase: Phase(in.Phase), Title: in.Title, Kind: StepKind(in.Kind),
		Command: strings.TrimSpace(in.Command), Expect: strings.TrimSpace(in.Expect),
		Timeout: in.Timeout.value(), OnFailure: OnFailure(in.OnFailure),
		Action: in.Action, Params: in.Params, TTL: in.TTL.value(), Automatic: in.Automatic,
		Question: strings.TrimSpace(in.Question), Text: strings.TrimSpace(in.Text), Wait: in.Wait.value(),
	}
	if s.OnFailure == "" {
		s.OnFailure = FailAsk
	}
	if c := in.Criterion; c != nil {
		s.Criterion = &signals.Criterion{Query: strings.TrimSpace(c.Query), Is: signals.Comparison(c.Is), Value: *c.Value, Unit: c.Unit}
	}
	for _, c := range in.Choices {
		s.Choices = append(s.Choices, Choice(c))
	}
	switch {
	case s.Timeout > 0:
	case s.Kind == StepAction:
		s.Timeout = defaultActionTimeout
	case s.Kind == StepCheck:
		s.Timeout = defaultCheckTimeout
	}
	return s
}

func (d *duration) value() time.Duration {
	if d == nil {
		return 0
	}
	return time.Duration(*d)
}
