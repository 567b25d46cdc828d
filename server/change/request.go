package change

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Bounds of a request.
const (
	MaxDuration = 7 * 24 * time.Hour
	// MaxAhead is how far ahead a window may start.
	MaxAhead   = 90 * 24 * time.Hour
	maxRunID   = 200
	maxSummary = 500
	maxURL     = 2000
	maxActor   = 100
)

// DefaultGuardBand is the distance kept when an environment names none (INCIDENTS B).
const DefaultGuardBand = 2 * time.Hour

// resolution of times: what both databases store.
const resolution = time.Microsecond

// kinds people and pipelines may ask for; emergency actions enter by the action engine alone.
var requestKinds = []Kind{KindDeploy, KindScale, KindFlag, KindConfig, KindMigration, KindRebalance, KindTrafficEvent, KindRollback}

// Normalise checks a request against the catalogue and gives it with defaults
// filled in: Kind deploy, Start now. ErrInvalid names the field, and for names
// the known ones.
func (r Request) Normalise(cat Catalogue, now time.Time) (Request, error) {
	if r.Kind == "" {
		r.Kind = KindDeploy
	}
	if r.Start.IsZero() {
		r.Start = now
	}
	r.Start = r.Start.UTC().Truncate(resolution)
	r.Duration = r.Duration.Truncate(resolution)
	switch {
	case !slices.Contains(requestKinds, r.Kind):
		return r, fmt.Errorf("%w: kind %q is not one of %s", ErrInvalid, r.Kind, join(requestKinds))
	case r.Duration < 0 || r.Duration > MaxDuration:
		return r, fmt.Errorf("%w: duration %s is not between 0 and %s", ErrInvalid, r.Duration, MaxDuration)
	case r.Start.Add(r.Duration).Before(now.Truncate(resolution)):
		return r, fmt.Errorf("%w: the window %s is over", ErrInvalid, window(r.Start, r.Start.Add(r.Duration)))
	case r.Start.After(now.Add(MaxAhead)):
		return r, fmt.Errorf("%w: start %s is more than %d days ahead", ErrInvalid, stamp(r.Start), MaxAhead/(24*time.Hour))
	}
	if err := checkTexts(r); err != nil {
		return r, err
	}
	if err := known("service", r.Service, cat.Services); err != nil {
		return r, err
	}
	return r, known("environment", r.Environment, cat.Environments)
}

func checkTexts(r Request) error {
	for _, f := range []struct {
		name, value string
		limit       int
	}{
		{"run_id", r.RunID, maxRunID},
		{"summary", r.Summary, maxSummary},
		{"url", r.URL, maxURL},
		{"actor", r.Actor, maxActor},
	} {
		if utf8.RuneCountInString(f.value) > f.limit {
			return fmt.Errorf("%w: %s has more than %d characters", ErrInvalid, f.name, f.limit)
		}
		if !utf8.ValidString(f.value) || strings.ContainsFunc(f.value, isControl) {
			return fmt.Errorf("%w: %s holds control characters", ErrInvalid, f.name)
		}
	}
	if r.URL != "" && !strings.HasPrefix(r.URL, "https://") && !strings.HasPrefix(r.URL, "http://") {
		return fmt.Errorf("%w: url must begin with https:// or http://", ErrInvalid)
	}
	return nil
}

func isControl(c rune) bool { return c < ' ' || c == 0x7f }

const maxNamesShown = 10

// known refuses a name that is not in the catalogue, with the nearest and the known ones.
func known[V any](what, name string, all map[string]V) error {
	if _, ok := all[name]; ok {
		return nil
	}
	names := slices.Sorted(maps.Keys(all))
	if name == "" {
		return fmt.Errorf("%w: %s is missing; known: %s", ErrInvalid, what, listNames(names))
	}
	hint := ""
	if near := nearest(name, names); near != "" {
		hint = fmt.Sprintf(", did you mean %q?", near)
	}
	return fmt.Errorf("%w: unknown %s %q%s known: %s", ErrInvalid, what, cut(name), orSemicolon(hint), listNames(names))
}

func orSemicolon(hint string) string {
	if hint == "" {
		return ";"
	}
	return hint
}

func cut(s string) string {
	const limit = 80
	if len(s) > limit {
		return strings.ToValidUTF8(s[:limit], "") + "…"
	}
	return s
}

func listNames(names []string) string {
	if len(names) == 0 {
		return "none, the catalogue is empty"
	}
	if len(names) > maxNamesShown {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamesShown], ", "), len(names)-maxNamesShown)
	}
	return strings.Join(names, ", ")
}

// nearest gives the name at the smallest edit distance, at most a third of its length.
func nearest(name string, names []string) string {
	if len(name) > maxRunID {
		return ""
	}
	best, at := "", len(name)/3+1
	for _, n := range names {
		if d := editDistance(name, n); d <= at && (best == "" || d < at) {
			best, at = n, d
		}
	}
	return best
}

func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next := min(row[j+1]+1, row[j]+1, diagonal+cost)
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}

// paramsHash binds a confirmation to exactly what was asked and what was in the
// way. Parts are length-prefixed, so that no two requests share an encoding.
func paramsHash(c Change) string {
	h := sha256.New()
	add := func(s string) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	for _, s := range []string{c.ID, c.Service, c.Environment, string(c.Kind), stamp(c.Start), stamp(c.End), c.RunID, c.Summary, c.URL, c.RequesterID} {
		add(s)
	}
	for _, id := range slices.Sorted(slices.Values(c.Blockers)) {
		add(id)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func join[S ~string](items []S) string {
	words := make([]string, len(items))
	for i, s := range items {
		words[i] = string(s)
	}
	return strings.Join(words, ", ")
}

// stamp prints an instant the way every surface does: UTC, RFC 3339.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

func window(start, end time.Time) string { return stamp(start) + "/" + stamp(end) }
