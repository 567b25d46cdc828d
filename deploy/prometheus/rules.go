// Package prometheus carries the rule files, so that programs can load the same
// ones that a Prometheus server reads from this folder.
package prometheus

import (
	"embed"
	"fmt"
	"io/fs"
)

//go:embed rules/*.yml
var rules embed.FS

// File is one rule file.
type File struct {
	// Name is the base name, such as "recording.yml".
	Name string
	Data []byte
}

// Rules are all rule files by name.
func Rules() ([]File, error) {
	entries, err := fs.ReadDir(rules, "rules")
	if err != nil {
		return nil, fmt.Errorf("embedded rule files: %w", err)
	}
	files := make([]File, 0, len(entries))
	for _, e := range entries {
		data, err := rules.ReadFile("rules/" + e.Name())
		if err != nil {
			return nil, fmt.Errorf("embedded rule files: %w", err)
		}
		files = append(files, File{Name: e.Name(), Data: data})
	}
	return files, nil
}
