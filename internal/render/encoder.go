package render

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Encoder makes lines of rows as the Writer it comes from would print them, one value after the other into a buffer of
// the caller's: without an allocation, and apart from the Writer, so that several may work at the same time. What they
// made is printed by Writer.Lines. An Encoder belongs to one goroutine.
//
// A row is Begin, a call for each field of the schema in their order, and End. A value of another kind than its field's
// panics, and so does a row with too few or too many.
type Encoder struct {
	w      *Writer // whose options and schema do not change
	json   bool
	fields []encodedField
	at     int  // the next field
	items  int  // of the list or object that is open
	inside bool // one is, and it is printed
	b      []byte
	first  bool // no cell has been written
	days   dayPrefix
}

type encodedField struct {
	kind Kind
	skip bool
	name string // what stands before the value: ,"name":
	twin string // the same of its text twin, "" for none
}

// Encoder returns an encoder of lines, or nil where rows cannot be turned into lines apart from each other: when they
// are chosen, counted or sorted here, for a terminal, and in the forms other than ndjson and tab-separated text without
// objects.
func (w *Writer) Encoder() *Encoder {
	if !w.o.Stream || w.match != nil || w.o.Limit > 0 || w.o.Sort != "" || w.o.Records {
		return nil
	}
	e := &Encoder{w: w, json: w.o.Form == FormNDJSON}
	if !e.json && (w.o.Form != FormTable || w.o.TTY) {
		return nil
	}
	for i, f := range w.schema.Fields {
		x := encodedField{kind: f.Kind, skip: f.Wide && !e.json}
		if f.Kind == Object && !e.json && !x.skip {
			return nil
		}
		if e.json {
			x.name = jsonText(f.Name) + ":"
			if w.o.Strings && (f.Kind == Int || f.Kind == Size) {
				x.twin = "," + jsonText(f.Name+"String") + ":"
			}
			if i > 0 {
				x.name = "," + x.name
			}
		}
		e.fields = append(e.fields, x)
	}
	return e
}

// Lines prints lines that an Encoder of this Writer made; none is no line.
func (w *Writer) Lines(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if !w.started {
		w.started = true
		if err := w.lineHeader(); err != nil {
			return err
		}
	}
	if _, err := w.out.Write(b); err != nil {
		return fmt.Errorf("cannot write output: %w", err)
	}
	return nil
}

// Begin begins a row, to be appended to dst.
func (e *Encoder) Begin(dst []byte) {
	e.b, e.at, e.first = dst, 0, true
	if e.json {
		e.b = append(e.b, '{')
	}
}

// End ends the row and returns what it was appended to.
func (e *Encoder) End() []byte {
	if e.at != len(e.fields) {
		panic(fmt.Sprintf("render: %d values for the %d fields of %s", e.at, len(e.fields), e.w.schema.Kind))
	}
	if e.json {
		e.b = append(e.b, '}')
	}
	b := append(e.b, '\n')
	e.b = nil
	return b
}

// next begins the value of the next field; false says that it is not printed.
func (e *Encoder) next(kind, or Kind) (*encodedField, bool) {
	if e.at >= len(e.fields) {
		panic(fmt.Sprintf("render: more values than the %d fields of %s", len(e.fields), e.w.schema.Kind))
	}
	f := &e.fields[e.at]
	if f.kind != kind && f.kind != or {
		panic(fmt.Sprintf("render: field %q cannot hold such a value", e.w.schema.Fields[e.at].Name))
	}
	e.at++
	if f.skip {
		return f, false
	}
	if e.json {
		e.b = append(e.b, f.name...)
	} else if !e.first {
		e.b = append(e.b, '\t')
	}
	e.first = false
	return f, true
}

// Skips reports that the next n values are not printed, having passed over them: they need not be made.
func (e *Encoder) Skips(n int) bool {
	for _, f := range e.fields[e.at : e.at+n] {
		if !f.skip {
			return false
		}
	}
	e.at += n
	return true
}

// Null is a value that nobody knows.
func (e *Encoder) Null() {
	k := Text
	if e.at < len(e.fields) {
		k = e.fields[e.at].kind
	}
	f, ok := e.next(k, k)
	if !ok {
		return
	}
	e.null(f)
}

func (e *Encoder) null(f *encodedField) {
	if !e.json {
		e.b = append(e.b, '-')
		return
	}
	e.b = append(e.b, "null"...)
	if f.twin != "" {
		e.b = append(append(e.b, f.twin...), "null"...)
	}
}

// Int is the value of an Int or a Size.
func (e *Encoder) Int(n int64) {
	f, ok := e.next(Int, Size)
	if !ok {
		return
	}
	e.b = strconv.AppendInt(e.b, n, 10)
	if f.twin != "" {
		e.b = append(append(e.b, f.twin...), '"')
		e.b = append(strconv.AppendInt(e.b, n, 10), '"')
	}
}

// TimeMs is a Time in milliseconds since 1970; 0 and less is unknown.
func (e *Encoder) TimeMs(ms int64) {
	f, ok := e.next(Time, Time)
	switch {
	case !ok:
	case ms <= 0:
		e.null(f)
	case e.json:
		e.b = append(e.days.append(append(e.b, '"'), ms), '"')
	default:
		e.b = e.days.append(e.b, ms)
	}
}

// Text is a Text.
func (e *Encoder) Text(s []byte) {
	if _, ok := e.next(Text, Text); ok {
		e.text(s)
	}
}

// String is a Text.
func (e *Encoder) String(s string) {
	if _, ok := e.next(Text, Text); ok {
		e.text([]byte(s))
	}
}

func (e *Encoder) text(s []byte) {
	if e.json {
		e.b = append(e.b, '"')
		e.b = append(appendJSONText(e.b, s), '"')
		return
	}
	e.b = appendCell(e.b, s)
}

// BeginList begins a List: Item for each of its texts and EndList follow.
func (e *Encoder) BeginList() { e.open('[', List) }

// Item is a text of the list.
func (e *Encoder) Item(s []byte) {
	if e.inside {
		e.comma()
		e.text(s)
	}
}

// EndList ends the list.
func (e *Encoder) EndList() { e.shut(']') }

// BeginPairs begins an Object of texts by name: Pair for each of them, in the order of the names, and EndPairs follow.
func (e *Encoder) BeginPairs() { e.open('{', Object) }

// Pair is a name and its text.
func (e *Encoder) Pair(name, value []byte) {
	if e.inside {
		e.comma()
		e.text(name)
		e.b = append(e.b, ':')
		e.text(value)
	}
}

// EndPairs ends the object.
func (e *Encoder) EndPairs() { e.shut('}') }

// open begins a list or an object. Tab-separated text has no objects here: Encoder sees to it.
func (e *Encoder) open(c byte, k Kind) {
	_, e.inside = e.next(k, k)
	if e.items = 0; e.json && e.inside {
		e.b = append(e.b, c)
	}
}

func (e *Encoder) comma() {
	if e.items > 0 {
		e.b = append(e.b, ',')
	}
	e.items++
}

func (e *Encoder) shut(c byte) {
	if e.json && e.inside {
		e.b = append(e.b, c)
	}
	e.inside = false
}

// Row appends the line of one row whose values are at hand as those of Writer.Row are.
func (e *Encoder) Row(dst []byte, values ...any) ([]byte, error) {
	if len(values) != len(e.fields) {
		panic(fmt.Sprintf("render: %d values for the %d fields of %s", len(values), len(e.fields), e.w.schema.Kind))
	}
	row := make([]any, len(values))
	for i, v := range values {
		row[i] = known(e.w.schema.Fields[i], v)
	}
	if e.json {
		var b bytes.Buffer
		if err := e.w.jsonRecord(&b, row); err != nil {
			return dst, err
		}
		return append(append(dst, b.Bytes()...), '\n'), nil
	}
	return append(dst, e.w.tabLine(row)...), nil
}

// dayPrefix writes times as timestamp does, the date of the last one kept.
type dayPrefix struct {
	day  int64 // since 1970
	text []byte
}

const dayMs = int64(24 * time.Hour / time.Millisecond)

func (d *dayPrefix) append(b []byte, ms int64) []byte {
	if ms < 0 {
		return append(b, timestamp(time.UnixMilli(ms))...)
	}
	day := ms / dayMs
	if d.text == nil || day != d.day {
		d.day, d.text = day, time.UnixMilli(ms).UTC().AppendFormat(d.text[:0], "2006-01-02T")
	}
	b = append(b, d.text...)
	rest := uint32(ms - day*dayMs)
	sec := rest / 1000
	hour, minute, milli := sec/3600, sec/60%60, rest%1000
	sec %= 60
	return append(b, digit(hour/10), digit(hour%10), ':', digit(minute/10), digit(minute%10), ':', digit(sec/10), digit(sec%10),
		'.', digit(milli/100), digit(milli/10%10), digit(milli%10), 'Z')
}

func digit(n uint32) byte { return byte('0' + n) }

// Eight bytes at a time: low and high have one bit of each byte set.
const (
	low  = 0x0101010101010101
	high = 0x8080808080808080
)

// marks has the high bit set of the lowest byte of x that is a control, a backslash, or (with quotes) a quotation mark or
// none of ASCII; higher bytes may be marked wrongly.
func marks(x uint64, quotes bool) uint64 {
	backslash := x ^ low*'\\'
	m := (x-low*0x20)&^x | (backslash-low)&^backslash
	if quotes {
		quote := x ^ low*'"'
		m |= (quote-low)&^quote | x
	}
	return m & high
}

// plain is the number of bytes before the first that marks marks.
func plain(s []byte, quotes bool) int {
	i := 0
	for ; len(s)-i >= 16; i += 16 {
		b := s[i : i+16]
		m := marks(binary.LittleEndian.Uint64(b), quotes)
		n := marks(binary.LittleEndian.Uint64(b[8:]), quotes)
		if m|n == 0 {
			continue
		}
		if m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
		return i + 8 + bits.TrailingZeros64(n)/8
	}
	for ; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c == '\\' || quotes && (c == '"' || c >= utf8.RuneSelf) {
			break
		}
	}
	return i
}

// appendCell is escapeTabs.
func appendCell(b, s []byte) []byte {
	if bytes.IndexByte(s, '\n') < 0 && bytes.IndexByte(s, '\t') < 0 && bytes.IndexByte(s, '\r') < 0 {
		for { // one byte alone is found faster than one of several
			n := bytes.IndexByte(s, '\\')
			if n < 0 {
				return append(b, s...)
			}
			b = append(append(b, s[:n]...), '\\', '\\')
			s = s[n+1:]
		}
	}
	for {
		n := plain(s, false)
		b = append(b, s[:n]...)
		if n == len(s) {
			return b
		}
		switch c := s[n]; c {
		case '\\':
			b = append(b, '\\', '\\')
		case '\t':
			b = append(b, '\\', 't')
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		default:
			b = append(b, c)
		}
		s = s[n+1:]
	}
}

// appendJSONText is what stands between the quotation marks of what marshal makes of s.
func appendJSONText(b, s []byte) []byte {
	for {
		n := plain(s, true)
		b = append(b, s[:n]...)
		if s = s[n:]; len(s) == 0 {
			return b
		}
		if c := s[0]; c < utf8.RuneSelf {
			if c == '"' || c == '\\' {
				b = append(b, '\\', c)
			} else {
				b = appendJSONEscape(b, c)
			}
			s = s[1:]
			continue
		}
		r, size := utf8.DecodeRune(s)
		switch {
		case r == utf8.RuneError && size == 1:
			b = append(b, `\ufffd`...)
		case r == '\u2028' || r == '\u2029':
			b = append(b, `\u202`...)
			b = append(b, digit(uint32(r&0xf)))
		default:
			b = append(b, s[:size]...)
		}
		s = s[size:]
	}
}

func appendJSONEscape(b []byte, c byte) []byte {
	if i := strings.IndexByte("\b\f\n\r\t", c); i >= 0 {
		return append(b, '\\', `bfnrt`[i])
	}
	const hex = "0123456789abcdef"
	return append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
}
