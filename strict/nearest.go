package strict

import "strings"

// Nearest returns the candidate a person most likely meant by name, or "" when
// none is near: the same letters apart from case and separators, or at most one
// edit for each three letters, and never more than two.
func Nearest(name string, candidates []string) string {
	limit := min(2, max(1, len(name)/3))
	best := ""
	for _, c := range candidates {
		if fold(c) == fold(name) {
			return c
		}
		if d := distance(name, c, limit); d <= limit {
			limit, best = d-1, c
			if limit < 0 {
				break
			}
		}
	}
	return best
}

// fold removes what writers of camelCase, kebab-case and snake_case disagree on.
func fold(s string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(s))
}

// distance is the edit distance with neighbouring swaps, or limit+1 when it is
// larger than limit: names from input may be long, so the work is bounded.
func distance(a, b string, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	before, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev, cur = prev, cur, before
	}
	return min(prev[len(b)], limit+1)
}
