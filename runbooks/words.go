package runbooks

import (
	"fmt"
	"time"
)

const systemName = "system"

func clock(t time.Time) string { return t.UTC().Format("15:04:05 UTC") }

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
