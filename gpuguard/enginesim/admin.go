package enginesim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"
)

const maxKnobsBytes = 64 << 10

// adminRoutes adds the admin API. Errors are RFC 9457 problem documents.
func (e *Engine) adminRoutes(mux *http.ServeMux) {
	admin := http.NewServeMux()
	admin.HandleFunc("GET /admin/knobs", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, e.Knobs())
	})
	// PUT sets everything, fields left out get their defaults; PATCH changes only what it names.
	admin.HandleFunc("PUT /admin/knobs", e.adminKnobs(func(Knobs) Knobs { return DefaultKnobs() }))
	admin.HandleFunc("PATCH /admin/knobs", e.adminKnobs(func(current Knobs) Knobs { return current }))
	admin.HandleFunc("POST /admin/reset", e.adminReset)
	admin.HandleFunc("GET /admin/state", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, e.State())
	})
	guard := http.NewCrossOriginProtection() // a web page must not turn knobs through its visitor's browser
	guard.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeProblem(w, http.StatusForbidden, "cross-origin requests from browsers are refused")
	}))
	mux.Handle("/admin/", e.localOnly(guard.Handler(admin)))
}

// localOnly refuses clients from other hosts unless AllowRemoteAdmin is set.
func (e *Engine) localOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		local := err == nil && net.ParseIP(host).IsLoopback()
		if !local && !e.opts.AllowRemoteAdmin {
			writeProblem(w, http.StatusForbidden, "the admin API answers only clients on the engine's own host; "+
				"start the engine with AllowRemoteAdmin (flag --allow-remote-admin) to open it")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (e *Engine) adminKnobs(base func(Knobs) Knobs) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxKnobsBytes))
		if err != nil {
			writeProblem(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("the body could not be read: %v (at most %d bytes)", err, maxKnobsBytes))
			return
		}
		knobs, err := e.updateKnobs(func(current Knobs) (Knobs, error) { return ParseKnobs(body, base(current)) })
		if err != nil {
			writeProblem(w, http.StatusBadRequest, strings.ReplaceAll(err.Error(), "\n", "; "))
			return
		}
		writeJSON(w, http.StatusOK, knobs)
	}
}

// adminReset makes the engine healthy again; a restart in progress goes on.
func (e *Engine) adminReset(w http.ResponseWriter, _ *http.Request) {
	knobs := DefaultKnobs()
	if err := e.SetKnobs(knobs); err != nil {
		writeProblem(w, http.StatusInternalServerError, err.Error())
		return
	}
	writeJSON(w, http.StatusOK, knobs)
}

// ParseKnobs reads a JSON object over base: fields it does not name keep their
// value. Unknown fields and wrong types are refused by name with an error that
// wraps ErrInvalidKnobs. Ranges are left to Validate.
func ParseKnobs(body []byte, base Knobs) (Knobs, error) {
	var fields map[string]json.RawMessage
	dec := json.NewDecoder(strings.NewReader(string(body)))
	if err := dec.Decode(&fields); err != nil {
		return Knobs{}, fmt.Errorf("%w: want a JSON object: %w", ErrInvalidKnobs, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Knobs{}, fmt.Errorf("%w: unexpected data after the JSON object", ErrInvalidKnobs)
	}
	if fields == nil {
		return Knobs{}, fmt.Errorf("%w: want a JSON object, got null", ErrInvalidKnobs)
	}
	targets := knobTargets(&base)
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		raw := fields[name]
		target, known := targets[name]
		if !known {
			errs = append(errs, fmt.Errorf("%w: unknown field %q, want one of %s", ErrInvalidKnobs, clip(name), strings.Join(KnobNames(), ", ")))
			continue
		}
		if string(raw) == "null" {
			errs = append(errs, fmt.Errorf("%w: %s is null, want a number", ErrInvalidKnobs, name))
			continue
		}
		if err := json.Unmarshal(raw, target); err != nil {
			errs = append(errs, fmt.Errorf("%w: %s is %s, want %s", ErrInvalidKnobs, name, clip(string(raw)), wantedNumber(target)))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return Knobs{}, err
	}
	return base, nil
}

func wantedNumber(target any) string {
	if _, ok := target.(*float64); ok {
		return "a number"
	}
	return "an integer"
}

// KnobNames are the JSON names of all knobs, in the order of the struct.
func KnobNames() []string {
	t := reflect.TypeFor[Knobs]()
	names := make([]string, t.NumField())
	for i := range names {
		names[i] = t.Field(i).Tag.Get("json")
	}
	return names
}

// knobTargets maps the JSON names to pointers to the fields.
func knobTargets(k *Knobs) map[string]any {
	v := reflect.ValueOf(k).Elem()
	targets := make(map[string]any, v.NumField())
	for i, name := range KnobNames() {
		targets[name] = v.Field(i).Addr().Interface()
	}
	return targets
}

// problem is an RFC 9457 problem document.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

func writeProblem(w http.ResponseWriter, status int, detail string) {
	body, err := json.Marshal(problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail})
	if err != nil {
		http.Error(w, detail, status)
		return
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}
