// Package deploytest lints the files under deploy/, which cannot run where
// there is no container engine: every file, service, port, program and route
// they name must exist.
package deploytest

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const (
	root       = "../.."
	composeDir = root + "/deploy/compose"
)

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

// readYAML decodes a file into a struct and refuses duplicate and unknown keys.
func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	dec := yaml.NewDecoder(bytes.NewReader([]byte(read(t, path))))
	dec.KnownFields(true)
	require.NoError(t, dec.Decode(into), path)
}

// yamlToJSON gives the JSON form of a YAML file.
func yamlToJSON(t *testing.T, path string) []byte {
	t.Helper()
	var generic map[string]any
	readYAML(t, path, &generic)
	b, err := json.Marshal(generic)
	require.NoError(t, err)
	return b
}

// execute runs a tool and shows what it said when it fails.
func execute(t *testing.T, path string, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput()
	require.NoError(t, err, "%s %v\n%s", path, args, out)
}

func TestAllYAMLParses(t *testing.T) {
	t.Parallel()
	found := 0
	err := filepath.WalkDir(root+"/deploy", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		// Helm templates become YAML only after rendering.
		if filepath.Base(filepath.Dir(path)) == "templates" {
			return nil
		}
		if ext := filepath.Ext(path); ext == ".yaml" || ext == ".yml" {
			found++
			dec := yaml.NewDecoder(bytes.NewReader([]byte(read(t, path))))
			for {
				var doc any
				err := dec.Decode(&doc)
				if err != nil {
					require.EqualError(t, err, "EOF", path)
					break
				}
			}
		}
		return nil
	})
	require.NoError(t, err)
	require.GreaterOrEqual(t, found, 6)
}
