package transaction

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mqx/message"
)

// modelHalf is one transaction of the model.
type modelHalf struct {
	key     string
	ended   bool    // its producer was told so
	durable bool    // ... and an op message says so
	gone    bool    // given up
	at      []int64 // its half message and the copies of it
	open    bool    // an end has begun
}

// model is a broker's half and op queues without a broker: what is stored, and
// the book that a run of it keeps.
type model struct {
	halves  []*modelHalf
	queue   []int    // by half offset: whose
	records [][]byte // by half offset
	ops     [][]byte // bodies by op offset
	book    *Book
	batch   Batch
	saved   [2]int64       // offsets that a restart finds
	ends    map[int64]bool // half offsets that ends have named
	rules   Rules
	now     int64
	asked   map[int]int // questions of this run
}

var modelHost = netip.MustParseAddrPort("127.0.0.1:1")

func (m *model) store(h int, r message.Record) int64 {
	off := int64(len(m.queue))
	r.BornHost, r.StoreHost = modelHost, modelHost
	r.QueueOffset, r.PhysicalOffset, r.StoreTimestamp = off, off*1000, m.now
	m.queue = append(m.queue, h)
	m.records = append(m.records, r.Append(nil, false))
	m.halves[h].at = append(m.halves[h].at, off)
	return off
}

func (m *model) send(*rapid.T) {
	h := &modelHalf{key: fmt.Sprintf("K%d", len(m.halves))}
	m.halves = append(m.halves, h)
	r := message.Record{BornTimestamp: m.now, Body: []byte("x"), Topic: []byte("T"), QueueID: 1}
	sent := message.AppendProperty(message.AppendProperty(nil, message.PropUniqKey, h.key), message.PropProducerGroup, "G")
	HalfRecord(&r, AppendHalfProperties(nil, sent, []byte(h.key), "T", 1))
	m.store(len(m.halves)-1, r)
}

func (m *model) pick(t *rapid.T) (int, int64, bool) {
	if len(m.queue) == 0 {
		return 0, 0, false
	}
	off := int64(rapid.IntRange(0, len(m.queue)-1).Draw(t, "half"))
	return m.queue[off], off, true
}

// end is a producer's end of any copy of any transaction.
func (m *model) end(t *rapid.T) {
	i, off, ok := m.pick(t)
	if !ok || m.halves[i].open {
		return
	}
	d := Commit
	if rapid.Bool().Draw(t, "rollback") {
		d = Rollback
	}
	h := m.halves[i]
	err := m.book.Begin(off, []byte(h.key), d)
	if err != nil {
		if !h.ended {
			t.Fatalf("%s is said to have ended: %v", h.key, err)
		}
		return
	}
	if rapid.IntRange(0, 9).Draw(t, "fails") == 0 {
		m.book.Abort(off)
		return
	}
	if rapid.Bool().Draw(t, "round in between") {
		h.open = true
		m.round(t)
		h.open = false
	}
	offs := m.book.End(off, []byte(h.key))
	h.ended = true
	for _, off := range offs {
		m.ends[off] = true
	}
	m.batch.Add(time.UnixMilli(m.now), offs...)
	if !slices.Contains(offs, h.at[len(h.at)-1]) && !h.gone && len(h.at) > 1 && off != h.at[len(h.at)-1] && !m.book.Done(h.at[len(h.at)-1]) {
		t.Fatalf("%s ended by %d, its newest copy %d is not ended: %v", h.key, off, h.at[len(h.at)-1], offs)
	}
}

// flush writes some of the op messages.
func (m *model) flush(t *rapid.T) {
	limit := rapid.IntRange(1, 40).Draw(t, "limit")
	body, offs := m.batch.Take(time.UnixMilli(m.now), limit)
	if len(offs) == 0 {
		return
	}
	if len(body) > limit && len(offs) > 1 {
		t.Fatalf("an op message of %d bytes, the limit is %d", len(body), limit)
	}
	if rapid.IntRange(0, 4).Draw(t, "fails") == 0 {
		m.batch.Return(time.UnixMilli(m.now), offs)
		return
	}
	m.ops = append(m.ops, body)
	m.wrote(offs)
}

func (m *model) wrote(offs []int64) {
	m.book.Wrote(int64(len(m.ops)-1), offs)
	for _, off := range offs {
		h := m.halves[m.queue[off]]
		if m.ends[off] && off == h.at[len(h.at)-1] {
			h.durable = true
		}
	}
}

// round is a round of checks, as the broker makes it.
func (m *model) round(t *rapid.T) {
	online := rapid.IntRange(0, 3).Draw(t, "online") > 0
	end := int64(len(m.queue))
	for off := m.book.Next(0); off < end; off = m.book.Next(off + 1) {
		if m.book.Done(off) {
			continue
		}
		rec := message.View(m.records[off])
		half, err := ParseHalf(rec)
		if err != nil {
			t.Fatal(err)
		}
		i := m.queue[off]
		h := m.halves[i]
		switch v := m.rules.Judge(&half, m.now); {
		case v == Discard:
			if half.Checks < m.rules.MaxChecks && m.now-half.Born <= m.rules.Keep.Milliseconds() {
				t.Fatalf("%s is given up after %d checks", h.key, half.Checks)
			}
			m.book.GiveUp(off, half.UniqKey)
			m.batch.Add(time.UnixMilli(m.now), off)
			h.gone = true
		case v == Check && online && m.book.Move(off):
			if h.ended {
				t.Fatalf("%s has ended and is checked again", h.key) // N065
			}
			r := CheckedRecord(rec, &half)
			to := m.store(i, r)
			ask, ops := m.book.Moved(off, to, half.UniqKey)
			m.batch.Add(time.UnixMilli(m.now), ops...)
			if ask {
				if h.open {
					t.Fatalf("%s is checked while it ends", h.key)
				}
				m.asked[i]++
			}
		}
	}
	before := m.book.Floor()
	m.book.Advance(0)
	for off := before; off < m.book.Floor(); off++ {
		i := m.queue[off]
		h := m.halves[i]
		if !h.ended && !h.gone && off == h.at[len(h.at)-1] {
			t.Fatalf("the floor has passed %s, which has neither ended nor been given up", h.key)
		}
	}
	m.saved = [2]int64{m.book.Floor(), m.book.OpOffset()}
}

func (m *model) wait(t *rapid.T) { m.now += rapid.Int64Range(1, 20_000).Draw(t, "ms") }

// restart forgets what is in memory: ends without an op message among it. With
// an orderly stop they are written down before.
func (m *model) restart(t *rapid.T) {
	if rapid.Bool().Draw(t, "orderly") {
		for m.batch.Len() > 0 {
			body, offs := m.batch.Take(time.UnixMilli(m.now), 4096)
			m.ops = append(m.ops, body)
			m.wrote(offs)
		}
	}
	m.batch = Batch{}
	for _, h := range m.halves {
		// What ended without a trace is asked about again, unless the floor is beyond it.
		if h.ended && !h.durable && h.at[len(h.at)-1] >= m.saved[0] {
			h.ended = false
		}
	}
	m.load(t)
}

func (m *model) load(t *rapid.T) {
	m.book = NewBook(m.saved[0], m.saved[1])
	for off := m.saved[1]; off < int64(len(m.ops)); off++ {
		r := OpRecord(m.ops[off], m.now)
		r.BornHost, r.StoreHost = modelHost, modelHost
		if bad := m.book.LoadOp(off, r.Append(nil, false), int64(len(m.queue))); bad > 0 {
			t.Fatalf("%d bad entries in %q", bad, m.ops[off])
		}
	}
	for off := m.book.Next(m.saved[0]); off < int64(len(m.queue)); off = m.book.Next(off + 1) {
		half, err := ParseHalf(m.records[off])
		if err != nil {
			t.Fatal(err)
		}
		m.book.LoadHalf(&half)
	}
	m.batch.Add(time.UnixMilli(m.now), m.book.Loaded()...)
}

func (m *model) Check(t *rapid.T) {
	if m.book.Floor() > int64(len(m.queue)) || m.book.OpOffset() > int64(len(m.ops)) {
		t.Fatalf("offsets %d and %d are beyond the queues", m.book.Floor(), m.book.OpOffset())
	}
	for off := m.book.OpOffset(); off < int64(len(m.ops)) && off < m.book.OpOffset()+1; off++ {
		for part := range bytes.SplitSeq(bytes.TrimSuffix(m.ops[off], []byte{','}), []byte{','}) {
			if number(part, 64) < 0 {
				t.Fatalf("op message %q", m.ops[off])
			}
		}
	}
}

// TestBookAgainstModel: whatever happens in whatever order, what has ended is
// not asked about any more, what has not is asked about or given up, and a
// restart loses nothing that an op message tells.
func TestBookAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{
			now: 1_700_000_000_000, asked: map[int]int{}, ends: map[int64]bool{},
			rules: Rules{Timeout: 6 * time.Second, MaxChecks: rapid.IntRange(1, 4).Draw(t, "max"), Keep: time.Hour},
		}
		m.load(t)
		t.Repeat(map[string]func(*rapid.T){
			"send": m.send, "send2": m.send, "end": m.end, "flush": m.flush, "round": m.round, "wait": m.wait, "restart": m.restart, "": m.Check,
		})
		// In the end everything is done with: ended, or given up after the last check.
		for range 8 {
			m.now += 40_000
			for m.batch.Len() > 0 {
				body, offs := m.batch.Take(time.UnixMilli(m.now), 4096)
				m.ops = append(m.ops, body)
				m.book.Wrote(int64(len(m.ops)-1), offs)
			}
			end := int64(len(m.queue))
			for off := m.book.Next(0); off < end; off = m.book.Next(off + 1) {
				half, _ := ParseHalf(m.records[off])
				switch {
				case m.rules.Judge(&half, m.now) == Discard:
					m.book.GiveUp(off, half.UniqKey)
				case m.book.Move(off):
					to := m.store(m.queue[off], CheckedRecord(m.records[off], &half))
					m.book.Moved(off, to, half.UniqKey)
				}
			}
			m.book.Advance(0)
		}
		if m.book.Floor() != int64(len(m.queue)) || m.book.OpOffset() != int64(len(m.ops)) {
			t.Fatalf("half offset %d of %d, op offset %d of %d", m.book.Floor(), len(m.queue), m.book.OpOffset(), len(m.ops))
		}
		if len(m.book.copies) > 0 || len(m.book.ops) > 0 {
			t.Fatalf("%d copies and %d op messages are still remembered", len(m.book.copies), len(m.book.ops))
		}
	})
}

func TestOffsetSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s offsetSet
		has := map[int64]bool{}
		for range rapid.IntRange(0, 40).Draw(t, "runs") {
			from := rapid.Int64Range(0, 3*pageBits).Draw(t, "from")
			for off := from; off < from+rapid.Int64Range(1, 300).Draw(t, "len"); off++ {
				s.add(off)
				has[off] = true
			}
		}
		off := rapid.Int64Range(0, 3*pageBits).Draw(t, "off")
		want := off
		for has[want] {
			want++
		}
		if got := s.firstMissing(off); got != want || s.has(off) != has[off] {
			t.Fatalf("first missing from %d: %d, want %d", off, got, want)
		}
		s.dropBelow(off)
		for o := off; o < off+200; o++ {
			if s.has(o) != has[o] {
				t.Fatalf("%d", o)
			}
		}
	})
}

func TestJudge(t *testing.T) {
	r := Rules{Timeout: 6 * time.Second, MaxChecks: 15, Keep: 72 * time.Hour}
	const now = 1_700_000_000_000
	for _, tt := range []struct {
		name string
		h    Half
		want Verdict
	}{
		{"young", Half{Born: now - 6000, Immunity: -1}, Leave},
		{"old enough", Half{Born: now - 6001, Immunity: -1}, Check},
		{"from the future", Half{Born: now + 5000, Immunity: -1}, Check},
		{"within its own time", Half{Born: now - 60_000, Immunity: time.Minute}, Leave},
		{"after its own time", Half{Born: now - 60_001, Immunity: time.Minute}, Check},
		{"its own time is shorter", Half{Born: now - 1001, Immunity: time.Second}, Check},
		{"checked 14 times", Half{Born: now - 60_000, Immunity: -1, Checks: 14}, Check},
		{"checked 15 times (N064)", Half{Born: now - 60_000, Immunity: -1, Checks: 15}, Discard},
		{"too old", Half{Born: now - (72*time.Hour + 1).Milliseconds() - 1, Immunity: -1}, Discard},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := r.Judge(&tt.h, now); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
	own := Half{Born: now - 2000, Immunity: time.Second}
	if !r.TooLate(&own, false, now) || r.TooLate(&own, true, now) || r.TooLate(&Half{Born: now - 3_600_000, Immunity: -1}, false, now) {
		t.Error("ends after the message's own time are refused, unless they answer a check")
	}
}

func TestParseHalf(t *testing.T) {
	rec := func(props ...string) message.View {
		var p []byte
		for i := 0; i < len(props); i += 2 {
			p = message.AppendProperty(p, props[i], props[i+1])
		}
		r := message.Record{Topic: halfTopic, Body: []byte("x"), Properties: p, BornHost: modelHost, StoreHost: modelHost}
		return r.Append(nil, false)
	}
	if _, err := ParseHalf(rec("REAL_QID", "0")); err == nil {
		t.Error("a record without a topic is a half message")
	}
	if _, err := ParseHalf(rec("REAL_TOPIC", "T", "REAL_QID", "x")); err == nil {
		t.Error("a record without a queue is a half message")
	}
	h, err := ParseHalf(rec("REAL_TOPIC", "T", "REAL_QID", "3", "CHECK_IMMUNITY_TIME_IN_SECONDS", "99999999999999999", "TRANSACTION_CHECK_TIMES", "7"))
	if err != nil || h.RealQueue != 3 || h.Checks != 7 || h.Immunity <= 0 || h.Origin != -1 {
		t.Errorf("%+v %v", h, err)
	}
	if h, _ := ParseHalf(rec("REAL_TOPIC", "T", "REAL_QID", "3", "CHECK_IMMUNITY_TIME_IN_SECONDS", "soon")); h.Immunity != -1 {
		t.Errorf("%v", h.Immunity)
	}
}
