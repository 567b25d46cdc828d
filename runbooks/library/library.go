// Package library holds the runbooks that ship with holdfast, one file each.
package library

import (
	"embed"
	"fmt"

	"holdfast/runbooks"
)

//go:embed *.yaml
var files embed.FS

// Load reads them. They are part of the program and tested with it, so an error
// says that this build is broken.
func Load() (*runbooks.Library, error) {
	lib, err := runbooks.LoadFS(files)
	if err != nil {
		return nil, fmt.Errorf("shipped runbooks: %w", err)
	}
	return lib, nil
}
