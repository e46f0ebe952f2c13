package render

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// known makes one of the canonical values out of v: nil, string, int64,
// float64, bool, time.Time, time.Duration, []string, or v itself for Object.
// A value that is not of its field's kind is a mistake in the program.
func known(f Field, v any) any {
	switch x := v.(type) {
	case nil:
		return nil
	case time.Time:
		if x.IsZero() {
			return nil
		}
		return x
	}
	switch f.Kind {
	case Int, Size:
		if n, ok := integer(v); ok {
			return n
		}
	case Text:
		if s, ok := v.(string); ok {
			return s
		}
	case Float:
		if x, ok := v.(float64); ok {
			return x
		}
	case Bool:
		if x, ok := v.(bool); ok {
			return x
		}
	case Duration:
		if x, ok := v.(time.Duration); ok {
			return x
		}
	case List:
		if x, ok := v.([]string); ok {
			return x
		}
	case Object:
		return v
	case Series:
		if x, ok := v.([]float64); ok {
			return x
		}
	case Time:
	}
	panic(fmt.Sprintf("render: field %q cannot hold a %T", f.Name, v))
}

func integer(v any) (int64, bool) {
	switch n := v.(type) {
	case int:
		return int64(n), true
	case int8:
		return int64(n), true
	case int16:
		return int64(n), true
	case int32:
		return int64(n), true
	case int64:
		return n, true
	case uint8:
		return int64(n), true
	case uint16:
		return int64(n), true
	case uint32:
		return int64(n), true
	default:
		return 0, false
	}
}

// machine is v as encoding/json and yaml are to write it.
func machine(v any) any {
	switch x := v.(type) {
	case time.Time:
		return timestamp(x)
	case time.Duration:
		return milliseconds(x)
	case []string:
		if x == nil {
			return []string{}
		}
	case []float64:
		if x == nil {
			return []float64{}
		}
	}
	return v
}

func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// full is v as text without anything left out: for tab-separated and CSV output.
// Unknown is "".
func full(v any) string {
	switch x := v.(type) {
	case nil:
		return ""
	case string:
		return x
	case int64:
		return strconv.FormatInt(x, 10)
	case float64:
		return strconv.FormatFloat(x, 'f', -1, 64)
	case bool:
		return strconv.FormatBool(x)
	case time.Time:
		return timestamp(x)
	case time.Duration:
		return strconv.FormatFloat(milliseconds(x), 'f', -1, 64)
	case []string:
		return strings.Join(x, ",")
	case []float64:
		parts := make([]string, len(x))
		for i, n := range x {
			parts[i] = strconv.FormatFloat(n, 'f', -1, 64)
		}
		return strings.Join(parts, ",")
	default:
		b, err := json.Marshal(x)
		if err != nil {
			return fmt.Sprint(x)
		}
		return string(b)
	}
}

// short is v as a person reads it in a table. Unknown is "-".
func short(f Field, v any, now time.Time, wide bool) string {
	switch x := v.(type) {
	case nil:
		return "-"
	case string:
		return printable(x)
	case float64:
		return strconv.FormatFloat(x, 'f', 1, 64)
	case bool:
		if x {
			return "yes"
		}
		return "no"
	case int64:
		if f.Kind == Size {
			return FormatSize(x)
		}
		return strconv.FormatInt(x, 10)
	case time.Time:
		if wide {
			return x.Local().Format("2006-01-02 15:04:05.000")
		}
		return age(now.Sub(x))
	case time.Duration:
		return FormatDuration(x)
	case []float64:
		if wide {
			return Sparkline(x, 0)
		}
		return Sparkline(x, sparkWidth)
	case fmt.Stringer:
		if f.Kind == Object {
			return printable(x.String())
		}
		return printable(full(x))
	default:
		return printable(full(x))
	}
}

// sparkWidth is the longest sparkline of a plain table.
const sparkWidth = 20

// FormatSize writes bytes with a binary unit: 1.5 GiB.
func FormatSize(n int64) string {
	const units = "KMGTPE"
	if n < 1024 && n > -1024 {
		return strconv.FormatInt(n, 10) + " B"
	}
	value, unit := float64(n), -1
	for (value >= 1024 || value <= -1024) && unit < len(units)-1 {
		value /= 1024
		unit++
	}
	return strconv.FormatFloat(value, 'f', 1, 64) + " " + units[unit:unit+1] + "iB"
}

// FormatDuration writes d with three figures and the unit that fits: 1.24ms.
func FormatDuration(d time.Duration) string {
	switch {
	case d >= time.Minute || d <= -time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	default:
		return d.Round(10 * time.Nanosecond).String()
	}
}

// age writes how long ago something was, in one or two units.
func age(d time.Duration) string {
	suffix := " ago"
	if d < 0 {
		d, suffix = -d, " ahead"
	}
	switch {
	case d < time.Second:
		return "now"
	case d < time.Minute:
		return fmt.Sprintf("%ds%s", d/time.Second, suffix)
	case d < time.Hour:
		return fmt.Sprintf("%dm%s", d/time.Minute, suffix)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm%s", d/time.Hour, d%time.Hour/time.Minute, suffix)
	default:
		return fmt.Sprintf("%dd%s", d/(24*time.Hour), suffix)
	}
}

// printable shows what a terminal must not be sent: control characters and
// bytes that are no UTF-8 become escapes, so that a message body cannot move
// the cursor or change a title.
func printable(s string) string {
	if isPrintable(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case unsafeRune(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

func isPrintable(s string) bool {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if (r == utf8.RuneError && n == 1) || unsafeRune(r) {
			return false
		}
		i += n
	}
	return true
}

// unsafeRune: controls, and the marks that turn the direction of writing.
func unsafeRune(r rune) bool {
	return unicode.IsControl(r) || (r >= 0x202a && r <= 0x202e) || (r >= 0x2066 && r <= 0x2069)
}

// escapeTabs makes one cell of tab-separated text out of s: backslash, tab and
// line ends are escaped, everything else stands as it is.
func escapeTabs(s string) string {
	if !strings.ContainsAny(s, "\\\t\n\r") {
		return s
	}
	return tabEscapes.Replace(s)
}

var tabEscapes = strings.NewReplacer(`\`, `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`)
