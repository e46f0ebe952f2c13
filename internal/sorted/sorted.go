// Package sorted sorts slices without a copy of the sort for every type.
//
// slices.SortFunc is compiled anew for each element type: with the tables of the
// tools that was 1 MB of the binary. The functions here cost a type
// three small methods and run at about a third of the speed, which nobody
// notices on what is shown to people. Hot paths keep package slices.
package sorted

import "sort"

// By sorts s by compare, which is negative where a comes before b, zero where
// they are equal. Equal elements end in any order.
func By[S ~[]E, E any](s S, compare func(a, b E) int) {
	sort.Sort(&list[E]{elems: s, compare: compare})
}

// Stably sorts s as By does and leaves equal elements in the order they had.
func Stably[S ~[]E, E any](s S, compare func(a, b E) int) {
	sort.Stable(&list[E]{elems: s, compare: compare})
}

// list is a slice as package sort wants it.
type list[E any] struct {
	elems   []E
	compare func(a, b E) int
}

func (l *list[E]) Len() int           { return len(l.elems) }
func (l *list[E]) Less(i, j int) bool { return l.compare(l.elems[i], l.elems[j]) < 0 }
func (l *list[E]) Swap(i, j int)      { l.elems[i], l.elems[j] = l.elems[j], l.elems[i] }
