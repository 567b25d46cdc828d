package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// allowance accepts skips of the tests it matches.
type allowance struct {
	pkg, test *regexp.Regexp
}

// readAllowed reads an allow file; no name gives no allowances.
func readAllowed(name string) ([]allowance, error) {
	if name == "" {
		return nil, nil
	}
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	allowed, err := parseAllowed(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return allowed, nil
}

// parseAllowed reads lines of two anchored regular expressions.
func parseAllowed(content []byte) ([]allowance, error) {
	var allowed []allowance
	lines := bufio.NewScanner(bytes.NewReader(content))
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(text)
		if len(fields) == 0 {
			continue
		}
		if len(fields) != 2 {
			return nil, fmt.Errorf("line %d: want a package and a test regexp, got %d fields", n, len(fields))
		}
		pkg, err := regexp.Compile("^(?:" + fields[0] + ")$")
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		test, err := regexp.Compile("^(?:" + fields[1] + ")$")
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		allowed = append(allowed, allowance{pkg: pkg, test: test})
	}
	return allowed, lines.Err()
}

// accepts reports whether one of the allowances covers the skipped test.
func accepts(allowed []allowance, id testID) bool {
	for _, a := range allowed {
		if a.pkg.MatchString(id.pkg) && a.test.MatchString(id.test) {
			return true
		}
	}
	return false
}
