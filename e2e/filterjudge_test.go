package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mqx/filter"
)

// judgedFile is what filter's own tests read; MQX_FILTER_UPDATE=1 writes it anew.
const judgedFile = "../filter/testdata/apache.jsonl"

// TestFilterJudge compares filter with Apache's own evaluator on expressions that are written for their corners and on
// random ones: whether they compile, and their outcome for each set of properties.
func TestFilterJudge(t *testing.T) {
	texts := append([]string(nil), cornerExpressions...)
	g := &expressionMaker{rand.New(rand.NewPCG(1, 2))}
	for len(texts) < 6000 {
		texts = append(texts, g.text())
	}
	sets := propertySets(g)
	var outcomes []string
	sharedDriver(t).call(t, "judgeFilters", map[string]any{"expressions": texts, "sets": sets}, &outcomes)
	compiled, told := 0, 0
	for i, text := range texts {
		e, err := filter.Compile(text)
		if (err == nil) != (outcomes[i] != "") {
			t.Errorf("%q: mqx says %v, Apache's outcomes %q", text, err, outcomes[i])
			continue
		}
		if err != nil {
			continue
		}
		compiled++
		for j, set := range sets {
			if want := outcomes[i][j] == 't'; e.MatchMap(set) != want {
				if told++; told < 50 {
					t.Errorf("%q with %v: Apache says %c", text, set, outcomes[i][j])
				}
			}
		}
	}
	t.Logf("%d expressions, %d compiled, %d sets of properties", len(texts), compiled, len(sets))
	if os.Getenv("MQX_FILTER_UPDATE") != "" {
		writeJudged(t, texts, sets, outcomes)
	}
}

func writeJudged(t *testing.T, texts []string, sets []map[string]string, outcomes []string) {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(sets); err != nil {
		t.Fatal(err)
	}
	for i, text := range texts[:2000] {
		if err := enc.Encode([2]string{text, outcomes[i]}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(judgedFile), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(judgedFile, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// cornerExpressions are the places where a reader of the grammar would guess wrong.
var cornerExpressions = []string{
	"", " ", "a", "(a)", "NOT a", "TRUE", "false", "null", "NOT NULL", "5", "'x'", "-a", "+a", "-(a = 5)",
	"a = 5", "a = 5.0", "a = 5L", "a = 5l", "a = 3000000000", "a = 9223372036854775807", "a = 9223372036854775808", "a = -9223372036854775808",
	"a = 0", "a = 0.0", "a = -0", "a > 0L", "a = 01", "a = 01.5", "a = 1.", "a = .5", "a = .", "a = 1e3", "a = 1E+3", "a = 1e", "a = 1e400", "a = 1e-400", "a = 4.9e-324", "a > 1.5e308",
	"a = 1 b", "a = 1 b ;", "a = 1;", "a = 1 'x", "a = 1 )", "a = 1 (", "a = 1 NOT", "a = 1 IS", "a NOT 5", "a IS 5", "a IS NOT 5", "(a = 1", "a = 1 2 3 ;;",
	"a = b", "a <> b", "a = b = c", "a = 5 = TRUE", "(a = 5) = TRUE", "TRUE = (a = 5)", "TRUE = a", "a = TRUE", "a <> FALSE", "TRUE = 5", "5 = TRUE", "TRUE = 'true'", "'true' = TRUE", "TRUE = TRUE",
	"NULL = a", "a = NULL", "a <> NULL", "NULL IS NULL", "5 IS NULL", "'x' IS NOT NULL", "(a = 5) IS NULL", "(a > 5) IS NOT NULL", "-a IS NULL", "a IS NULL IS NULL", "a IS NULL IS NOT NULL = TRUE",
	"a > 5", "a >= 5", "a < 5", "a <= 5", "a > 5.5", "a < -5", "5 < a", "5 < 6", "6 < 5.0", "5 = 5.0", "5 = 5L", "5.0 = 5", "a > 'x'", "'x' > a", "a > TRUE", "a > NULL", "(a = 5) > 5", "a > (b = 5)", "a > b", "a > -b", "a > b > c", "-a > 5",
	"NOT a = 5", "NOT (a = 5)", "NOT NOT(a = 5)", "NOT a IS NULL", "NOT a > 5", "NOT a IN ('5')", "NOT 5", "NOT 'x'", "- - 5 = 5", "-+-5 = 5", "+ 'x' = 'x'", "-'x' IS NULL", "-TRUE IS NULL",
	"a BETWEEN 5 AND 6", "a BETWEEN 6 AND 5", "a NOT BETWEEN 6 AND 5", "a BETWEEN 5 AND 5", "a BETWEEN -6 AND -7", "a BETWEEN b AND c", "a BETWEEN 5 AND b", "a BETWEEN 'a' AND 'b'", "a BETWEEN 5 AND 'b'", "a BETWEEN NULL AND 5", "a BETWEEN TRUE AND FALSE", "5 BETWEEN a AND b", "5 BETWEEN 4 AND 6",
	"a BETWEEN 5 AND 6 AND b = 'x'", "a BETWEEN 5 AND 6 OR b = 'x'", "a BETWEEN (b = 5) AND 7", "a BETWEEN 1.5 AND 3000000000", "'x' BETWEEN 1 AND 2",
	"a IN ('5')", "a NOT IN ('5')", "a IN ()", "a IN (5)", "a IN ('5', 'x', 'hello', 'q', 'r', 's', 't')", "a IN '5'", "(a) IN ('5')", "+a IN ('5')", "5 IN ('5')", "'5' IN ('5')", "a IN ('5') IN ('6')", "a IN ('')", "a IN ('it''s')", "a IN ('5',)",
	"a CONTAINS 'l'", "a NOT CONTAINS 'l'", "a CONTAINS ''", "a NOT CONTAINS ''", "5 CONTAINS '5'", "'hello' CONTAINS 'ell'", "'hello' NOT CONTAINS 'ell'", "(a = 5) CONTAINS 't'", "(a = 5) CONTAINS ''", "a CONTAINS b", "a CONTAINS 5", "a STARTSWITH 'he'", "a NOT STARTSWITH 'he'", "a ENDSWITH 'lo'", "a NOT ENDSWITH 'lo'", "a CONTAINS 'l' = TRUE", "-a CONTAINS 'x'", "a CONTAINS 'l' CONTAINS 't'",
	"a = 'it''s'", "a = ''", "a = ''''", "a = 'x''", "a = 'a''b c", "a = 'é'", "a = '𐍈'", "a contains '𐍈'", "é = 5", "a = 5 é",
	"a = 5 -- end", "a = 5 -- end\n", "a = 5 -- end\n AND b = 'x'", "a -- x\r = 5", "a /* x */ = 5", "a /**/ = 5", "a /*/ = 5", "a = 5 /* x", "a = /***/ 5", "a--b\n= 5", "a - -b = 5",
	"a = 5 AND b = 'x' OR c = 'y'", "a = 5 OR b = 'x' AND c = 'y'", "(a = 5 OR b = 'x') AND c = 'y'", "a AND b", "a OR TRUE", "TRUE OR a = 5", "NULL AND FALSE", "NULL OR TRUE", "FALSE AND a > 5", "5 AND TRUE", "TRUE AND 'x'", "a = 5 AND", "AND", "OR a",
	"a > 3 OR b = 'x'", "b = 'x' OR a > 3", "a != 5", "a == 5", "a => 5", "a =< 5", "a <> 5 <> 6", "a < > 5", "a*5 = 5", "a.b = 5", "a[0] = 5", "\"a\" = 5", "`a` = 5", "$a = 5", "_a = 5", "a1 = 5", "1a = 5", "anda = 5", "in = 5", "contains = 5", "A = 5", "TAGS = 'x'",
	"a LIKE 'x%'", "a = 0x10", "a = 5 ? b", "a\u00a0= 5", "\ufeffa = 5", "a\t=\n5\f\r", "a\v= 5",
}

// propertySets are sets with every value that is read in a special way, and random ones of them.
func propertySets(g *expressionMaker) []map[string]string {
	sets := []map[string]string{{}}
	for _, v := range propertyValues {
		sets = append(sets, map[string]string{"a": v})
	}
	for range 20 {
		set := map[string]string{}
		for _, name := range [...]string{"a", "b", "c"} {
			if v := g.pick(propertyValues); g.IntN(4) > 0 && v != "" {
				set[name] = v
			}
		}
		sets = append(sets, set)
	}
	return sets
}

var propertyValues = []string{
	"5", "6", "-5", "+5", "5.0", " 5", "5 ", "\t5\u0001", "5f", "5D", "5L", "05", "٥", "५", "𝟓", "0", "-0", "0.0", "-0.0", "1e3", "1e", ".5", "5.", ".", "-", "+", "0x1p3", "0x.8p1", "0x1", "1_000",
	"NaN", "-NaN", "Infinity", "-Infinity", "Infinityd", "inf", "nan", "1e400", "1e-400", "2147483647", "2147483648", "-2147483648", "-2147483649", "3000000000", "9223372036854775807", "-9223372036854775808", "9223372036854775808",
	"true", "TRUE", "tRuE", "false", "yes", "hello", "x", "y", "it's", "'", "é", "a𐍈b",
}

// expressionMaker makes random expressions, most of them right.
type expressionMaker struct{ *rand.Rand }

func (g *expressionMaker) pick(list []string) string { return list[g.IntN(len(list))] }

func (g *expressionMaker) text() string {
	s := g.condition(3)
	if g.IntN(12) == 0 { // spoil it
		at := g.IntN(len(s) + 1)
		s = s[:at] + g.pick([]string{" ", "'", "(", ")", " NOT ", " AND ", "-", ",", " 5 ", ";", "", " = ", "x"}) + s[min(len(s), at+g.IntN(3)):]
	}
	return strings.ToValidUTF8(s, "?")
}

func (g *expressionMaker) condition(depth int) string {
	if depth > 0 && g.IntN(2) == 0 {
		sub := func() string { return g.condition(depth - 1) }
		switch g.IntN(6) {
		case 0:
			return sub() + " AND " + sub()
		case 1:
			return sub() + " or " + sub()
		case 2:
			return "NOT (" + sub() + ")"
		case 3:
			return "(" + sub() + ")"
		case 4:
			return fmt.Sprintf("(%s) %s (%s)", sub(), g.pick([]string{"=", "<>"}), sub())
		default:
			return fmt.Sprintf("(%s) IS %sNULL", sub(), g.not())
		}
	}
	switch g.IntN(9) {
	case 0, 1:
		return fmt.Sprintf("%s %s %s", g.operand(), g.pick([]string{"=", "<>"}), g.operand())
	case 2, 3:
		return fmt.Sprintf("%s %s %s", g.number(), g.pick([]string{">", ">=", "<", "<="}), g.number())
	case 4:
		return fmt.Sprintf("%s %sBETWEEN %s AND %s", g.number(), g.not(), g.number(), g.number())
	case 5:
		return fmt.Sprintf("%s %sIN (%s, %s)", g.name(), g.not(), g.literal(), g.literal())
	case 6:
		return fmt.Sprintf("%s %s%s %s", g.operand(), g.not(), g.pick([]string{"CONTAINS", "startswith", "EndsWith"}), g.literal())
	case 7:
		return fmt.Sprintf("%s IS %sNULL", g.operand(), g.not())
	default:
		return g.pick([]string{"TRUE", "FALSE", "NULL", "a", "b", "NOT a"})
	}
}

func (g *expressionMaker) not() string { return g.pick([]string{"", "NOT "}) }

func (g *expressionMaker) name() string { return g.pick([]string{"a", "b", "c", "missing"}) }

func (g *expressionMaker) literal() string {
	return "'" + strings.ReplaceAll(g.pick(propertyValues), "'", "''") + "'"
}

func (g *expressionMaker) number() string {
	if g.IntN(2) == 0 {
		return g.name()
	}
	return g.pick([]string{"5", "6", "-5", "0", "5.0", "5.5", "-2.5", "1e3", "3000000000", "2147483647", "2147483648L", "9223372036854775807", "-b", "+a", "8", ".5"})
}

func (g *expressionMaker) operand() string {
	switch g.IntN(8) {
	case 0, 1:
		return g.literal()
	case 2:
		return g.pick([]string{"TRUE", "FALSE"})
	default:
		return g.number()
	}
}

// bloomBits is what Apache's bloom filter gives a name.
type bloomBits struct {
	N      int     `json:"n"`
	Name   string  `json:"name"`
	BitNum int     `json:"bitNum"`
	BitPos []int32 `json:"bitPos"`
}

// TestBloomJudge compares the bloom filter's shape and positions with Apache's at all error rates.
func TestBloomJudge(t *testing.T) {
	sizes := []int{1, 2, 7, 8, 32, 64, 128, 1000, 20000}
	groups := []string{"g", "CG_ext_sql", "a group of thirty-two characters", "grüße", strings.Repeat("long", 60)}
	var names []string
	for _, g := range groups {
		names = append(names, g+"#ExtTopic")
	}
	for rate := 1; rate < 100; rate++ {
		var want []bloomBits
		sharedDriver(t).call(t, "bloom", map[string]any{"errorRate": rate, "sizes": sizes, "names": names}, &want)
		for i, w := range want {
			b, err := filter.NewBloom(rate, w.N)
			if err != nil {
				t.Fatal(err)
			}
			if got := b.Positions(groups[i%len(groups)], "ExtTopic"); b.Bits() != w.BitNum || !slices.Equal(got, w.BitPos) {
				t.Errorf("%d %%, %d groups, %q: got %d bits, %v; Apache has %d, %v", rate, w.N, w.Name, b.Bits(), got, w.BitNum, w.BitPos)
			}
		}
	}
}
