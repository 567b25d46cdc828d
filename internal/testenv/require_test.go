package testenv

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMissingRequirementFailsOnlyWhereItIsDemanded(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		env  map[string]string
		want bool
	}{
		{"a developer's machine skips", nil, false},
		{"another requirement is demanded", map[string]string{"HOLDFAST_REQUIRE": "redis,chromium"}, false},
		{"demanded among others, with spaces", map[string]string{"HOLDFAST_REQUIRE": "redis, postgres"}, true},
		{"a name that only contains it", map[string]string{"HOLDFAST_REQUIRE": "postgresql"}, false},
		{"CI demands everything", map[string]string{"CI": "true"}, true},
		{"CI switched off", map[string]string{"CI": "false"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, mustHave("postgres", func(key string) string { return tt.env[key] }))
		})
	}
}

func TestExecutableTakesTheFirstNameFound(t *testing.T) {
	t.Parallel()
	path, err := executable("no-such-program-here", "sh")()
	require.NoError(t, err)
	require.Equal(t, "sh", filepath.Base(path))

	_, err = executable("no-such-program-here", "nor-this-one")()
	require.ErrorContains(t, err, "no-such-program-here")
	require.ErrorContains(t, err, "nor-this-one")
}

func TestNewestPostgresIsChosenByNumberNotByName(t *testing.T) {
	t.Parallel()
	require.Greater(t, majorVersion("/usr/lib/postgresql/15/bin"), majorVersion("/usr/lib/postgresql/9/bin"))
	require.Zero(t, majorVersion("/usr/lib/postgresql/old/bin"))
}

func TestIsExecutableWantsAFileWithTheBit(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.False(t, isExecutable(file))
	require.NoError(t, os.Chmod(file, 0o700))
	require.True(t, isExecutable(file))
	require.False(t, isExecutable(filepath.Dir(file)), "a folder is no program")
}
