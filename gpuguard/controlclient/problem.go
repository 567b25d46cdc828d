package controlclient

import (
	"encoding/json"
	"strings"
	"unicode"
)

// problemText is title and detail of an RFC 9457 problem document, cleaned for
// a log line; empty when the body is none.
func problemText(body []byte) string {
	var p struct {
		Title  string `json:"title"`
		Detail string `json:"detail"`
	}
	if json.Unmarshal(body, &p) != nil {
		return ""
	}
	return clean(strings.TrimPrefix(p.Title+": "+p.Detail, ": "))
}

// clean keeps foreign text to one short printable line.
func clean(s string) string {
	const most = 300
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
	s = strings.TrimSuffix(strings.TrimSpace(s), ":")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
