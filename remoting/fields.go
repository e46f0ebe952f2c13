package remoting

import (
	"fmt"
	"strconv"
)

// Field is one header extension field. A nil Value is null: the field counts
// as absent for every getter.
type Field struct{ Key, Value []byte }

// Fields are the header extension fields of a command, in the order of the
// frame. When a key occurs twice, the last one counts.
//
//nolint:recvcheck // reading takes the slice, changing it takes its address
type Fields []Field

// Get returns the value of key. It aliases the frame after a decode.
func (f Fields) Get(key string) ([]byte, bool) {
	for i := len(f) - 1; i >= 0; i-- {
		if string(f[i].Key) == key {
			return f[i].Value, f[i].Value != nil
		}
	}
	return nil, false
}

// String returns the value of key as a string, "" when absent.
func (f Fields) String(key string) string {
	v, _ := f.Get(key)
	return string(v)
}

// Int32 returns the value of key as a number; ok is false when the field is
// absent. A value that is no 32-bit number is an error that names the field.
func (f Fields) Int32(key string) (v int32, ok bool, err error) {
	b, ok := f.Get(key)
	if !ok {
		return 0, false, nil
	}
	n, err := parseInt(b, 32)
	if err != nil {
		return 0, true, &FieldError{Field: key, Value: string(b), Err: err}
	}
	return int32(n), true, nil
}

// Int64 is Int32 for 64-bit numbers.
func (f Fields) Int64(key string) (v int64, ok bool, err error) {
	b, ok := f.Get(key)
	if !ok {
		return 0, false, nil
	}
	n, err := parseInt(b, 64)
	if err != nil {
		return 0, true, &FieldError{Field: key, Value: string(b), Err: err}
	}
	return n, true, nil
}

// Bool returns the value of key; ok is false when the field is absent. Any
// text but "true" (in any case) is false, as in Java.
func (f Fields) Bool(key string) (v, ok bool) {
	b, ok := f.Get(key)
	return ok && parseBool(b), ok
}

// Set sets key to value, replacing an earlier value. Nothing is copied: the
// bytes of a field must never be written to.
func (f *Fields) Set(key, value string) { f.SetBytes(key, readOnly(value)) }

// SetBytes is Set for bytes.
func (f *Fields) SetBytes(key string, value []byte) {
	if value == nil {
		value = []byte{}
	}
	for i := len(*f) - 1; i >= 0; i-- {
		if string((*f)[i].Key) == key {
			(*f)[i].Value = value
			return
		}
	}
	*f = append(*f, Field{Key: readOnly(key), Value: value})
}

// SetInt sets key to a number.
func (f *Fields) SetInt(key string, v int64) { f.SetBytes(key, strconv.AppendInt(nil, v, 10)) }

// SetBool sets key to true or false.
func (f *Fields) SetBool(key string, v bool) { f.Set(key, strconv.FormatBool(v)) }

// Del removes every field named key.
func (f *Fields) Del(key string) {
	kept := (*f)[:0]
	for _, fd := range *f {
		if string(fd.Key) != key {
			kept = append(kept, fd)
		}
	}
	clear((*f)[len(kept):])
	*f = kept
}

// Len returns the number of fields.
func (f Fields) Len() int { return len(f) }

// Each calls fn for every field until it returns false.
func (f Fields) Each(fn func(key, value []byte) bool) {
	for _, fd := range f {
		if !fn(fd.Key, fd.Value) {
			return
		}
	}
}

// FieldError is a header field whose value cannot be read.
type FieldError struct {
	Field string // name on the wire
	Value string // the text found
	Err   error
}

func (e *FieldError) Error() string {
	return fmt.Sprintf("cannot read header field %q: %q: %v", e.Field, e.Value, e.Err)
}

// Unwrap returns the cause.
func (e *FieldError) Unwrap() error { return e.Err }

// MissingFieldError is a required header field that is absent.
type MissingFieldError struct {
	Field string // name on the wire
}

func (e *MissingFieldError) Error() string {
	return fmt.Sprintf("the custom field <%s> is null", e.Field)
}
