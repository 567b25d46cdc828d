package gateway

import (
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whatever path is let through means the same to an upstream that cleans or
// decodes it once more.
func FuzzAcceptedPathsMeanOneThing(f *testing.F) {
	for _, p := range []string{"/v1/chat", "/v1/../admin", "/v1/%2e%2e/a", "//a", "/v1/a%2Fb", "/v1/", "/%00", "/%5c..%5c", "/%252e"} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := url.ParseRequestURI(raw)
		if err != nil || badPath(u.Path) != "" {
			return
		}
		clean := path.Clean(u.Path)
		if strings.HasSuffix(u.Path, "/") && clean != "/" {
			clean += "/"
		}
		require.Equal(t, clean, u.Path)
		require.NotContains(t, u.Path, "\\")
		again, err := url.PathUnescape(u.Path)
		if err == nil {
			require.NotContains(t, strings.Split(again, "/"), "..")
		}
	})
}

func TestRouteMatchesWholeSegments(t *testing.T) {
	t.Parallel()
	to := &route{prefix: "/v1"}
	require.True(t, to.matches("/v1"))
	require.True(t, to.matches("/v1/chat"))
	require.False(t, to.matches("/v10"))
	require.False(t, to.matches("/"))
	require.True(t, (&route{prefix: "/"}).matches("/anything"))
}
