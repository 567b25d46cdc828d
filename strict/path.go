package strict

import (
	"strconv"
	"strings"
)

// Join appends a key to a dotted path. Keys with other characters than letters,
// digits, "_" and "-" are quoted in brackets, so that a path is unambiguous:
// tenants["a.b"].keys.
func Join(path, key string) string {
	if !isPlainKey(key) {
		return path + "[" + strconv.Quote(key) + "]"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// Index appends a list index, counted from 0, to a dotted path.
func Index(path string, i int) string {
	return path + "[" + strconv.Itoa(i) + "]"
}

// under puts a path found inside a value below the path of that value.
func under(path, inner string) string {
	switch {
	case inner == "":
		return path
	case path == "" || strings.HasPrefix(inner, "["):
		return path + inner
	default:
		return path + "." + inner
	}
}

func isPlainKey(key string) bool {
	return key != "" && !strings.ContainsFunc(key, func(r rune) bool {
		return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}
