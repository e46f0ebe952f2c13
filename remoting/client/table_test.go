package client

import (
	"math/rand/v2"
	"testing"

	"mqx/remoting"
)

func TestTableAgainstModel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	tab := table{max: 50}
	model := map[int32]int64{}
	old := []int32{}
	done := func(*remoting.Command, error) {}
	for i := range int64(200_000) {
		switch rnd.IntN(10) {
		case 0, 1, 2, 3, 4:
			deadline := int64(0)
			if rnd.IntN(2) == 0 {
				deadline = i + rnd.Int64N(100)
			}
			ref, ok := tab.add(pending{done: done, sent: i, deadline: deadline})
			if ok != (len(model) < 50) {
				t.Fatalf("step %d: added %v with %d waiting", i, ok, len(model))
			}
			if _, used := model[ref]; ok && (used || ref < 0 || ref == tab.strange()) {
				t.Fatalf("step %d: opaque %d is in use", i, ref)
			}
			if ok {
				model[ref] = deadline
			}
		case 5, 6, 7:
			for ref := range model {
				if _, ok := tab.take(ref); !ok {
					t.Fatalf("step %d: opaque %d is lost", i, ref)
				}
				delete(model, ref)
				old = append(old, ref)
				break
			}
		case 8:
			ref := rnd.Int32() - rnd.Int32()
			if len(old) > 0 && rnd.IntN(2) == 0 {
				ref = old[len(old)-1-rnd.IntN(min(len(old), 20))]
			}
			if _, waits := model[ref]; !waits {
				if _, ok := tab.take(ref); ok {
					t.Fatalf("step %d: opaque %d was answered twice", i, ref)
				}
			}
		case 9:
			late, next := tab.expire(i)
			want := 0
			first := int64(0)
			for ref, d := range model {
				switch {
				case d == 0:
				case d <= i:
					want++
					delete(model, ref)
				case first == 0 || d < first:
					first = d
				}
			}
			if len(late) != want || next != first {
				t.Fatalf("step %d: %d late and next %d, want %d and %d", i, len(late), next, want, first)
			}
		}
		if tab.n != len(model) {
			t.Fatalf("step %d: %d waiting, want %d", i, tab.n, len(model))
		}
	}
	if n := len(model); len(tab.clear()) != n || tab.n != 0 {
		t.Error("clear left something")
	}
}

func TestMakeRoom(t *testing.T) {
	buf := append(make([]byte, 0, 100), "abcdef"...)
	if got := makeRoom(buf, 4, 50); string(got) != "ef" || cap(got) != 100 {
		t.Errorf("%q of %d", got, cap(got))
	}
	buf = append(make([]byte, 0, 100), "abcdef"...)
	big := makeRoom(buf, 2, 200_000)
	if string(big) != "cdef" || cap(big) != 200_000 {
		t.Errorf("%q of %d", big, cap(big))
	}
	if got := makeRoom(big, 4, 0); len(got) != 0 || cap(got) != readSize {
		t.Errorf("%d of %d", len(got), cap(got))
	}
}
