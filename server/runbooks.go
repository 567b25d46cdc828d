package server

import (
	"fmt"

	"holdfast/actions"
	"holdfast/actions/builtin"
	"holdfast/runbooks"
	"holdfast/runbooks/library"
	"holdfast/server/internal/prom/embedded"
)

// LoadRunbooks reads the runbooks that ship with holdfast and, when dir is not
// empty, those of a folder beside them, and checks that the actions they name are
// there and that their queries are PromQL. The error holds strict.Errors with file, line and key of every problem.
func LoadRunbooks(dir string) (*runbooks.Library, error) {
	all, err := library.Load()
	if err != nil {
		return nil, err
	}
	if dir != "" {
		more, err := runbooks.LoadDir(dir)
		if err != nil {
			return nil, err
		}
		if all, err = runbooks.Join(all, more); err != nil {
			return nil, err
		}
	}
	registry, err := actions.NewRegistry(builtin.All()...)
	if err != nil {
		return nil, err
	}
	if err := all.Check(runbooks.Checks{Specs: registry.Specs(), CheckQuery: embedded.CheckQuery}); err != nil {
		return nil, fmt.Errorf("runbooks: %w", err)
	}
	return all, nil
}
