package fastjson

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"
)

const hexLower = "0123456789abcdef"

// escapes holds the letter after the backslash for bytes that are escaped, 'u'
// for those that need a number, 0 for the others.
var escapes = func() (t [256]byte) {
	for c := range 0x20 {
		t[c] = 'u'
	}
	t['\b'], t['\t'], t['\n'], t['\f'], t['\r'] = 'b', 't', 'n', 'f', 'r'
	t['"'], t['\\'] = '"', '\\'
	return t
}()

// AppendString appends s as a JSON string with its quotes. Text beyond ASCII
// stays as it is, bytes that are no UTF-8 become U+FFFD.
func AppendString[T ~string | ~[]byte](dst []byte, s T) []byte {
	return appendString(dst, *(*string)(unsafe.Pointer(&s))) // a slice begins like a string: address, length
}

func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := plain(s, 0); i < len(s); i = plain(s, i) {
		c := s[i]
		if c < utf8.RuneSelf {
			e := escapes[c]
			if e == 0 {
				i++
				continue
			}
			dst = append(dst, s[start:i]...)
			if e == 'u' {
				dst = append(dst, '\\', 'u', '0', '0', hexLower[c>>4], hexLower[c&15])
			} else {
				dst = append(dst, '\\', e)
			}
			i++
			start = i
			continue
		}
		r, n := decodeRune(s[i:])
		if r == utf8.RuneError && n == 1 {
			dst = append(dst, s[start:i]...)
			dst = append(dst, "\uFFFD"...)
			i++
			start = i
			continue
		}
		i += n
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// plain returns a place from i on before which nothing needs an escape and all is
// ASCII: it looks at eight bytes at a time.
func plain(s string, i int) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	b := unsafe.Slice(unsafe.StringData(s), len(s))
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		quote, slash := w^(ones*'"'), w^(ones*'\\')
		if (w|(w-ones*0x20)|(quote-ones)|(slash-ones))&highs != 0 {
			break
		}
	}
	return i
}

// appendASCII is AppendString with everything beyond ASCII escaped.
func appendASCII(dst []byte, s string) []byte {
	start := len(dst)
	dst = AppendString(dst, s)
	ascii := true
	for _, c := range dst[start:] {
		if c >= utf8.RuneSelf {
			ascii = false
			break
		}
	}
	if ascii {
		return dst
	}
	out := dst[:start]
	for _, r := range string(dst[start:]) {
		switch {
		case r < utf8.RuneSelf:
			out = append(out, byte(r))
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			out = appendU4(appendU4(out, hi), lo)
		default:
			out = appendU4(out, r)
		}
	}
	return out
}

func appendU4(dst []byte, r rune) []byte {
	return append(dst, '\\', 'u', hexLower[r>>12&15], hexLower[r>>8&15], hexLower[r>>4&15], hexLower[r&15])
}

func decodeRune[T ~string | ~[]byte](s T) (rune, int) {
	var b [utf8.UTFMax]byte
	n := copy(b[:], s)
	return utf8.DecodeRune(b[:n])
}

// AppendUnescaped appends raw, the text between the quotes of a JSON string,
// with its escapes resolved. bad is the offset of an escape that cannot be
// read, -1 when all is well.
func AppendUnescaped(dst, raw []byte) (out []byte, bad int) {
	dst = slices.Grow(dst, len(raw)) // no escape is shorter than what it stands for
	for i := 0; i < len(raw); {
		if raw[i] != '\\' {
			run := plainRun(raw[i:])
			dst = append(dst, raw[i:i+run]...)
			i += run
			continue
		}
		if i+1 == len(raw) {
			return dst, i
		}
		if b, ok := control(raw[i:]); ok {
			dst = append(dst, b)
			i += 6
			continue
		}
		switch e := raw[i+1]; e {
		case 'b':
			dst = append(dst, '\b')
		case 't':
			dst = append(dst, '\t')
		case 'n':
			dst = append(dst, '\n')
		case 'f':
			dst = append(dst, '\f')
		case 'r':
			dst = append(dst, '\r')
		case 'v':
			dst = append(dst, '\v')
		case 'u':
			r, n := unescapeU(raw[i:])
			if n == 0 {
				return dst, i
			}
			dst = utf8.AppendRune(dst, r)
			i += n
			continue
		case 'x':
			v, ok := hexValue(raw[i+2:], 2)
			if !ok {
				return dst, i
			}
			dst = utf8.AppendRune(dst, v)
			i += 4
			continue
		default: // \" \\ \/ \' and whatever else stands for itself
			dst = append(dst, e)
		}
		i += 2
	}
	return dst, -1
}

// plainRun is how many bytes stand before the next backslash. Between the escapes of properties there are few.
func plainRun(b []byte) int {
	const short = 8
	for i, c := range b[:min(len(b), short)] {
		if c == '\\' {
			return i
		}
	}
	if len(b) <= short {
		return len(b)
	}
	if run := bytes.IndexByte(b[short:], '\\'); run >= 0 {
		return short + run
	}
	return len(b)
}

// control reads \u00XX below \u0020, which properties are full of.
func control(b []byte) (byte, bool) {
	if len(b) < 6 || b[1] != 'u' || b[2] != '0' || b[3] != '0' || b[4]&^1 != '0' || b[5]-'0' > 9 {
		return 0, false
	}
	return b[4]&1<<4 | b[5] - '0', true
}

// unescapeU reads \uXXXX, and the low surrogate that follows a high one. It
// returns the length read, 0 when there are no four digits.
func unescapeU(b []byte) (rune, int) {
	r, ok := hexValue(b[2:], 4)
	if !ok {
		return 0, 0
	}
	if utf16.IsSurrogate(r) {
		if len(b) >= 12 && b[6] == '\\' && b[7] == 'u' {
			if lo, ok := hexValue(b[8:], 4); ok {
				if both := utf16.DecodeRune(r, lo); both != utf8.RuneError {
					return both, 12
				}
			}
		}
		return utf8.RuneError, 6
	}
	return r, 6
}

func hexValue(b []byte, n int) (rune, bool) {
	if len(b) < n {
		return 0, false
	}
	var v rune
	for _, c := range b[:n] {
		switch {
		case '0' <= c && c <= '9':
			v = v<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			v = v<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return v, true
}

// appendFloat writes f as Java does: at least one digit after the point, and
// the form 1.0E7 from ten million on and below a thousandth.
func appendFloat(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, "null"...)
	}
	abs := math.Abs(f)
	if abs == 0 || abs >= 1e-3 && abs < 1e7 {
		start := len(dst)
		dst = strconv.AppendFloat(dst, f, 'f', -1, 64)
		for _, c := range dst[start:] {
			if c == '.' {
				return dst
			}
		}
		return append(dst, '.', '0')
	}
	var tmp [32]byte
	s := strconv.AppendFloat(tmp[:0], f, 'e', -1, 64) // d.ddde±dd
	point := false
	i := 0
	for ; s[i] != 'e'; i++ {
		point = point || s[i] == '.'
	}
	dst = append(dst, s[:i]...)
	if !point {
		dst = append(dst, '.', '0')
	}
	exp, _ := strconv.Atoi(string(s[i+1:]))
	return strconv.AppendInt(append(dst, 'E'), int64(exp), 10)
}
