package policy

import (
	"encoding/json"
	"errors"
	"slices"

	"holdfast/strict"
)

// Decode reads a base document strictly and validates it. The error is
// strict.Errors with every problem found and the path of each: unknown keys,
// wrong types and the like first; only a document without those is validated.
func Decode(data []byte) (Document, error) {
	var d Document
	err := strict.DecodeJSON(data, &d)
	var errs strict.Errors
	if err != nil && !errors.As(err, &errs) {
		return Document{}, err
	}
	if len(errs) == 0 {
		errs = append(explicitZeros(data), validate(d)...)
	}
	if err := errs.Err(); err != nil {
		return Document{}, err
	}
	return d, nil
}

// explicitZeros refuses a written 0 where 0 stands for the default: whoever
// writes "total: 0s" means "no limit" and would silently get 20 s.
func explicitZeros(data []byte) strict.Errors {
	var raw struct {
		Dependencies map[string]map[string]json.RawMessage `json:"dependencies"`
	}
	// Already read once as a Document, so the shape is known to fit.
	_ = json.Unmarshal(data, &raw)
	var errs strict.Errors
	for _, name := range sortedKeys(raw.Dependencies) {
		at := strict.Join("dependencies", name)
		for _, section := range []string{"breaker", "timeouts"} {
			var fields map[string]any
			_ = json.Unmarshal(raw.Dependencies[name][section], &fields)
			for _, field := range sortedKeys(fields) {
				if isZero(fields[field]) {
					errs.Addf(strict.Join(strict.Join(at, section), field), "is zero: leave the key out for the default of %s", defaultText(section, field))
				}
			}
		}
	}
	return errs
}

func isZero(v any) bool {
	switch v := v.(type) {
	case float64:
		return v == 0
	case string:
		var d Duration
		return v != "" && d.parse(v) == nil && d == 0
	default:
		return false
	}
}

// defaultText is the default of a field as it would be written.
func defaultText(section, field string) string {
	var v any = DefaultBreaker()
	if section == "timeouts" {
		v = DefaultTimeouts()
	}
	b, _ := json.Marshal(v)
	var m map[string]json.RawMessage
	_ = json.Unmarshal(b, &m)
	if raw, ok := m[field]; ok {
		return string(raw)
	}
	return "none"
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
