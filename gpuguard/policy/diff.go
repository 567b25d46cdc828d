package policy

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"holdfast/strict"
)

// Diff lists what differs from a to b, sorted by path; it is empty exactly when
// both have the same canonical encoding. Something added or removed as a whole
// is one change; lists are compared as wholes. A document that cannot be
// encoded (a number that is not finite) differs from every other as a whole.
func Diff(a, b Document) []Change {
	before, errA := generic(a)
	after, errB := generic(b)
	if errA != nil || errB != nil {
		return []Change{{Path: "", Before: null, After: null}}
	}
	changes := compare("", before, after, nil)
	slices.SortFunc(changes, func(x, y Change) int { return strings.Compare(x.Path, y.Path) })
	return changes
}

var null = json.RawMessage("null")

// generic is the canonical encoding of a document as one raw value.
func generic(d Document) (json.RawMessage, error) { return Encode(d) }

// compare appends the differences of two raw values; null stands for absent.
func compare(path string, a, b json.RawMessage, changes []Change) []Change {
	if bytes.Equal(a, b) {
		return changes
	}
	objA, okA := object(a)
	objB, okB := object(b)
	if !okA || !okB {
		return append(changes, Change{Path: path, Before: a, After: b})
	}
	for _, key := range sortedKeys(objA) {
		changes = compare(strict.Join(path, key), objA[key], orNull(objB[key]), changes)
	}
	for _, key := range sortedKeys(objB) {
		if _, both := objA[key]; !both {
			changes = append(changes, Change{Path: strict.Join(path, key), Before: null, After: objB[key]})
		}
	}
	return changes
}

func object(raw json.RawMessage) (map[string]json.RawMessage, bool) {
	if len(raw) == 0 || raw[0] != '{' {
		return nil, false
	}
	var m map[string]json.RawMessage
	return m, json.Unmarshal(raw, &m) == nil
}

func orNull(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return null
	}
	return raw
}
