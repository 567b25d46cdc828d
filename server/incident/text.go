package incident

import (
	"time"
	"unicode/utf8"
)

// Bounds of texts in runes.
const (
	maxThreadText = 3000
	maxEntryText  = 4000
	maxNote       = 4000
)

var zeroTime time.Time

// shorten cuts text to at most limit runes and marks the cut.
func shorten(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	runes := []rune(text)
	return string(runes[:limit-1]) + "…"
}
