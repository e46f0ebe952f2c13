package delay

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func units(deliver ...int64) []Unit {
	var out []Unit
	for i, d := range deliver {
		out = append(out, Unit{Offset: int64(i), Phys: int64(i) * 100, Size: 100, Deliver: d})
	}
	return out
}

func TestDue(t *testing.T) {
	const s = time.Second
	tests := []struct {
		name    string
		delay   time.Duration
		deliver []int64
		now     int64
		n       int
		wait    time.Duration
	}{
		{"nothing", s, nil, 1000, 0, 0},
		{"all", s, []int64{900, 1000}, 1000, 2, 0},
		{"a millisecond short", s, []int64{999, 1001}, 1000, 1, time.Millisecond},
		{"in order, whatever the times", s, []int64{1500, 900}, 1000, 0, 500 * time.Millisecond},
		{"further away than the delay: at most the delay", s, []int64{99_000}, 1000, 0, s},
		{"a level that is not in the table: at its time", -1, []int64{99_000}, 1000, 0, 98 * s},
		{"a time that overflows", -1, []int64{1 << 62}, 1000, 0, 1<<63 - 1},
		{"a negative time", s, []int64{-5}, 1000, 1, 0},
		{"no delay at all", 0, []int64{1000, 1001}, 1000, 2, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q := NewQueue(tt.delay, 0)
			if n, wait := q.Due(units(tt.deliver...), int64(len(tt.deliver)), Moment{WallMs: tt.now}); n != tt.n || wait != tt.wait {
				t.Errorf("%d, wait %v; want %d, %v", n, wait, tt.n, tt.wait)
			}
		})
	}
}

// After the clock was set back by an hour, what is there comes when its delay
// has passed since it was seen: not at once, and not an hour late. What is
// stored later waits for its own delay.
func TestClockSetBack(t *testing.T) {
	q := NewQueue(10*time.Second, 0)
	u := units(3_600_000+10_000, 3_600_000+10_000)
	if n, wait := q.Due(u[:1], 1, Moment{WallMs: 0, Mono: 0}); n != 0 || wait != 10*time.Second {
		t.Fatalf("%d %v", n, wait)
	}
	// The second message comes 4 s later.
	if n, wait := q.Due(u, 2, Moment{WallMs: 4000, Mono: 4 * time.Second}); n != 0 || wait != 6*time.Second {
		t.Fatalf("%d %v", n, wait)
	}
	n, wait := q.Due(u, 2, Moment{WallMs: 10_000, Mono: 10 * time.Second})
	if n != 1 || wait != 4*time.Second {
		t.Fatalf("%d %v", n, wait)
	}
	q.Advance(1)
	if n, _ := q.Due(u[1:], 2, Moment{WallMs: 14_000, Mono: 14 * time.Second}); n != 1 {
		t.Fatal("the second message is late")
	}
}

func TestCorrect(t *testing.T) {
	tests := []struct {
		name            string
		next, low, high int64
		want            int64
		changed         bool
	}{
		{"inside", 5, 0, 9, 5, false},
		{"at the end", 9, 0, 9, 9, false},
		{"behind the end", 10, 0, 9, 9, true},
		{"before the start", 2, 4, 9, 4, true},
		{"no queue", 1_000_000, 0, 0, 0, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q := NewQueue(time.Second, tt.next)
			if changed := q.Correct(tt.low, tt.high); changed != tt.changed || q.Next() != tt.want {
				t.Errorf("%d %v", q.Next(), changed)
			}
			if q.Correct(tt.low, tt.high) {
				t.Error("corrected twice")
			}
		})
	}
	q := NewQueue(time.Second, 0)
	q.Advance(8)
	q.Failed(Unit{Offset: 3}, false, 0)
	q.Failed(Unit{Offset: 6}, false, 0)
	if q.Correct(4, 20); q.Progress() != 6 || q.Next() != 8 {
		t.Errorf("a failure that has expired is not forgotten: %d", q.Progress())
	}
	if !q.Correct(0, 5) || q.Progress() != 5 {
		t.Errorf("a cut queue: %d", q.Progress())
	}
}

// One message that cannot be read does not stop the others; a store that takes
// nothing stops all; nothing is forgotten (N057, N058).
func TestFailures(t *testing.T) {
	q := NewQueue(time.Second, 0)
	u := units(0, 0, 0)
	q.Advance(3)
	q.Failed(u[1], false, 0)
	if q.Progress() != 1 || q.Next() != 3 || !q.MayAdvance() {
		t.Fatalf("%d %d", q.Progress(), q.Next())
	}
	if got := q.Retries(99 * time.Millisecond); len(got) != 0 {
		t.Fatal("tried again at once")
	}
	if wait, ok := q.RetryIn(40 * time.Millisecond); !ok || wait != 60*time.Millisecond {
		t.Fatalf("%v", wait)
	}
	if got := q.Retries(100 * time.Millisecond); !slices.Equal(got, u[1:2]) {
		t.Fatalf("%v", got)
	}
	q.Failed(u[1], false, 100*time.Millisecond)
	if wait, _ := q.RetryIn(100 * time.Millisecond); wait != 200*time.Millisecond {
		t.Fatalf("the pause does not grow: %v", wait)
	}
	for range 50 {
		q.Failed(u[1], false, 0)
	}
	if wait, _ := q.RetryIn(0); wait != lastRetry {
		t.Fatalf("the pause grows without bound: %v", wait)
	}
	q.Failed(u[0], true, 0)
	if q.MayAdvance() || q.Progress() != 0 {
		t.Fatal("goes on although the store takes nothing")
	}
	q.Settled(0)
	if !q.MayAdvance() || q.Progress() != 1 {
		t.Fatal("does not go on")
	}
	q.Advance(1 + maxAhead)
	if q.MayAdvance() {
		t.Fatal("goes on without bound")
	}
	q.Settled(1)
	if _, ok := q.RetryIn(0); ok || q.Progress() != 1+maxAhead {
		t.Fatal("something is left")
	}
	for i := range int64(maxRetries) {
		q.Failed(Unit{Offset: i}, false, 0)
	}
	if q.MayAdvance() {
		t.Fatal("failures without bound")
	}
}

// The rules against a simple model: messages are stored (their store time never
// goes back), the wall clock is set forward and back, deliveries fail. No
// message is delivered before its delay has passed by one of the clocks, every
// one is in the end, once, and the lateness is bounded.
func TestQueueModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.IntRange(0, 20_000).Draw(t, "delay_ms")) * time.Millisecond
		m := &model{t: t, q: NewQueue(d, 0), delay: d, wall: 1_000_000, storeTime: 1_000_000}
		t.Repeat(map[string]func(*rapid.T){
			"store": func(t *rapid.T) { m.store(rapid.IntRange(1, 20).Draw(t, "n")) },
			"wait":  func(t *rapid.T) { m.pass(time.Duration(rapid.IntRange(1, 8000).Draw(t, "ms")) * time.Millisecond) },
			"step":  func(t *rapid.T) { m.step(rapid.Int64Range(-30_000, 30_000).Draw(t, "by_ms")) },
			"fail":  func(t *rapid.T) { m.failing = rapid.IntRange(0, 3).Draw(t, "n") },
			"":      func(*rapid.T) { m.check() },
		})
		m.failing = 0
		for range 200 {
			m.pass(time.Second)
		}
		if int(m.q.Progress()) != len(m.stored) {
			t.Fatalf("%d of %d delivered", m.q.Progress(), len(m.stored))
		}
		for i, s := range m.stored {
			if s.times != 1 {
				t.Fatalf("message %d was delivered %d times", i, s.times)
			}
		}
	})
}

type stored struct {
	unit  Unit
	mono  time.Duration // when it was stored
	times int
	due   bool // it was once
}

type model struct {
	t         *rapid.T
	q         *Queue
	delay     time.Duration
	mono      time.Duration
	wall      int64
	storeTime int64
	stored    []stored
	failing   int // deliveries that fail next
}

func (m *model) store(n int) {
	m.storeTime = max(m.storeTime, m.wall)
	for range n {
		i := int64(len(m.stored))
		m.stored = append(m.stored, stored{unit: Unit{Offset: i, Size: 1, Deliver: m.storeTime + m.delay.Milliseconds()}, mono: m.mono})
	}
}

func (m *model) step(by int64) { m.wall += by }

// pass lets time go by, a look at the queue every 100 ms.
func (m *model) pass(d time.Duration) {
	for d > 0 {
		part := min(d, 100*time.Millisecond)
		d -= part
		m.mono += part
		m.wall += part.Milliseconds()
		m.look()
	}
}

func (m *model) look() {
	for _, u := range m.q.Retries(m.mono) {
		m.deliver(u)
	}
	if !m.q.MayAdvance() {
		return
	}
	var ahead []Unit
	for _, s := range m.stored[m.q.Next():] {
		ahead = append(ahead, s.unit)
	}
	now := Moment{WallMs: m.wall, Mono: m.mono}
	n, wait := m.q.Due(ahead, int64(len(m.stored)), now)
	if n < len(ahead) && wait <= 0 {
		m.t.Fatalf("%d of %d due, wait %v", n, len(ahead), wait)
	}
	if wait > m.delay+max(100*time.Millisecond, m.delay/128) {
		m.t.Fatalf("wait %v, the delay is %v", wait, m.delay)
	}
	for _, u := range ahead[:n] {
		m.deliver(u)
	}
	if n > 0 {
		m.q.Advance(ahead[n-1].Offset + 1)
	}
}

func (m *model) deliver(u Unit) {
	s := &m.stored[u.Offset]
	if m.wall < u.Deliver && m.mono-s.mono < m.delay && !s.due {
		m.t.Fatalf("message %d early: wall %d of %d, %v after it was stored", u.Offset, m.wall, u.Deliver, m.mono-s.mono)
	}
	s.due = true
	if m.failing > 0 {
		m.failing--
		m.q.Failed(u, m.failing%2 == 0, m.mono)
		return
	}
	m.q.Settled(u.Offset)
	s.times++
}

// check: nothing before the progress is undelivered.
func (m *model) check() {
	for _, s := range m.stored[:m.q.Progress()] {
		if s.times == 0 {
			m.t.Fatalf("message %d lies before the progress and was not delivered", s.unit.Offset)
		}
	}
}
