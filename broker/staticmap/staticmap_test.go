package staticmap

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mqx/remoting"
)

func item(gen, queue int32, broker string, logic int64) Item {
	return Item{Gen: gen, QueueID: queue, BName: broker, LogicOffset: logic, EndOffset: -1, TimeOfStart: -1, TimeOfEnd: -1}
}

// Offsets of a stretch, to and fro.
func TestOffsets(t *testing.T) {
	it := Item{LogicOffset: 1000, StartOffset: 100, EndOffset: 500}
	for physical, want := range map[int64][2]int64{0: {1000, 1000}, 100: {1000, 1000}, 101: {1001, 1001}, 499: {1399, 1399}, 500: {1400, 1400}, 600: {1500, 1400}} {
		if got := [2]int64{Logic(it, physical), LogicSent(it, physical)}; got != want {
			t.Errorf("physical %d is %v, want %v", physical, got, want)
		}
	}
	if got := Physical(it, 1001); got != 101 {
		t.Errorf("logical 1001 is physical %d", got)
	}
	if got := Physical(it, 5); got >= it.StartOffset {
		t.Errorf("logical 5, before the stretch, is physical %d in it", got)
	}
	if Delta(it) != 900 {
		t.Errorf("delta %d", Delta(it))
	}
	if got := LogicSent(item(1, 0, "b", -1), 7); got != -1 {
		t.Errorf("a sender to an undecided leader is told %d", got)
	}
}

// N130 (r#10849): an offset before the first stretch is that of the oldest one, which then says where it begins.
func TestFind(t *testing.T) {
	q := Queue{item(0, 0, "a", 100), item(1, 0, "b", 10000), item(2, 1, "a", -1)}
	for logic, want := range map[int64]int{-1: 0, 0: 0, 100: 0, 9999: 0, 10000: 1, math.MaxInt64: 1} {
		if got := q.Find(logic); got != want {
			t.Errorf("offset %d is in stretch %d, want %d", logic, got, want)
		}
	}
	if got := (Queue{item(0, 0, "a", -1)}).Find(0); got != -1 {
		t.Errorf("a queue that nothing is decided of has stretch %d", got)
	}
	if q.Next(0) != 1 || q.Next(1) != -1 || q.Newest() != 1 || q.End(0) != 9900 || q.End(1) != math.MaxInt64 {
		t.Errorf("next %d %d, newest %d, ends %d %d", q.Next(0), q.Next(1), q.Newest(), q.End(0), q.End(1))
	}
	if got := q.Most(0, 9890, 32); got != 10 {
		t.Errorf("%d messages of the 10 before the end", got)
	}
	if !q.LedBy("a") || q.LedBy("b") {
		t.Error("the last stretch does not lead")
	}
}

// What a reader is told, at each end of each kind of stretch.
func TestPulled(t *testing.T) {
	q := Queue{item(0, 0, "a", 0), item(1, 0, "b", 10000), item(2, 1, "a", 20000)}
	undecided := append(Queue{}, q[0], q[1], item(2, 1, "a", -1))
	const found, none, again, moved = remoting.RespSuccess, remoting.RespPullNotFound, remoting.RespPullRetryImmediately, remoting.RespPullOffsetMoved
	for _, tt := range []struct {
		name  string
		q     Queue
		i     int
		asked int64
		in    Pulled
		want  Pulled
	}{
		{"found in the oldest", q, 0, 3, Pulled{Code: found, Next: 5, Max: 8}, Pulled{Code: found, Next: 5, Max: 20000}},
		{"found in the leader", q, 2, 3, Pulled{Code: found, Next: 5, Max: 8}, Pulled{Code: found, Next: 20005, Min: 20000, Max: 20008, Delta: 20000}},
		{"the end of the oldest", q, 0, 8, Pulled{Code: none, Next: 8, Max: 8}, Pulled{Code: again, Next: 10000, Min: 10000, Max: 20000, Delta: 10000}},
		{"the end of the middle", q, 1, 8, Pulled{Code: none, Next: 8, Max: 8}, Pulled{Code: again, Next: 20000, Min: 20000, Max: 20000, Delta: 20000}},
		{"the end of the leader", q, 2, 8, Pulled{Code: none, Next: 8, Max: 8}, Pulled{Code: none, Next: 20008, Min: 20000, Max: 20008, Delta: 20000}},
		{"an empty stretch", q, 1, 0, Pulled{Code: none}, Pulled{Code: again, Next: 20000, Min: 20000, Max: 20000, Delta: 20000}},
		{"before the oldest", q, 0, 3, Pulled{Code: moved, Next: 5, Min: 5, Max: 8}, Pulled{Code: moved, Next: 5, Min: 5, Max: 20000}},
		{"before what the middle still has", q, 1, 3, Pulled{Code: moved, Next: 5, Min: 5, Max: 8}, Pulled{Code: again, Next: 10005, Min: 10005, Max: 20000, Delta: 10000}},
		{"far behind the leader", q, 2, 90, Pulled{Code: moved, Next: 8, Max: 8}, Pulled{Code: moved, Next: 20008, Min: 20000, Max: 20008, Delta: 20000}},
		{"nothing that matches", q, 0, 3, Pulled{Code: again, Next: 8, Max: 8}, Pulled{Code: again, Next: 8, Max: 20000}},
		{"the next is not decided", undecided, 1, 8, Pulled{Code: moved, Next: 8, Max: 8}, Pulled{Code: none, Next: 10008, Min: 10000, Max: 10008, Delta: 10000}},
		{"messages that may not be read yet", q, 0, 8, Pulled{Code: none, Next: 8, Max: 8, Behind: true}, Pulled{Code: none, Next: 8, Max: 20000, Behind: true}},
	} {
		if got := tt.q.Pulled(tt.i, tt.asked, tt.in); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
	if got, ok := q.Ended(0, 10000); !ok || got.Next != 10000 {
		t.Errorf("%+v %v", got, ok)
	}
	if _, ok := q.Ended(2, 1<<40); ok {
		t.Error("the leader has ended")
	}
}

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		q    Queue
		want string // "": nothing is wrong
	}{
		{Queue{item(0, 0, "a", 0), item(1, 0, "b", -1)}, ""},
		{Queue{item(0, 0, "a", -1), item(1, 0, "b", 5)}, "non-latest item has negative"},
		{Queue{item(0, -1, "a", 0)}, "should not be negative"},
		{Queue{item(1, 0, "a", 0), item(1, 0, "b", 5)}, "gen does not increase"},
		{Queue{item(0, 0, "a", 5), item(1, 0, "b", 5)}, "base logic offset does not increase"},
		{Queue{{BName: "a", StartOffset: 5, EndOffset: 4}}, "endOffset is smaller"},
		{Queue{{BName: "a", EndOffset: 10}, item(1, 0, "b", 10)}, "max logic offset does not increase"},
		{Queue{item(0, 0, "", 0)}, "names no broker"},
		{Queue{item(0, 0, "a", math.MaxInt64)}, "an offset beyond"},
	} {
		err := Check(&Detail{HostedQueues: map[int32][]Item{0: tt.q}})
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", tt.q, err, tt.want)
		}
	}
	for _, d := range []*Detail{
		{TopicQueueMappingInfo: remoting.TopicQueueMappingInfo{TotalQueues: -1}},
		{TopicQueueMappingInfo: remoting.TopicQueueMappingInfo{TotalQueues: math.MaxInt32}},
		{HostedQueues: map[int32][]Item{-1: nil}},
	} {
		if Check(d) == nil {
			t.Errorf("nothing is wrong with %+v", d)
		}
	}
}

func detail(epoch int64, queues map[int32][]Item) *Detail {
	return &Detail{TopicQueueMappingInfo: remoting.TopicQueueMappingInfo{Topic: "T", BName: "a", Epoch: epoch, TotalQueues: 2}, HostedQueues: queues}
}

// N130 (r#10580): epochs are compared as the 64-bit numbers that they are.
func TestMerge(t *testing.T) {
	old := New(detail(5, map[int32][]Item{0: {item(0, 0, "a", 0)}, 1: {item(0, 1, "a", 0)}}))
	moved := []Item{item(0, 0, "a", 0), item(1, 0, "b", -1)}
	decided := []Item{item(0, 0, "a", 0), item(1, 0, "b", 10000)}
	for _, tt := range []struct {
		name  string
		old   *Mapping
		d     *Detail
		force bool
		want  string
	}{
		{"the first", nil, detail(0, nil), false, ""},
		{"a later epoch", old, detail(math.MaxInt64, map[int32][]Item{0: moved}), false, ""},
		{"an earlier epoch", New(detail(math.MaxInt64, nil)), detail(0, nil), false, "small epoch 0"},
		{"an earlier epoch, forced", New(detail(math.MaxInt64, nil)), detail(0, nil), true, ""},
		{"another leader, same epoch", old, detail(5, map[int32][]Item{0: moved, 1: {item(0, 1, "a", 0)}}), false, "leader is different"},
		{"a queue is missing, same epoch", old, detail(5, map[int32][]Item{0: {item(0, 0, "a", 0)}}), false, "null data"},
		{"the offset is decided", New(detail(5, map[int32][]Item{0: moved})), detail(5, map[int32][]Item{0: decided}), false, ""},
		{"and decided anew", New(detail(5, map[int32][]Item{0: decided})), detail(6, map[int32][]Item{0: {item(0, 0, "a", 0), item(1, 0, "b", 20000)}}), false, "does not become"},
		{"another queue of a generation", old, detail(6, map[int32][]Item{0: {item(0, 7, "a", 0)}}), false, "does not become"},
		{"the oldest is gone", New(detail(5, map[int32][]Item{0: decided})), detail(6, map[int32][]Item{0: decided[1:]}), false, ""},
	} {
		m, err := Merge(tt.old, tt.d, tt.force)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
		if err == nil && m.Detail().Epoch != tt.d.Epoch {
			t.Errorf("%s: epoch %d", tt.name, m.Detail().Epoch)
		}
	}
	m, err := Merge(old, detail(6, map[int32][]Item{0: moved}), false)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := m.Led(0); ok {
		t.Error("a queue that went is led")
	}
	if _, ok := m.Led(1); !ok {
		t.Error("a queue that was not named is lost")
	}
	if info := m.Info(); len(info.CurrIDMap) != 1 || info.CurrIDMap[1] != 1 || info.Scope != "__global__" || m.Mock() != "__syslo__global__" {
		t.Errorf("%+v %s", info, m.Mock())
	}
	if id, ok := m.AnyLed(3); id != 1 || !ok {
		t.Errorf("any: %d %v", id, ok)
	}
	for physical, want := range map[int32]int32{0: 1, 1: 1} {
		if got, ok := m.Landing(physical); got != want || !ok {
			t.Errorf("what was meant for queue %d lands in %d", physical, got)
		}
	}
	if _, ok := New(detail(1, nil)).Landing(0); ok {
		t.Error("a broker that leads nothing takes a message")
	}
	if q := New(detail(5, map[int32][]Item{0: decided})).WithoutOldest([]int32{0, 9}); len(q.Detail().HostedQueues[0]) != 1 {
		t.Errorf("%+v", q.Detail())
	}
}

// A reader that follows what it is told gets every message of every stretch once, in order, whatever is sent where between
// remaps, and however few it takes at a time.
func TestReadersFollowStretches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		brokers := []string{"a", "b", "c"}
		var q Queue
		ends := map[int]int64{} // by stretch
		var want, got []int64
		next := int64(0)
		read := func(most int32) (stays bool) {
			i := q.Find(next)
			asked := Physical(q[i], next)
			p, ended := q.Ended(i, asked)
			if !ended {
				n := min(int64(q.Most(i, asked, most)), ends[i]-asked)
				in := Pulled{Code: remoting.RespSuccess, Next: asked + n, Max: ends[i]}
				if n <= 0 {
					in = Pulled{Code: remoting.RespPullNotFound, Next: asked, Max: ends[i]}
				}
				p = q.Pulled(i, asked, in)
				for k := range max(0, n) {
					got = append(got, asked+k+p.Delta)
				}
			}
			stays = p.Code == remoting.RespPullNotFound
			if p.Next < next {
				t.Fatalf("the reader at %d is sent back to %d", next, p.Next)
			}
			next = p.Next
			return stays
		}
		for gen := range rapid.IntRange(1, 6).Draw(t, "generations") {
			begin := int64(0)
			if gen > 0 {
				begin = (Logic(q[gen-1], ends[gen-1])/10000 + 1) * 10000
			}
			q = append(q, item(int32(gen), 0, rapid.SampledFrom(brokers).Draw(t, "broker"), begin))
			for range rapid.IntRange(0, 5).Draw(t, "sent") {
				want = append(want, LogicSent(q[gen], ends[gen]))
				ends[gen]++
			}
			for range rapid.IntRange(0, 4).Draw(t, "reads") {
				read(int32(rapid.IntRange(1, 3).Draw(t, "most")))
			}
		}
		for range 100 {
			if read(2) && q.Find(next) == len(q)-1 {
				break
			}
		}
		if len(got) != len(want) {
			t.Fatalf("read %v, sent %v, stretches %+v", got, want, q)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("read %v, sent %v", got, want)
			}
		}
	})
}
