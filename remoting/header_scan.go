package remoting

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"

	"mqx/internal/fastjson"
)

// maxHeaderDepth bounds the nesting of members that are skipped.
const maxHeaderDepth = 16

// headerScanner walks a JSON header. It is written for speed on what peers
// write and lenient for the rest: single quotes, names without quotes, surplus
// commas, numbers as strings and the other way round.
type headerScanner struct {
	h       []byte
	pos     int
	scratch []byte // grows; strings with escapes end up here
}

func (s *headerScanner) fail(what string) error {
	return &HeaderError{SerializeJSON, s.pos, what}
}

func (s *headerScanner) space() {
	for s.pos < len(s.h) && s.h[s.pos] <= ' ' {
		s.pos++
	}
}

// at skips blanks and reports whether b comes next.
func (s *headerScanner) at(b byte) bool {
	if s.pos < len(s.h) && s.h[s.pos] == b {
		return true
	}
	s.space()
	return s.pos < len(s.h) && s.h[s.pos] == b
}

// more steps to the next member; false after the closing brace.
func (s *headerScanner) more(first bool) (bool, error) {
	if s.pos+1 < len(s.h) && s.h[s.pos] == ',' && s.h[s.pos+1] == '"' { // nearly always
		s.pos++
		return true, nil
	}
	comma := first
	for s.at(',') {
		comma = true
		s.pos++
	}
	if s.at('}') {
		s.pos++
		return false, nil
	}
	if s.pos >= len(s.h) {
		return false, s.fail("header ends early")
	}
	if !comma {
		return false, s.fail("comma expected")
	}
	return true, nil
}

// key reads a member's name with its colon.
func (s *headerScanner) key() (key []byte, err error) {
	if from := s.pos + 1; from <= len(s.h) && s.h[from-1] == '"' { // nearly always
		if end := stringEnd(s.h, from, '"'); end+1 < len(s.h) && s.h[end] == '"' && s.h[end+1] == ':' {
			s.pos = end + 2
			return s.h[from:end:end], nil
		}
	}
	if s.at('"') || s.at('\'') {
		key, err = s.str()
	} else if key = s.bare(); len(key) == 0 {
		err = s.fail("name expected")
	}
	if err != nil {
		return nil, err
	}
	if !s.at(':') {
		return nil, s.fail("colon expected")
	}
	s.pos++
	return key, nil
}

// value reads any value: a string without its quotes, another scalar as its
// text, an object or array as its source. null gives nil.
func (s *headerScanner) value() (v []byte, quoted bool, err error) {
	s.space()
	if s.pos >= len(s.h) {
		return nil, false, s.fail("header ends early")
	}
	switch s.h[s.pos] {
	case '"', '\'':
		v, err = s.str()
		return v, true, err
	case '{', '[':
		v, err = s.nested()
		return v, false, err
	}
	v = s.bare()
	if len(v) == 0 {
		return nil, false, s.fail("value expected")
	}
	if string(v) == "null" {
		return nil, false, nil
	}
	return v, false, nil
}

func (s *headerScanner) number(dst *int32) error {
	v, _, err := s.value()
	if err != nil || len(v) == 0 {
		return err
	}
	n, err := parseInt(v, 32)
	if err != nil {
		f, ferr := strconv.ParseFloat(string(v), 64)
		if ferr != nil || f != math.Trunc(f) || f < math.MinInt32 || f > math.MaxInt32 {
			return s.fail("32-bit number expected")
		}
		n = int64(f)
	}
	*dst = int32(n)
	return nil
}

// bare reads a token without quotes.
func (s *headerScanner) bare() []byte {
	start := s.pos
	for s.pos < len(s.h) {
		switch c := s.h[s.pos]; {
		case c <= ' ', c == ',', c == ':', c == '{', c == '}', c == '[', c == ']', c == '"', c == '\'':
			return s.h[start:s.pos:s.pos]
		}
		s.pos++
	}
	return s.h[start:s.pos:s.pos]
}

// str reads a quoted string: a slice of the header, or of the scratch buffer
// when it has escapes.
func (s *headerScanner) str() ([]byte, error) {
	quote, start := s.h[s.pos], s.pos+1
	end := stringEnd(s.h, start, quote)
	if end < len(s.h) && s.h[end] == quote {
		s.pos = end + 1
		return s.h[start:end:end], nil
	}
	for end < len(s.h) && s.h[end] != quote {
		end = min(end+escapeLen(s.h[end:]), len(s.h))
		if end == len(s.h) || s.h[end] != '\\' { // one often follows another
			end = stringEnd(s.h, end, quote)
		}
	}
	if end >= len(s.h) {
		return nil, s.fail("string without an end")
	}
	from := len(s.scratch)
	out, bad := fastjson.AppendUnescaped(s.scratch, s.h[start:end])
	if bad >= 0 {
		s.pos = start + bad
		return nil, s.fail("unknown escape")
	}
	s.scratch, s.pos = out, end+1
	return out[from:len(out):len(out)], nil
}

// escapeLen is the length of the escape that b begins with. Of \u it takes the digits along: where those are none, it cannot be read
// wherever its string ends.
func escapeLen(b []byte) int {
	if len(b) > 1 && b[1] == 'u' {
		return 6
	}
	return 2
}

// stringEnd returns the place of the next quote or backslash from i on,
// len(b) when there is none.
func stringEnd(b []byte, i int, quote byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	quotes := ones * uint64(quote)
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		q, e := w^quotes, w^(ones*'\\')
		// The lowest marked byte is exact, the ones above may be wrong.
		if hit := ((q - ones) &^ q & highs) | ((e - ones) &^ e & highs); hit != 0 {
			return i + bits.TrailingZeros64(hit)/8
		}
	}
	for ; i < len(b) && b[i] != quote && b[i] != '\\'; i++ {
	}
	return i
}

// nested reads over an object or array without recursion.
func (s *headerScanner) nested() ([]byte, error) {
	start, depth := s.pos, 0
	for s.pos < len(s.h) {
		switch s.h[s.pos] {
		case '{', '[':
			if depth++; depth > maxHeaderDepth {
				return nil, s.fail("nested too deep")
			}
		case '}', ']':
			if depth--; depth == 0 {
				s.pos++
				return s.h[start:s.pos:s.pos], nil
			}
		case '"', '\'':
			mark := len(s.scratch)
			if _, err := s.str(); err != nil {
				return nil, err
			}
			s.scratch = s.scratch[:mark]
			continue
		}
		s.pos++
	}
	return nil, s.fail("header ends early")
}
