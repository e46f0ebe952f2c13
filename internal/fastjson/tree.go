package fastjson

import (
	"bytes"
	"strconv"
)

// Parse reads data into a tree of map[string]any, []any, string, int64,
// float64, bool and nil. A number beyond int64 and no float becomes its text,
// an object that is a key its source text.
func Parse(data []byte) (any, error) { return parseTree(data, false) }

// ParseOrdered is Parse with Object in place of map[string]any, so that the
// order and the kind of the keys are kept.
func ParseOrdered(data []byte) (any, error) { return parseTree(data, true) }

func parseTree(data []byte, ordered bool) (any, error) {
	p := newParser(data)
	v, err := p.tree(ordered)
	if err != nil {
		return nil, err
	}
	return v, p.finish()
}

func (p *parser) tree(ordered bool) (any, error) {
	switch k := p.peek(); k {
	case kindString:
		b, err := p.str()
		return string(b), err
	case kindBare:
		start := p.pos
		v, ok := bareValue(p.bare())
		if !ok {
			return nil, p.fail(start, "value expected")
		}
		return v, nil
	case kindArray:
		return p.treeArray(ordered)
	case kindObject:
		if ordered {
			return p.treeOrdered()
		}
		return p.treeMap()
	case kindEnd:
		return nil, p.fail(p.pos, "unexpected end")
	}
	return nil, p.fail(p.pos, "value expected")
}

func bareValue(b []byte) (any, bool) {
	switch string(b) {
	case "true":
		return true, true
	case "false":
		return false, true
	case "null":
		return nil, true
	}
	if len(b) == 0 || b[0] != '-' && b[0] != '+' && b[0] != '.' && (b[0] < '0' || b[0] > '9') {
		return nil, false
	}
	if n, err := strconv.ParseInt(string(b), 10, 64); err == nil {
		return n, true
	}
	for _, c := range b {
		if c == '.' || c == 'e' || c == 'E' {
			f, err := strconv.ParseFloat(string(b), 64)
			return f, err == nil
		}
	}
	digits := bytes.TrimLeft(b, "+-")
	if len(digits) == 0 || len(b)-len(digits) > 1 || len(bytes.Trim(digits, "0123456789")) > 0 {
		return nil, false
	}
	return string(b), true
}

func (p *parser) treeArray(ordered bool) (any, error) {
	if err := p.open(); err != nil {
		return nil, err
	}
	list := []any{}
	for first := true; ; first = false {
		more, err := p.more(first, ']')
		if err != nil || !more {
			return list, err
		}
		v, err := p.tree(ordered)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
}

func (p *parser) treeMap() (any, error) {
	if err := p.open(); err != nil {
		return nil, err
	}
	m := map[string]any{}
	for first := true; ; first = false {
		more, err := p.more(first, '}')
		if err != nil || !more {
			return m, err
		}
		key, _, err := p.key()
		if err != nil {
			return nil, err
		}
		name := string(key)
		if m[name], err = p.tree(false); err != nil {
			return nil, err
		}
	}
}

func (p *parser) treeOrdered() (any, error) {
	if err := p.open(); err != nil {
		return nil, err
	}
	o := Object{}
	for first := true; ; first = false {
		more, err := p.more(first, '}')
		if err != nil || !more {
			return o, err
		}
		var m Member
		if p.peek() == kindObject {
			if m.Key, err = p.treeOrdered(); err == nil {
				err = p.colon()
			}
		} else {
			m.Key, err = p.orderedKey()
		}
		if err != nil {
			return nil, err
		}
		if m.Value, err = p.tree(true); err != nil {
			return nil, err
		}
		o = append(o, m)
	}
}

func (p *parser) orderedKey() (any, error) {
	text, k, err := p.key()
	if err != nil {
		return nil, err
	}
	if k == kindBare {
		if n, err := strconv.ParseInt(string(text), 10, 64); err == nil {
			return n, nil
		}
	}
	return string(text), nil
}
