package message

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Separators of the raw property text: name 0x01 value 0x02, repeated. Rule: docs/format/properties.md.
const (
	NameValueSeparator = 0x01
	PropertySeparator  = 0x02
)

// Property returns the last value of a property in the raw text, aliasing it. It does not allocate. A property with an
// empty value does not exist.
func Property(props []byte, name string) (value []byte, ok bool) {
	if name == "" || strings.IndexByte(name, NameValueSeparator) >= 0 || strings.IndexByte(name, PropertySeparator) >= 0 {
		return nil, false
	}
	if len(name) > stackName {
		return longProperty(props, name)
	}
	for at := 0; ; {
		i := bytes.Index(props[at:], []byte(name))
		if i < 0 {
			return value, ok
		}
		i += at
		at = i + len(name)
		if at >= len(props) {
			return value, ok
		}
		if props[at] != NameValueSeparator || i > 0 && props[i-1] != PropertySeparator {
			continue
		}
		v := props[at+1:]
		if end := bytes.IndexByte(v, PropertySeparator); end >= 0 {
			v = v[:end]
		}
		at += 1 + len(v)
		if len(v) > 0 {
			value, ok = v[:len(v):len(v)], true
		}
	}
}

// stackName is the length up to which a name becomes bytes without an allocation.
const stackName = 32

// longProperty is Property for names that are too long to look for directly.
func longProperty(props []byte, name string) (value []byte, ok bool) {
	for at := 0; at < len(props); {
		p := nextProperty(props, at)
		at = p.next
		if p.ok() && string(props[p.start:p.sep]) == name {
			value, ok = props[p.sep+1:p.end:p.end], true
		}
	}
	return value, ok
}

// EachProperty calls f for every property of the raw text in the order in which they stand, duplicates included, until
// f returns false. name and value alias props. Parts without a name or without a value are passed over.
func EachProperty(props []byte, f func(name, value []byte) bool) {
	for at := 0; at < len(props); {
		p := nextProperty(props, at)
		at = p.next
		if p.ok() && !f(props[p.start:p.sep:p.sep], props[p.sep+1:p.end:p.end]) {
			return
		}
	}
}

// propertyAt says where one part of a raw text begins, where its name ends, where its value ends, and where the next
// part begins.
type propertyAt struct{ start, sep, end, next int }

// ok reports whether the part is a property: it has a name and a value.
func (p propertyAt) ok() bool { return p.sep > p.start && p.sep < p.end-1 }

// nextProperty takes the part that begins at a place within props.
func nextProperty(props []byte, at int) propertyAt {
	p := propertyAt{start: at, end: len(props), next: len(props)}
	if n := bytes.IndexByte(props[at:], PropertySeparator); n >= 0 {
		p.end, p.next = at+n, at+n+1
	}
	p.sep = at + bytes.IndexByte(props[at:p.end], NameValueSeparator) // just before at if there is none
	return p
}

// AppendProperty appends one property to a raw text. If dst does not end in a separator, one is put in first, so that
// the new property does not become part of the last value.
func AppendProperty(dst []byte, name, value string) []byte {
	if len(dst) > 0 && dst[len(dst)-1] != PropertySeparator {
		dst = append(dst, PropertySeparator)
	}
	dst = append(dst, name...)
	dst = append(dst, NameValueSeparator)
	dst = append(dst, value...)
	return append(dst, PropertySeparator)
}

// ParseProperties returns all properties of a raw text. Of duplicates the last one counts. The strings share one copy
// of props.
func ParseProperties(props []byte) map[string]string {
	m := make(map[string]string, bytes.Count(props, []byte{PropertySeparator})+1)
	text := string(props)
	for at := 0; at < len(props); {
		p := nextProperty(props, at)
		at = p.next
		if p.ok() {
			m[text[p.start:p.sep]] = text[p.sep+1 : p.end]
		}
	}
	return m
}

// FormatProperties returns the raw text of m, sorted by name, each property ended by a separator. Properties with an
// empty name or value are left out, since no reader would see them.
func FormatProperties(m map[string]string) []byte {
	n := 0
	for name, value := range m {
		n += len(name) + len(value) + 2
	}
	return AppendProperties(make([]byte, 0, n), m)
}

// AppendProperties appends the properties of m to a raw text, sorted by name; see FormatProperties.
func AppendProperties(dst []byte, m map[string]string) []byte {
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if value := m[name]; name != "" && value != "" {
			dst = AppendProperty(dst, name, value)
		}
	}
	return dst
}

// SetProperty returns a raw text in which name has exactly this value, at the end. It copies; props stays as it is.
func SetProperty(props []byte, name, value string) []byte {
	dst := make([]byte, 0, len(props)+len(name)+len(value)+3)
	dst = appendWithout(dst, props, name)
	return AppendProperty(dst, name, value)
}

// DeleteProperty returns a raw text without any property of that name; all other bytes stay as they are. It returns
// props itself if there is none, else a copy.
func DeleteProperty(props []byte, name string) []byte {
	if !bytes.Contains(props, []byte(name)) {
		return props
	}
	return appendWithout(make([]byte, 0, len(props)), props, name)
}

// appendWithout appends the parts of props whose name is not name, with empty values counting as properties here.
func appendWithout(dst, props []byte, name string) []byte {
	for len(props) > 0 {
		n := bytes.IndexByte(props, PropertySeparator) + 1
		if n == 0 {
			n = len(props)
		}
		part := props[:n]
		props = props[n:]
		if len(part) > len(name) && part[len(name)] == NameValueSeparator && string(part[:len(name)]) == name {
			continue
		}
		dst = append(dst, part...)
	}
	return dst
}

// PropertyTextError says that a property's name or value cannot be sent.
type PropertyTextError struct {
	Name, Value string
	Part        string // "name" or "value"
	Pos         int    // of the separator in that part, in bytes from 0; -1 if the part is empty
}

// Error names the property and the byte that is not allowed.
func (e *PropertyTextError) Error() string {
	if e.Pos < 0 {
		return fmt.Sprintf("property %q: %s is empty, which no reader would see", e.Name, e.Part)
	}
	text := e.Name
	if e.Part == "value" {
		text = e.Value
	}
	return fmt.Sprintf("property %q: %s has byte 0x%02x at position %d, which separates properties",
		e.Name, e.Part, text[e.Pos], e.Pos)
}

// ValidatePropertyText reports with a *PropertyTextError that a property would not arrive as it is sent: its name or
// value holds one of the separators 0x01 and 0x02, or is empty. Clients check it before sending; brokers store what
// they get.
func ValidatePropertyText(name, value string) error {
	for _, p := range [...]struct{ part, text string }{{"name", name}, {"value", value}} {
		if p.text == "" {
			return &PropertyTextError{Name: name, Value: value, Part: p.part, Pos: -1}
		}
		if i := strings.IndexAny(p.text, "\x01\x02"); i >= 0 {
			return &PropertyTextError{Name: name, Value: value, Part: p.part, Pos: i}
		}
	}
	return nil
}
