package admin

import (
	"encoding/json"
	"maps"
	"net/http"
	"time"

	"holdfast/gpuguard/controlclient"
	"holdfast/gpuguard/policy"
)

// policyPage is the answer of /policy.
type policyPage struct {
	Lineage  string `json:"lineage"`
	Revision int64  `json:"revision"`
	// Hash is the SHA-256 of the effective document in full, see policy.Hash.
	Hash      string          `json:"hash"`
	Document  policy.Document `json:"document"`
	Overrides []overrideView  `json:"overrides"`
}

// overrideView is a live override with its end.
type overrideView struct {
	policy.Override
	// Expires is the end by the gateway's clock; absent when it has none.
	Expires time.Time `json:"expires,omitzero"`
}

func (h *handler) policy(w http.ResponseWriter, _ *http.Request) {
	effective, ok := h.opts.Source.Effective()
	if !ok {
		problem(w, http.StatusServiceUnavailable, "no policy", "no policy is loaded yet")
		return
	}
	hash, err := policy.Hash(effective.Document)
	if err != nil {
		problem(w, http.StatusInternalServerError, "policy cannot be shown", err.Error())
		return
	}
	writeJSON(w, http.StatusOK, policyPage{
		Lineage:   effective.Lineage,
		Revision:  effective.Revision,
		Hash:      hash,
		Document:  shortenKeys(effective.Document),
		Overrides: overrideViews(effective.Overrides, h.opts.Clock()),
	})
}

func overrideViews(overrides []policy.Override, now time.Time) []overrideView {
	views := []overrideView{}
	for _, o := range policy.StampRemaining(overrides, now) {
		views = append(views, overrideView{Override: o, Expires: o.Expires})
	}
	return views
}

// shortenKeys keeps of each API key digest what is enough to tell keys apart.
func shortenKeys(d policy.Document) policy.Document {
	const shown = 8
	d.Tenants = maps.Clone(d.Tenants)
	for name, t := range d.Tenants {
		keys := make([]string, len(t.Keys))
		for i, k := range t.Keys {
			keys[i] = k[:min(shown, len(k))] + "…"
		}
		t.Keys = keys
		d.Tenants[name] = t
	}
	return d
}

// statePage is the answer of /state.
type statePage struct {
	Name    string       `json:"name"`
	Version string       `json:"version"`
	State   policy.State `json:"state"`
	// Control is absent when the gateway runs without a server.
	Control *controlclient.Status `json:"control,omitempty"`
}

func (h *handler) state(w http.ResponseWriter, _ *http.Request) {
	page := statePage{Name: h.opts.Name, Version: h.opts.Version, State: h.opts.Source.State()}
	if status, ok := h.opts.Source.Control(); ok {
		page.Control = &status
	}
	writeJSON(w, http.StatusOK, page)
}

// problem answers with an RFC 9457 problem document.
func problem(w http.ResponseWriter, status int, title, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	writeJSON(w, status, map[string]any{"type": "about:blank", "title": title, "status": status, "detail": detail})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		http.Error(w, "the answer cannot be encoded", http.StatusInternalServerError)
		return
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}
