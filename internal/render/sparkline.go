package render

import "strings"

var bars = []rune("▁▂▃▄▅▆▇█")

// Sparkline draws a history as one character a value, from 0 to the largest. It
// has at most width characters: of a longer history it shows the mean of as many
// equal parts. A width of 0 is no limit.
func Sparkline(values []float64, width int) string {
	values = condense(values, width)
	top := 0.0
	for _, v := range values {
		top = max(top, v)
	}
	var b strings.Builder
	for _, v := range values {
		i := 0
		if top > 0 && v > 0 {
			i = min(len(bars)-1, int(v/top*float64(len(bars))))
		}
		b.WriteRune(bars[i])
	}
	return b.String()
}

func condense(values []float64, width int) []float64 {
	if width <= 0 || len(values) <= width {
		return values
	}
	out := make([]float64, width)
	for k := range out {
		from, to := k*len(values)/width, (k+1)*len(values)/width
		for _, v := range values[from:to] {
			out[k] += v / float64(to-from)
		}
	}
	return out
}
