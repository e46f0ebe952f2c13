package props

import (
	"strconv"
	"strings"
	"unicode/utf16"
)

// Parse reads .properties text as java.util.Properties does: ISO-8859-1, '#'
// and '!' comments, '=' ':' or blanks between key and value, a trailing odd
// backslash continues the line, \uXXXX and the usual escapes. The only error is
// a malformed \u escape, a *SyntaxError with the line.
func Parse(name string, data []byte) (*File, error) {
	f := &File{Name: name}
	line := 1
	for pos := 0; pos < len(data); {
		n, text, isKey := logicalLine(data[pos:])
		l := logical{raw: string(data[pos : pos+n]), isKey: isKey}
		if isKey {
			key, value, err := splitEntry(text)
			if err != "" {
				return nil, &SyntaxError{File: name, Line: line, Key: key, Text: err}
			}
			l.entry = Entry{Key: key, Value: value, Line: line}
		}
		f.lines = append(f.lines, l)
		line += countLines(data[pos : pos+n])
		pos += n
	}
	return f, nil
}

// Get returns the entry of key; of several the last one counts, as in Java.
func (f *File) Get(key string) (Entry, bool) {
	for i := len(f.lines) - 1; i >= 0; i-- {
		if l := &f.lines[i]; l.isKey && l.entry.Key == key {
			return l.entry, true
		}
	}
	return Entry{}, false
}

// Entries returns the effective entry of each key, in the order of the file.
func (f *File) Entries() []Entry {
	last := map[string]int{}
	for i := range f.lines {
		if f.lines[i].isKey {
			last[f.lines[i].entry.Key] = i
		}
	}
	var out []Entry
	for i := range f.lines {
		if l := &f.lines[i]; l.isKey && last[l.entry.Key] == i {
			out = append(out, l.entry)
		}
	}
	return out
}

// Overridden returns the entries that a later line of the same key hides.
func (f *File) Overridden() []Entry {
	last := map[string]int{}
	var out []Entry
	for i := len(f.lines) - 1; i >= 0; i-- {
		l := &f.lines[i]
		if !l.isKey {
			continue
		}
		if _, seen := last[l.entry.Key]; seen {
			out = append([]Entry{l.entry}, out...)
			continue
		}
		last[l.entry.Key] = i
	}
	return out
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\f' }
func isEOL(c byte) bool   { return c == '\n' || c == '\r' }

// eolLen is the length of the line end at the start of b: 0, 1 or 2.
func eolLen(b []byte) int {
	switch {
	case len(b) >= 2 && b[0] == '\r' && b[1] == '\n':
		return 2
	case len(b) >= 1 && isEOL(b[0]):
		return 1
	}
	return 0
}

func countLines(b []byte) int {
	n := 0
	for i := 0; i < len(b); {
		if e := eolLen(b[i:]); e > 0 {
			n++
			i += e
			continue
		}
		i++
	}
	return n
}

// logicalLine cuts one logical line off b: n bytes with its line end, and its
// text with continuations joined and leading blanks removed. isKey is false
// for blank lines and comments.
func logicalLine(b []byte) (n int, text []byte, isKey bool) {
	i := skipBlanks(b, 0)
	if i < len(b) && (b[i] == '#' || b[i] == '!') {
		for i < len(b) && !isEOL(b[i]) {
			i++
		}
		return i + eolLen(b[i:]), nil, false
	}
	for i < len(b) {
		start := i
		odd := false // an odd number of backslashes stands just before i
		for i < len(b) && !isEOL(b[i]) {
			odd = b[i] == '\\' && !odd
			i++
		}
		text = append(text, b[start:i]...)
		i += eolLen(b[i:])
		if !odd {
			break
		}
		text = text[:len(text)-1]
		i = skipBlanks(b, i)
	}
	return i, text, len(text) > 0
}

func skipBlanks(b []byte, i int) int {
	for i < len(b) && isBlank(b[i]) {
		i++
	}
	return i
}

// splitEntry splits a logical line at the first unescaped separator.
func splitEntry(text []byte) (key, value, problem string) {
	keyEnd := 0
	for keyEnd < len(text) {
		c := text[keyEnd]
		if c == '\\' {
			keyEnd += 2
			continue
		}
		if c == '=' || c == ':' || isBlank(c) {
			break
		}
		keyEnd++
	}
	keyEnd = min(keyEnd, len(text))
	i := skipBlanks(text, keyEnd)
	if i < len(text) && (text[i] == '=' || text[i] == ':') {
		i = skipBlanks(text, i+1)
	}
	key, problem = unescape(text[:keyEnd])
	if problem != "" {
		return key, "", problem
	}
	value, problem = unescape(text[i:])
	return key, value, problem
}

// unescape decodes ISO-8859-1 bytes and Java's escapes into UTF-8.
func unescape(b []byte) (s, problem string) {
	var units []uint16
	for i := 0; i < len(b); i++ {
		c := b[i]
		if c != '\\' {
			units = append(units, uint16(c))
			continue
		}
		i++
		if i >= len(b) {
			break
		}
		switch b[i] {
		case 't':
			units = append(units, '\t')
		case 'n':
			units = append(units, '\n')
		case 'r':
			units = append(units, '\r')
		case 'f':
			units = append(units, '\f')
		case 'u':
			if i+4 >= len(b) {
				return "", `malformed \uXXXX escape`
			}
			u, err := strconv.ParseUint(string(b[i+1:i+5]), 16, 16)
			if err != nil {
				return "", `malformed \uXXXX escape \u` + string(b[i+1:i+5])
			}
			units = append(units, uint16(u))
			i += 4
		default:
			units = append(units, uint16(b[i]))
		}
	}
	return string(utf16.Decode(units)), ""
}

// escapeKey and escapeValue write text so that Parse reads it back unchanged.
func escapeKey(s string) string { return escape(s, true) }

func escapeValue(s string) string { return escape(s, false) }

func escape(s string, key bool) string {
	var b strings.Builder
	for i, u := range utf16.Encode([]rune(s)) {
		switch {
		case u == '\\':
			b.WriteString(`\\`)
		case u == '\t':
			b.WriteString(`\t`)
		case u == '\n':
			b.WriteString(`\n`)
		case u == '\r':
			b.WriteString(`\r`)
		case u == '\f':
			b.WriteString(`\f`)
		case u == ' ' && (key || i == 0):
			b.WriteString(`\ `)
		case key && (u == '=' || u == ':' || i == 0 && (u == '#' || u == '!')):
			b.WriteByte('\\')
			b.WriteByte(byte(u))
		case u < 0x20 || u > 0x7e:
			b.WriteString(`\u` + hex4(u))
		default:
			b.WriteByte(byte(u))
		}
	}
	return b.String()
}

func hex4(u uint16) string {
	const digits = "0123456789ABCDEF"
	return string([]byte{digits[u>>12], digits[u>>8&15], digits[u>>4&15], digits[u&15]})
}
