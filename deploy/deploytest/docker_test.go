package deploytest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// instruction is one line of a Dockerfile with continuations joined.
type instruction struct{ name, args string }

func readDockerfile(t *testing.T) []instruction {
	t.Helper()
	text := strings.ReplaceAll(read(t, root+"/deploy/docker/Dockerfile"), "\\\n", " ")
	var out []instruction
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, args, ok := strings.Cut(line, " ")
		require.True(t, ok, "line %q", line)
		require.Contains(t, []string{"FROM", "ENV", "ARG", "WORKDIR", "COPY", "RUN", "USER", "EXPOSE", "CMD"}, name)
		out = append(out, instruction{name, strings.TrimSpace(args)})
	}
	return out
}

func TestDockerfileBuildsAllPrograms(t *testing.T) {
	t.Parallel()
	var build string
	for _, in := range readDockerfile(t) {
		if in.name == "RUN" && strings.HasPrefix(in.args, "go build") {
			build = in.args
		}
	}
	require.NotEmpty(t, build)
	for _, name := range []string{"holdfast", "gpuguard", "changecheck", "enginesim"} {
		require.Contains(t, strings.Fields(build), "./cmd/"+name)
		require.FileExists(t, filepath.Join(root, "cmd", name, "main.go"))
	}
	// A misspelt -X is ignored by the linker.
	for _, m := range regexp.MustCompile(`-X holdfast/version\.(\w+)=`).FindAllStringSubmatch(build, -1) {
		require.Regexp(t, `(?m)^\s+`+m[1]+`\s+= "`, read(t, root+"/version/version.go"))
	}
}

func TestDockerfileIsStaticPinnedAndUnprivileged(t *testing.T) {
	t.Parallel()
	var froms []string
	user, cgo := "", false
	for _, in := range readDockerfile(t) {
		switch in.name {
		case "FROM":
			froms = append(froms, strings.Fields(in.args)[0])
			user = ""
		case "USER":
			user = in.args
		case "ENV":
			cgo = cgo || strings.Contains(in.args, "CGO_ENABLED=0")
		}
	}
	require.Len(t, froms, 2, "one stage builds, one runs")
	for _, image := range froms {
		require.Regexp(t, pinned, image)
		require.Regexp(t, `^[a-z0-9-]+(/[a-z0-9-]+)?:`, image, "short names only")
	}
	require.True(t, cgo, "programs must be static")
	require.Regexp(t, `^[1-9]\d*:[1-9]\d*$`, user, "the image must not run as root")
}

func TestDockerfileCopiesWhatExists(t *testing.T) {
	t.Parallel()
	for _, in := range readDockerfile(t) {
		if in.name != "COPY" || strings.HasPrefix(in.args, "--from") {
			continue
		}
		fields := strings.Fields(in.args)
		for _, source := range fields[:len(fields)-1] {
			_, err := os.Stat(filepath.Join(root, source))
			require.NoError(t, err)
		}
	}
}

// The toolchain must be one without the published net/http vulnerabilities.
func TestDockerfileUsesTheToolchainOfTheMakefile(t *testing.T) {
	t.Parallel()
	m := regexp.MustCompile(`GOTOOLCHAIN\s*[:?]?=\s*go([\d.]+)`).FindStringSubmatch(read(t, root+"/Makefile"))
	require.NotNil(t, m, "the Makefile pins no toolchain")
	require.Contains(t, readDockerfile(t), instruction{"FROM", "golang:" + m[1] + "-bookworm AS build"})
}
