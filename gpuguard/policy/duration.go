package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Duration is a time.Duration that reads and writes as text such as "1.5s",
// "200ms" or "2h", in JSON and YAML alike.
type Duration time.Duration

// D returns the standard form.
func (d Duration) D() time.Duration { return time.Duration(d) }

// String is the text form.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalJSON writes the text form.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON reads the text form; a bare number is refused because its unit would be a guess.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return errors.New(`want a duration as text with a unit, such as "15s" or "200ms"`)
	}
	return d.parse(s)
}

func (d *Duration) parse(s string) error {
	v, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf(`%q is not a duration: want text with a unit, such as "15s" or "200ms"`, s)
	}
	*d = Duration(v)
	return nil
}
