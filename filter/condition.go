package filter

import "bytes"

// truth is the outcome of a condition. A failed one ends the whole evaluation: the message does not match, whatever the
// other parts say.
type truth uint8

const (
	no truth = iota
	yes
	unknown
	failed
)

func truthIf(b bool) truth {
	if b {
		return yes
	}
	return no
}

// condition is a part that is true, false or unknown.
type condition interface {
	truth(src source) truth
}

// allCondition is AND over its parts, anyCondition OR. Parts are looked at from the left until one decides.
type (
	allCondition []condition
	anyCondition []condition
)

func allOf(list []condition) condition { return allCondition(list) }
func anyOf(list []condition) condition { return anyCondition(list) }

func (c allCondition) truth(src source) truth {
	out := yes
	for _, part := range c {
		switch t := part.truth(src); t {
		case no, failed:
			return t
		case unknown:
			out = unknown
		}
	}
	return out
}

func (c anyCondition) truth(src source) truth {
	out := no
	for _, part := range c {
		switch t := part.truth(src); t {
		case yes, failed:
			return t
		case unknown:
			out = unknown
		}
	}
	return out
}

type constantCondition truth

func (c constantCondition) truth(source) truth { return truth(c) }

type notCondition struct{ part condition }

func (c notCondition) truth(src source) truth {
	switch t := c.part.truth(src); t {
	case yes:
		return no
	case no:
		return yes
	default:
		return t
	}
}

// castCondition is a property that stands as a condition: properties are text and never true.
type castCondition struct{ name string }

func (c castCondition) truth(src source) truth {
	if _, ok := src.property(c.name); ok {
		return no
	}
	return unknown
}

type nullCondition struct{ part operand }

func (c nullCondition) truth(src source) truth {
	switch c.part.value(src).kind {
	case kindFailed:
		return failed
	case kindNull:
		return yes
	default:
		return no
	}
}

// equalCondition is =. Two values that are both absent are equal; an absent left side alone is unknown, an absent right
// side alone is not equal.
type equalCondition struct{ left, right operand }

func (c *equalCondition) truth(src source) truth {
	l := c.left.value(src)
	if l.kind == kindFailed {
		return failed
	}
	r := c.right.value(src)
	switch {
	case r.kind == kindFailed:
		return failed
	case l.kind == kindNull && r.kind == kindNull:
		return yes
	case l.kind == kindNull:
		return unknown
	case r.kind == kindNull:
		return no
	case l.kind == kindText && r.kind == kindText:
		return truthIf(bytes.Equal(l.text, r.text))
	}
	cmp, ok := compare(l, r)
	if !ok {
		return failed
	}
	return truthIf(cmp == 0)
}

// orderCondition is <, <=, > or >=. Two texts are compared as fractional numbers.
type orderCondition struct {
	left, right operand
	sign        tokenKind
}

func (c *orderCondition) truth(src source) truth {
	l := c.left.value(src)
	if l.kind == kindFailed {
		return failed
	}
	if l.kind == kindNull {
		return unknown
	}
	r := c.right.value(src)
	switch r.kind {
	case kindFailed:
		return failed
	case kindNull:
		return unknown
	}
	if l.kind == kindText && r.kind == kindText {
		if l = asDouble(l); l.kind == kindFailed {
			return failed
		}
		if r = asDouble(r); r.kind == kindFailed {
			return failed
		}
	}
	cmp, ok := compare(l, r)
	if !ok {
		return failed
	}
	switch c.sign {
	case "<":
		return truthIf(cmp < 0)
	case "<=":
		return truthIf(cmp <= 0)
	case ">":
		return truthIf(cmp > 0)
	default:
		return truthIf(cmp >= 0)
	}
}

// searchCondition is CONTAINS, STARTSWITH or ENDSWITH, and their forms with NOT. With a value that is no text, or nothing
// to look for, both forms are false.
type searchCondition struct {
	part operand
	want []byte
	word tokenKind
	not  bool
}

func (c *searchCondition) truth(src source) truth {
	if len(c.want) == 0 {
		return no
	}
	v := c.part.value(src)
	if v.kind == kindFailed {
		return failed
	}
	if v.kind != kindText {
		return no
	}
	var found bool
	switch c.word {
	case "CONTAINS":
		found = bytes.Contains(v.text, c.want)
	case "STARTSWITH":
		found = bytes.HasPrefix(v.text, c.want)
	default:
		found = bytes.HasSuffix(v.text, c.want)
	}
	return truthIf(found != c.not)
}

// inCondition is [NOT] IN.
type inCondition struct {
	name string
	few  []string
	many map[string]struct{} // instead of few
	not  bool
}

// fewStrings is the length up to which a list is searched in turn.
const fewStrings = 8

func newInCondition(name string, list []string, not bool) *inCondition {
	c := &inCondition{name: name, not: not}
	if len(list) <= fewStrings {
		c.few = list
		return c
	}
	c.many = make(map[string]struct{}, len(list))
	for _, s := range list {
		c.many[s] = struct{}{}
	}
	return c
}

func (c *inCondition) truth(src source) truth {
	v, ok := src.property(c.name)
	if !ok {
		return unknown
	}
	_, found := c.many[string(v)]
	for _, s := range c.few {
		found = found || s == string(v)
	}
	return truthIf(found != c.not)
}
