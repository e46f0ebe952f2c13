package props

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Field is one key that a struct binds with a `conf:"key"` tag.
//
// Kinds of Go fields and what they take: string (as it stands), bool (true or
// false in any case), int and int32 (32 bit, as Java's int), int64 (Java's
// long), float64, any type with UnmarshalText (enums), and time.Duration, whose
// tag names the unit of the number in the file: `conf:"syncFlushTimeout,ms"`
// with ms, s, min or h.
type Field struct {
	Key   string
	value reflect.Value
	unit  time.Duration
}

// Fields lists what the targets (pointers to structs) bind, in order of
// declaration; structs inside structs are walked, fields without a tag skipped.
// A malformed target is a programming error and panics.
func Fields(targets ...any) []Field {
	var out []Field
	for _, t := range targets {
		v := reflect.ValueOf(t)
		if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
			panic(fmt.Sprintf("props: target %T is no pointer to a struct", t))
		}
		out = appendFields(out, v.Elem())
	}
	return out
}

func appendFields(out []Field, v reflect.Value) []Field {
	t := v.Type()
	for i := range t.NumField() {
		sf := t.Field(i)
		if !sf.IsExported() {
			continue
		}
		tag := sf.Tag.Get("conf")
		if tag == "" || tag == "-" {
			if tag == "" && sf.Type.Kind() == reflect.Struct {
				out = appendFields(out, v.Field(i))
			}
			continue
		}
		key, unit, _ := strings.Cut(tag, ",")
		f := Field{Key: key, value: v.Field(i)}
		if sf.Type == durationType {
			f.unit = units[unit]
			if f.unit == 0 {
				panic(fmt.Sprintf("props: field %s.%s: a duration needs a unit in its tag", t, sf.Name))
			}
		}
		out = append(out, f)
	}
	return out
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	units        = map[string]time.Duration{"ms": time.Millisecond, "s": time.Second, "min": time.Minute, "h": time.Hour}
)

// String is the value in the form of the file.
func (f Field) String() string {
	v := f.value
	if f.unit != 0 {
		return strconv.FormatInt(v.Int()/int64(f.unit), 10)
	}
	if m, ok := v.Interface().(encoding.TextMarshaler); ok {
		b, err := m.MarshalText()
		if err != nil {
			return ""
		}
		return string(b)
	}
	switch v.Kind() {
	case reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case reflect.Float32, reflect.Float64:
		s := strconv.FormatFloat(v.Float(), 'g', -1, 64)
		if !strings.ContainsAny(s, ".e") {
			s += ".0"
		}
		return s
	case reflect.String:
		return v.String()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return strconv.FormatUint(v.Uint(), 10)
	default:
		return strconv.FormatInt(v.Int(), 10)
	}
}

// Set parses text and stores it. On an error nothing is stored.
func (f Field) Set(text string) error {
	v := f.value
	if f.unit != 0 {
		n, err := parseInt(text, 64)
		if err != nil {
			return err
		}
		if n > math.MaxInt64/int64(f.unit) || n < math.MinInt64/int64(f.unit) {
			return fmt.Errorf("%q is out of range", text)
		}
		v.SetInt(n * int64(f.unit))
		return nil
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if err := u.UnmarshalText([]byte(strings.TrimSpace(text))); err != nil {
			return withCommentHint(err, text)
		}
		return nil
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		switch strings.ToLower(strings.TrimSpace(text)) {
		case "true":
			v.SetBool(true)
		case "false":
			v.SetBool(false)
		default:
			return withCommentHint(fmt.Errorf("%q is neither true nor false", text), text)
		}
	case reflect.Float32, reflect.Float64:
		x, err := strconv.ParseFloat(strings.TrimRight(strings.TrimSpace(text), "fFdD"), 64)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return withCommentHint(fmt.Errorf("%q is no number", text), text)
		}
		v.SetFloat(x)
	case reflect.Int, reflect.Int32, reflect.Int64:
		bits := 32
		if v.Kind() == reflect.Int64 {
			bits = 64
		}
		n, err := parseInt(text, bits)
		if err != nil {
			return err
		}
		v.SetInt(n)
	default:
		return fmt.Errorf("a field of type %s cannot be set from text", v.Type())
	}
	return nil
}

func parseInt(text string, bits int) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, bits)
	if err == nil {
		return n, nil
	}
	if errors.Is(err, strconv.ErrRange) {
		return 0, fmt.Errorf("%q is out of range (%d bit)", text, bits)
	}
	return 0, withCommentHint(fmt.Errorf("%q is no whole number", text), text)
}

// withCommentHint adds why a value with a '#' in it does not parse.
func withCommentHint(err error, text string) error {
	if strings.ContainsAny(text, "#!") {
		return fmt.Errorf("%w (a comment cannot follow a value on its line)", err)
	}
	return err
}

// Bind sets the fields of all targets from the file; a key that several targets
// bind is set in each, as Apache does. A malformed value is a *SyntaxError with
// file and line; of several the first is returned and the rest of the file is
// still bound. Keys that no target binds come back in unknown.
func Bind(f *File, targets ...any) (unknown []Entry, err error) {
	fields := map[string][]Field{}
	for _, fd := range Fields(targets...) {
		fields[fd.Key] = append(fields[fd.Key], fd)
	}
	for _, e := range f.Entries() {
		fds, ok := fields[e.Key]
		if !ok {
			unknown = append(unknown, e)
			continue
		}
		for _, fd := range fds {
			if serr := fd.Set(e.Value); serr != nil && err == nil {
				err = &SyntaxError{File: f.Name, Line: e.Line, Key: e.Key, Text: serr.Error()}
			}
		}
	}
	return unknown, err
}

// UnknownText is the warning for a key that nothing binds, with its line.
func UnknownText(f *File, e Entry) string {
	return fmt.Sprintf("%s:%d: unknown key %q is ignored", f.Name, e.Line, e.Key)
}
