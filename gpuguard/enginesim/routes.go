package enginesim

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// routes adds the OpenAI-compatible API.
func (e *Engine) routes(mux *http.ServeMux) {
	mux.Handle("/v1/chat/completions", only(http.MethodPost, e.authenticate(e.chat)))
	mux.Handle("/v1/embeddings", only(http.MethodPost, e.authenticate(e.embeddings)))
	mux.Handle("/v1/models", only(http.MethodGet, e.authenticate(e.models)))
	mux.Handle("/health", only(http.MethodGet, e.health))
	mux.Handle("/metrics", only(http.MethodGet, promhttp.HandlerFor(e.registry, promhttp.HandlerOpts{}).ServeHTTP))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		serverError(http.StatusNotFound, fmt.Sprintf("Unknown path %q. See /v1/chat/completions, "+
			"/v1/embeddings, /v1/models, /health, /metrics.", clip(r.URL.Path))).write(w)
	})
}

// only answers 405 to other methods; GET includes HEAD.
func only(method string, next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == method || (method == http.MethodGet && r.Method == http.MethodHead) {
			next(w, r)
			return
		}
		w.Header().Set("Allow", method)
		serverError(http.StatusMethodNotAllowed, fmt.Sprintf("Method %s is not allowed here, use %s.", clip(r.Method), method)).write(w)
	})
}

// authenticate asks for the API key, if one is set.
func (e *Engine) authenticate(next http.HandlerFunc) http.HandlerFunc {
	if e.opts.APIKey == "" {
		return next
	}
	want := sha256.Sum256([]byte(e.opts.APIKey))
	return func(w http.ResponseWriter, r *http.Request) {
		key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		got := sha256.Sum256([]byte(key))
		if !ok || subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			serverError(http.StatusUnauthorized, "Missing or wrong API key; send it as 'Authorization: Bearer KEY'.").
				withCode("invalid_api_key").write(w)
			return
		}
		next(w, r)
	}
}

type modelList struct {
	Object string      `json:"object"`
	Data   []modelCard `json:"data"`
}

type modelCard struct {
	ID          string `json:"id"`
	Object      string `json:"object"`
	Created     int64  `json:"created"`
	OwnedBy     string `json:"owned_by"`
	MaxModelLen int    `json:"max_model_len"` // of vLLM, in tokens
}

func (e *Engine) models(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, modelList{Object: "list", Data: []modelCard{{
		ID: e.opts.Model, Object: "model", Created: e.started.Unix(), OwnedBy: "enginesim",
		MaxModelLen: e.opts.Profile.MaxContextTokens,
	}}})
}

// health is 200 with an empty body, or 503 while the engine restarts or stops.
// Knobs do not change it: real health checks stay green while answers are slow or bad.
func (e *Engine) health(w http.ResponseWriter, _ *http.Request) {
	if e.draining() || e.State().Status != StatusReady {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}
