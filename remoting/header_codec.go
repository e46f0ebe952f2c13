package remoting

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"unsafe"
)

// valueKind is how a header value is read and written.
type valueKind byte

const (
	valueString valueKind = iota
	valueBool
	valueInt32
	valueInt64
	valueOptBool
	valueOptInt32
	valueOptInt64
)

// headerField is one field of a header struct, found through embedded structs
// too.
type headerField struct {
	name      string
	index     []int
	kind      valueKind
	required  bool
	omitEmpty bool
	isTrue    bool // a bool that is true when absent
}

// headerPlan is what is known of a header struct type.
type headerPlan struct {
	fields []headerField
	byName map[string]int // the names and the second names
}

var headerPlans sync.Map // reflect.Type -> *headerPlan

// headerPlanOf panics when t is no header struct: that is a mistake in the
// program.
func headerPlanOf(t reflect.Type) *headerPlan {
	if p, ok := headerPlans.Load(t); ok {
		return p.(*headerPlan)
	}
	p := &headerPlan{byName: map[string]int{}}
	p.collect(t, nil)
	actual, _ := headerPlans.LoadOrStore(t, p)
	return actual.(*headerPlan)
}

func (p *headerPlan) collect(t reflect.Type, prefix []int) {
	for i := range t.NumField() {
		sf := t.Field(i)
		index := append(append([]int(nil), prefix...), i)
		tag, ok := sf.Tag.Lookup("rmq")
		if !ok {
			if !sf.Anonymous {
				panic(fmt.Sprintf("header field %s.%s has no rmq tag", t, sf.Name))
			}
			p.collect(sf.Type, index)
			continue
		}
		names, opts, _ := strings.Cut(tag, ",")
		name, second, _ := strings.Cut(names, "|")
		f := headerField{name: name, index: index, kind: valueKindOf(t, sf)}
		f.required = opts == "required"
		f.omitEmpty = opts == "omitempty"
		f.isTrue = opts == "default=true"
		p.byName[name] = len(p.fields)
		if second != "" {
			p.byName[second] = len(p.fields)
		}
		p.fields = append(p.fields, f)
	}
	if len(p.fields) > 64 {
		panic(fmt.Sprintf("header %s has more than 64 fields", t))
	}
}

func valueKindOf(t reflect.Type, sf reflect.StructField) valueKind {
	switch sf.Type {
	case reflect.TypeFor[Opt[bool]]():
		return valueOptBool
	case reflect.TypeFor[Opt[int32]]():
		return valueOptInt32
	case reflect.TypeFor[Opt[int64]]():
		return valueOptInt64
	}
	switch sf.Type.Kind() {
	case reflect.String:
		return valueString
	case reflect.Bool:
		return valueBool
	case reflect.Int32:
		return valueInt32
	case reflect.Int64:
		return valueInt64
	}
	panic(fmt.Sprintf("header field %s.%s has type %s", t, sf.Name, sf.Type))
}

// DecodeHeader fills h, a pointer to a header struct, from f and overwrites
// it. A required field that is absent is a *MissingFieldError, a value that
// cannot be read a *FieldError. A number without a digit counts as absent.
func DecodeHeader(f Fields, h any) error {
	v := reflect.ValueOf(h).Elem()
	p := headerPlanOf(v.Type())
	v.SetZero()
	var seen uint64
	for i := range f {
		fd := &f[i]
		at, ok := p.byName[string(fd.Key)]
		if !ok || fd.Value == nil {
			continue
		}
		hf := &p.fields[at]
		if hf.kind != valueString && len(fd.Value) == 0 {
			continue
		}
		if err := setHeaderValue(v.FieldByIndex(hf.index), hf.kind, fd); err != nil {
			return err
		}
		seen |= 1 << at
	}
	for i := range p.fields {
		if seen&(1<<i) != 0 {
			continue
		}
		if p.fields[i].required {
			return &MissingFieldError{Field: p.fields[i].name}
		}
		if p.fields[i].isTrue {
			v.FieldByIndex(p.fields[i].index).SetBool(true)
		}
	}
	return nil
}

func setHeaderValue(v reflect.Value, kind valueKind, fd *Field) error {
	switch kind {
	case valueString:
		v.SetString(string(fd.Value))
		return nil
	case valueBool:
		v.SetBool(parseBool(fd.Value))
		return nil
	case valueOptBool:
		*v.Addr().Interface().(*Opt[bool]) = Some(parseBool(fd.Value))
		return nil
	}
	bitSize := 64
	if kind == valueInt32 || kind == valueOptInt32 {
		bitSize = 32
	}
	n, err := parseInt(fd.Value, bitSize)
	if err != nil {
		return fieldError(fd, err)
	}
	switch kind {
	case valueOptInt32:
		*v.Addr().Interface().(*Opt[int32]) = Some(int32(n))
	case valueOptInt64:
		*v.Addr().Interface().(*Opt[int64]) = Some(n)
	default:
		v.SetInt(n)
	}
	return nil
}

func fieldError(fd *Field, err error) error {
	return &FieldError{Field: string(fd.Key), Value: string(fd.Value), Err: err}
}

// EncodeHeader sets the fields of h, a pointer to a header struct, in f, in
// the order of the struct.
func EncodeHeader(f *Fields, h any) {
	w := fieldWriter{fields: *f}
	w.header(h)
	*f = w.fields
}

// fieldWriter sets fields whose numbers it keeps in buf. When buf grows, the
// fields written before keep the old one alive.
type fieldWriter struct {
	fields Fields
	buf    []byte
}

func (w *fieldWriter) string(key, value string) { w.fields.Set(key, value) }

func (w *fieldWriter) text(key, value string) {
	if value != "" {
		w.fields.Set(key, value)
	}
}

func (w *fieldWriter) int(key string, v int64) {
	from := len(w.buf)
	w.buf = strconv.AppendInt(w.buf, v, 10)
	w.fields.SetBytes(key, w.buf[from:len(w.buf):len(w.buf)])
}

func (w *fieldWriter) optInt(key string, v Opt[int64]) {
	if v.OK {
		w.int(key, v.Value)
	}
}

func (w *fieldWriter) header(h any) {
	v := reflect.ValueOf(h).Elem()
	p := headerPlanOf(v.Type())
	for i := range p.fields {
		f := &p.fields[i]
		fv := v.FieldByIndex(f.index)
		if f.omitEmpty && fv.IsZero() {
			continue
		}
		switch f.kind {
		case valueString:
			w.string(f.name, fv.String())
		case valueBool:
			w.string(f.name, strconv.FormatBool(fv.Bool()))
		case valueInt32, valueInt64:
			w.int(f.name, fv.Int())
		case valueOptBool:
			if o := fv.Interface().(Opt[bool]); o.OK {
				w.string(f.name, strconv.FormatBool(o.Value))
			}
		case valueOptInt32:
			if o := fv.Interface().(Opt[int32]); o.OK {
				w.int(f.name, int64(o.Value))
			}
		case valueOptInt64:
			w.optInt(f.name, fv.Interface().(Opt[int64]))
		}
	}
}

// readOnly returns the bytes of s without a copy. Nobody writes to the names
// and values of fields.
func readOnly(s string) []byte {
	if s == "" {
		return []byte{}
	}
	return unsafe.Slice(unsafe.StringData(s), len(s))
}
