package servertest_test

import (
	"strconv"
	"strings"
	"time"
)

func containsFold(text, words string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(words))
}

// stamp is a time as Slack writes it in a header.
func stamp(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }
