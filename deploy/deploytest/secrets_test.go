package deploytest

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"holdfast/server/identity"
)

// makeSecrets runs the script in an empty folder.
func makeSecrets(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	execute(t, "sh", composeDir+"/make-secrets.sh", dir)
	return dir
}

func TestMakeSecretsMakesWhatComposeMounts(t *testing.T) {
	t.Parallel()
	dir := makeSecrets(t)
	for name, secret := range readCompose(t).Secrets {
		info, err := os.Stat(filepath.Join(dir, secret.File))
		require.NoError(t, err, name)
		require.Equal(t, fs.FileMode(0o444), info.Mode().Perm(), "%s: containers run under other users", name)
	}
	info, err := os.Stat(filepath.Join(dir, "secrets"))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o700), info.Mode().Perm(), "the folder protects the files")
	info, err = os.Stat(filepath.Join(dir, ".env"))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())

	env := read(t, filepath.Join(dir, ".env"))
	password := read(t, filepath.Join(dir, "secrets/postgres-password"))
	require.Regexp(t, `^[0-9a-f]{48}$`, password, "safe inside a URL")
	require.Contains(t, env, "POSTGRES_PASSWORD="+password+"\n")
	for _, m := range regexp.MustCompile(`\$\{([A-Z_]+):\?`).FindAllStringSubmatch(read(t, composeDir+"/compose.yaml"), -1) {
		require.Contains(t, env, m[1]+"=", "compose.yaml requires it")
	}
}

func TestMakeSecretsMakesBootstrapTokens(t *testing.T) {
	t.Parallel()
	dir := makeSecrets(t)
	var tokens []struct {
		Kind  identity.TokenKind `yaml:"kind"`
		Name  string             `yaml:"name"`
		Token string             `yaml:"token"`
	}
	readYAML(t, filepath.Join(dir, "secrets/bootstrap-tokens.yaml"), &tokens)
	require.Len(t, tokens, 4)
	files := map[string]string{"alertmanager": "hook-token", "gw1": "gw1-token", "gw2": "gw2-token", "pipelines": "ci-token"}
	seen := map[string]bool{}
	for _, tok := range tokens {
		require.Contains(t, []identity.TokenKind{identity.TokenHook, identity.TokenGateway, identity.TokenCI}, tok.Kind)
		parsed, err := identity.ParseToken(tok.Token)
		require.NoError(t, err, tok.Name)
		require.Equal(t, tok.Kind, parsed.Kind)
		require.False(t, seen[tok.Token], "two tokens are the same")
		seen[tok.Token] = true
		require.Equal(t, tok.Token, read(t, filepath.Join(dir, "secrets", files[tok.Name])), tok.Name)
	}
	// A gateway's member name is the name of its token.
	for name, s := range readCompose(t).Services {
		if member, ok := s.Environment["GPUGUARD_NAME"]; ok {
			require.Equal(t, name, member)
			require.Contains(t, files, member)
			require.Equal(t, "/run/secrets/"+member+"_token", s.Environment["GPUGUARD_TOKEN_FILE"])
		}
	}
}

func TestMakeSecretsNeverOverwrites(t *testing.T) {
	t.Parallel()
	dir := makeSecrets(t)
	before := read(t, filepath.Join(dir, "secrets/hook-token"))
	out, err := exec.CommandContext(t.Context(), "sh", composeDir+"/make-secrets.sh", dir).CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "exists already")
	require.Equal(t, before, read(t, filepath.Join(dir, "secrets/hook-token")))
}

func TestSecretsStayOutOfImageAndRepository(t *testing.T) {
	t.Parallel()
	lines := strings.Split(read(t, root+"/.dockerignore"), "\n")
	require.Contains(t, lines, "deploy/compose/secrets")
	require.Contains(t, lines, "**/.env")
	ignored := strings.Split(read(t, composeDir+"/.gitignore"), "\n")
	require.Contains(t, ignored, "secrets/")
	require.Contains(t, ignored, ".env")
}
