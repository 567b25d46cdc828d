package web

import (
	"bytes"
	"compress/gzip"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

const script = "console.log('holdfast');"

func testBundle() fstest.MapFS {
	return fstest.MapFS{
		"index.html":          {Data: []byte(`<meta property="csp-nonce" nonce="__CSP_NONCE__"><script nonce="__CSP_NONCE__"></script>`)},
		"favicon.svg":         {Data: []byte("<svg/>")},
		"assets/index-1a.js":  {Data: []byte(strings.Repeat(script, 100))},
		"assets/index-1a.css": {Data: []byte("a{}")},
		".gitkeep":            {},
	}
}

func get(t *testing.T, path string, header http.Header) *http.Response {
	t.Helper()
	return send(t, http.MethodGet, path, header)
}

// send does not clean the path, as a hostile client would not.
func send(t *testing.T, method, path string, header http.Header) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, "/", nil)
	r.URL = &url.URL{Path: path}
	maps.Copy(r.Header, header)
	w := httptest.NewRecorder()
	Handler(Options{Bundle: testBundle()}).ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, resp *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(text)
}

func TestPagesAreIndexWithoutCache(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/", "/index.html", "/login", "/link/slack", "/incidents/01J9Z", "/changes/7/"} {
		resp := get(t, path, nil)
		require.Equal(t, http.StatusOK, resp.StatusCode, path)
		require.Equal(t, "no-store", resp.Header.Get("Cache-Control"), path)
		require.Equal(t, "text/html; charset=utf-8", resp.Header.Get("Content-Type"), path)
		require.Contains(t, body(t, resp), "csp-nonce", path)
	}
}

func TestNoncesAreFreshAndTheOnlyInlinePermission(t *testing.T) {
	t.Parallel()
	nonces := map[string]bool{}
	for range 3 {
		resp := get(t, "/", nil)
		policy := resp.Header.Get("Content-Security-Policy")
		found := regexp.MustCompile(`script-src 'self' 'nonce-([\w-]{22})'`).FindStringSubmatch(policy)
		require.Len(t, found, 2, policy)
		nonces[found[1]] = true
		text := body(t, resp)
		require.Equal(t, 2, strings.Count(text, `nonce="`+found[1]+`"`))
		require.NotContains(t, text, nonceMark)
		require.NotContains(t, policy, "unsafe")
		require.NotContains(t, policy, "http:")
		require.NotContains(t, policy, "https:")
		for _, directive := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "connect-src 'self'", "object-src 'none'"} {
			require.Contains(t, policy, directive)
		}
	}
	require.Len(t, nonces, 3)
}

func TestEveryAnswerHasSafeHeaders(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/", "/assets/index-1a.js", "/assets/missing.js", "/api/v1/me"} {
		resp := get(t, path, nil)
		require.Equal(t, "nosniff", resp.Header.Get("X-Content-Type-Options"), path)
		require.Equal(t, "no-referrer", resp.Header.Get("Referrer-Policy"), path)
		require.Equal(t, "DENY", resp.Header.Get("X-Frame-Options"), path)
		require.Contains(t, resp.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'", path)
	}
}

func TestHashedAssetsAreKeptForeverAndOthersAreChecked(t *testing.T) {
	t.Parallel()
	hashed := get(t, "/assets/index-1a.js", nil)
	require.Equal(t, "public, max-age=31536000, immutable", hashed.Header.Get("Cache-Control"))
	require.Equal(t, "text/javascript; charset=utf-8", hashed.Header.Get("Content-Type"))
	require.Equal(t, strings.Repeat(script, 100), body(t, hashed))

	icon := get(t, "/favicon.svg", nil)
	require.Equal(t, "no-cache", icon.Header.Get("Cache-Control"))
	require.Equal(t, "image/svg+xml", icon.Header.Get("Content-Type"))

	same := get(t, "/favicon.svg", http.Header{"If-None-Match": {`"other", W/` + icon.Header.Get("ETag")}})
	require.Equal(t, http.StatusNotModified, same.StatusCode)
	require.Empty(t, body(t, same))
}

func TestAssetsAreCompressedWhereAccepted(t *testing.T) {
	t.Parallel()
	tests := []struct {
		accept, path string
		compressed   bool
	}{
		{"gzip, br", "/assets/index-1a.js", true},
		{"br;q=1, GZIP; q=0.5", "/assets/index-1a.js", true},
		{"gzip;q=0", "/assets/index-1a.js", false},
		{"br", "/assets/index-1a.js", false},
		{"gzip", "/assets/index-1a.css", false}, // would not be smaller
	}
	for _, tt := range tests {
		resp := get(t, tt.path, http.Header{"Accept-Encoding": {tt.accept}})
		require.Equal(t, "Accept-Encoding", resp.Header.Get("Vary"), tt.accept)
		require.Equal(t, tt.compressed, resp.Header.Get("Content-Encoding") == "gzip", tt.accept)
		if tt.compressed {
			reader, err := gzip.NewReader(resp.Body)
			require.NoError(t, err)
			text, err := io.ReadAll(reader)
			require.NoError(t, err)
			require.Equal(t, strings.Repeat(script, 100), string(text))
		}
	}
}

func TestNothingOutsideTheBundleIsServed(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"/../../etc/passwd", "/../handler.go", "/assets/../../etc/passwd", "/assets/..", "//etc/passwd",
		"/..\\..\\etc\\passwd", "/assets/%2e%2e/x.js", "/a\x00b", "/./api/v1/me", "/login//x", "/.gitkeep",
	} {
		resp := get(t, path, nil)
		require.Equal(t, http.StatusNotFound, resp.StatusCode, "%q", path)
		require.NotContains(t, body(t, resp), "csp-nonce", "%q", path)
	}
}

func TestMissingFilesAndReservedPathsAreNotPages(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"/assets/index-2b.js", "/assets", "/assets/index-2b", "/robots.txt",
		"/api", "/api/v1/nothing", "/API/v1/nothing", "/hooks/alertmanager", "/slack/interactions",
		"/healthz", "/readyz", "/metrics", "/debug/pprof",
	} {
		require.Equal(t, http.StatusNotFound, get(t, path, nil).StatusCode, path)
	}
}

func TestOnlyReadingMethods(t *testing.T) {
	t.Parallel()
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions} {
		resp := send(t, method, "/login", nil)
		require.Equal(t, http.StatusMethodNotAllowed, resp.StatusCode, method)
		require.Equal(t, "GET, HEAD", resp.Header.Get("Allow"), method)
	}
	for _, path := range []string{"/", "/assets/index-1a.js"} {
		resp := send(t, http.MethodHead, path, nil)
		require.Equal(t, http.StatusOK, resp.StatusCode, path)
		require.NotEqual(t, "0", resp.Header.Get("Content-Length"), path)
		require.Empty(t, body(t, resp), path)
	}
}

func TestPlaceholderSaysHowToBuildTheConsole(t *testing.T) {
	t.Parallel()
	page, err := embedded.ReadFile("placeholder/index.html")
	require.NoError(t, err)
	require.Contains(t, string(page), "console not built: run <code>make web</code>")
	require.Contains(t, string(page), nonceMark)
	require.NotContains(t, string(page), "style=")
}

func TestCompiledInBundleHasAPage(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	Handler(Options{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, !Built(), bytes.Contains(w.Body.Bytes(), []byte("console not built")))
	require.NotContains(t, w.Body.String(), nonceMark)
}

func TestBundleWithoutIndexSaysSo(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	Handler(Options{Bundle: fstest.MapFS{}}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	require.Equal(t, http.StatusInternalServerError, w.Code)
	require.Contains(t, w.Body.String(), "make web")
}

func FuzzRequestPath(f *testing.F) {
	for _, seed := range []string{"/", "/../../etc/passwd", "/assets/index-1a.js", "/api/v1", "/login?code=x", "/%00", "\\"} {
		f.Add(seed)
	}
	served := Handler(Options{Bundle: testBundle()})
	f.Fuzz(func(t *testing.T, path string) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.URL = &url.URL{Path: path}
		w := httptest.NewRecorder()
		served.ServeHTTP(w, r)
		if w.Code != http.StatusOK && w.Code != http.StatusNotFound {
			t.Fatalf("%q gave status %d", path, w.Code)
		}
	})
}
