package transaction

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Over the life of a half message the verdict goes from leaving it over asking to giving it up, never back; it turns
// where the times of broker and message say; an end comes too late exactly when the message's own time is over.
func TestJudgeOverTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		second := func(name string, least, most int) time.Duration {
			return time.Duration(rapid.IntRange(least, most).Draw(t, name)) * time.Second
		}
		r := Rules{Timeout: second("timeout", 0, 20), MaxChecks: rapid.IntRange(1, 15).Draw(t, "max"), Keep: second("keep", 30, 90)}
		h := Half{Born: rapid.Int64Range(1, 1<<40).Draw(t, "born"), Immunity: -1, Checks: rapid.IntRange(-1, 16).Draw(t, "checks")}
		wait := r.Timeout
		if rapid.Bool().Draw(t, "own time") {
			h.Immunity = second("immunity", 0, 20)
			wait = h.Immunity
		}
		last := Leave
		for age := int64(0); age <= 100_000; age += rapid.Int64Range(1, 3000).Draw(t, "step") {
			got := r.Judge(&h, h.Born+age)
			if got < last {
				t.Fatalf("%v after %v at an age of %d ms", got, last, age)
			}
			last = got
			want := Leave
			switch {
			case h.Checks >= r.MaxChecks, age > r.Keep.Milliseconds():
				want = Discard
			case age > wait.Milliseconds():
				want = Check
			}
			if got != want {
				t.Fatalf("%v at an age of %d ms, want %v (%+v, %+v)", got, age, want, r, h)
			}
			over := h.Immunity >= 0 && age > h.Immunity.Milliseconds()
			if r.TooLate(&h, false, h.Born+age) != over || r.TooLate(&h, true, h.Born+age) {
				t.Fatalf("too late at an age of %d ms: %+v", age, h)
			}
		}
		if last != Discard {
			t.Fatalf("%v in the end", last)
		}
	})
}

// How a transaction ended is known for a while behind the floor too: it does not end in the other way afterwards.
func TestEndsAreRemembered(t *testing.T) {
	b := NewBook(0, 0)
	for off, d := range []Decision{Commit, Rollback} {
		if err := b.Begin(int64(off), []byte{byte('a' + off)}, d); err != nil {
			t.Fatal(err)
		}
		b.End(int64(off), []byte{byte('a' + off)})
	}
	b.Advance(0)
	if b.Floor() != 2 {
		t.Fatalf("floor %d", b.Floor())
	}
	for _, tt := range []struct {
		off  int64
		d    Decision
		same bool
	}{{0, Commit, true}, {0, Rollback, false}, {1, Commit, false}, {1, Rollback, true}} {
		var e *EndedError
		if err := b.Begin(tt.off, nil, tt.d); !errors.As(err, &e) || e.Same != tt.same {
			t.Errorf("%d ends by %d: %v", tt.off, tt.d, err)
		}
	}
	for off := range int64(2 * remembered) {
		b.GiveUp(off+2, nil)
	}
	b.Advance(0)
	if n := len(b.decided.pages) + len(b.rolled.pages); n > 0 {
		t.Errorf("%d pages are kept", n)
	}
}
