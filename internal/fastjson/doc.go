// Package fastjson reads and writes the JSON dialect of Java's fastjson, in
// which RocketMQ keeps its bodies and configuration files: map keys that are
// numbers stand without quotes, map keys that are objects stand as objects
// (docs/wire/json.md).
//
// Values are Go structs with `json:"name"` tags. A tag may go on with
// omitempty (left out while empty) and alt=NAME (a second name that is read).
// Nil pointers and interfaces are left out, nil slices and maps are written
// empty unless they are omitempty. All functions are safe to share.
package fastjson

import "fmt"

// MaxDepth is the deepest nesting of objects and arrays that is read or
// written.
const MaxDepth = 64

// Member is one entry of an Object. Key is a string, an int64 (a number
// without quotes) or an Object (an object that is a key).
type Member struct {
	Key   any
	Value any
}

// Object is a JSON object whose entries keep their order.
type Object []Member

// Get returns the value of the last entry with a text key.
func (o Object) Get(key string) (any, bool) {
	for i := len(o) - 1; i >= 0; i-- {
		if k, ok := o[i].Key.(string); ok && k == key {
			return o[i].Value, true
		}
	}
	return nil, false
}

// SyntaxError is a text that cannot be read, or a value that does not fit the
// place it is read into.
type SyntaxError struct {
	Offset int    // bytes before the place
	What   string // what is wrong there
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("cannot read JSON at byte %d: %s", e.Offset, e.What)
}
