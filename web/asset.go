package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

// mediaTypes are those of the bundle. The tables of the operating system, which
// package mime reads, differ between machines.
var mediaTypes = map[string]string{
	".css":         "text/css; charset=utf-8",
	".html":        "text/html; charset=utf-8",
	".ico":         "image/x-icon",
	".js":          "text/javascript; charset=utf-8",
	".json":        "application/json",
	".map":         "application/json",
	".png":         "image/png",
	".svg":         "image/svg+xml",
	".txt":         "text/plain; charset=utf-8",
	".webmanifest": "application/manifest+json",
	".woff2":       "font/woff2",
}

// asset is one file of the bundle in memory.
type asset struct {
	content   []byte
	mediaType string
	cache     string
	etag      string
	// compressed is the gzip form, made when first asked for; nil where it
	// would not be smaller.
	compressed func() []byte
}

// loadAssets reads every file but index.html, which is different in each answer,
// and hidden ones.
func loadAssets(bundle fs.FS) map[string]*asset {
	files := map[string]*asset{}
	_ = fs.WalkDir(bundle, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || name == indexFile || strings.HasPrefix(entry.Name(), ".") {
			return nil //nolint:nilerr // an unreadable file is a 404 like any other missing one
		}
		if content, err := fs.ReadFile(bundle, name); err == nil {
			files[name] = newAsset(name, content)
		}
		return nil
	})
	return files
}

func newAsset(name string, content []byte) *asset {
	sum := sha256.Sum256(content)
	file := &asset{
		content:   content,
		mediaType: mediaTypeOf(name),
		cache:     cacheChecked,
		etag:      base64.RawURLEncoding.EncodeToString(sum[:12]),
	}
	if strings.HasPrefix(name, hashedFolder) {
		file.cache = cacheForever
	}
	file.compressed = sync.OnceValue(func() []byte { return compress(content) })
	return file
}

func mediaTypeOf(name string) string {
	extension := path.Ext(name)
	if known, ok := mediaTypes[extension]; ok {
		return known
	}
	if guess := mime.TypeByExtension(extension); guess != "" {
		return guess
	}
	return "application/octet-stream"
}

func compress(content []byte) []byte {
	var out bytes.Buffer
	writer, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil
	}
	if _, err := writer.Write(content); err != nil {
		return nil
	}
	if err := writer.Close(); err != nil || out.Len() >= len(content) {
		return nil
	}
	return out.Bytes()
}

func (a *asset) serve(w http.ResponseWriter, r *http.Request) {
	body, etag := a.content, `"`+a.etag+`"`
	header := w.Header()
	header.Set("Vary", "Accept-Encoding")
	if acceptsGzip(r.Header.Get("Accept-Encoding")) {
		if smaller := a.compressed(); smaller != nil {
			body, etag = smaller, `"`+a.etag+`-gzip"`
			header.Set("Content-Encoding", "gzip")
		}
	}
	header.Set("Cache-Control", a.cache)
	header.Set("ETag", etag)
	if matches(r.Header.Get("If-None-Match"), etag) {
		header.Del("Content-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	header.Set("Content-Type", a.mediaType)
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // a failed write is a reader that left
	}
}

// acceptsGzip reads an Accept-Encoding header; "gzip;q=0" is a refusal.
func acceptsGzip(accepted string) bool {
	for part := range strings.SplitSeq(accepted, ",") {
		coding, weight, _ := strings.Cut(strings.TrimSpace(part), ";")
		if !strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			continue
		}
		value, found := strings.CutPrefix(strings.ReplaceAll(weight, " ", ""), "q=")
		if !found {
			return true
		}
		q, err := strconv.ParseFloat(value, 64)
		return err == nil && q > 0
	}
	return false
}

// matches compares weakly, as RFC 9110 asks for If-None-Match.
func matches(ifNoneMatch, etag string) bool {
	for candidate := range strings.SplitSeq(ifNoneMatch, ",") {
		candidate = strings.TrimPrefix(strings.TrimSpace(candidate), "W/")
		if candidate == etag || candidate == "*" {
			return true
		}
	}
	return false
}
