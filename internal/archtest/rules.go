package archtest

// module is the path of this Go module.
const module = "holdfast"

// layer says what the packages of some folders may import.
type layer struct {
	why string
	// in lists the folders, as patterns of matches.
	in []string
	// except lists folders inside them that the rule does not cover.
	except []string
	// own is what may be imported from this module; nil means anything.
	own []string
	// foreign is what may be imported from elsewhere, besides the standard
	// library; nil means anything.
	foreign []string
	// deny is refused even where own and foreign say nothing.
	deny []string
	// tests says that _test.go files are covered too.
	tests bool
}

// layers is the picture of DESIGN's folders, from the contracts upwards. A
// package may always import the packages below its own folder.
var layers = []layer{
	{
		why:     "strict is a leaf that everybody may use, the policy contract too: standard library only",
		in:      []string{"strict"},
		own:     []string{},
		foreign: []string{},
	},
	{
		why:     "strict's file loaders are leaves as well; they know the file format's library",
		in:      []string{"strict/yamlfile"},
		own:     []string{"holdfast/strict"},
		foreign: []string{"go.yaml.in/yaml/v3"},
	},
	{
		why:     "the background loop is a leaf that every engine may use: standard library only",
		in:      []string{"loop"},
		own:     []string{},
		foreign: []string{},
	},
	{
		why:     "the policy contract and the signal types are read by both planes: standard library only",
		in:      []string{"gpuguard/policy/...", "gpuguard/signals/..."},
		own:     []string{"holdfast/strict"},
		foreign: []string{},
	},
	{
		why: "the data plane stands alone: it serves with every other part gone",
		in:  []string{"gpuguard/..."},
		deny: []string{
			"holdfast/server/...", "holdfast/actions/...", "holdfast/runbooks/...",
			"holdfast/web/...", "holdfast/migrations/...", "holdfast/cmd/...",
		},
		tests: true,
	},
	{
		why: "actions know the policy and the signals, and reach everything else through ports",
		in:  []string{"actions/..."},
		own: []string{"holdfast/gpuguard/policy", "holdfast/gpuguard/signals", "holdfast/loop", "holdfast/strict/..."},
	},
	{
		why: "runbooks are built from actions and judge signals",
		in:  []string{"runbooks/..."},
		own: []string{"holdfast/actions/...", "holdfast/gpuguard/signals", "holdfast/loop", "holdfast/strict/..."},
	},
	{
		why: "the domain packages hold rules and ports, no transport and no storage",
		in:  domain,
		own: append([]string{
			"holdfast/actions/...", "holdfast/runbooks", "holdfast/gpuguard/policy", "holdfast/gpuguard/signals", "holdfast/loop", "holdfast/strict/...",
		}, inModule(domain)...),
		deny: []string{
			"net/http/...", "database/sql/...", "gorm.io/...",
			"github.com/gin-gonic/...", "github.com/slack-go/...", "github.com/jackc/...",
		},
	},
	{
		why:    "of the data plane the server knows the contracts only; it talks to gateways over the wire",
		in:     []string{"server/..."},
		except: []string{"server/servertest/..."},
		deny: []string{
			"holdfast/gpuguard", "holdfast/gpuguard/controlclient/...", "holdfast/gpuguard/agent/...",
			"holdfast/gpuguard/nvml/...", "holdfast/gpuguard/enginesim/...", "holdfast/gpuguard/gpuguardtest/...",
			"holdfast/cmd/...",
		},
	},
	{
		why:     "changecheck is a small static client of the public API",
		in:      []string{"cmd/changecheck/..."},
		own:     []string{"holdfast/server/api/client", "holdfast/version"},
		foreign: []string{"github.com/spf13/cobra", "github.com/spf13/pflag", "golang.org/x/term"},
	},
	{
		why:     "the embedded console and the embedded migrations carry files, not logic of other parts",
		in:      []string{"web/...", "migrations/..."},
		own:     []string{},
		foreign: []string{},
	},
}

// domain lists the packages of the server's pure core.
var domain = []string{
	"server/alert/...", "server/audit/...", "server/change/...", "server/chat/...",
	"server/fleet/...", "server/identity/...", "server/incident/...", "server/observe/...", "server/outbox/...",
}

// onlyIn keeps a library behind the packages named for it.
type onlyIn struct {
	library string   // import path pattern
	folders []string // who may import it
	// tests lists folders whose _test.go files may import it as well.
	tests []string
}

// libraries says where each third-party library lives. A line names the
// narrowest pattern first: the first line that fits an import decides.
var libraries = []onlyIn{
	{library: "gorm.io/...", folders: []string{"server/internal/store/..."}},
	{library: "github.com/glebarez/...", folders: []string{"server/internal/store/..."}},
	{library: "modernc.org/...", folders: []string{"server/internal/store/..."}},
	{library: "github.com/pressly/goose/...", folders: []string{"server/internal/store/..."}},
	{library: "github.com/jackc/...", folders: []string{"server/internal/store/...", "internal/testenv"}},
	{library: "github.com/gin-gonic/...", folders: []string{"server/internal/httpapi/...", "server/api/..."}},
	{library: "github.com/gin-contrib/...", folders: []string{"server/internal/httpapi/..."}},
	// The stand-in for Slack is checked against the real client library.
	{library: "github.com/slack-go/...", folders: []string{"server/internal/slackapp/..."}, tests: []string{"server/slacksim/..."}},
	{library: "k8s.io/kubelet/pkg/apis/podresources/...", folders: []string{"gpuguard/agent/...", "server/internal/kube/..."}},
	{library: "k8s.io/...", folders: []string{"server/internal/kube/..."}},
	{library: "sigs.k8s.io/...", folders: []string{"server/internal/kube/..."}},
	{library: "github.com/NVIDIA/...", folders: []string{"gpuguard/nvml/..."}},
	// Prometheus' own packages weigh about 19 MB: they have a leaf of their own,
	// which nothing but the wiring imports.
	{library: "github.com/prometheus/prometheus/...", folders: []string{"server/internal/prom/embedded/..."}},
	{library: "holdfast/server/internal/prom/embedded/...", folders: []string{"server", "server/internal/prom/embedded/...", "server/servertest/..."}},
	{library: "github.com/prometheus/client_golang/api/...", folders: []string{"server/internal/prom/..."}},
	{library: "github.com/spf13/...", folders: []string{"cmd/..."}},
}

// testOnly lists what production code never imports: it belongs in _test.go
// files and harnesses.
var testOnly = []string{
	"testing/...", "net/http/httptest",
	"github.com/stretchr/testify/...", "github.com/google/go-cmp/...", "github.com/rogpeppe/go-internal/...",
	"go.uber.org/goleak", "pgregory.net/rapid",
	"holdfast/internal/testenv", "holdfast/server/servertest/...", "holdfast/gpuguard/gpuguardtest/...",
}

// bothPlanes lists who may import the roots of both planes; harnesses may too.
var bothPlanes = []string{"cmd/holdfast/..."}

// readsEnvironment lists who may read flags and the environment.
var readsEnvironment = []string{"cmd/...", "internal/testenv", "internal/testreport"}

// hasInit lists who may have init functions, besides generated files.
var hasInit = []string{"migrations/..."}

// bannedNames are package names that say nothing about what is inside.
var bannedNames = map[string]bool{
	"util": true, "utils": true, "common": true, "helper": true, "helpers": true,
	"model": true, "models": true, "misc": true, "shared": true,
}

// inModule turns folder patterns into import patterns.
func inModule(folders []string) []string {
	imports := make([]string, len(folders))
	for i, folder := range folders {
		imports[i] = module + "/" + folder
	}
	return imports
}
