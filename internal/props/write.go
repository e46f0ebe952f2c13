package props

import "strings"

// Set gives key a value. The line that counts is rewritten in its place, with
// its indent and separator kept and continuations joined; a key that is not in
// the file is appended. Comments and all other lines stay as they are.
func (f *File) Set(key, value string) {
	for i := len(f.lines) - 1; i >= 0; i-- {
		l := &f.lines[i]
		if !l.isKey || l.entry.Key != key {
			continue
		}
		if l.entry.Value != value {
			l.raw = valuePrefix(l.raw, key) + escapeValue(value) + lineEnd(l.raw)
			l.entry.Value = value
		}
		return
	}
	line := 1
	for i := range f.lines {
		line += countLines([]byte(f.lines[i].raw))
	}
	eol := f.lineEnd()
	if n := len(f.lines); n > 0 {
		last := &f.lines[n-1]
		if lineEnd(last.raw) == "" {
			last.raw += eol
			line++
		}
		if last.isKey && continues(last.raw) {
			last.raw += eol
			line++
		}
	}
	f.lines = append(f.lines, logical{
		raw:   escapeKey(key) + "=" + escapeValue(value) + eol,
		entry: Entry{Key: key, Value: value, Line: line},
		isKey: true,
	})
}

// Bytes is the whole text; unchanged lines are byte for byte what was read.
func (f *File) Bytes() []byte {
	var b strings.Builder
	for i := range f.lines {
		b.WriteString(f.lines[i].raw)
	}
	return []byte(b.String())
}

// continues reports whether a raw line ends in a backslash that would join the
// next one.
func continues(raw string) bool {
	raw = strings.TrimSuffix(raw, lineEnd(raw))
	return (len(raw)-len(strings.TrimRight(raw, `\`)))%2 == 1
}

// lineEnd is the line end of one raw line, "" for a last line without one.
func lineEnd(raw string) string {
	switch {
	case strings.HasSuffix(raw, "\r\n"):
		return "\r\n"
	case strings.HasSuffix(raw, "\n"):
		return "\n"
	case strings.HasSuffix(raw, "\r"):
		return "\r"
	}
	return ""
}

// lineEnd is the line end that the file uses.
func (f *File) lineEnd() string {
	for i := range f.lines {
		if e := lineEnd(f.lines[i].raw); e != "" {
			return e
		}
	}
	return "\n"
}

// valuePrefix is what stands before the value in a raw line. Where key and
// value are not on one physical line the prefix is written anew.
func valuePrefix(raw, key string) string {
	i := skipBlanks([]byte(raw), 0)
	for i < len(raw) && !isEOL(raw[i]) {
		c := raw[i]
		if c == '\\' {
			i += 2
			continue
		}
		if c == '=' || c == ':' || isBlank(c) {
			break
		}
		i++
	}
	if i >= len(raw) || isEOL(raw[i]) {
		return escapeKey(key) + "="
	}
	b := []byte(raw)
	j := skipBlanks(b, i)
	if j < len(b) && (b[j] == '=' || b[j] == ':') {
		j = skipBlanks(b, j+1)
	} else if j >= len(b) || isEOL(b[j]) {
		return escapeKey(key) + "="
	}
	return raw[:j]
}
