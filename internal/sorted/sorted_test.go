package sorted

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

type pair struct{ key, place int }

func byKey(a, b pair) int { return cmp.Compare(a.key, b.key) }

func pairs(t *rapid.T) []pair {
	keys := rapid.SliceOf(rapid.IntRange(0, 9)).Draw(t, "keys")
	out := make([]pair, len(keys))
	for i, k := range keys {
		out[i] = pair{k, i}
	}
	return out
}

func TestStablyAsSlicesDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		got := pairs(t)
		want := slices.Clone(got)
		Stably(got, byKey)
		slices.SortStableFunc(want, byKey)
		if !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

func TestBySortsAndKeepsAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := pairs(t)
		got := slices.Clone(list)
		By(got, byKey)
		if !slices.IsSortedFunc(got, byKey) {
			t.Fatalf("not sorted: %v", got)
		}
		slices.SortFunc(got, func(a, b pair) int { return cmp.Compare(a.place, b.place) })
		if !slices.Equal(got, list) {
			t.Fatalf("elements changed: %v, want %v", got, list)
		}
	})
}
