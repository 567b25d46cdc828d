package web

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
)

const (
	indexFile = "index.html"
	// nonceMark stands in index.html wherever the nonce of a response goes. The
	// build puts it there (see vite.config.ts).
	nonceMark = "__CSP_NONCE__"
	// hashedFolder holds the files whose names change with their content.
	hashedFolder = "assets/"
)

const (
	cacheForever = "public, max-age=31536000, immutable"
	// Files with fixed names (the icon) are asked for again, and answered with
	// 304 while they are the same.
	cacheChecked = "no-cache"
	cacheNever   = "no-store"
)

// reserved paths belong to the API, to hooks and to probes. They are routed
// elsewhere; a page in answer to a mistyped one of them would hide the mistake.
var reserved = []string{"api", "hooks", "slack", "healthz", "readyz", "metrics", "debug"}

// Options say what Handler serves. The zero value is ready to use.
type Options struct {
	// Bundle is the built console with index.html at its root; nil means the one
	// that was compiled in.
	Bundle fs.FS
}

// Handler serves the console: hashed assets for ever, index.html never cached
// and with a fresh nonce in its content security policy, and index.html again
// for every path that looks like a page. It answers GET and HEAD, without any
// check of identity: the bundle holds no data, and the API it calls has its own.
func Handler(options Options) http.Handler {
	bundle := options.Bundle
	if bundle == nil {
		bundle = embeddedBundle()
	}
	return &handler{bundle: bundle, files: loadAssets(bundle)}
}

type handler struct {
	bundle fs.FS
	files  map[string]*asset
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setSafeHeaders(w.Header())
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		refuse(w, http.StatusMethodNotAllowed, "the console is read with GET or HEAD")
		return
	}
	name, ok := fileName(r.URL.Path)
	if !ok {
		refuse(w, http.StatusNotFound, "no such page")
		return
	}
	if file, found := h.files[name]; found {
		file.serve(w, r)
		return
	}
	if !isPage(name) {
		refuse(w, http.StatusNotFound, "no such file")
		return
	}
	h.serveIndex(w, r)
}

// fileName turns a request path into a name inside the bundle. It reports false
// for paths that are not clean, so that nothing can step out of the bundle or
// disguise a reserved path.
func fileName(requestPath string) (string, bool) {
	name := strings.TrimPrefix(requestPath, "/")
	if len(name) > 0 {
		name = strings.TrimSuffix(name, "/")
	}
	if name == "" || name == indexFile {
		return indexFile, true
	}
	if !fs.ValidPath(name) || strings.ContainsAny(name, "\\\x00") {
		return "", false
	}
	first, _, _ := strings.Cut(name, "/")
	for _, prefix := range reserved {
		if strings.EqualFold(first, prefix) {
			return "", false
		}
	}
	return name, true
}

// isPage tells a place in the console from a missing file: files have an
// extension or live in the folder of hashed names.
func isPage(name string) bool {
	return name == indexFile || (path.Ext(name) == "" && !strings.HasPrefix(name+"/", hashedFolder))
}

func (h *handler) serveIndex(w http.ResponseWriter, r *http.Request) {
	page, err := fs.ReadFile(h.bundle, indexFile)
	if err != nil {
		refuse(w, http.StatusInternalServerError, "the console's index.html is missing from this build; run: make web")
		return
	}
	nonce := newNonce()
	page = bytes.ReplaceAll(page, []byte(nonceMark), []byte(nonce))

	header := w.Header()
	header.Set("Content-Security-Policy", contentPolicy(nonce))
	header.Set("Cache-Control", cacheNever)
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Length", strconv.Itoa(len(page)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(page) // a failed write is a reader that left
	}
}

// newNonce has 128 random bits. crypto/rand.Read never fails.
func newNonce() string {
	var random [16]byte
	_, _ = rand.Read(random[:])
	return base64.RawURLEncoding.EncodeToString(random[:])
}

// contentPolicy lets a page run and load only what this server sent, and talk
// only to this server. The nonce covers the style sheets that the component
// library adds at run time, so unsafe-inline is not needed.
func contentPolicy(nonce string) string {
	return strings.Join([]string{
		"default-src 'none'",
		"script-src 'self' 'nonce-" + nonce + "'",
		"style-src 'self' 'nonce-" + nonce + "'",
		"img-src 'self' data:",
		"font-src 'self'",
		"connect-src 'self'",
		"manifest-src 'self'",
		"base-uri 'none'",
		"form-action 'self'",
		"frame-ancestors 'none'",
		"object-src 'none'",
	}, "; ")
}

// setSafeHeaders go on every answer. Login links carry a code in their query,
// hence no referrer at all.
func setSafeHeaders(header http.Header) {
	header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
}

func refuse(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Cache-Control", cacheNever)
	http.Error(w, text, status)
}
