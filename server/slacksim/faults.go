package slacksim

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Fault makes the next calls of a method go wrong. Exactly one of Status,
// Error, RetryAfter, Drop and Hang is set; Delay may be set alone or with one.
type Fault struct {
	// Method is the Web API method, "response_url", or "*" for any.
	Method string
	// Count is how many calls are hit; 0 means 1.
	Count int
	// Status answers with this HTTP status, 500 to 599, and an HTML body as
	// Slack's front end does.
	Status int
	// Error answers 200 with ok:false and this error name.
	Error string
	// RetryAfter answers 429 with this Retry-After, in whole seconds.
	RetryAfter time.Duration
	// Drop carries the call out and then closes the connection without an
	// answer: the caller cannot know whether it worked.
	Drop bool
	// Hang carries the call out and then keeps the caller waiting until it
	// gives up.
	Hang bool
	// Delay waits before the call is carried out.
	Delay time.Duration
}

// validate says what is wrong with a fault.
func (f Fault) validate() error {
	var problems []error
	kinds := 0
	for _, set := range []bool{f.Status != 0, f.Error != "", f.RetryAfter != 0, f.Drop, f.Hang} {
		if set {
			kinds++
		}
	}
	if f.Method == "" {
		problems = append(problems, errors.New("method is empty: want a Web API method, response_url or *"))
	} else if f.Method != "*" && f.Method != faultResponseURL && methods[f.Method].handler == nil {
		problems = append(problems, fmt.Errorf("method %q is not one of the simulator's", f.Method))
	}
	if kinds > 1 || (kinds == 0 && f.Delay == 0) {
		problems = append(problems, errors.New("want exactly one of status, error, retry_after, drop and hang, or a delay alone"))
	}
	if f.Status != 0 && (f.Status < 500 || f.Status > 599) {
		problems = append(problems, fmt.Errorf("status %d: want 500 to 599", f.Status))
	}
	if f.Count < 0 {
		problems = append(problems, fmt.Errorf("count %d is negative", f.Count))
	}
	if f.RetryAfter < 0 || f.RetryAfter%time.Second != 0 {
		problems = append(problems, fmt.Errorf("retry_after %s: want whole positive seconds", f.RetryAfter))
	}
	if f.Delay < 0 || f.Delay > time.Minute {
		problems = append(problems, fmt.Errorf("delay %s: want 0 to 1m", f.Delay))
	}
	return errors.Join(problems...)
}

const faultResponseURL = "response_url"

// faults is the script, in the order it was written.
type faults struct {
	mu   sync.Mutex
	list []Fault
}

// next takes the first fault that matches a call.
func (fs *faults) next(method string) (Fault, bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for i := range fs.list {
		f := fs.list[i]
		if f.Method != "*" && f.Method != method {
			continue
		}
		if fs.list[i].Count--; fs.list[i].Count == 0 {
			fs.list = slices.Delete(fs.list, i, i+1)
		}
		return f, true
	}
	return Fault{}, false
}

// AddFault appends a fault to the script; faults of one method are used up in
// order.
func (s *Sim) AddFault(f Fault) error {
	if err := f.validate(); err != nil {
		return fmt.Errorf("slacksim: fault: %w", err)
	}
	f.Count = max(f.Count, 1)
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.list = append(s.faults.list, f)
	return nil
}

// ClearFaults removes every fault not used up.
func (s *Sim) ClearFaults() {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.list = nil
}

// PendingFaults returns the faults not used up.
func (s *Sim) PendingFaults() []Fault {
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	return slices.Clone(s.faults.list)
}

// withFault runs a call under the script's next fault, if any.
func (s *Sim) withFault(method string, w http.ResponseWriter, r *http.Request, call http.HandlerFunc) {
	f, hit := s.faults.next(method)
	if !hit {
		call(w, r)
		return
	}
	s.log.Debug("scripted fault", "method", method)
	if f.Delay > 0 && !s.pause(r, f.Delay) {
		return
	}
	switch {
	case f.Status != 0:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(f.Status)
		fmt.Fprintf(w, "<html><body><h1>%d %s</h1></body></html>\n", f.Status, http.StatusText(f.Status))
	case f.RetryAfter != 0:
		writeRateLimited(w, int(f.RetryAfter/time.Second))
	case f.Error != "":
		writeAPI(w, apiError(f.Error))
	case f.Drop, f.Hang:
		call(discardWriter{header: http.Header{}}, r)
		if f.Hang {
			s.pause(r, time.Hour)
		}
		// The documented way to end a request without an answer.
		panic(http.ErrAbortHandler)
	default:
		call(w, r)
	}
}

// pause waits; it returns false when the caller left or the simulator stops.
func (s *Sim) pause(r *http.Request, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.Context().Done():
	case <-s.stopping:
	}
	return false
}

// discardWriter swallows the answer of a call whose caller never hears it.
type discardWriter struct{ header http.Header }

func (d discardWriter) Header() http.Header         { return d.header }
func (d discardWriter) Write(p []byte) (int, error) { return len(p), nil }
func (d discardWriter) WriteHeader(int)             {}

// wireFault is a fault as POST /sim/faults takes it.
type wireFault struct {
	Method            string `json:"method"`
	Count             int    `json:"count,omitempty"`
	Status            int    `json:"status,omitempty"`
	Error             string `json:"error,omitempty"`
	RetryAfterSeconds int    `json:"retry_after_seconds,omitempty"`
	Drop              bool   `json:"drop,omitempty"`
	Hang              bool   `json:"hang,omitempty"`
	DelayMillis       int    `json:"delay_ms,omitempty"`
}

// handleFaults serves GET, POST and DELETE /sim/faults.
func (s *Sim) handleFaults(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodPost:
		var in wireFault
		dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, MaxBodyBytes))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&in); err != nil {
			http.Error(w, "faults: want a JSON object such as {\"method\":\"chat.update\",\"count\":2,\"status\":503}: "+err.Error(), http.StatusBadRequest)
			return
		}
		f := Fault{
			Method: in.Method, Count: in.Count, Status: in.Status, Error: in.Error, Drop: in.Drop, Hang: in.Hang,
			RetryAfter: time.Duration(in.RetryAfterSeconds) * time.Second, Delay: time.Duration(in.DelayMillis) * time.Millisecond,
		}
		if err := s.AddFault(f); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	case http.MethodDelete:
		s.ClearFaults()
	}
	pending := s.PendingFaults()
	out := make([]wireFault, 0, len(pending))
	for _, f := range pending {
		out = append(out, wireFault{f.Method, f.Count, f.Status, f.Error, int(f.RetryAfter / time.Second), f.Drop, f.Hang, int(f.Delay / time.Millisecond)})
	}
	writeJSON(w, http.StatusOK, map[string]any{"faults": out})
}

// writeRateLimited answers 429 as Slack does.
func writeRateLimited(w http.ResponseWriter, seconds int) {
	w.Header().Set("Retry-After", strconv.Itoa(seconds))
	writeJSON(w, http.StatusTooManyRequests, apiError("ratelimited"))
}
