package filter

import (
	"cmp"
	"math"
)

// value is what an operand is for one message.
type value struct {
	kind  kind
	num   int64 // of kindInt and kindLong; 1 for a true kindTruth
	float float64
	text  []byte
}

type kind uint8

const (
	kindNull kind = iota
	kindFailed
	kindTruth
	kindInt // 32 bits
	kindLong
	kindDouble
	kindText
)

var failure = value{kind: kindFailed}

func (v value) number() bool { return v.kind == kindInt || v.kind == kindLong || v.kind == kindDouble }

func (v value) double() float64 {
	if v.kind == kindDouble {
		return v.float
	}
	return float64(v.num)
}

func truthValue(t truth) value {
	switch t {
	case yes:
		return value{kind: kindTruth, num: 1}
	case no:
		return value{kind: kindTruth}
	case unknown:
		return value{}
	default:
		return failure
	}
}

// operand is a part that has a value.
type operand interface {
	value(src source) value
}

type constantOperand struct{ v value }

func (o constantOperand) value(source) value { return o.v }

type propertyOperand string

func (o propertyOperand) value(src source) value {
	v, ok := src.property(string(o))
	if !ok {
		return value{}
	}
	return value{kind: kindText, text: v}
}

type truthOperand struct{ c condition }

func (o truthOperand) value(src source) value { return truthValue(o.c.truth(src)) }

// negated puts a minus before a term: only numbers have a negative.
func negated(t term) operand {
	if o, ok := t.operand.(constantOperand); ok {
		return constantOperand{negate(o.v)}
	}
	return negateOperand{t.operand}
}

type negateOperand struct{ part operand }

func (o negateOperand) value(src source) value { return negate(o.part.value(src)) }

func negate(v value) value {
	switch v.kind {
	case kindInt, kindLong:
		v.num = -v.num
	case kindDouble:
		v.float = -v.float
	case kindFailed:
	default:
		return value{}
	}
	return v
}

// compare orders two values that are there and are not both text. Text becomes a value of the other's kind; ok is false
// when it cannot. A number is always less than a truth value, and the other way round: they are never equal.
func compare(l, r value) (order int, ok bool) {
	switch {
	case l.kind == kindText:
		l = asKind(l, r.kind)
	case r.kind == kindText && l.kind == kindTruth:
		return 0, false // Apache casts the truth value to a string there, which fails
	case r.kind == kindText:
		r = asKind(r, l.kind)
	}
	switch {
	case l.kind == kindFailed || r.kind == kindFailed:
		return 0, false
	case l.number() && r.number():
		return compareNumbers(l, r), true
	case l.kind != r.kind:
		return -1, true
	default:
		return cmp.Compare(l.num, r.num), true
	}
}

// compareNumbers orders numbers as Java does: whole ones exactly, else as doubles, with -0 below 0 and NaN above all.
func compareNumbers(l, r value) int {
	if l.kind != kindDouble && r.kind != kindDouble {
		return cmp.Compare(l.num, r.num)
	}
	a, b := l.double(), r.double()
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	case math.IsNaN(a) || math.IsNaN(b):
		return truthOrder(math.IsNaN(a), math.IsNaN(b))
	default:
		return truthOrder(math.Signbit(b), math.Signbit(a))
	}
}

// truthOrder is 1 when only the first holds, -1 when only the second.
func truthOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

// asKind reads text as a value of another kind.
func asKind(v value, k kind) value {
	switch k {
	case kindTruth:
		return truthValue(truthIf(isTrue(v.text)))
	case kindInt:
		return asWhole(v, k, math.MinInt32, math.MaxInt32)
	case kindLong:
		return asWhole(v, k, math.MinInt64, math.MaxInt64)
	default:
		return asDouble(v)
	}
}

func asWhole(v value, k kind, least, most int64) value {
	n, ok := parseWhole(v.text, least, most)
	if !ok {
		return failure
	}
	return value{kind: k, num: n}
}

func asDouble(v value) value {
	f, ok := parseDouble(v.text)
	if !ok {
		return failure
	}
	return value{kind: kindDouble, float: f}
}
