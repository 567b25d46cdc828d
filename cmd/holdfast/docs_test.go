package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/server"
	"holdfast/strict/yamlfile"
)

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// The examples of the documentation are what people copy.
func TestDocumentedFilesAreValid(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "configuration.md"))
	require.NoError(t, err)
	blocks := yamlBlock.FindAllStringSubmatch(string(text), -1)
	require.Len(t, blocks, 2)
	for _, b := range blocks {
		if strings.Contains(b[1], "version: 1") {
			file, err := yamlfile.Parse("configuration.md", []byte(b[1]))
			require.NoError(t, err)
			_, err = checkPolicy(file)
			require.NoError(t, err)
			continue
		}
		var c server.Config
		_, err := yamlfile.Decode("configuration.md", []byte(b[1]), &c)
		require.NoError(t, err)
		require.NoError(t, c.Validate())
	}
}

// What the documentation says of flags and variables exists.
func TestDocumentedFlagsExist(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "configuration.md"))
	require.NoError(t, err)
	section, _, _ := strings.Cut(string(text), "## Configuration file")
	flags := regexp.MustCompile("(?m)^\\| `--([a-z-]+)`").FindAllStringSubmatch(section, -1)
	require.NotEmpty(t, flags)
	root := (&app{env: func(string) (string, bool) { return "", false }}).command()
	serve, _, err := root.Find([]string{"serve"})
	require.NoError(t, err)
	for _, f := range flags {
		require.True(t, serve.Flags().Lookup(f[1]) != nil || root.PersistentFlags().Lookup(f[1]) != nil, "--%s is documented and does not exist", f[1])
	}
}
