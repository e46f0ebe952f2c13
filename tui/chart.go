package tui

import "strings"

// dots are the bits of a braille character, by column and by row from the bottom.
var dots = [2][4]rune{{0x40, 0x04, 0x02, 0x01}, {0x80, 0x20, 0x10, 0x08}}

// chart draws values as an area of braille characters, two values a character and four
// steps a line; the newest stands at the right. Lines go from the top down.
func chart(values []float64, width, height int) []string {
	if n := 2 * width; len(values) > n {
		values = values[len(values)-n:]
	}
	top := 0.0
	for _, v := range values {
		top = max(top, v)
	}
	cells := make([][]rune, height)
	for y := range cells {
		cells[y] = []rune(strings.Repeat("⠀", width))
	}
	first := 2*width - len(values)
	for i, v := range values {
		if top <= 0 {
			break
		}
		steps := int(v/top*float64(4*height) + 0.5)
		if v > 0 && steps == 0 {
			steps = 1
		}
		x := first + i
		for s := range steps {
			y := height - 1 - s/4
			cells[y][x/2] |= dots[x%2][s%4]
		}
	}
	out := make([]string, height)
	for y := range cells {
		out[y] = string(cells[y])
	}
	return out
}
