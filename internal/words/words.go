// Package words counts things in texts for people.
package words

import (
	"strconv"
	"strings"
)

// Integer is what can be counted with.
type Integer interface {
	~int | ~int32 | ~int64 | ~uint | ~uint32 | ~uint64
}

// Count is a number with what it counts: "1 message", "2 messages", "0 entries". Where the
// plural is more than an ending it is given too, as where a verb follows: "member is",
// "members are".
func Count[N Integer](n N, one string, many ...string) string {
	what := one
	if n != 1 {
		what = Plural(one)
		if len(many) > 0 {
			what = many[0]
		}
	}
	return format(n) + " " + what
}

func format[N Integer](n N) string {
	if n < 0 {
		return strconv.FormatInt(int64(n), 10)
	}
	return strconv.FormatUint(uint64(n), 10)
}

// Plural is a noun as several of it are called.
func Plural(one string) string {
	stem, y := strings.CutSuffix(one, "y")
	switch {
	case y && stem != "" && !strings.ContainsRune("aeiou", rune(stem[len(stem)-1])):
		return stem + "ies"
	case strings.HasSuffix(one, "s") || strings.HasSuffix(one, "x") || strings.HasSuffix(one, "ch") || strings.HasSuffix(one, "sh"):
		return one + "es"
	}
	return one + "s"
}
