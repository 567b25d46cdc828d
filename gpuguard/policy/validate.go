package policy

import (
	"fmt"

	"holdfast/strict"
)

// Validate checks a base document and returns strict.Errors with every problem
// and its path, or nil. A forced breaker is refused here: only a leased
// override, which has an owner and an end, may force one.
func (d Document) Validate() error { return validate(d).Err() }

func validate(d Document) strict.Errors {
	v := &validator{doc: d}
	if d.Version != Version {
		v.addf("version", "is %d: this program reads version %d", d.Version, Version)
	}
	v.tenants()
	v.dependencies()
	v.pools()
	v.routes()
	v.limit("limits.global", d.Limits.Global)
	return v.errs
}

// validator collects the problems of one document.
type validator struct {
	doc  Document
	errs strict.Errors
}

func (v *validator) addf(path, format string, args ...any) { v.errs.Addf(path, format, args...) }

// add reports err, if any, as the problem at path.
func (v *validator) add(path string, err error) {
	if err != nil {
		v.addf(path, "%s", err)
	}
}

// name checks the key of a named thing.
func (v *validator) name(path, kind, name string) {
	if err := CheckName(name); err != nil {
		v.addf(path, "%s name %s", kind, err)
	}
}

// refer checks that name is among the keys of known.
func refer[V any](v *validator, path, kind, name string, known map[string]V) {
	if name == "" {
		v.addf(path, "is missing: name a %s", kind)
		return
	}
	if _, ok := known[name]; !ok {
		v.addf(path, "%s", noSuch(kind, name, sortedKeys(known)))
	}
}

// noSuch says that a name is not there and which one was probably meant.
func noSuch(kind, name string, known []string) string {
	text := fmt.Sprintf("no %s is named %q", kind, name)
	if near := strict.Nearest(name, known); near != "" {
		text += fmt.Sprintf(": did you mean %q?", near)
	}
	return text
}
