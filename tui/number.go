package tui

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"mqx/internal/render"
)

const unknown = "-"

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// count is a whole number with thin groups of three.
func count(n Num) string {
	if !n.OK {
		return unknown
	}
	text := itoa(int64(math.Round(n.V)))
	sign := ""
	if text[0] == '-' {
		sign, text = "-", text[1:]
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return sign + text
}

// perSecond is a rate.
func perSecond(n Num) string {
	switch {
	case !n.OK:
		return unknown
	case n.V != 0 && math.Abs(n.V) < 10:
		return strconv.FormatFloat(n.V, 'f', 1, 64)
	}
	return count(n)
}

func percent(n Num) string {
	if !n.OK {
		return unknown
	}
	return fmt.Sprintf("%.0f%%", n.V*100)
}

func millis(n Num) string {
	if !n.OK {
		return unknown
	}
	return count(n) + "ms"
}

// span is a duration; 0 is unknown.
func span(d time.Duration) string {
	if d <= 0 {
		return unknown
	}
	return render.FormatDuration(d)
}

// latency is a time in ms with its fractions.
func latency(n Num) string {
	switch {
	case !n.OK:
		return unknown
	case n.V < 10:
		return strconv.FormatFloat(n.V, 'f', 2, 64) + "ms"
	}
	return millis(n)
}

// size is a number of bytes.
func size(n Num) string {
	if !n.OK {
		return unknown
	}
	return render.FormatSize(int64(n.V))
}
