package strict

import (
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// fieldSet is what a struct type reads: json names and where they are kept.
type fieldSet struct {
	byName map[string][]int
	// names in declaration order, for messages.
	names []string
}

var fieldCache sync.Map // reflect.Type → *fieldSet

func fieldsOf(t reflect.Type) *fieldSet {
	if fs, ok := fieldCache.Load(t); ok {
		return fs.(*fieldSet)
	}
	fs := &fieldSet{byName: map[string][]int{}}
	fs.collect(t, nil, map[reflect.Type]bool{})
	cached, _ := fieldCache.LoadOrStore(t, fs)
	return cached.(*fieldSet)
}

// collect follows encoding/json: tags name fields, "-" hides them, and untagged
// embedded structs lend theirs, the outermost winning.
func (fs *fieldSet) collect(t reflect.Type, prefix []int, above map[reflect.Type]bool) {
	if above[t] {
		return
	}
	above[t] = true
	defer delete(above, t)
	var embedded []reflect.StructField
	for i := range t.NumField() {
		f := t.Field(i)
		tag, tagged := f.Tag.Lookup("json")
		name, _, _ := strings.Cut(tag, ",")
		if tag == "-" {
			continue
		}
		if f.Anonymous && name == "" && structBehind(f.Type) != nil {
			if f.IsExported() || f.Type.Kind() == reflect.Struct {
				embedded = append(embedded, f)
			}
			continue
		}
		if !f.IsExported() {
			continue
		}
		if name == "" || !tagged {
			name = f.Name
		}
		fs.add(name, append(append([]int(nil), prefix...), i))
	}
	for _, f := range embedded {
		fs.collect(structBehind(f.Type), append(append([]int(nil), prefix...), f.Index[0]), above)
	}
}

func (fs *fieldSet) add(name string, index []int) {
	if _, taken := fs.byName[name]; taken {
		return
	}
	fs.byName[name] = index
	fs.names = append(fs.names, name)
}

// structBehind is the struct type of an embedded field, or nil.
func structBehind(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	return t
}

// fieldByIndex is reflect's FieldByIndex that fills nil embedded pointers on its way.
func fieldByIndex(v reflect.Value, index []int) reflect.Value {
	for _, i := range index {
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	return v
}

func quoteList(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = strconv.Quote(n)
	}
	return strings.Join(quoted, ", ")
}
