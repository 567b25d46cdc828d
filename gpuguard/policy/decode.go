package policy

import (
	"errors"
	"maps"
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
		errs = append(writtenZeros(data), validate(d)...)
	}
	if err := errs.Err(); err != nil {
		return Document{}, err
	}
	return d, nil
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
