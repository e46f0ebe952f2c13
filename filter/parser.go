package filter

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// term is a parsed part, of which the rules want to know what it was written as.
type term struct {
	form    form
	operand operand   // of every term
	cond    condition // of formTruth and formConstantTruth
	name    string    // of formProperty
	value   value     // of constants
	pos     int
	depth   int
}

type form uint8

const (
	formValue         form = iota // what a sign was put before
	formConstant                  // a number or a string
	formConstantTruth             // TRUE, FALSE or NULL
	formProperty
	formTruth // what is true, false or unknown
)

func (t *term) constant() bool { return t.form == formConstant || t.form == formConstantTruth }

func truthOf(c condition, pos, depth int) term {
	return term{form: formTruth, cond: c, operand: truthOperand{c}, pos: pos, depth: depth}
}

// parser reads the grammar of Apache's SelectorParser by recursive descent, with one token of look-ahead: no more of the
// text is looked at than Apache's looks at.
type parser struct {
	lex    lexer
	ahead  token
	peeked bool
	depth  int
}

func (p *parser) peek() token {
	if !p.peeked {
		p.ahead, p.peeked = p.lex.next(), true
	}
	return p.ahead
}

func (p *parser) take() token {
	t := p.peek()
	p.peeked = false
	return t
}

// rest returns the text from the token that was looked at last and not taken.
func (p *parser) rest() string {
	t := p.peek()
	rest := p.lex.text[t.start:]
	if strings.HasPrefix(rest, "--") && !strings.ContainsAny(rest, "\r\n") {
		return ""
	}
	return rest
}

func (p *parser) fail(pos int, format string, args ...any) error {
	return &SyntaxError{Text: p.lex.text, Pos: pos, Reason: fmt.Sprintf(format, args...)}
}

// unexpected says that t is not what the grammar wants here.
func (p *parser) unexpected(t token, want string) error {
	if t.err != nil {
		return t.err
	}
	if t.kind == tokenEnd {
		return p.fail(t.start, "%s is missing at the end", want)
	}
	return p.fail(t.start, "%s is wanted, not %q", want, p.lex.text[t.start:t.end])
}

func (p *parser) expect(kind tokenKind, want string) (token, error) {
	t := p.peek()
	if t.kind != kind {
		return t, p.unexpected(t, want)
	}
	return p.take(), nil
}

func (p *parser) enter(pos int) error {
	if p.depth++; p.depth > MaxDepth {
		return p.tooDeep(pos)
	}
	return nil
}

func (p *parser) tooDeep(pos int) error {
	return p.fail(pos, "an expression nests at most %d deep", MaxDepth)
}

// condition makes a truth value of a term, if it is one.
func (p *parser) condition(t term) (condition, error) {
	switch t.form {
	case formTruth, formConstantTruth:
		return t.cond, nil
	case formProperty:
		return castCondition{t.name}, nil
	default:
		return nil, p.fail(t.pos, "this is a value, where a condition is wanted")
	}
}

func (p *parser) or() (term, error)  { return p.logic("OR", p.and, anyOf) }
func (p *parser) and() (term, error) { return p.logic("AND", p.equality, allOf) }

// logic reads parts that are connected by a word, as one list.
func (p *parser) logic(word tokenKind, part func() (term, error), join func([]condition) condition) (term, error) {
	left, err := part()
	if err != nil {
		return left, err
	}
	var list []condition
	depth := left.depth
	for {
		t := p.peek()
		if t.err != nil {
			return left, t.err
		}
		if t.kind != word {
			break
		}
		p.take()
		right, err := part()
		if err != nil {
			return left, err
		}
		depth = max(depth, right.depth)
		if list == nil {
			first, err := p.condition(left)
			if err != nil {
				return left, err
			}
			list = append(list, first)
		}
		c, err := p.condition(right)
		if err != nil {
			return left, err
		}
		list = append(list, c)
	}
	if list == nil {
		return left, nil
	}
	return truthOf(join(list), left.pos, depth+1), nil
}

// equality reads a chain of =, <> and IS [NOT] NULL, which binds to the left.
func (p *parser) equality() (term, error) {
	left, err := p.comparison()
	for err == nil {
		t := p.peek()
		if t.err != nil {
			return left, t.err
		}
		switch t.kind {
		case "=", "<>":
			p.take()
			var right term
			if right, err = p.comparison(); err == nil {
				left, err = p.equal(left, right, t)
			}
		case "IS":
			p.take()
			left, err = p.isNull(left)
		default:
			return left, nil
		}
		if err == nil && left.depth > MaxDepth {
			err = p.tooDeep(t.start)
		}
	}
	return left, err
}

func (p *parser) equal(left, right term, sign token) (term, error) {
	for _, t := range [...]*term{&left, &right} {
		if t.constant() && t.value.kind == kindNull {
			return left, p.fail(t.pos, "NULL is compared with IS NULL")
		}
	}
	if left.form == formConstantTruth && right.form == formConstant {
		return left, p.fail(sign.start, "a truth value is not compared with a number or a string")
	}
	var c condition = &equalCondition{left.operand, right.operand}
	if sign.kind == "<>" {
		c = notCondition{c}
	}
	return truthOf(c, left.pos, max(left.depth, right.depth)+1), nil
}

func (p *parser) isNull(left term) (term, error) {
	var c condition = nullCondition{left.operand}
	if t := p.peek(); t.kind == "NOT" {
		p.take()
		c = notCondition{c}
	} else if t.kind != "NULL" {
		return left, p.unexpected(t, "NULL or NOT NULL")
	}
	if _, err := p.expect("NULL", "NULL"); err != nil {
		return left, err
	}
	return truthOf(c, left.pos, left.depth+1), nil
}

// comparison reads what binds more closely than =.
func (p *parser) comparison() (term, error) {
	left, err := p.unary()
	for err == nil {
		t := p.peek()
		if t.err != nil {
			return left, t.err
		}
		not := false
		if t.kind == "NOT" {
			p.take()
			if t, not = p.peek(), true; !negatable(t.kind) {
				return left, p.unexpected(t, "CONTAINS, STARTSWITH, ENDSWITH, BETWEEN or IN behind NOT")
			}
		}
		switch t.kind {
		case ">", ">=", "<", "<=":
			p.take()
			var right term
			if right, err = p.unary(); err == nil {
				left, err = p.order(left, right, t.kind)
			}
		case "CONTAINS", "STARTSWITH", "ENDSWITH":
			p.take()
			left, err = p.search(left, t.kind, not)
		case "BETWEEN":
			p.take()
			left, err = p.between(left, not)
		case "IN":
			p.take()
			left, err = p.in(left, not)
		default:
			return left, nil
		}
		if err == nil && left.depth > MaxDepth {
			err = p.tooDeep(t.start)
		}
	}
	return left, err
}

func negatable(k tokenKind) bool {
	return k == "CONTAINS" || k == "STARTSWITH" || k == "ENDSWITH" || k == "BETWEEN" || k == "IN"
}

func (p *parser) order(left, right term, sign tokenKind) (term, error) {
	for _, t := range [...]*term{&left, &right} {
		if err := p.ordered(t); err != nil {
			return left, err
		}
	}
	c := &orderCondition{left.operand, right.operand, sign}
	return truthOf(c, left.pos, max(left.depth, right.depth)+1), nil
}

// ordered refuses operands of < and its like that can be no number.
func (p *parser) ordered(t *term) error {
	if t.form == formTruth || t.constant() && !t.value.number() {
		return p.fail(t.pos, "only properties and numbers are compared by size")
	}
	return nil
}

// search reads the string behind CONTAINS and its like.
func (p *parser) search(left term, word tokenKind, not bool) (term, error) {
	s, err := p.stringLiteral("a string in single quotes behind " + string(word))
	if err != nil {
		return left, err
	}
	return truthOf(&searchCondition{left.operand, []byte(s), word, not}, left.pos, left.depth+1), nil
}

// between reads the limits behind BETWEEN: low AND high.
func (p *parser) between(left term, not bool) (term, error) {
	low, err := p.unary()
	if err != nil {
		return left, err
	}
	if _, err = p.expect("AND", "AND between the limits of BETWEEN"); err != nil {
		return left, err
	}
	high, err := p.unary()
	if err != nil {
		return left, err
	}
	for _, t := range [...]*term{&left, &low, &high} {
		if err := p.ordered(t); err != nil {
			return left, err
		}
	}
	if !not && low.constant() && high.constant() && compareNumbers(high.value, low.value) < 0 {
		return left, p.fail(low.pos, "the lower limit of BETWEEN is above the upper one")
	}
	first, second := tokenKind(">="), tokenKind("<=")
	join := allOf
	if not {
		first, second, join = "<", ">", anyOf
	}
	c := join([]condition{&orderCondition{left.operand, low.operand, first}, &orderCondition{left.operand, high.operand, second}})
	return truthOf(c, left.pos, max(left.depth, low.depth, high.depth)+1), nil
}

// in reads the list behind IN.
func (p *parser) in(left term, not bool) (term, error) {
	if _, err := p.expect("(", `"(" behind IN`); err != nil {
		return left, err
	}
	var list []string
	for {
		s, err := p.stringLiteral("a string in single quotes in the list of IN")
		if err != nil {
			return left, err
		}
		list = append(list, s)
		if p.peek().kind != "," {
			break
		}
		p.take()
	}
	if _, err := p.expect(")", `"," or ")" in the list of IN`); err != nil {
		return left, err
	}
	if left.form != formProperty {
		return left, p.fail(left.pos, "only a property can be IN a list")
	}
	return truthOf(newInCondition(left.name, list, not), left.pos, left.depth+1), nil
}

func (p *parser) stringLiteral(want string) (string, error) {
	t, err := p.expect(tokenString, want)
	if err != nil {
		return "", err
	}
	return strings.ReplaceAll(p.lex.text[t.start+1:t.end-1], "''", "'"), nil
}

// unary reads signs and NOT, which bind to the operand behind them.
func (p *parser) unary() (term, error) {
	t := p.peek()
	if t.kind != "+" && t.kind != "-" && t.kind != "NOT" {
		return p.primary()
	}
	p.take()
	if err := p.enter(t.start); err != nil {
		return term{}, err
	}
	right, err := p.unary()
	p.depth--
	if err != nil || t.kind == "+" {
		return right, err
	}
	if t.kind == "-" {
		return term{form: formValue, operand: negated(right), pos: t.start, depth: right.depth + 1}, nil
	}
	c, err := p.condition(right)
	if err != nil {
		return right, err
	}
	return truthOf(notCondition{c}, t.start, right.depth+1), nil
}

func (p *parser) primary() (term, error) {
	t := p.peek()
	switch t.kind {
	case "(":
		return p.bracketed()
	case tokenName:
		p.take()
		name := p.lex.text[t.start:t.end]
		return term{form: formProperty, name: name, operand: propertyOperand(name), pos: t.start}, nil
	case tokenString:
		s, err := p.stringLiteral("a string")
		return constantTerm(value{kind: kindText, text: []byte(s)}, t.start), err
	case tokenDecimal, tokenFloat:
		p.take()
		v, err := numberLiteral(p.lex.text[t.start:t.end], t.kind)
		if err != nil {
			return term{}, p.fail(t.start, "%s", err)
		}
		return constantTerm(v, t.start), nil
	case "TRUE", "FALSE", "NULL":
		p.take()
		c := map[tokenKind]truth{"TRUE": yes, "FALSE": no, "NULL": unknown}[t.kind]
		out := truthOf(constantCondition(c), t.start, 0)
		out.form, out.value = formConstantTruth, truthValue(c)
		return out, nil
	default:
		return term{}, p.unexpected(t, "a property, a value or a condition")
	}
}

func (p *parser) bracketed() (term, error) {
	t := p.take()
	if err := p.enter(t.start); err != nil {
		return term{}, err
	}
	inner, err := p.or()
	if err != nil {
		return inner, err
	}
	p.depth--
	_, err = p.expect(")", `")"`)
	return inner, err
}

func constantTerm(v value, pos int) term {
	return term{form: formConstant, operand: constantOperand{v}, value: v, pos: pos}
}

// numberLiteral reads a number. Whole ones fit 64 bits; fractional ones are neither zero nor beyond what a double holds.
func numberLiteral(text string, kind tokenKind) (value, error) {
	if kind == tokenDecimal {
		n, err := strconv.ParseInt(strings.TrimRight(text, "lL"), 10, 64)
		if err != nil {
			return value{}, fmt.Errorf("the number %s does not fit into 64 bits", text)
		}
		if n <= math.MaxInt32 {
			return value{kind: kindInt, num: n}, nil
		}
		return value{kind: kindLong, num: n}, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange), math.IsInf(f, 0):
		return value{}, fmt.Errorf("the number %s is greater than a double holds", text)
	case f < math.SmallestNonzeroFloat64:
		return value{}, fmt.Errorf("the fractional number %s is less than the smallest positive double; zero is written 0", text)
	}
	return value{kind: kindDouble, float: f}, nil
}
