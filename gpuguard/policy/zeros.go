package policy

import (
	"encoding/json"
	"strconv"

	"holdfast/strict"
)

// writtenZeros refuses a written 0 where 0 stands for the default: whoever
// writes "total: 0s" means "no limit" and would silently get 20 s.
func writtenZeros(data []byte) strict.Errors {
	var raw map[string]any
	// Already read once as a Document, so it is an object.
	_ = json.Unmarshal(data, &raw)
	var errs strict.Errors
	walkZeros(raw, "", defaultTexts(), &errs)
	return errs
}

func walkZeros(fields map[string]any, path string, defaults map[string]string, errs *strict.Errors) {
	for _, key := range sortedKeys(fields) {
		at := strict.Join(path, key)
		text, defaulted := defaults[key]
		switch inner, isObject := fields[key].(map[string]any); {
		case isObject:
			walkZeros(inner, at, defaults, errs)
		case defaulted && isZero(fields[key]):
			errs.Addf(at, "is zero: leave the key out for the default (%s)", text)
		}
	}
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

// defaultTexts maps each field whose zero value stands for a default to that
// default as text. Field names are unique enough: names of things hold objects.
func defaultTexts() map[string]string {
	texts := map[string]string{
		"window_calls":   "a time window of " + DefaultBreaker().WindowTime.String(),
		"max_body_bytes": strconv.Itoa(DefaultMaxBodyBytes),
		"status":         strconv.Itoa(DefaultFallbackStatus),
		"burst":          "requests_per_second, at least 1",
	}
	for _, section := range []any{DefaultBreaker(), DefaultTimeouts()} {
		var fields map[string]any
		b, _ := json.Marshal(section) // plain numbers and texts always encode
		_ = json.Unmarshal(b, &fields)
		for name, v := range fields {
			texts[name] = plainText(v)
		}
	}
	return texts
}

func plainText(v any) string {
	if f, ok := v.(float64); ok {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	s, _ := v.(string)
	return s
}
