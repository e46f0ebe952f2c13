package props

import (
	"iter"
	"strings"
)

// Nearest is the one of known that was probably meant by key: it differs in case only,
// or in two letters at most. "" when there is none; of several the first by name.
func Nearest(key string, known iter.Seq[string]) string {
	const most = 2
	best, bestDistance := "", most+1
	word := strings.ToLower(key)
	for k := range known {
		if k == key || len(k) > len(key)+most || len(k) < len(key)-most {
			continue
		}
		d := distance(word, strings.ToLower(k))
		if d < bestDistance || d == bestDistance && d <= most && k < best {
			best, bestDistance = k, d
		}
	}
	return best
}

// distance is the number of letters to change, add or drop to get from a to b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := diagonal
			if a[i] != b[j] {
				d++
			}
			diagonal = row[j+1]
			row[j+1] = min(d, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
