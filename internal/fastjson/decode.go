package fastjson

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
)

// Unmarshal reads data into v, a non-nil pointer. It is lenient as Java is:
// keys without quotes, single quotes, surplus commas, numbers as strings and
// strings as numbers, members that v does not have, null for anything. An
// error is a *SyntaxError; v may be partly filled then.
func Unmarshal(data []byte, v any) error {
	rv := reflect.ValueOf(v)
	if rv.Kind() != reflect.Pointer || rv.IsNil() {
		return fmt.Errorf("cannot read JSON into %T: not a pointer", v)
	}
	p := newParser(data)
	if err := p.decode(rv.Elem()); err != nil {
		return err
	}
	return p.finish()
}

func (p *parser) decode(v reflect.Value) error {
	k := p.peek()
	switch k {
	case kindEnd:
		return p.fail(p.pos, "unexpected end")
	case kindBad:
		return p.fail(p.pos, "value expected")
	case kindBare:
		start := p.pos
		if string(p.bare()) == "null" {
			v.SetZero()
			return nil
		}
		p.pos = start
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		return p.decode(v.Elem())
	case reflect.Struct:
		return p.decodeStruct(v, k)
	case reflect.Map:
		return p.decodeMap(v, k)
	case reflect.Slice:
		return p.decodeSlice(v, k)
	case reflect.String:
		return p.decodeString(v, k)
	case reflect.Interface:
		if v.NumMethod() == 0 {
			tree, err := p.tree(false)
			if err != nil {
				return err
			}
			if tree != nil {
				v.Set(reflect.ValueOf(tree))
			}
			return nil
		}
	default:
		if k != kindBare && k != kindString {
			return p.fail(p.pos, "number expected")
		}
		start := p.pos
		text, _, err := p.scalar(k)
		if err != nil {
			return err
		}
		if what := setScalar(v, text); what != "" {
			return p.fail(start, what)
		}
		return nil
	}
	return p.fail(p.pos, "cannot read into "+v.Type().String())
}

func (p *parser) decodeStruct(v reflect.Value, k kind) error {
	if k != kindObject {
		return p.fail(p.pos, "object expected")
	}
	if err := p.open(); err != nil {
		return err
	}
	pl := planOf(v.Type())
	if pl.defaults {
		v.Addr().Interface().(Defaulter).JSONDefaults()
	}
	for first := true; ; first = false {
		more, err := p.more(first, '}')
		if err != nil || !more {
			return err
		}
		key, _, err := p.key()
		if err != nil {
			return err
		}
		if f, ok := pl.byName[string(key)]; ok {
			err = p.decode(v.FieldByIndex(f.index))
		} else {
			err = p.skip()
		}
		if err != nil {
			return err
		}
	}
}

func (p *parser) decodeMap(v reflect.Value, k kind) error {
	if k != kindObject {
		return p.fail(p.pos, "object expected")
	}
	if err := p.open(); err != nil {
		return err
	}
	t := v.Type()
	v.Set(reflect.MakeMap(t))
	key := reflect.New(t.Key()).Elem()
	elem := reflect.New(t.Elem()).Elem()
	for first := true; ; first = false {
		more, err := p.more(first, '}')
		if err != nil || !more {
			return err
		}
		start := p.pos
		text, kk, err := p.key()
		if err != nil {
			return err
		}
		key.SetZero()
		if err := p.decodeKey(key, text, kk, start); err != nil {
			return err
		}
		elem.SetZero()
		if err := p.decode(elem); err != nil {
			return err
		}
		v.SetMapIndex(key, elem)
	}
}

func (p *parser) decodeKey(key reflect.Value, text []byte, k kind, start int) error {
	switch key.Kind() {
	case reflect.String:
		key.SetString(string(text))
	case reflect.Struct: // an object, or a string that holds one
		sub := &parser{data: text, depth: p.depth}
		if sub.peek() != kindObject {
			return p.fail(start, "object expected as key")
		}
		if err := sub.decode(key); err != nil {
			return p.fail(start, "in a key: "+err.Error())
		}
	default:
		if k == kindObject {
			return p.fail(start, "number expected as key")
		}
		if what := setScalar(key, text); what != "" {
			return p.fail(start, what)
		}
	}
	return nil
}

func (p *parser) decodeSlice(v reflect.Value, k kind) error {
	if k != kindArray {
		return p.fail(p.pos, "array expected")
	}
	if err := p.open(); err != nil {
		return err
	}
	v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	for n := 0; ; n++ {
		more, err := p.more(n == 0, ']')
		if err != nil || !more {
			return err
		}
		if n == v.Cap() {
			v.Grow(max(4, n))
		}
		v.SetLen(n + 1)
		if err := p.decode(v.Index(n)); err != nil {
			return err
		}
	}
}

// decodeString takes any value: other than a string it is its source text.
func (p *parser) decodeString(v reflect.Value, k kind) error {
	if k == kindString {
		text, err := p.str()
		if err == nil {
			v.SetString(string(text))
		}
		return err
	}
	start := p.pos
	if err := p.skip(); err != nil {
		return err
	}
	v.SetString(string(p.data[start:p.pos]))
	return nil
}

// setScalar sets a number or a truth value and returns what is wrong, "" when
// all is well.
func setScalar(v reflect.Value, text []byte) string {
	switch v.Kind() {
	case reflect.Bool:
		switch string(text) {
		case "true", "TRUE", "True", "1", "Y":
			v.SetBool(true)
		case "false", "FALSE", "False", "0", "N", "":
			v.SetBool(false)
		default:
			return "true or false expected"
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n, ok := parseInteger(text)
		if !ok {
			return "whole number expected"
		}
		if v.OverflowInt(n) {
			return "number out of range"
		}
		v.SetInt(n)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n, err := strconv.ParseUint(string(text), 10, 64)
		if err != nil {
			return "whole number expected"
		}
		if v.OverflowUint(n) {
			return "number out of range"
		}
		v.SetUint(n)
	case reflect.Float32, reflect.Float64:
		if len(text) == 0 {
			v.SetFloat(0)
			return ""
		}
		f, err := strconv.ParseFloat(string(text), 64)
		if err != nil {
			return "number expected"
		}
		v.SetFloat(f)
	default:
		return "cannot read into " + v.Type().String()
	}
	return ""
}

// parseInteger reads a whole number; "" is 0, as in Java, and 1.0 is 1.
func parseInteger(text []byte) (int64, bool) {
	if len(text) == 0 {
		return 0, true
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<63 {
		return 0, false
	}
	return int64(f), true
}
