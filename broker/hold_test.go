package broker

import (
	"testing"
	"testing/synctest"
	"time"

	"mqx/message"
	"mqx/remoting"
)

type parkEvent struct {
	timedOut, dropped bool
	at                time.Duration
}

func park(t *testing.T, h *hold, start time.Time, key holdKey, conn uint64, offset int64, wait time.Duration, f msgFilter) (*parkedPull, chan parkEvent) {
	t.Helper()
	ch := make(chan parkEvent, 2)
	p := &parkedPull{key: key, conn: conn, offset: offset, until: time.Now().Add(wait), filter: f}
	p.wake = func(timedOut bool) { ch <- parkEvent{timedOut: timedOut, at: time.Since(start)} }
	p.drop = func() { ch <- parkEvent{dropped: true, at: time.Since(start)} }
	if !h.Park(p) {
		t.Fatal("not parked")
	}
	return p, ch
}

func event(t *testing.T, ch chan parkEvent) (e parkEvent, ok bool) {
	t.Helper()
	select {
	case e = <-ch:
		return e, true
	default:
		return e, false
	}
}

var t0q = holdKey{"T", 0}

func TestHoldWakesOnArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		h := newHold(time.Now, 100)
		defer h.Close()
		filter := newTagFilter(&remoting.SubscriptionData{SubString: "a"})
		_, all := park(t, h, start, t0q, 1, 5, time.Minute, nil)
		_, later := park(t, h, start, t0q, 1, 7, time.Minute, nil)
		_, tagged := park(t, h, start, t0q, 2, 5, time.Minute, filter)
		_, other := park(t, h, start, holdKey{"T", 1}, 2, 0, time.Minute, nil)
		h.Arrived([]byte("T"), 0, 5, message.TagsCode([]byte("b")), nil)
		if e, ok := event(t, all); !ok || e.timedOut || e.dropped {
			t.Errorf("the pull of offset 5: %+v %v", e, ok)
		}
		for name, ch := range map[string]chan parkEvent{"offset 7": later, "tag a": tagged, "queue 1": other} {
			if _, ok := event(t, ch); ok {
				t.Errorf("%s was woken", name)
			}
		}
		h.Arrived([]byte("T"), 0, 6, message.TagsCode([]byte("a")), nil)
		if _, ok := event(t, tagged); !ok {
			t.Error("tag a was not woken")
		}
		h.Arrived([]byte("unknown"), 0, 9, 0, nil)
		if h.Len() != 2 {
			t.Errorf("%d parked", h.Len())
		}
	})
}

func TestHoldDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		h := newHold(time.Now, 100)
		defer h.Close()
		_, a := park(t, h, start, t0q, 1, 0, 15*time.Second, nil)
		_, b := park(t, h, start, t0q, 1, 0, 5*time.Second, nil)
		_, c := park(t, h, start, t0q, 1, 0, 10*time.Millisecond, nil)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		for _, w := range []struct {
			name string
			ch   chan parkEvent
			at   time.Duration
		}{{"15 s", a, 15 * time.Second}, {"5 s", b, 5 * time.Second}, {"10 ms, at the next tick", c, 100 * time.Millisecond}} {
			e, ok := event(t, w.ch)
			if !ok || !e.timedOut || e.at != w.at {
				t.Errorf("%s: %+v %v", w.name, e, ok)
			}
		}
		if h.Len() != 0 {
			t.Error("something is still parked")
		}
	})
}

// A pull that was woken early does not leave a timer that wakes for nothing
// more than once.
func TestHoldTimerOfGonePull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		h := newHold(time.Now, 100)
		defer h.Close()
		_, a := park(t, h, start, t0q, 1, 0, time.Second, nil)
		h.Arrived([]byte("T"), 0, 0, 0, nil)
		event(t, a)
		_, b := park(t, h, start, t0q, 1, 0, 3*time.Second, nil)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if e, ok := event(t, b); !ok || e.at != 3*time.Second {
			t.Errorf("%+v %v", e, ok)
		}
		if _, ok := event(t, a); ok {
			t.Error("woken twice")
		}
	})
}

// A message that does not match lets the pull go on for five seconds: then its
// client learns that the queue has moved (N042).
func TestHoldUnmatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		h := newHold(time.Now, 100)
		defer h.Close()
		filter := newTagFilter(&remoting.SubscriptionData{SubString: "a"})
		_, ch := park(t, h, start, t0q, 1, 0, time.Minute, filter)
		_, other := park(t, h, start, t0q, 1, 9, time.Minute, filter)
		time.Sleep(time.Second)
		for i := range 3 {
			h.Arrived([]byte("T"), 0, int64(i), 0, nil)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if e, ok := event(t, ch); !ok || !e.timedOut || e.at != 6*time.Second {
			t.Errorf("%+v %v", e, ok)
		}
		if _, ok := event(t, other); ok {
			t.Error("a pull of a later offset was hastened")
		}
	})
}

func TestHoldConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		h := newHold(time.Now, 100)
		_, a := park(t, h, start, t0q, 1, 0, time.Minute, nil)
		_, b := park(t, h, start, t0q, 2, 0, time.Minute, nil)
		_, w := park(t, h, start, writableKey, 2, 0, time.Minute, nil)
		h.Closed(1)
		if e, ok := event(t, a); !ok || !e.dropped {
			t.Errorf("closed: %+v %v", e, ok)
		}
		h.Writable(2)
		if e, ok := event(t, w); !ok || e.timedOut || e.dropped {
			t.Errorf("writable: %+v %v", e, ok)
		}
		if _, ok := event(t, b); ok {
			t.Error("a pull that waits for data was woken by room")
		}
		h.Close()
		if e, ok := event(t, b); !ok || !e.timedOut {
			t.Errorf("end: %+v %v", e, ok)
		}
		if h.Park(&parkedPull{key: t0q}) {
			t.Error("parked after the end")
		}
	})
}

func TestHoldIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHold(time.Now, 2)
		defer h.Close()
		park(t, h, time.Now(), t0q, 1, 0, time.Minute, nil)
		park(t, h, time.Now(), t0q, 1, 0, time.Minute, nil)
		if h.Park(&parkedPull{key: t0q, until: time.Now().Add(time.Minute)}) {
			t.Error("a third one was taken")
		}
	})
}

func TestHoldRecheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHold(time.Now, 10)
		defer h.Close()
		p, ch := park(t, h, time.Now(), t0q, 1, 0, time.Minute, nil)
		h.Recheck(p)
		if _, ok := event(t, ch); !ok {
			t.Error("not woken")
		}
		h.Recheck(p)
		if _, ok := event(t, ch); ok {
			t.Error("woken twice")
		}
	})
}

func BenchmarkHoldArrivedNothingParked(b *testing.B) {
	h := newHold(time.Now, 10)
	topic := []byte("T")
	b.ReportAllocs()
	for b.Loop() {
		h.Arrived(topic, 0, 1, 0, nil)
	}
}

// One connection cannot take all places, nor keep more than a few pulls while
// it does not read.
func TestHoldLimitsOfAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHold(time.Now, 3*leastPerConn)
		defer h.Close()
		fill := func(conn uint64, key holdKey) (n int) {
			for h.Park(&parkedPull{key: key, conn: conn, until: time.Now().Add(time.Hour), wake: func(bool) {}, drop: func() {}}) {
				n++
			}
			return n
		}
		if n := fill(1, writableKey); n != maxUnwritable {
			t.Errorf("%d unwritable pulls", n)
		}
		if n := fill(1, t0q); n != leastPerConn-maxUnwritable {
			t.Errorf("%d pulls of the same connection", n)
		}
		if n := fill(2, t0q); n != leastPerConn {
			t.Errorf("%d pulls of another connection", n)
		}
		h.Writable(1)
		if n := fill(1, writableKey); n != maxUnwritable {
			t.Errorf("%d unwritable pulls after they were woken", n)
		}
		h.Closed(1)
		h.Closed(2)
		if h.Len() != 0 || len(h.mu.conns) != 0 {
			t.Errorf("%d pulls, %d connections left", h.Len(), len(h.mu.conns))
		}
	})
}
