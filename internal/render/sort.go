package render

import (
	"cmp"
	"strings"
	"time"

	"mqx/internal/sorted"
)

// sortRows orders the rows by Options.Sort: the largest number, time and size
// first, text from A to Z, and the other way round after a "-". What is unknown
// comes last either way. Rows that are equal keep their order.
func (w *Writer) sortRows() {
	name, back := strings.CutPrefix(w.o.Sort, "-")
	i := w.schema.index(name)
	sorted.Stably(w.rows, func(a, b []any) int {
		x, y := a[i], b[i]
		if x == nil || y == nil {
			return cmp.Compare(boolInt(x == nil), boolInt(y == nil))
		}
		order := compareValues(x, y)
		if _, text := x.(string); !text {
			order = -order
		}
		if back {
			order = -order
		}
		return order
	})
	if w.o.Limit > 0 && len(w.rows) > w.o.Limit {
		w.rows = w.rows[:w.o.Limit]
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// compareValues orders two known values of one field.
func compareValues(x, y any) int {
	switch a := x.(type) {
	case int64:
		return cmp.Compare(a, y.(int64))
	case float64:
		return cmp.Compare(a, y.(float64))
	case bool:
		return cmp.Compare(boolInt(a), boolInt(y.(bool)))
	case time.Time:
		return a.Compare(y.(time.Time))
	case time.Duration:
		return cmp.Compare(a, y.(time.Duration))
	default:
		return strings.Compare(full(x), full(y))
	}
}
