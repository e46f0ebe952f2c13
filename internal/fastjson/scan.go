package fastjson

import "bytes"

// parser walks a text. The slices it hands out alias the text or its buffer
// and last until the next string is read.
type parser struct {
	data  []byte
	pos   int
	depth int
	buf   []byte
}

// kind tells the values of a text apart by their first byte.
type kind byte

const (
	kindEnd kind = iota
	kindString
	kindObject
	kindArray
	kindBare // number, true, false, null or a name without quotes
	kindBad
)

func (p *parser) fail(at int, what string) error { return &SyntaxError{Offset: at, What: what} }

func (p *parser) space() {
	for p.pos < len(p.data) {
		switch p.data[p.pos] {
		case ' ', '\t', '\n', '\r', '\f', '\b':
			p.pos++
		default:
			return
		}
	}
}

// peek skips blanks and tells what comes.
func (p *parser) peek() kind {
	p.space()
	if p.pos >= len(p.data) {
		return kindEnd
	}
	switch p.data[p.pos] {
	case '"', '\'':
		return kindString
	case '{':
		return kindObject
	case '[':
		return kindArray
	case '}', ']', ':', ',':
		return kindBad
	}
	return kindBare
}

// open steps into an object or array.
func (p *parser) open() error {
	if p.depth++; p.depth > MaxDepth {
		return p.fail(p.pos, "nested too deep")
	}
	p.pos++
	return nil
}

// more skips to the next entry of an object or array that ends with end. It
// returns false after the end has been consumed. Surplus commas are skipped.
func (p *parser) more(first bool, end byte) (bool, error) {
	p.space()
	comma := first
	for p.pos < len(p.data) && p.data[p.pos] == ',' {
		comma = true
		p.pos++
		p.space()
	}
	if p.pos >= len(p.data) {
		return false, p.fail(p.pos, "unexpected end")
	}
	if p.data[p.pos] == end {
		p.pos++
		p.depth--
		return false, nil
	}
	if !comma {
		return false, p.fail(p.pos, "comma expected")
	}
	return true, nil
}

func (p *parser) colon() error {
	p.space()
	if p.pos >= len(p.data) || p.data[p.pos] != ':' {
		return p.fail(p.pos, "colon expected")
	}
	p.pos++
	return nil
}

// str reads a quoted string.
func (p *parser) str() ([]byte, error) {
	quote, start := p.data[p.pos], p.pos+1
	end := bytes.IndexByte(p.data[start:], quote)
	if end < 0 {
		return nil, p.fail(p.pos, "string without an end")
	}
	raw := p.data[start : start+end]
	if bytes.IndexByte(raw, '\\') < 0 {
		p.pos = start + end + 1
		return raw, nil
	}
	i := start
	for ; i < len(p.data) && p.data[i] != quote; i++ {
		if p.data[i] == '\\' {
			i++
		}
	}
	if i >= len(p.data) {
		return nil, p.fail(p.pos, "string without an end")
	}
	var bad int
	p.buf, bad = AppendUnescaped(p.buf[:0], p.data[start:i])
	if bad >= 0 {
		return nil, p.fail(start+bad, "unknown escape")
	}
	p.pos = i + 1
	return p.buf, nil
}

// bare reads a token without quotes.
func (p *parser) bare() []byte {
	start := p.pos
	for p.pos < len(p.data) {
		switch p.data[p.pos] {
		case ' ', '\t', '\n', '\r', '\f', '\b', ',', ':', '{', '}', '[', ']', '"', '\'':
			return p.data[start:p.pos]
		}
		p.pos++
	}
	return p.data[start:p.pos]
}

// key reads the key of an object's entry up to and with its colon. For an
// object as key, text is its source and kind is kindObject.
func (p *parser) key() (text []byte, k kind, err error) {
	k = p.peek()
	switch k {
	case kindString:
		text, err = p.str()
	case kindBare:
		text = p.bare()
	case kindObject:
		start := p.pos
		if err = p.skip(); err == nil {
			text = p.data[start:p.pos]
		}
	default:
		err = p.fail(p.pos, "key expected")
	}
	if err != nil {
		return nil, k, err
	}
	return text, k, p.colon()
}

// scalar reads a string or a bare token. For null, ok is false.
func (p *parser) scalar(k kind) (text []byte, ok bool, err error) {
	if k == kindString {
		text, err = p.str()
		return text, true, err
	}
	text = p.bare()
	return text, string(text) != "null", nil
}

// skip reads over one value. Its recursion is bounded by MaxDepth.
func (p *parser) skip() error {
	switch p.peek() {
	case kindString:
		_, err := p.str()
		return err
	case kindBare:
		p.bare()
		return nil
	case kindObject:
		return p.skipEntries('}')
	case kindArray:
		return p.skipEntries(']')
	case kindEnd:
		return p.fail(p.pos, "unexpected end")
	}
	return p.fail(p.pos, "value expected")
}

func (p *parser) skipEntries(end byte) error {
	if err := p.open(); err != nil {
		return err
	}
	for first := true; ; first = false {
		more, err := p.more(first, end)
		if err != nil || !more {
			return err
		}
		if end == '}' {
			if _, _, err := p.key(); err != nil {
				return err
			}
		}
		if err := p.skip(); err != nil {
			return err
		}
	}
}

// finish checks that nothing but blanks follows.
func (p *parser) finish() error {
	if p.peek() != kindEnd {
		return p.fail(p.pos, "unexpected text after the value")
	}
	return nil
}

func newParser(data []byte) *parser {
	p := &parser{data: data}
	if bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
		p.pos = 3
	}
	return p
}
