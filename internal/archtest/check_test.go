package archtest

import (
	"fmt"
	"os"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// TestRepositoryFollowsItsRules runs every rule over the sources.
func TestRepositoryFollowsItsRules(t *testing.T) {
	t.Parallel()
	root := os.DirFS("../..")
	files, err := readTree(root)
	require.NoError(t, err)
	require.NotEmpty(t, files, "no sources found: the test would pass on anything")

	found, err := Check(root)
	require.NoError(t, err)
	for _, v := range found {
		t.Error(v)
	}
}

// source makes a documented file that imports what is listed.
func source(pkg string, imports ...string) string {
	text := "// Package " + pkg + " is a fixture.\npackage " + pkg + "\n"
	for _, imported := range imports {
		text += fmt.Sprintf("import _ %q\n", imported)
	}
	return text
}

func TestEveryRuleCanFail(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		path string
		src  string
		rule string // "" means that the file is fine
	}{
		{"gateway imports the server", "gpuguard/a.go", source("gpuguard", "holdfast/server"), "layer"},
		{"a gateway test imports the server", "gpuguard/a_test.go", source("gpuguard", "holdfast/server/alert"), "layer"},
		{"gateway imports its own parts", "gpuguard/a.go", source("gpuguard", "holdfast/gpuguard/internal/limit", "net/http"), ""},
		{"policy imports a library", "gpuguard/policy/a.go", source("policy", "github.com/google/uuid"), "layer"},
		{"policy imports another package", "gpuguard/policy/a.go", source("policy", "holdfast/gpuguard/signals"), "layer"},
		{"policy imports strict", "gpuguard/policy/a.go", source("policy", "holdfast/strict", "encoding/json"), ""},
		{"policy imports the YAML loader", "gpuguard/policy/a.go", source("policy", "holdfast/strict/yamlfile"), "layer"},
		{"strict imports YAML", "strict/a.go", source("strict", "go.yaml.in/yaml/v3"), "layer"},
		{"the YAML loader imports YAML", "strict/yamlfile/a.go", source("yamlfile", "holdfast/strict", "go.yaml.in/yaml/v3"), ""},
		{"strict imports the policy", "strict/a.go", source("strict", "holdfast/gpuguard/policy"), "layer"},
		{"actions import the server", "actions/a.go", source("actions", "holdfast/server/incident"), "layer"},
		{"actions import the gateway root", "actions/a.go", source("actions", "holdfast/gpuguard"), "layer"},
		{"built-in actions import actions", "actions/builtin/a.go", source("builtin", "holdfast/actions", "holdfast/gpuguard/policy"), ""},
		{"runbooks import the policy", "runbooks/a.go", source("runbooks", "holdfast/gpuguard/policy"), "layer"},
		{"runbooks import actions", "runbooks/a.go", source("runbooks", "holdfast/actions"), ""},
		{"domain imports an adapter", "server/change/a.go", source("change", "holdfast/server/internal/store"), "layer"},
		{"domain imports HTTP", "server/alert/a.go", source("alert", "net/http"), "layer"},
		{"domain imports another domain package", "server/alert/a.go", source("alert", "holdfast/server/change"), ""},
		{"server imports the gateway", "server/a.go", source("server", "holdfast/gpuguard"), "layer"},
		{"harness imports both planes", "server/servertest/a.go", source("servertest", "holdfast/server", "holdfast/gpuguard"), ""},
		{"changecheck imports the server", "cmd/changecheck/a.go", commandSource("holdfast/server/change"), "layer"},
		{"changecheck imports a library", "cmd/changecheck/a.go", commandSource("github.com/google/uuid"), "layer"},
		{"changecheck imports the client", "cmd/changecheck/a.go", commandSource("holdfast/server/api/client", "github.com/spf13/cobra"), ""},
		{"console imports the server", "web/a.go", source("web", "holdfast/server"), "layer"},

		{"gorm outside the store", "server/internal/httpapi/a.go", source("httpapi", "gorm.io/gorm"), "library"},
		{"gorm in a test outside the store", "server/a_test.go", source("server", "gorm.io/gorm"), "library"},
		{"gorm in the store", "server/internal/store/a.go", source("store", "gorm.io/gorm", "gorm.io/driver/postgres"), ""},
		{"gin outside httpapi", "server/a.go", source("server", "github.com/gin-gonic/gin"), "library"},
		{"slack-go in slacksim", "server/slacksim/a.go", source("slacksim", "github.com/slack-go/slack"), "library"},
		{"slack-go in a test of slacksim", "server/slacksim/a_test.go", source("slacksim", "github.com/slack-go/slack"), ""},
		{"Kubernetes in the gateway", "gpuguard/agent/a.go", source("agent", "k8s.io/client-go/kubernetes"), "library"},
		{"podresources in the agent", "gpuguard/agent/a.go", source("agent", "k8s.io/kubelet/pkg/apis/podresources/v1"), ""},
		{"Prometheus in its leaf", "server/internal/prom/embedded/a.go", source("embedded", "github.com/prometheus/prometheus/tsdb"), ""},
		{"Prometheus outside its leaf", "server/internal/prom/a.go", source("prom", "github.com/prometheus/prometheus/promql"), "library"},
		{"Prometheus in a test of rules", "deploy/deploytest/a_test.go", source("deploytest", "github.com/prometheus/prometheus/rules"), "library"},
		{"Prometheus' API client", "server/internal/prom/a.go", source("prom", "github.com/prometheus/client_golang/api/prometheus/v1"), ""},
		{"Prometheus' API client elsewhere", "server/a.go", source("server", "github.com/prometheus/client_golang/api"), "library"},
		{"the wiring imports the heavy leaf", "server/a.go", source("server", "holdfast/server/internal/prom/embedded"), ""},
		{"the light half imports the heavy leaf", "server/internal/prom/a.go", source("prom", "holdfast/server/internal/prom/embedded"), "library"},
		{"a test of the light half imports the heavy leaf", "server/internal/prom/a_test.go", source("prom", "holdfast/server/internal/prom/embedded"), "library"},
		{"a domain test imports the heavy leaf", "server/observe/a_test.go", source("observe", "holdfast/server/internal/prom/embedded"), "library"},
		{"cobra outside the commands", "server/a.go", source("server", "github.com/spf13/cobra"), "library"},

		{"product imports testify", "actions/a.go", source("actions", "github.com/stretchr/testify/require"), "test-only"},
		{"a test imports testify", "actions/a_test.go", source("actions", "github.com/stretchr/testify/require"), ""},
		{"adapter imports adapter", "server/internal/slackapp/a.go", source("slackapp", "holdfast/server/internal/store/rows"), "adapter"},
		{"adapter imports its own part", "server/internal/store/a.go", source("store", "holdfast/server/internal/store/rows"), ""},
		{"a library reads both planes", "drills/a.go", source("drills", "holdfast/server", "holdfast/gpuguard"), "planes"},
		{"the demo sees both planes", "cmd/holdfast/a.go", commandSource("holdfast/server", "holdfast/gpuguard"), ""},

		{"environment in a library", "actions/a.go", source("actions") + "import \"os\"\nvar x = os.Getenv(\"X\")\n", "environment"},
		{"environment under another name", "actions/a.go", source("actions") + "import sys \"os\"\nvar x, _ = sys.LookupEnv(\"X\")\n", "environment"},
		{"flags in a library", "actions/a.go", source("actions", "flag"), "environment"},
		{"environment in a command", "cmd/x/a.go", commandSource() + "import \"os\"\nvar x = os.Getenv(\"X\")\n", ""},
		{"init", "actions/a.go", source("actions") + "func init() {}\n", "init"},
		{"a method named init", "actions/a.go", source("actions") + "type a int\nfunc (a) init() {}\n", ""},

		{"banned name", "server/util/a.go", source("util"), "package-name"},
		{"no package comment", "actions/a.go", "package actions\n", "package-comment"},
		{"comment of another form", "actions/a.go", "// Things.\npackage actions\n", "package-comment"},
		{"command without its comment", "cmd/x/a.go", source("main"), "package-comment"},
		{"undocumented function", "actions/a.go", source("actions") + "func Do() {}\n", "doc"},
		{"undocumented type in a group", "actions/a.go", source("actions") + "// Group.\ntype (\n A int\n)\n", "doc"},
		{"undocumented constant", "actions/a.go", source("actions") + "const A = 1\n", "doc"},
		{"undocumented method", "actions/a.go", source("actions") + "// A is.\ntype A[T any] struct{}\nfunc (*A[T]) Do() {}\n", "doc"},
		{"method of an unexported type", "actions/a.go", source("actions") + "type a int\nfunc (a) Do() {}\n", ""},
		{"group of constants with one comment", "actions/a.go", source("actions") + "// States.\nconst (\n A = 1\n B = 2\n)\n", ""},
		{"generated file", "actions/a.go", "// Code generated by x. DO NOT EDIT.\n\n" + source("actions") + "func Do() {}\nfunc init() {}\n", ""},

		{"testdata is no source", "actions/testdata/a.go", source("util"), ""},
		{"another module is not ours", "deploy/e2e/kube/a.go", source("util", "gorm.io/gorm"), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			found, err := Check(fstest.MapFS{
				tt.path:                  {Data: []byte(tt.src)},
				"deploy/e2e/kube/go.mod": {Data: []byte("module kube\n")},
			})
			require.NoError(t, err)
			if tt.rule == "" {
				require.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			require.Equal(t, tt.rule, found[0].Rule, found[0].String())
			require.Contains(t, tt.path, found[0].Path)
		})
	}
}

// commandSource makes a documented file of package main.
func commandSource(imports ...string) string {
	text := "// Command x is a fixture.\npackage main\n"
	for _, imported := range imports {
		text += fmt.Sprintf("import _ %q\n", imported)
	}
	return text
}

func TestFileThatDoesNotParseIsAnError(t *testing.T) {
	t.Parallel()
	_, err := Check(fstest.MapFS{"actions/a.go": {Data: []byte("pakage actions")}})
	require.ErrorContains(t, err, "actions/a.go")
}

func TestMatches(t *testing.T) {
	t.Parallel()
	tests := []struct {
		pattern, name string
		want          bool
	}{
		{"server", "server", true},
		{"server", "server/alert", false},
		{"server/...", "server", true},
		{"server/...", "server/alert", true},
		{"server/...", "serverless", false},
		{"...", "anything", true},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, matches(tt.pattern, tt.name), "%s on %s", tt.pattern, tt.name)
	}
}
