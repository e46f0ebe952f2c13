package commitlog_test

import (
	"testing"

	"mqx/store/commitlog"
)

// What is not confirmed is not handed out, and only whole appends are; a cut takes what was held back with it.
func TestGate(t *testing.T) {
	x := newFixture(t, 1<<20)
	l, _ := x.recover()
	defer l.Close()
	c := &commitlog.Counter{}
	mustAppend(t, l, one(t, 100, c))
	l.Gate()
	mustAppend(t, l, one(t, 200, c))
	mustAppend(t, l, batch(t, c, 150, 150))
	for _, tt := range []struct{ pos, want int64 }{{100, 100}, {299, 100}, {300, 300}, {299, 300}, {550, 300}, {600, 600}} {
		if l.Confirm(tt.pos); l.Confirmed() != tt.want {
			t.Fatalf("confirmed up to %d, handed out up to %d, want %d", tt.pos, l.Confirmed(), tt.want)
		}
	}
	mustAppend(t, l, one(t, 100, c))
	if l.Confirmed() != 600 || l.End() != 700 {
		t.Fatalf("handed out up to %d of %d", l.Confirmed(), l.End())
	}
	l.Confirm(10_000) // of what is told before it is appended
	mustAppend(t, l, one(t, 100, c))
	if l.Confirmed() != 800 {
		t.Fatalf("handed out up to %d", l.Confirmed())
	}
	if err := l.Truncate(700, ""); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, l, one(t, 100, c))
	if l.Confirmed() != 700 {
		t.Fatalf("after a cut: handed out up to %d", l.Confirmed())
	}
	if l.Ungate(); l.Confirmed() != 800 {
		t.Fatalf("open: handed out up to %d", l.Confirmed())
	}
}
