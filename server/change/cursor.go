package change

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Cursor is the value of Filter.Before that continues a list after this change:
// CreatedAt in unix microseconds and the ID, joined by "_".
func (c Change) Cursor() string {
	return strconv.FormatInt(c.CreatedAt.UnixMicro(), 10) + "_" + c.ID
}

// ParseCursor reads what Cursor wrote; ErrInvalid for anything else.
func ParseCursor(cursor string) (createdAt time.Time, id string, err error) {
	micros, id, found := strings.Cut(cursor, "_")
	n, err := strconv.ParseInt(micros, 10, 64)
	if !found || err != nil || id == "" {
		return time.Time{}, "", fmt.Errorf("%w: the cursor is not one that was given out", ErrInvalid)
	}
	return time.UnixMicro(n).UTC(), id, nil
}
