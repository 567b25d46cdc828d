package alert

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"
)

// Bounds of a notification. What is longer is cut where it only informs, and
// refused where it identifies.
const (
	maxAlerts      = 100_000
	maxDepth       = 32
	maxPairs       = 128
	maxLabelName   = 256
	maxLabelValue  = 4096
	maxAnnotation  = 8192
	maxURL         = 2000
	maxTruncated   = 100_000_000
	maxGroupKey    = 512
	groupKeyKept   = 400
	fingerprintLen = 16
)

const webhookVersion = "4"

// ParseAlertmanager reads an Alertmanager webhook of version "4" delivered by
// source, the name of its token. It is strict about what identifies and orders
// alerts and ignores fields it does not know. ErrInvalid names the field.
func ParseAlertmanager(body []byte, source string) (Notification, error) {
	top, err := object(body)
	if err != nil {
		return Notification{}, err
	}
	if err := checkVersion(top["version"]); err != nil {
		return Notification{}, err
	}
	n := Notification{Source: source, Raw: body}
	if err := n.envelope(top); err != nil {
		return Notification{}, err
	}
	var items []json.RawMessage
	if err := field(top, "alerts", &items); err != nil {
		return Notification{}, err
	}
	switch {
	case len(items) == 0:
		return Notification{}, invalid("alerts", "holds no alert")
	case len(items) > maxAlerts:
		return Notification{}, invalid("alerts", fmt.Sprintf("holds %d alerts, at most %d are taken; lower max_alerts", len(items), maxAlerts))
	}
	n.Alerts = make([]Incoming, len(items))
	for i, item := range items {
		if n.Alerts[i], err = parseAlert(item, fmt.Sprintf("alerts[%d]", i)); err != nil {
			return Notification{}, err
		}
	}
	return n, nil
}

func invalid(path, what string) error { return fmt.Errorf("%w: %s %s", ErrInvalid, path, what) }

// object reads the top level, refusing what is nested deeper than any webhook is.
func object(body []byte) (map[string]json.RawMessage, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, fmt.Errorf("%w: the body is empty", ErrInvalid)
	}
	if depth(body) > maxDepth {
		return nil, fmt.Errorf("%w: nested deeper than %d levels", ErrInvalid, maxDepth)
	}
	var top map[string]json.RawMessage
	if err := json.Unmarshal(body, &top); err != nil {
		return nil, fmt.Errorf("%w: the body %s", ErrInvalid, jsonProblem(err))
	}
	if top == nil {
		return nil, fmt.Errorf("%w: the body is null, want an object", ErrInvalid)
	}
	return top, nil
}

// depth is the deepest nesting of brackets outside strings.
func depth(body []byte) int {
	level, deepest := 0, 0
	inString, escaped := false, false
	for _, c := range body {
		switch {
		case escaped:
			escaped = false
		case inString:
			escaped, inString = c == '\\', c != '"'
		case c == '"':
			inString = true
		case c == '{' || c == '[':
			level++
			deepest = max(deepest, level)
		case c == '}' || c == ']':
			level--
		}
	}
	return deepest
}

func jsonProblem(err error) string {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf("is not JSON at byte %d: %s", syntax.Offset, syntax.Error())
	}
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Sprintf("is a JSON %s, want %s", kind.Value, jsonKind(kind.Type.Kind().String()))
	}
	return "is not JSON"
}

func jsonKind(goKind string) string {
	switch goKind {
	case "map", "struct":
		return "an object"
	case "slice":
		return "an array"
	case "string":
		return "a string"
	default:
		return "a number"
	}
}

func checkVersion(raw json.RawMessage) error {
	if raw == nil {
		return invalid("version", `is missing, want "4"; is this an Alertmanager webhook?`)
	}
	var version string
	if err := json.Unmarshal(raw, &version); err != nil {
		return invalid("version", `must be the string "4"`)
	}
	if version != webhookVersion {
		return invalid("version", fmt.Sprintf(`is %q, only webhook version "4" is understood`, cut(version, 20)))
	}
	return nil
}

// field decodes one member; an absent or null one leaves out as it is.
func field(obj map[string]json.RawMessage, name string, out any) error {
	raw, ok := obj[name]
	if !ok {
		return nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return invalid(name, jsonProblem(err))
	}
	return nil
}

func (n *Notification) envelope(top map[string]json.RawMessage) error {
	for _, f := range []struct {
		name string
		out  any
	}{
		{"groupKey", &n.GroupKey},
		{"receiver", &n.Receiver},
		{"externalURL", &n.ExternalURL},
		{"truncatedAlerts", &n.Truncated},
		{"groupLabels", &n.GroupLabels},
		{"commonLabels", &n.CommonLabels},
		{"commonAnnotations", &n.CommonAnnotations},
	} {
		if err := field(top, f.name, f.out); err != nil {
			return err
		}
	}
	if n.GroupKey == "" {
		return invalid("groupKey", "is missing; alerts are grouped by it")
	}
	if n.Truncated < 0 || n.Truncated > maxTruncated {
		return invalid("truncatedAlerts", fmt.Sprintf("is %d, want 0 to %d", n.Truncated, maxTruncated))
	}
	n.GroupKey = shortGroupKey(storable(n.GroupKey))
	n.Receiver, n.ExternalURL = cut(storable(n.Receiver), maxLabelName), webURL(n.ExternalURL)
	var err error
	if n.GroupLabels, err = pairs(n.GroupLabels, "groupLabels", maxLabelValue); err != nil {
		return err
	}
	if n.CommonLabels, err = pairs(n.CommonLabels, "commonLabels", maxLabelValue); err != nil {
		return err
	}
	n.CommonAnnotations, err = pairs(n.CommonAnnotations, "commonAnnotations", maxAnnotation)
	return err
}

// shortGroupKey keeps a key that fits an index, and replaces the tail of a
// longer one by its hash, so that it still names the group.
func shortGroupKey(key string) string {
	if len(key) <= maxGroupKey {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return cut(key, groupKeyKept) + "#" + hex.EncodeToString(sum[:])
}

func parseAlert(raw json.RawMessage, path string) (Incoming, error) {
	var obj map[string]json.RawMessage
	if err := json.Unmarshal(raw, &obj); err != nil {
		return Incoming{}, invalid(path, jsonProblem(err))
	}
	if obj == nil {
		return Incoming{}, invalid(path, "is null, want an object")
	}
	var (
		a                  Incoming
		starts, ends       string
		status, generators string
	)
	for _, f := range []struct {
		name string
		out  any
	}{
		{"status", &status},
		{"startsAt", &starts},
		{"endsAt", &ends},
		{"fingerprint", &a.Fingerprint},
		{"generatorURL", &generators},
		{"labels", &a.Labels},
		{"annotations", &a.Annotations},
	} {
		if err := fieldOf(obj, path, f.name, f.out); err != nil {
			return Incoming{}, err
		}
	}
	a.Status, a.GeneratorURL = Status(status), webURL(generators)
	if a.Status != StatusFiring && a.Status != StatusResolved {
		return Incoming{}, invalid(path+".status", fmt.Sprintf("is %q, want firing or resolved", cut(status, 40)))
	}
	if err := a.identity(path); err != nil {
		return Incoming{}, err
	}
	var err error
	if a.Annotations, err = pairs(a.Annotations, path+".annotations", maxAnnotation); err != nil {
		return Incoming{}, err
	}
	return a, a.times(path, starts, ends)
}

// fieldOf is field with the place of the object, and of the member inside a map.
func fieldOf(obj map[string]json.RawMessage, path, name string, out any) error {
	raw, ok := obj[name]
	if !ok {
		return nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return invalid(path+"."+name, jsonProblem(err))
	}
	return nil
}

// identity takes the fingerprint from the source, or from the labels when it
// gives none; never from texts (C25). The labels are bounded after that.
func (a *Incoming) identity(path string) error {
	if len(a.Labels) == 0 {
		return invalid(path+".labels", "is empty; labels identify an alert")
	}
	if a.Fingerprint == "" {
		a.Fingerprint = labelFingerprint(a.Labels)
	}
	a.Fingerprint = strings.ToLower(a.Fingerprint)
	if len(a.Fingerprint) != fingerprintLen || strings.Trim(a.Fingerprint, "0123456789abcdef") != "" {
		return invalid(path+".fingerprint", fmt.Sprintf("is %q, want %d hexadecimal digits", cut(a.Fingerprint, 40), fingerprintLen))
	}
	var err error
	a.Labels, err = pairs(a.Labels, path+".labels", maxLabelValue)
	return err
}

// times reads the window. Both databases store microseconds: the start is cut
// and the end rounded up, so that no life is zero or negative (C19).
func (a *Incoming) times(path, starts, ends string) error {
	if starts == "" {
		return invalid(path+".startsAt", "is missing")
	}
	var err error
	if a.StartsAt, err = instant(starts, path+".startsAt"); err != nil {
		return err
	}
	if a.StartsAt.IsZero() {
		return invalid(path+".startsAt", "is zero")
	}
	a.StartsAt = a.StartsAt.Truncate(time.Microsecond)
	if ends == "" {
		return nil
	}
	end, err := instant(ends, path+".endsAt")
	if err != nil || end.IsZero() || a.Status == StatusFiring {
		return err
	}
	a.EndsAt = endAfter(a.StartsAt, end)
	return nil
}

// endAfter rounds an end up to microseconds and keeps it after the start.
func endAfter(start, end time.Time) time.Time {
	up := end.Truncate(time.Microsecond)
	if up.Before(end) {
		up = up.Add(time.Microsecond)
	}
	if !up.After(start) {
		up = start.Add(time.Microsecond)
	}
	return up
}

const (
	firstYear = 1970
	lastYear  = 2200
)

func instant(s, path string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}, invalid(path, fmt.Sprintf("is %q, want RFC 3339 such as 2026-02-03T10:00:00Z", cut(s, 60)))
	}
	t = t.UTC()
	if !t.IsZero() && (t.Year() < firstYear || t.Year() > lastYear) {
		return time.Time{}, invalid(path, fmt.Sprintf("is in the year %d", t.Year()))
	}
	return t, nil
}

// pairs bounds labels or annotations: values are cut, names and their number refused.
func pairs(in map[string]string, path string, maxValue int) (map[string]string, error) {
	if len(in) > maxPairs {
		return nil, invalid(path, fmt.Sprintf("has %d entries, at most %d are taken", len(in), maxPairs))
	}
	out := make(map[string]string, len(in))
	for k, v := range in {
		if k == "" || len(k) > maxLabelName {
			return nil, invalid(path, fmt.Sprintf("has a name of %d bytes, want 1 to %d", len(k), maxLabelName))
		}
		out[storable(k)] = cut(storable(v), maxValue)
	}
	return out, nil
}

// storable replaces NUL, which PostgreSQL cannot store, and broken UTF-8.
func storable(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", "\uFFFD"), "\uFFFD")
}

// cut shortens to at most limit bytes at a rune boundary and marks the cut.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	end := limit
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

// webURL keeps an absolute http or https address and drops everything else: it
// becomes a link that people follow.
func webURL(s string) string {
	s = storable(s)
	u, err := url.Parse(s)
	if err != nil || len(s) > maxURL || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return ""
	}
	return s
}
