package props

import (
	"fmt"
	"strings"
)

// UnsupportedError is a configuration that promises what is not served. Its
// exit code is that of wrong usage.
type UnsupportedError struct {
	File string
	Line int // 0 when the value did not come from a file
	Key  string
	Val  string
	Why  string
}

// Error names file, line, key and reason.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s: %s (--allow-unsupported %s starts without it)", e.What(), e.Why, e.Key)
}

// What names the key, its value and where it stands.
func (e *UnsupportedError) What() string {
	at := e.File
	if e.Line > 0 {
		at = fmt.Sprintf("%s:%d", e.File, e.Line)
	}
	if at != "" {
		at += ": "
	}
	return fmt.Sprintf("%s%s=%s is not supported", at, e.Key, e.Val)
}

// Refusal is a key that stops the start: it changes durability, replication,
// security, where data lies or what clients get, and what it asks for is not served.
type Refusal struct {
	Key string
	// Promises reports whether this value asks for what is not served.
	Promises func(value string) bool
	Why      string
}

// Refusals are the keys that stop the start of one server, each once.
type Refusals []Refusal

// Find returns the row that refuses value for key, nil when there is none.
func (rs Refusals) Find(key, value string) *Refusal {
	for i := range rs {
		if r := &rs[i]; r.Key == key && r.Promises(value) {
			return r
		}
	}
	return nil
}

// Keys are the keys of all rows.
func (rs Refusals) Keys() []string {
	keys := make([]string, 0, len(rs))
	for i := range rs {
		keys = append(keys, rs[i].Key)
	}
	return keys
}

// IsTrue reports whether a boolean key is set by value.
func IsTrue(value string) bool { return strings.EqualFold(strings.TrimSpace(value), "true") }
