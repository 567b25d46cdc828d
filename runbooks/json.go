package runbooks

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// duration reads and writes as text with a unit, such as "90s" or "15m".
type duration time.Duration

// MarshalJSON writes the text form.
func (d duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON reads the text form; a bare number is refused because its unit would be a guess.
func (d *duration) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return errors.New(`want a duration as text with a unit, such as "90s" or "15m"`)
	}
	v, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf(`%q is not a duration: want text with a unit, such as "90s" or "15m"`, clip(text, 40))
	}
	*d = duration(v)
	return nil
}

// plainStep is Step without its methods.
type plainStep Step

type stepJSON struct {
	plainStep
	Timeout duration `json:"timeout,omitzero"`
	TTL     duration `json:"ttl,omitzero"`
	Wait    duration `json:"wait,omitzero"`
}

// MarshalJSON writes the step with its durations as text, as in a file.
func (s Step) MarshalJSON() ([]byte, error) {
	return json.Marshal(stepJSON{plainStep(s), duration(s.Timeout), duration(s.TTL), duration(s.Wait)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (s *Step) UnmarshalJSON(b []byte) error {
	var in stepJSON
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	*s = Step(in.plainStep)
	s.Timeout, s.TTL, s.Wait = time.Duration(in.Timeout), time.Duration(in.TTL), time.Duration(in.Wait)
	return nil
}

// versionOf is the SHA-256 of the canonical form, which is the JSON without the version.
func versionOf(b Runbook) string {
	b.Version = ""
	raw, err := json.Marshal(b)
	if err != nil {
		raw = fmt.Append(nil, err) // only a criterion that is not a number does not encode, and the loader refuses it
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// clip shortens text to at most n runes.
func clip(s string, n int) string {
	runes := 0
	for i := range s {
		if runes == n {
			return s[:i] + "…"
		}
		runes++
	}
	return s
}
