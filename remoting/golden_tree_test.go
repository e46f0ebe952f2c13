package remoting

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"mqx/internal/fastjson"
)

// sortObjects sorts the entries of every object by their key as text.
func sortObjects(v any) any {
	switch v := v.(type) {
	case fastjson.Object:
		o := make(fastjson.Object, 0, len(v))
		for _, m := range v {
			o = append(o, fastjson.Member{Key: sortObjects(m.Key), Value: sortObjects(m.Value)})
		}
		slices.SortFunc(o, func(a, b fastjson.Member) int { return strings.Compare(keyText(a.Key), keyText(b.Key)) })
		return o
	case []any:
		list := make([]any, 0, len(v))
		for _, x := range v {
			list = append(list, sortObjects(x))
		}
		return list
	}
	return v
}

func keyText(k any) string {
	b, err := fastjson.Marshal(k)
	if err != nil {
		return ""
	}
	return string(b)
}

// keepOnly removes from got, at every level, the members that want does not
// have.
func keepOnly(got, want any) any {
	switch g := got.(type) {
	case fastjson.Object:
		w, ok := want.(fastjson.Object)
		if !ok {
			return got
		}
		var o fastjson.Object
		for _, m := range g {
			for _, wm := range w {
				if reflect.DeepEqual(sortObjects(m.Key), sortObjects(wm.Key)) {
					o = append(o, fastjson.Member{Key: m.Key, Value: keepOnly(m.Value, wm.Value)})
					break
				}
			}
		}
		return o
	case []any:
		w, ok := want.([]any)
		if !ok || len(w) != len(g) {
			return got
		}
		list := make([]any, 0, len(g))
		for i := range g {
			list = append(list, keepOnly(g[i], w[i]))
		}
		return list
	case int64:
		if text, ok := want.(string); ok && text == strconv.FormatInt(g, 10) {
			return text // the Go client writes hash codes as strings
		}
	}
	return got
}

// hasMap reports whether a body holds a map, whose order Java leaves open.
func hasMap(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Map:
		return true
	case reflect.Pointer, reflect.Slice:
		return hasMap(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if hasMap(t.Field(i).Type) {
				return true
			}
		}
	}
	return false
}
