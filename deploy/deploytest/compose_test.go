package deploytest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/gpuguard/policy"
)

// compose holds the fields of compose.yaml that have something to check.
type compose struct {
	Name     string             `yaml:"name"`
	Services map[string]service `yaml:"services"`
	Volumes  map[string]any     `yaml:"volumes"`
	Secrets  map[string]struct {
		File string `yaml:"file"`
	} `yaml:"secrets"`
	Image   any `yaml:"x-image"`
	Gateway any `yaml:"x-gateway"`
}

type service struct {
	Image string `yaml:"image"`
	Build *struct {
		Context    string            `yaml:"context"`
		Dockerfile string            `yaml:"dockerfile"`
		Args       map[string]string `yaml:"args"`
	} `yaml:"build"`
	Command     []string          `yaml:"command"`
	Environment map[string]string `yaml:"environment"`
	Secrets     []string          `yaml:"secrets"`
	Volumes     []string          `yaml:"volumes"`
	Ports       []string          `yaml:"ports"`
	DependsOn   map[string]any    `yaml:"depends_on"`
	HealthCheck *struct {
		Test        []string `yaml:"test"`
		Interval    string   `yaml:"interval"`
		Timeout     string   `yaml:"timeout"`
		Retries     int      `yaml:"retries"`
		StartPeriod string   `yaml:"start_period"`
	} `yaml:"healthcheck"`
	Restart     string   `yaml:"restart"`
	ReadOnly    bool     `yaml:"read_only"`
	CapDrop     []string `yaml:"cap_drop"`
	SecurityOpt []string `yaml:"security_opt"`
	Tmpfs       []string `yaml:"tmpfs"`
}

func readCompose(t *testing.T) compose {
	t.Helper()
	var c compose
	readYAML(t, composeDir+"/compose.yaml", &c)
	require.NotEmpty(t, c.Services)
	return c
}

// pinned is a version of at least two parts, so neither "latest" nor "17".
var pinned = regexp.MustCompile(`^[a-z0-9/._-]+:v?\d+\.\d+[a-z0-9.-]*$`)

func TestComposeHasTheWholePlatform(t *testing.T) {
	t.Parallel()
	c := readCompose(t)
	for _, name := range []string{"postgres", "redis", "prometheus", "alertmanager", "holdfast", "gw1", "gw2", "engine"} {
		require.Contains(t, c.Services, name)
		require.NotNil(t, c.Services[name].HealthCheck, "%s has no health check", name)
	}
}

func TestComposeImagesArePinned(t *testing.T) {
	t.Parallel()
	for name, s := range readCompose(t).Services {
		if s.Build == nil {
			require.Regexp(t, pinned, s.Image, name)
			continue
		}
		require.FileExists(t, filepath.Join(composeDir, s.Build.Context, s.Build.Dockerfile), name)
		require.FileExists(t, filepath.Join(composeDir, s.Build.Context, "go.mod"), name)
	}
}

func TestComposeReferencesExist(t *testing.T) {
	t.Parallel()
	c := readCompose(t)
	usedVolumes, usedSecrets := map[string]bool{}, map[string]bool{}
	for name, s := range c.Services {
		for _, v := range s.Volumes {
			source, _, ok := strings.Cut(v, ":")
			require.True(t, ok, "%s: volume %q has no target", name, v)
			if strings.HasPrefix(source, ".") {
				_, err := os.Stat(filepath.Join(composeDir, source))
				require.NoError(t, err, "%s mounts %s", name, source)
				require.True(t, strings.HasSuffix(v, ":ro"), "%s: %q is configuration and must be read-only", name, v)
				continue
			}
			require.Contains(t, c.Volumes, source, name)
			usedVolumes[source] = true
		}
		for _, secret := range s.Secrets {
			require.Contains(t, c.Secrets, secret, name)
			usedSecrets[secret] = true
		}
		for other := range s.DependsOn {
			require.Contains(t, c.Services, other, name)
		}
	}
	require.Len(t, usedVolumes, len(c.Volumes), "a declared volume is not used")
	require.Len(t, usedSecrets, len(c.Secrets), "a declared secret is not used")
}

// Each /run/secrets path names a secret the same service mounts, each other
// absolute path of the environment lies in something it mounts.
func TestComposePathsAreMounted(t *testing.T) {
	t.Parallel()
	for name, s := range readCompose(t).Services {
		for key, value := range s.Environment {
			if !strings.HasPrefix(value, "/") {
				continue
			}
			if secret, ok := strings.CutPrefix(value, "/run/secrets/"); ok {
				require.Contains(t, s.Secrets, secret, "%s: %s", name, key)
				continue
			}
			mounted := slices.ContainsFunc(s.Volumes, func(v string) bool {
				target := strings.Split(v, ":")[1]
				return value == target || strings.HasPrefix(value, target+"/")
			})
			require.True(t, mounted, "%s: %s=%s is not mounted", name, key, value)
		}
	}
	require.Contains(t, read(t, composeDir+"/alertmanager.yml"), "credentials_file: /run/secrets/hook_token")
	require.Contains(t, readCompose(t).Services["alertmanager"].Secrets, "hook_token")
}

func TestComposePublishesOnLoopbackOnly(t *testing.T) {
	t.Parallel()
	taken := map[string]string{}
	for name, s := range readCompose(t).Services {
		for _, p := range s.Ports {
			parts := strings.Split(p, ":")
			require.Len(t, parts, 3, "%s: %q", name, p)
			require.Equal(t, "127.0.0.1", parts[0], "%s: %q", name, p)
			require.Empty(t, taken[parts[1]], "port %s is published twice", parts[1])
			taken[parts[1]] = name
		}
	}
}

func TestComposeContainersAreConfined(t *testing.T) {
	t.Parallel()
	for name, s := range readCompose(t).Services {
		if s.Build == nil {
			continue
		}
		require.True(t, s.ReadOnly, name)
		require.Equal(t, []string{"ALL"}, s.CapDrop, name)
		require.Contains(t, s.SecurityOpt, "no-new-privileges:true", name)
		require.DirExists(t, filepath.Join(root, "cmd", s.Command[0]), "%s runs a program that does not exist", name)
	}
}

// listens tells whether a service of ours listens on a port, by its
// environment or command line.
func listens(s service, port string) bool {
	for key, value := range s.Environment {
		if strings.HasSuffix(key, "LISTEN") && strings.HasSuffix(value, ":"+port) {
			return true
		}
	}
	return slices.Contains(s.Command, "0.0.0.0:"+port)
}

// requireListening fails unless host:port is a service that listens there.
func requireListening(t *testing.T, c compose, address, where string) {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	require.NoError(t, err, where)
	s, ok := c.Services[host]
	require.True(t, ok, "%s: no service %q", where, host)
	// Images of others listen where their maker decided.
	known := map[string]string{"postgres": "5432", "redis": "6379", "prometheus": "9090", "alertmanager": "9093"}
	require.True(t, listens(s, port) || known[host] == port, "%s: %s does not listen on %s", where, host, port)
}

func TestAddressesInsideThePlatformExist(t *testing.T) {
	t.Parallel()
	c := readCompose(t)
	for _, file := range []string{"compose.yaml", "prometheus.yml", "alertmanager.yml", "policy.yaml"} {
		text := read(t, filepath.Join(composeDir, file))
		n := 0
		for _, m := range regexp.MustCompile(`(?:https?://|@|[\[ ])([a-z][a-z0-9]*:\d{4,5})\b`).FindAllStringSubmatch(text, -1) {
			requireListening(t, c, m[1], file)
			n++
		}
		require.Positive(t, n, "%s names no address; is the pattern of this test still right?", file)
	}
	for name, s := range c.Services {
		for _, p := range s.Ports {
			port := p[strings.LastIndex(p, ":")+1:]
			requireListening(t, c, net.JoinHostPort(name, port), "published port "+p)
		}
	}
}

func TestPolicyIsValid(t *testing.T) {
	t.Parallel()
	doc, err := policy.Decode(yamlToJSON(t, composeDir+"/policy.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, doc.Routes)
	_, err = policy.Merge(doc, nil, time.Now())
	require.NoError(t, err)
	// Alerts find the dependency's service by the label of the scrape job.
	for name, d := range doc.Dependencies {
		require.Contains(t, read(t, composeDir+"/prometheus.yml"), fmt.Sprintf("service: %s}", d.Service), name)
	}
}
