package policy

import (
	"fmt"
	"strings"
)

// MaxNameLength is the longest name of a tenant, dependency, pool, endpoint, route or gateway.
const MaxNameLength = 63

// CheckName says why a name is not one: names are lower-case letters, digits
// and hyphens, at most MaxNameLength, beginning and ending with a letter or digit.
func CheckName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("is empty: want lower-case letters, digits and hyphens")
	case len(name) > MaxNameLength:
		return fmt.Errorf("is %d characters long: at most %d are allowed", len(name), MaxNameLength)
	case strings.ContainsFunc(name, func(r rune) bool { return !isNameRune(r) }):
		return fmt.Errorf("%q has other characters than lower-case letters, digits and hyphens", name)
	case name[0] == '-' || name[len(name)-1] == '-':
		return fmt.Errorf("%q begins or ends with a hyphen", name)
	}
	return nil
}

func isNameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-'
}
