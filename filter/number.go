package filter

import (
	"bytes"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// isTrue reports whether a text is TRUE for Java's Boolean.valueOf: true in any case and nothing else.
func isTrue(s []byte) bool { return bytes.EqualFold(s, []byte("true")) }

// parseWhole reads a whole number as Java's Long.valueOf and Integer.valueOf: an optional sign, then digits of any script,
// and nothing else, no blanks either.
func parseWhole(s []byte, least, most int64) (int64, bool) {
	negative := false
	if len(s) > 0 && (s[0] == '+' || s[0] == '-') {
		negative = s[0] == '-'
		s = s[1:]
	}
	if len(s) == 0 {
		return 0, false
	}
	limit := uint64(most)
	if negative {
		limit = uint64(-(least + 1)) + 1
	}
	var n uint64
	for len(s) > 0 {
		d, size := decimalDigit(s)
		if d < 0 || n > (limit-uint64(d))/10 {
			return 0, false
		}
		n = n*10 + uint64(d)
		s = s[size:]
	}
	if negative {
		return -int64(n), true // right for the least number as well
	}
	return int64(n), true
}

// decimalDigit reads one digit, -1 for none. Java looks at single UTF-16 units, so digits beyond them are none.
func decimalDigit(s []byte) (value, size int) {
	if c := s[0]; c < utf8.RuneSelf {
		if !digit(c) {
			return -1, 1
		}
		return int(c - '0'), 1
	}
	r, size := utf8.DecodeRune(s)
	if r > 0xFFFF || !unicode.Is(unicode.Nd, r) {
		return -1, size
	}
	// Digits stand in runs of ten: the number of digits directly before tells the value.
	n := 0
	for n < 9 && unicode.Is(unicode.Nd, r-rune(n)-1) {
		n++
	}
	return n, size
}

// parseDouble reads a number as Java's Double.valueOf: blanks and control characters around it are dropped, NaN and
// Infinity are numbers, f, F, d or D may end it, hexadecimal ones have a binary exponent.
func parseDouble(s []byte) (float64, bool) {
	for len(s) > 0 && s[0] <= ' ' {
		s = s[1:]
	}
	for len(s) > 0 && s[len(s)-1] <= ' ' {
		s = s[:len(s)-1]
	}
	body := s
	if len(body) > 0 && (body[0] == '+' || body[0] == '-') {
		body = body[1:]
	}
	switch {
	case string(body) == "NaN":
		s = body // Go's has no sign
	case string(body) == "Infinity":
	default:
		n := hexLen(body)
		if n == 0 {
			n = decimalLen(body)
		}
		if n == 0 {
			return 0, false
		}
		s = s[:len(s)-len(body)+n]
		if rest := body[n:]; len(rest) > 1 || len(rest) == 1 && !bytes.ContainsAny(rest, "fFdD") {
			return 0, false
		}
	}
	f, _ := strconv.ParseFloat(string(s), 64) // the only error left is that it is too large, and then f is infinite
	return f, true
}

// decimalLen returns the length of an unsigned decimal number at the start of s, 0 when there is none.
func decimalLen(s []byte) int {
	n := digitRun(s)
	if n < len(s) && s[n] == '.' {
		fraction := digitRun(s[n+1:])
		if n+fraction == 0 {
			return 0
		}
		n += 1 + fraction
	}
	if n == 0 || n == len(s) || s[n] != 'e' && s[n] != 'E' {
		return n
	}
	return withExponent(s, n)
}

// hexLen is decimalLen for 0x1.8p3; the exponent must be there.
func hexLen(s []byte) int {
	if len(s) < 3 || s[0] != '0' || s[1] != 'x' && s[1] != 'X' {
		return 0
	}
	n := 2 + hexRun(s[2:])
	count := n - 2
	if n < len(s) && s[n] == '.' {
		fraction := hexRun(s[n+1:])
		count += fraction
		n += 1 + fraction
	}
	if count == 0 || n == len(s) || s[n] != 'p' && s[n] != 'P' {
		return 0
	}
	return withExponent(s, n)
}

// withExponent takes the exponent whose letter stands at n; 0 when it has no digits.
func withExponent(s []byte, n int) int {
	n++
	if n < len(s) && (s[n] == '+' || s[n] == '-') {
		n++
	}
	d := digitRun(s[n:])
	if d == 0 {
		return 0
	}
	return n + d
}

func digitRun(s []byte) int {
	n := 0
	for n < len(s) && digit(s[n]) {
		n++
	}
	return n
}

func hexRun(s []byte) int {
	n := 0
	for n < len(s) && (digit(s[n]) || s[n]|0x20 >= 'a' && s[n]|0x20 <= 'f') {
		n++
	}
	return n
}
