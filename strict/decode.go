package strict

import (
	"encoding"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"time"
)

// DecodeJSON reads one JSON document into dst, a non-nil pointer, and refuses
// what dst has no place for. It reports every problem as Errors, in document
// order: unknown keys (with the name that was probably meant), wrong types,
// duplicate keys, null, trailing data, sizes beyond MaxBytes and MaxDepth.
//
// Keys match json tags exactly. Keys that are absent leave dst as it was, so
// that defaults may be filled in before. Types with UnmarshalJSON or
// UnmarshalText read themselves and their errors get the path; json.RawMessage
// and any take every value, null included. On error dst is partly filled and
// must not be used.
func DecodeJSON(data []byte, dst any) error {
	v := reflect.ValueOf(dst)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return fmt.Errorf("strict: cannot decode into %T: want a non-nil pointer", dst)
	}
	if err := syntax(data); err != nil {
		return Errors{{Message: "document " + err.Error()}}
	}
	r := &report{}
	p := &parser{data: data, errs: r}
	root := p.value("", 0)
	if !r.stop {
		r.decode(root, v.Elem(), "")
	}
	return r.list.Err()
}

// report collects problems up to MaxErrors.
type report struct {
	list Errors
	// stop ends the reading: going on would cost without bound or tell nothing new.
	stop bool
}

func (r *report) addf(path, format string, args ...any) {
	switch {
	case r.stop:
	case len(r.list) == MaxErrors:
		r.list.Addf("", "more than %d problems: the rest is not shown", MaxErrors)
		r.stop = true
	default:
		r.list.Addf(path, format, args...)
	}
}

var (
	timeType        = reflect.TypeFor[time.Time]()
	rawType         = reflect.TypeFor[json.RawMessage]()
	unmarshaler     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// decode fills v, which is addressable, from n.
func (r *report) decode(n *node, v reflect.Value, path string) {
	switch {
	case r.stop:
	case v.Type() == rawType:
		v.SetBytes(append([]byte(nil), n.raw...))
	case v.Kind() == reflect.Interface:
		r.decodeAny(n, v, path)
	case n.kind == kindNull:
		r.addf(path, "is null: give a value or leave the key out")
	case v.Kind() == reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		r.decode(n, v.Elem(), path)
	case v.Type() == timeType:
		r.decodeTime(n, v, path)
	case reflect.PointerTo(v.Type()).Implements(unmarshaler):
		r.addErr(path, v.Addr().Interface().(json.Unmarshaler).UnmarshalJSON(n.raw))
	case reflect.PointerTo(v.Type()).Implements(textUnmarshaler):
		if r.want(n, kindText, "text", path) {
			r.addErr(path, v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(n.text)))
		}
	default:
		r.decodeKind(n, v, path)
	}
}

// addErr reports the error of a type that reads itself, below its path.
func (r *report) addErr(path string, err error) {
	var inner Errors
	switch {
	case err == nil:
	case errors.As(err, &inner):
		for _, fe := range inner {
			r.addf(under(path, fe.Path), "%s", fe.Message)
		}
	default:
		r.addf(path, "%s", err.Error())
	}
}

// want reports a wrong kind of value.
func (r *report) want(n *node, k kind, noun, path string) bool {
	if n.kind != k {
		r.addf(path, "want %s, got %s", noun, n.noun())
		return false
	}
	return true
}

func (r *report) decodeAny(n *node, v reflect.Value, path string) {
	if v.NumMethod() > 0 {
		r.addf(path, "cannot be read: the program has no way to fill %s", v.Type())
		return
	}
	var x any
	if err := json.Unmarshal(n.raw, &x); err != nil {
		r.addf(path, "%s", err.Error())
		return
	}
	if x == nil {
		v.SetZero()
		return
	}
	v.Set(reflect.ValueOf(x))
}

func (r *report) decodeTime(n *node, v reflect.Value, path string) {
	const example = `want a time with date and zone, such as "2026-03-01T14:00:00Z"`
	if n.kind != kindText {
		r.addf(path, "%s, got %s", example, n.noun())
		return
	}
	t, err := time.Parse(time.RFC3339, n.text)
	if err != nil {
		r.addf(path, "%q is not a time: %s", n.text, example)
		return
	}
	v.Set(reflect.ValueOf(t))
}

func (r *report) decodeKind(n *node, v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.Struct:
		r.decodeStruct(n, v, path)
	case reflect.Map:
		r.decodeMap(n, v, path)
	case reflect.Slice:
		r.decodeSlice(n, v, path)
	case reflect.Array:
		r.decodeArray(n, v, path)
	case reflect.String:
		if r.want(n, kindText, "text", path) {
			v.SetString(n.text)
		}
	case reflect.Bool:
		if r.want(n, kindBool, "true or false", path) {
			v.SetBool(string(n.raw) == "true")
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		r.decodeWhole(n, v, path)
	case reflect.Float32, reflect.Float64:
		r.decodeFloat(n, v, path)
	default:
		r.addf(path, "cannot be read: the program has no way to fill %s", v.Type())
	}
}

func (r *report) decodeStruct(n *node, v reflect.Value, path string) {
	if !r.want(n, kindObject, "an object", path) {
		return
	}
	fields := fieldsOf(v.Type())
	for _, m := range n.members {
		at := Join(path, m.key)
		index, ok := fields.byName[m.key]
		if !ok {
			r.addf(at, "%s", unknownKey(m.key, fields.names))
			continue
		}
		r.decode(m.value, fieldByIndex(v, index), at)
	}
}

// unknownKey says what was probably meant, or what there is to choose from.
func unknownKey(key string, known []string) string {
	const listed = 12 // more names than that hide the message
	if near := Nearest(key, known); near != "" {
		return fmt.Sprintf("unknown key: did you mean %q?", near)
	}
	switch {
	case len(known) == 0:
		return "unknown key: none are known here"
	case len(known) <= listed:
		return "unknown key: known here are " + quoteList(known)
	default:
		return "unknown key"
	}
}

func (r *report) decodeMap(n *node, v reflect.Value, path string) {
	if !r.want(n, kindObject, "an object", path) {
		return
	}
	if v.Type().Key().Kind() != reflect.String {
		r.addf(path, "cannot be read: the program has no way to fill %s", v.Type())
		return
	}
	if v.IsNil() {
		v.Set(reflect.MakeMapWithSize(v.Type(), len(n.members)))
	}
	for _, m := range n.members {
		elem := reflect.New(v.Type().Elem()).Elem()
		r.decode(m.value, elem, Join(path, m.key))
		v.SetMapIndex(reflect.ValueOf(m.key).Convert(v.Type().Key()), elem)
	}
}

func (r *report) decodeSlice(n *node, v reflect.Value, path string) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		r.decodeBytes(n, v, path)
		return
	}
	if !r.want(n, kindList, "a list", path) {
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.list), len(n.list)))
	for i, e := range n.list {
		r.decode(e, v.Index(i), Index(path, i))
	}
}

func (r *report) decodeBytes(n *node, v reflect.Value, path string) {
	if !r.want(n, kindText, "text in base64", path) {
		return
	}
	b, err := base64.StdEncoding.DecodeString(n.text)
	if err != nil {
		r.addf(path, "is not base64")
		return
	}
	v.SetBytes(b)
}

func (r *report) decodeArray(n *node, v reflect.Value, path string) {
	if !r.want(n, kindList, "a list", path) {
		return
	}
	if len(n.list) != v.Len() {
		r.addf(path, "want a list of %d, got %d", v.Len(), len(n.list))
		return
	}
	for i, e := range n.list {
		r.decode(e, v.Index(i), Index(path, i))
	}
}

func (r *report) decodeWhole(n *node, v reflect.Value, path string) {
	if !r.want(n, kindNumber, "a number", path) {
		return
	}
	bits := v.Type().Bits()
	var err error
	if v.CanInt() {
		var i int64
		if i, err = strconv.ParseInt(string(n.raw), 10, bits); err == nil {
			v.SetInt(i)
		}
	} else {
		var u uint64
		if u, err = strconv.ParseUint(string(n.raw), 10, bits); err == nil {
			v.SetUint(u)
		}
	}
	switch {
	case err == nil:
	case errors.Is(err, strconv.ErrRange):
		r.addf(path, "%s is out of range", clip(n.raw))
	case v.CanUint() && n.raw[0] == '-':
		r.addf(path, "want a number of 0 or more, got %s", clip(n.raw))
	default:
		r.addf(path, "want a whole number, got %s", clip(n.raw))
	}
}

func (r *report) decodeFloat(n *node, v reflect.Value, path string) {
	if !r.want(n, kindNumber, "a number", path) {
		return
	}
	f, err := strconv.ParseFloat(string(n.raw), v.Type().Bits())
	if err != nil {
		r.addf(path, "%s is out of range", clip(n.raw))
		return
	}
	v.SetFloat(f)
}

// clip keeps a quoted number short; input may have a million digits.
func clip(raw []byte) string {
	const most = 40
	if len(raw) > most {
		return string(raw[:most]) + "…"
	}
	return string(raw)
}
