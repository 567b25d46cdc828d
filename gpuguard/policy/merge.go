package policy

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"holdfast/strict"
)

// Merge lays the live overrides over a base document and returns the effective
// document; base is left as it was. Expired overrides are ignored. The order of
// overrides does not matter, because two live ones for one path are an error.
// Errors are strict.Errors naming each path: one that cannot be overridden, one
// of a name that is not in base, a value that does not fit.
func Merge(base Document, overrides []Override, now time.Time) (Document, error) {
	live := Live(overrides, now)
	var errs strict.Errors
	doc := cloneForMerge(base)
	for i, o := range live {
		if other, ok := conflict(o, live[:i]); ok {
			errs.Addf(o.Path, "override %q conflicts with the live override %q: one lease for one path", o.ID, other.ID)
			continue
		}
		if err := doc.set(o); err != nil {
			errs = append(errs, atPath(o.Path, err)...)
		}
	}
	if err := errs.Err(); err != nil {
		return Document{}, err
	}
	return doc, nil
}

// cloneForMerge copies every map that set writes to.
func cloneForMerge(d Document) Document {
	d.Tenants = maps.Clone(d.Tenants)
	d.Dependencies = maps.Clone(d.Dependencies)
	d.Routes = maps.Clone(d.Routes)
	return d
}

func conflict(o Override, others []Override) (Override, bool) {
	for _, other := range others {
		if PathsConflict(o.Path, other.Path) {
			return other, true
		}
	}
	return Override{}, false
}

// set applies one override to a document whose maps are its own.
func (d *Document) set(o Override) error {
	if err := CheckPath(o.Path); err != nil {
		return err
	}
	section, rest, _ := strings.Cut(o.Path, ".")
	name, _, _ := strings.Cut(rest, ".")
	switch section {
	case "dependencies":
		forced, err := forcedValue(o.Value)
		return edit(d.Dependencies, "dependency", name, err, func(v *Dependency) { v.Breaker.Forced = forced })
	case "routes":
		limit, err := limitValue(o.Value)
		return edit(d.Routes, "route", name, err, func(v *Route) { v.Limit = limit })
	case "tenants":
		limit, err := limitValue(o.Value)
		return edit(d.Tenants, "tenant", name, err, func(v *Tenant) { v.Limit = limit })
	default: // limits.global, the only path left
		limit, err := limitValue(o.Value)
		d.Limits.Global = limit
		return err
	}
}

// edit changes the named entry of m; err is what was wrong with the value.
func edit[V any](m map[string]V, kind, name string, err error, change func(*V)) error {
	v, ok := m[name]
	switch {
	case !ok:
		return errors.New(noSuch(kind, name, sortedKeys(m)))
	case err != nil:
		return err
	}
	change(&v)
	m[name] = v
	return nil
}

func forcedValue(raw []byte) (ForcedState, error) {
	var s ForcedState
	if err := strict.DecodeJSON(raw, &s); err != nil {
		return "", err
	}
	if s != ForcedOpen && s != ForcedClosed {
		return "", fmt.Errorf("is %q: want open or closed", s)
	}
	return s, nil
}

func limitValue(raw []byte) (*Limit, error) {
	var given struct {
		RequestsPerSecond *float64 `json:"requests_per_second"`
		Burst             *float64 `json:"burst"`
	}
	if err := strict.DecodeJSON(raw, &given); err != nil {
		return nil, err
	}
	if given.RequestsPerSecond == nil {
		// A forgotten rate would read as 0 and refuse everything.
		return nil, strict.Errors{{Path: "requests_per_second", Message: "is missing"}}
	}
	limit := &Limit{RequestsPerSecond: *given.RequestsPerSecond}
	if given.Burst != nil {
		limit.Burst = *given.Burst
	}
	v := &validator{}
	v.limit("", limit)
	for i := range v.errs {
		v.errs[i].Path = strings.TrimPrefix(v.errs[i].Path, ".")
	}
	return limit, v.errs.Err()
}

// atPath puts a problem, or each of several, below path.
func atPath(path string, err error) strict.Errors {
	var inner strict.Errors
	if !errors.As(err, &inner) {
		return strict.Errors{{Path: path, Message: err.Error()}}
	}
	out := make(strict.Errors, len(inner))
	for i, fe := range inner {
		out[i] = fe
		out[i].Path = path
		if fe.Path != "" {
			out[i].Path = path + "." + fe.Path
		}
	}
	return out
}
