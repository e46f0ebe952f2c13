package filter

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// tokenKind is what a token is. The values of keywords and signs are their texts, in capitals.
type tokenKind string

const (
	tokenEnd     tokenKind = "the end"
	tokenName    tokenKind = "a property name"
	tokenDecimal tokenKind = "a whole number"
	tokenFloat   tokenKind = "a fractional number"
	tokenString  tokenKind = "a string"
)

// keywords are the reserved words. They are found whatever their case.
var keywords = map[string]tokenKind{
	"NOT": "NOT", "AND": "AND", "OR": "OR", "BETWEEN": "BETWEEN", "IN": "IN", "TRUE": "TRUE", "FALSE": "FALSE",
	"NULL": "NULL", "IS": "IS", "CONTAINS": "CONTAINS", "STARTSWITH": "STARTSWITH", "ENDSWITH": "ENDSWITH",
}

const longestKeyword = len("STARTSWITH")

// signs are the other tokens, the longer ones first.
var signs = [...]tokenKind{"<>", ">=", "<=", "=", ">", "<", "(", ")", ",", "+", "-"}

// token is a piece of the text. An empty kind means that err says why there is none.
type token struct {
	kind       tokenKind
	start, end int
	err        *SyntaxError
}

// lexer cuts the text into tokens, one at a time: what stands behind the end of an expression is never cut.
type lexer struct {
	text string
	pos  int
}

func (l *lexer) next() token {
	l.skip()
	start := l.pos
	rest := l.text[start:]
	kind, n := scan(rest)
	if n == 0 {
		return token{start: start, end: start, err: l.unknown(start)}
	}
	if n < 0 {
		return token{kind: tokenEnd, start: start, end: start}
	}
	l.pos += n
	return token{kind: kind, start: start, end: l.pos}
}

// scan returns the first token of a text and its length; -1 at the end, 0 when there is no token.
func scan(s string) (tokenKind, int) {
	if s == "" {
		return tokenEnd, -1
	}
	switch c := s[0]; {
	case nameStart(c):
		n := 1
		for n < len(s) && (nameStart(s[n]) || digit(s[n])) {
			n++
		}
		if n <= longestKeyword {
			if k, ok := keywords[strings.ToUpper(s[:n])]; ok {
				return k, n
			}
		}
		return tokenName, n
	case digit(c) || c == '.':
		return scanNumber(s)
	case c == '\'':
		return tokenString, scanString(s)
	}
	for _, sign := range signs {
		if strings.HasPrefix(s, string(sign)) {
			return sign, len(sign)
		}
	}
	return "", 0
}

// scanNumber takes the longest number: a fraction or exponent makes it fractional, and a whole number has no zeros in
// front (so 012 is 0 followed by 12) and may end in l or L unless it is 0.
func scanNumber(s string) (tokenKind, int) {
	whole := digits(s)
	n := whole
	if n < len(s) && s[n] == '.' {
		fraction := digits(s[n+1:])
		if whole == 0 && fraction == 0 {
			return "", 0
		}
		n += 1 + fraction
		return tokenFloat, n + exponent(s[n:])
	}
	if e := exponent(s[n:]); e > 0 {
		return tokenFloat, n + e
	}
	if s[0] == '0' {
		return tokenDecimal, 1
	}
	if n < len(s) && (s[n] == 'l' || s[n] == 'L') {
		n++
	}
	return tokenDecimal, n
}

// exponent returns the length of an exponent at the start of s, 0 for none.
func exponent(s string) int {
	if s == "" || s[0] != 'e' && s[0] != 'E' {
		return 0
	}
	n := 1
	if n < len(s) && (s[n] == '+' || s[n] == '-') {
		n++
	}
	d := digits(s[n:])
	if d == 0 {
		return 0
	}
	return n + d
}

// scanString returns the length of a string literal, 0 when it has no end. Two quotes within it stand for one; but in a
// text without another quote, the first of the last two is the end.
func scanString(s string) int {
	end := 0
	for i := 1; i < len(s); i++ {
		if s[i] != '\'' {
			continue
		}
		end = i + 1
		if i+1 == len(s) || s[i+1] != '\'' {
			return end
		}
		i++
	}
	return end
}

// skip passes over blanks and comments. A line comment ends in a line end: without one it is no comment.
func (l *lexer) skip() {
	for l.pos < len(l.text) {
		rest := l.text[l.pos:]
		switch c := rest[0]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f':
			l.pos++
		case strings.HasPrefix(rest, "--"):
			n := strings.IndexAny(rest, "\r\n")
			if n < 0 {
				return
			}
			l.pos += n + 1
		case strings.HasPrefix(rest, "/*"):
			n := strings.Index(rest[2:], "*/")
			if n < 0 {
				return
			}
			l.pos += n + 4
		default:
			return
		}
	}
}

// unknown says why no token begins at pos.
func (l *lexer) unknown(pos int) *SyntaxError {
	var reason string
	switch rest := l.text[pos:]; {
	case rest[0] == '\'':
		reason = "the string has no closing '"
	case strings.HasPrefix(rest, "/*"):
		reason = "the comment has no closing */"
	case rest[0] == '"' || rest[0] == '`':
		reason = "names are not quoted and strings stand between single quotes, as in 'text'"
	case strings.HasPrefix(rest, "!="):
		reason = "not equal is written <>"
	case pos > 0 && nameEnd(l.text[:pos]):
		r, _ := utf8.DecodeRuneInString(rest)
		reason = fmt.Sprintf("a property name has letters a-z, digits, _ and $ only, so %q ends it, and names cannot be quoted: give the property another name", r)
	default:
		r, _ := utf8.DecodeRuneInString(rest)
		reason = fmt.Sprintf("nothing begins with %q", r)
	}
	return &SyntaxError{Text: l.text, Pos: pos, Reason: reason}
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

func nameStart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '$'
}

// nameEnd reports whether a text ends in a name.
func nameEnd(s string) bool {
	n := len(s)
	for n > 0 && (nameStart(s[n-1]) || digit(s[n-1])) {
		n--
	}
	return n < len(s) && nameStart(s[n])
}

func digits(s string) int {
	n := 0
	for n < len(s) && digit(s[n]) {
		n++
	}
	return n
}
