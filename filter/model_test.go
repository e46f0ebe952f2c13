package filter

import (
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mqx/message"
)

// The model is a tree that is evaluated as docs/format/sql92.md reads, in the plainest way: whole numbers as big ones,
// failures as panics, three values as *bool. It shares nothing with the package but the text that goes between them.

// modelValue is nil (null), bool, modelInt, float64 or string.
type modelValue any

// modelInt is a whole number, and whether it is an int or a long.
type modelInt struct {
	n    *big.Int
	long bool
}

// modelFails is the panic of what ends an evaluation.
type modelFails struct{}

// modelNode is a part of an expression.
type modelNode struct {
	op   string // of the table below
	sub  []*modelNode
	text string   // of leaves: as it is written
	val  any      // of constants
	list []string // of IN, and what CONTAINS and its like look for
	not  bool
}

// modelLevel is how closely a part binds.
func modelLevel(op string) int {
	switch op {
	case "OR":
		return 1
	case "AND":
		return 2
	case "=", "<>", "IS NULL":
		return 3
	case "<", "<=", ">", ">=", "BETWEEN", "IN", "CONTAINS", "STARTSWITH", "ENDSWITH":
		return 4
	case "NOT", "-":
		return 5
	default:
		return 6
	}
}

// eval is the value of a part.
func (n *modelNode) eval(props map[string]string) modelValue {
	switch n.op {
	case "property":
		if v, ok := props[n.text]; ok {
			return v
		}
		return nil
	case "constant":
		return n.val
	case "-":
		switch v := n.sub[0].eval(props).(type) {
		case modelInt:
			return modelInt{new(big.Int).Neg(v.n), v.long}
		case float64:
			return -v
		default:
			return nil
		}
	case "IS NULL":
		return (n.sub[0].eval(props) == nil) != n.not
	case "=":
		return modelEqual(n.sub[0].eval(props), n.sub[1].eval(props))
	case "<>":
		return modelNot(modelEqual(n.sub[0].eval(props), n.sub[1].eval(props)))
	case "<", "<=", ">", ">=":
		return modelOrder(n.op, n.sub[0], n.sub[1], props)
	case "BETWEEN":
		low, high, join := ">=", "<=", "AND"
		if n.not {
			low, high, join = "<", ">", "OR"
		}
		return (&modelNode{op: join, sub: []*modelNode{{op: low, sub: n.sub[:2]}, {op: high, sub: []*modelNode{n.sub[0], n.sub[2]}}}}).eval(props)
	case "IN":
		v := n.sub[0].eval(props)
		if v == nil {
			return nil
		}
		found := false
		for _, s := range n.list {
			found = found || s == v
		}
		return found != n.not
	case "CONTAINS", "STARTSWITH", "ENDSWITH":
		return modelSearch(n, props)
	case "NOT":
		return modelNot(n.sub[0].truth(props))
	default:
		return modelLogic(n, props)
	}
}

// truth is a part as a condition: text, as properties are, is false.
func (n *modelNode) truth(props map[string]string) modelValue {
	v := n.eval(props)
	if _, ok := v.(string); ok {
		return false
	}
	return v
}

func modelNot(v modelValue) modelValue {
	if b, ok := v.(bool); ok {
		return !b
	}
	return nil
}

func modelLogic(n *modelNode, props map[string]string) modelValue {
	decides := n.op == "OR"
	var out modelValue = !decides
	for _, s := range n.sub {
		switch v := s.truth(props); v {
		case decides:
			return decides
		case nil:
			out = nil
		}
	}
	return out
}

func modelSearch(n *modelNode, props map[string]string) modelValue {
	want := n.list[0]
	if want == "" {
		return false
	}
	s, ok := n.sub[0].eval(props).(string)
	if !ok {
		return false
	}
	found := map[string]func(string, string) bool{"CONTAINS": strings.Contains, "STARTSWITH": strings.HasPrefix, "ENDSWITH": strings.HasSuffix}[n.op](s, want)
	return found != n.not
}

func modelEqual(l, r modelValue) modelValue {
	switch {
	case l == nil && r == nil:
		return true
	case l == nil:
		return nil
	case r == nil:
		return false
	}
	ls, lText := l.(string)
	rs, rText := r.(string)
	if lText && rText {
		return ls == rs
	}
	return modelCompare(l, r) == 0
}

func modelOrder(op string, left, right *modelNode, props map[string]string) modelValue {
	l := left.eval(props)
	if l == nil {
		return nil
	}
	r := right.eval(props)
	if r == nil {
		return nil
	}
	ls, lText := l.(string)
	rs, rText := r.(string)
	if lText && rText {
		l, r = modelDouble(ls), modelDouble(rs)
	}
	c := modelCompare(l, r)
	return map[string]bool{"<": c < 0, "<=": c <= 0, ">": c > 0, ">=": c >= 0}[op]
}

// modelCompare compares what is not both text; 2 is different without an order.
func modelCompare(l, r modelValue) int {
	if s, ok := l.(string); ok {
		l = modelAs(s, r)
	} else if s, ok := r.(string); ok {
		if _, truth := l.(bool); truth {
			panic(modelFails{})
		}
		r = modelAs(s, l)
	}
	lb, lTruth := l.(bool)
	rb, rTruth := r.(bool)
	if lTruth || rTruth {
		if lTruth && rTruth && lb == rb {
			return 0
		}
		return 2
	}
	li, lWhole := l.(modelInt)
	ri, rWhole := r.(modelInt)
	if lWhole && rWhole {
		return li.n.Cmp(ri.n)
	}
	a, b := modelFloat(l), modelFloat(r)
	rank := func(f float64) int { // NaN above all, -0 below 0
		switch {
		case math.IsNaN(f):
			return 2
		case f == 0 && math.Signbit(f):
			return -1
		default:
			return 0
		}
	}
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	default:
		return rank(a) - rank(b)
	}
}

func modelFloat(v modelValue) float64 {
	if i, ok := v.(modelInt); ok {
		f, _ := new(big.Float).SetInt(i.n).Float64()
		return f
	}
	return v.(float64)
}

// modelAs is text as a value of the other's kind.
func modelAs(s string, other modelValue) modelValue {
	switch o := other.(type) {
	case bool:
		return strings.EqualFold(s, "true")
	case modelInt:
		n, ok := new(big.Int).SetString(strings.TrimPrefix(s, "+"), 10)
		if !ok || !regexp.MustCompile(`^[+-]?[0-9]+$`).MatchString(s) {
			panic(modelFails{})
		}
		bits := uint(31)
		if o.long {
			bits = 63
		}
		least := new(big.Int).Neg(new(big.Int).Lsh(big.NewInt(1), bits))
		if n.Cmp(least) < 0 || n.Cmp(new(big.Int).Not(least)) > 0 {
			panic(modelFails{})
		}
		return modelInt{n, o.long}
	default:
		return modelDouble(s)
	}
}

var modelNumber = regexp.MustCompile(`^[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?)$`)

func modelDouble(s string) float64 {
	s = strings.TrimFunc(s, func(r rune) bool { return r <= ' ' })
	if !modelNumber.MatchString(s) {
		panic(modelFails{})
	}
	if strings.HasSuffix(s, "NaN") {
		return math.NaN()
	}
	if !strings.HasSuffix(s, "Infinity") {
		s = strings.TrimRight(s, "fFdD")
	}
	f, _ := strconv.ParseFloat(s, 64)
	return f
}

// matches is the outcome of the whole.
func (n *modelNode) matches(props map[string]string) (yes bool) {
	defer func() {
		if e := recover(); e != nil {
			if _, ok := e.(modelFails); !ok {
				panic(e)
			}
			yes = false
		}
	}()
	return n.truth(props) == true
}

// modelWriter draws expressions and the ways to write them.
type modelWriter struct{ *rapid.T }

func (w modelWriter) pick(list ...string) string { return rapid.SampledFrom(list).Draw(w.T, "pick") }
func (w modelWriter) yes() bool                  { return rapid.Bool().Draw(w.T, "yes") }
func (w modelWriter) up(most int) int            { return rapid.IntRange(0, most).Draw(w.T, "n") }

var modelTexts = []string{
	"5", "6", "-5", "+5", "5.0", "5f", " 5", "05", "0", "-0", "-0.0", "0.0", "1e3", "1e400", ".5", "5.", "NaN", "Infinity", "2147483647", "2147483648",
	"-2147483649", "9223372036854775808", "true", "TRUE", "false", "hello", "it's", "é", "", "x",
}

func (w modelWriter) condition(depth int) *modelNode {
	if depth <= 0 {
		return w.simple(0)
	}
	switch w.up(6) {
	case 0, 1:
		n := &modelNode{op: w.pick("AND", "OR")}
		for range 2 + w.up(2) {
			n.sub = append(n.sub, w.condition(depth-1))
		}
		return n
	case 2:
		return &modelNode{op: "NOT", sub: []*modelNode{w.condition(depth - 1)}}
	default:
		return w.simple(depth)
	}
}

// simple is a condition whose operands are values, or conditions where that is allowed.
func (w modelWriter) simple(depth int) *modelNode {
	switch w.up(9) {
	case 0, 1, 2:
		l := w.operand(depth)
		r := w.operand(depth)
		if l.op == "constant" && r.op == "constant" {
			if _, truth := l.val.(bool); truth {
				r = w.property() // TRUE = 5 is none
			}
		}
		return &modelNode{op: w.pick("=", "<>"), sub: []*modelNode{l, r}}
	case 3, 4:
		return &modelNode{op: w.pick("<", "<=", ">", ">="), sub: []*modelNode{w.number(), w.number()}}
	case 5:
		return &modelNode{op: "IS NULL", not: w.yes(), sub: []*modelNode{w.operand(depth)}}
	case 6:
		n := &modelNode{op: "BETWEEN", not: w.yes(), sub: []*modelNode{w.number(), w.number(), w.number()}}
		low, high := n.sub[1], n.sub[2]
		if low.op == "constant" && high.op == "constant" && modelCompare(low.val, high.val) > 0 {
			n.sub[1], n.sub[2] = high, low
		}
		return n // a constant with a sign is none for that check, and may stand anywhere
	case 7:
		n := &modelNode{op: "IN", not: w.yes(), sub: []*modelNode{w.property()}}
		for range 1 + w.up(11) {
			n.list = append(n.list, w.pick(modelTexts...))
		}
		return n
	case 8:
		return &modelNode{op: w.pick("CONTAINS", "STARTSWITH", "ENDSWITH"), not: w.yes(), sub: []*modelNode{w.operand(depth)}, list: []string{w.pick("l", "5", "", "he", "lo", "'", "true")}}
	default:
		if w.yes() {
			return w.property()
		}
		return w.truthConstant()
	}
}

func (w modelWriter) property() *modelNode {
	return &modelNode{op: "property", text: w.pick("a", "b", "$c_1", "TAGS", "inn", "missing")}
}

func (w modelWriter) truthConstant() *modelNode {
	b := w.yes()
	return &modelNode{op: "constant", text: strings.ToUpper(strconv.FormatBool(b)), val: b}
}

func (w modelWriter) constant() *modelNode {
	n := &modelNode{op: "constant", text: w.pick("0", "5", "6", "5.0", "5.5", ".5", "5.", "1e3", "2147483647", "2147483648", "7L", "5l", "9223372036854775807")}
	if strings.ContainsAny(n.text, ".e") {
		n.val, _ = strconv.ParseFloat(n.text, 64)
		return n
	}
	i, _ := new(big.Int).SetString(strings.TrimRight(n.text, "lL"), 10)
	n.val = modelInt{i, i.Cmp(big.NewInt(math.MaxInt32)) > 0} // the letter does not make a long
	return n
}

func (w modelWriter) number() *modelNode {
	switch w.up(4) {
	case 0, 1:
		return w.property()
	case 2:
		return &modelNode{op: "-", sub: []*modelNode{rapid.SampledFrom([]*modelNode{w.property(), w.constant()}).Draw(w.T, "negated")}}
	default:
		return w.constant()
	}
}

func (w modelWriter) operand(depth int) *modelNode {
	switch w.up(6) {
	case 0:
		s := w.pick(modelTexts...)
		return &modelNode{op: "constant", text: "'" + strings.ReplaceAll(s, "'", "''") + "'", val: s}
	case 1:
		return w.truthConstant()
	case 2:
		if depth > 0 {
			return w.condition(depth - 1)
		}
		fallthrough
	default:
		return w.number()
	}
}

// space is what may stand between two tokens.
func (w modelWriter) space() string {
	return w.pick(" ", " ", " ", "\t", "\n", "  ", " /* x * / */ ", " -- 'y\n")
}

func (w modelWriter) word(s string) string {
	if w.yes() {
		s = strings.ToLower(s)
	}
	return w.space() + s + w.space()
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// write is the text of a part where at least a level is wanted.
func (w modelWriter) write(n *modelNode, least int) string {
	var s string
	level := modelLevel(n.op)
	not := func(word string) string {
		if n.not {
			return w.word("NOT") + w.word(word)
		}
		return w.word(word)
	}
	switch n.op {
	case "property", "constant":
		s = n.text
	case "-":
		s = "-" + w.space() + w.write(n.sub[0], 5)
	case "NOT":
		s = w.word("NOT") + w.write(n.sub[0], 5)
	case "IS NULL":
		s = w.write(n.sub[0], 3) + w.word("IS")
		if n.not {
			s += w.word("NOT")
		}
		s += w.word("NULL")
	case "=", "<>":
		s = w.write(n.sub[0], 3) + w.word(n.op) + w.write(n.sub[1], 4)
	case "<", "<=", ">", ">=":
		s = w.write(n.sub[0], 5) + w.word(n.op) + w.write(n.sub[1], 5)
	case "BETWEEN":
		s = w.write(n.sub[0], 5) + not("BETWEEN") + w.write(n.sub[1], 5) + w.word("AND") + w.write(n.sub[2], 5)
	case "IN":
		list := make([]string, len(n.list))
		for i, t := range n.list {
			list[i] = quoted(t)
		}
		s = n.sub[0].text + not("IN") + "(" + strings.Join(list, w.space()+","+w.space()) + ")"
	case "CONTAINS", "STARTSWITH", "ENDSWITH":
		s = w.write(n.sub[0], 4) + not(n.op) + quoted(n.list[0])
	default:
		parts := make([]string, len(n.sub))
		for i, sub := range n.sub {
			parts[i] = w.write(sub, level+1)
		}
		s = strings.Join(parts, w.word(n.op))
	}
	if level < least || w.up(9) == 0 && n.op != "property" {
		return "(" + s + ")"
	}
	return s
}

// TestAgainstModel: whatever is written in whatever way means what the tree means.
func TestAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := modelWriter{t}
		tree := w.condition(3)
		text := w.write(tree, 0)
		e, err := Compile(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if e.Rest() != "" {
			t.Fatalf("%q is read up to %q only", text, e.Rest())
		}
		for range 8 {
			props := map[string]string{}
			for _, name := range []string{"a", "b", "$c_1", "TAGS", "inn"} {
				if v := w.pick(modelTexts...); v != "" && w.up(4) > 0 {
					props[name] = v
				}
			}
			want := tree.matches(props)
			if got := e.MatchProperties(message.FormatProperties(props)); got != want {
				t.Fatalf("%q with %v: %v, the model says %v", text, props, got, want)
			}
			if got := e.MatchMap(props); got != want {
				t.Fatalf("%q with %v: MatchMap says %v, the model %v", text, props, got, want)
			}
		}
	})
}
