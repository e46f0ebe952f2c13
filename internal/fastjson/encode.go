package fastjson

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
)

// Marshal writes v in the loose dialect: members by name, maps sorted, number
// keys without quotes, struct keys as nested objects.
func Marshal(v any) ([]byte, error) { return (&encoder{}).run(v) }

// MarshalStandard writes v as JSON that every reader takes: all keys quoted,
// everything beyond ASCII escaped, members by name, maps sorted.
func MarshalStandard(v any) ([]byte, error) { return (&encoder{standard: true}).run(v) }

// MarshalPretty writes v in the loose dialect over several lines, as the
// files under config/ are: a tab a level, numbers of an array on one line.
func MarshalPretty(v any) ([]byte, error) { return (&encoder{pretty: true}).run(v) }

type encoder struct {
	out      []byte
	standard bool
	pretty   bool
	level    int // of the indent
	depth    int
}

func (e *encoder) run(v any) ([]byte, error) {
	if err := e.value(reflect.ValueOf(v)); err != nil {
		return nil, err
	}
	return e.out, nil
}

func (e *encoder) value(v reflect.Value) error {
	if e.depth++; e.depth > MaxDepth {
		return fmt.Errorf("cannot write JSON: nested deeper than %d", MaxDepth)
	}
	defer func() { e.depth-- }()
	switch v.Kind() {
	case reflect.Invalid:
		e.out = append(e.out, "null"...)
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			e.out = append(e.out, "null"...)
			return nil
		}
		return e.value(v.Elem())
	case reflect.String:
		e.text(v.String())
	case reflect.Bool:
		e.out = strconv.AppendBool(e.out, v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		e.out = strconv.AppendInt(e.out, v.Int(), 10)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		e.out = strconv.AppendUint(e.out, v.Uint(), 10)
	case reflect.Float32, reflect.Float64:
		e.out = appendFloat(e.out, v.Float())
	case reflect.Struct:
		return e.structure(v)
	case reflect.Map:
		return e.mapping(v)
	case reflect.Slice:
		if o, ok := reflect.TypeAssert[Object](v); ok {
			return e.object(o)
		}
		return e.array(v)
	default:
		return fmt.Errorf("cannot write %s as JSON", v.Type())
	}
	return nil
}

func (e *encoder) text(s string) {
	if e.standard {
		e.out = appendASCII(e.out, s)
	} else {
		e.out = AppendString(e.out, s)
	}
}

func (e *encoder) newline() {
	e.out = append(e.out, '\n')
	for range e.level {
		e.out = append(e.out, '\t')
	}
}

// entry begins an entry of an object or array.
func (e *encoder) entry(first bool) {
	if first {
		e.level++
	} else {
		e.out = append(e.out, ',')
	}
	if e.pretty {
		e.newline()
	}
}

// end closes an object or array that had entries unless empty.
func (e *encoder) end(empty bool, c byte) {
	if !empty {
		e.level--
		if e.pretty {
			e.newline()
		}
	}
	e.out = append(e.out, c)
}

func isNil(v reflect.Value) bool {
	return (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) && v.IsNil()
}

func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map, reflect.String:
		return v.Len() == 0
	}
	return v.IsZero()
}

func (e *encoder) structure(v reflect.Value) error {
	e.out = append(e.out, '{')
	empty := true
	pl := planOf(v.Type())
	for i := range pl.fields {
		f := &pl.fields[i]
		fv := v.FieldByIndex(f.index)
		if isNil(fv) || f.omitEmpty && isEmpty(fv) {
			continue
		}
		e.entry(empty)
		empty = false
		e.out = append(e.out, f.prefix...)
		if err := e.value(fv); err != nil {
			return err
		}
	}
	e.end(empty, '}')
	return nil
}

func (e *encoder) mapping(v reflect.Value) error {
	e.out = append(e.out, '{')
	empty := true
	keys := v.MapKeys()
	slices.SortFunc(keys, compareKeys)
	for _, k := range keys {
		elem := v.MapIndex(k)
		if isNil(elem) {
			continue
		}
		e.entry(empty)
		empty = false
		if err := e.key(k); err != nil {
			return err
		}
		if err := e.value(elem); err != nil {
			return err
		}
	}
	e.end(empty, '}')
	return nil
}

func (e *encoder) object(o Object) error {
	e.out = append(e.out, '{')
	empty := true
	for _, m := range o {
		e.entry(empty)
		empty = false
		if err := e.key(reflect.ValueOf(m.Key)); err != nil {
			return err
		}
		if err := e.value(reflect.ValueOf(m.Value)); err != nil {
			return err
		}
	}
	e.end(empty, '}')
	return nil
}

// key writes a key with its colon.
func (e *encoder) key(k reflect.Value) error {
	switch {
	case k.Kind() == reflect.String:
		e.text(k.String())
	case e.standard:
		sub, err := (&encoder{standard: true, depth: e.depth}).run(k.Interface())
		if err != nil {
			return err
		}
		e.text(string(sub))
	default:
		// An object as key stands on one line also in the pretty form.
		sub, err := (&encoder{depth: e.depth}).run(k.Interface())
		if err != nil {
			return err
		}
		e.out = append(e.out, sub...)
	}
	e.out = append(e.out, ':')
	return nil
}

func compareKeys(a, b reflect.Value) int {
	switch a.Kind() {
	case reflect.String:
		return cmp.Compare(a.String(), b.String())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return cmp.Compare(a.Int(), b.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return cmp.Compare(a.Uint(), b.Uint())
	case reflect.Struct:
		for _, f := range planOf(a.Type()).fields {
			if c := compareKeys(a.FieldByIndex(f.index), b.FieldByIndex(f.index)); c != 0 {
				return c
			}
		}
	}
	return 0
}

// array writes a list. In the pretty form numbers stand on one line and
// everything else one a line.
func (e *encoder) array(v reflect.Value) error {
	e.out = append(e.out, '[')
	oneLine := !e.pretty || allNumbers(v)
	for i := range v.Len() {
		if oneLine {
			if i > 0 {
				e.out = append(e.out, ',')
			}
		} else {
			e.entry(i == 0)
		}
		if err := e.value(v.Index(i)); err != nil {
			return err
		}
	}
	if oneLine {
		e.out = append(e.out, ']')
	} else {
		e.end(v.Len() == 0, ']')
	}
	return nil
}

func allNumbers(v reflect.Value) bool {
	for i := range v.Len() {
		x := v.Index(i)
		if x.Kind() == reflect.Interface {
			x = x.Elem()
		}
		if !x.CanInt() && !x.CanUint() && !x.CanFloat() {
			return false
		}
	}
	return true
}
