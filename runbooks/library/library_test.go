package library_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/actions"
	"holdfast/actions/builtin"
	"holdfast/runbooks"
	"holdfast/runbooks/library"
)

func load(t *testing.T) (*runbooks.Library, []actions.Spec) {
	t.Helper()
	lib, err := library.Load()
	require.NoError(t, err)
	registry, err := actions.NewRegistry(builtin.All()...)
	require.NoError(t, err)
	return lib, registry.Specs()
}

func TestShippedRunbooksFitTheShippedActions(t *testing.T) {
	t.Parallel()
	lib, specs := load(t)
	require.NotEmpty(t, lib.Runbooks())
	require.NoError(t, lib.Check(runbooks.Checks{Specs: specs}))
	for _, b := range lib.Runbooks() {
		require.Len(t, b.Version, 64, b.ID)
		require.NotEmpty(t, b.Owner, b.ID)
	}
}
