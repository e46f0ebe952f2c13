package broker

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"mqx/remoting"
	"mqx/remoting/server"
)

// What a master answers to a slave that tells what was committed to it: what stands there instead is taken over, unless a consumer
// has committed since; a master that does not know the question is passed over, and every other refusal is an error.
func TestBringBack(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.BrokerRole, cfg.BrokerID = "SLAVE", 1
	s := start(t, cfg)
	k := ownCommit{offsetKey{"T", "G"}, 0}
	commit := func(off int64) {
		s.offsets.Commit([]byte("T"), []byte("G"), 0, off)
		s.offsets.noteOwn("T", "G", 0, 0)
	}
	table := func(key string, q int32, off int64) func(*server.Request) {
		return answer(t, &remoting.HAOffsets{OffsetTable: map[string]map[int32]int64{key: {q: off}}})
	}
	refusal := func(code int32, text string) func(*server.Request) {
		return func(r *server.Request) { r.Reply(code, text) }
	}
	for _, c := range []struct {
		name   string
		answer func(*server.Request)
		want   int64 // -1: no offset
		own    bool
		fails  bool
	}{
		{"taken over", answer(t, &remoting.HAOffsets{}), 9, true, false}, // its own until the master's table says so
		{"removed", table("T@G", 0, removedAtMaster), -1, false, false},
		{"set back", table("T@G", 0, 2), 2, false, false},
		{"another queue", table("T@G", 1, 2), 9, true, false},
		{"another group", table("T@H", 0, 2), 9, true, false},
		{"nonsense", table("T@G", 0, -7), 9, true, false},
		{"a commit meanwhile, removed", func(r *server.Request) { commit(12); table("T@G", 0, removedAtMaster)(r) }, 12, true, false},
		{"a commit meanwhile, set back", func(r *server.Request) { commit(12); table("T@G", 0, 2)(r) }, 12, true, false},
		{"Apache", refusal(remoting.RespRequestCodeNotSupported, " request type 20001 not supported"), 9, true, false},
		{"an older mqx", refusal(remoting.RespInvalidParameter, `no act "take-offsets" is known`), 9, true, false},
		{"cannot be read", refusal(remoting.RespInvalidParameter, "the body of the request cannot be read: unexpected end of JSON input"), 9, true, true},
		{"no master", refusal(remoting.RespNotMaster, "this broker is not the master of its group"), 9, true, true},
		{"an error", refusal(remoting.RespSystemError, "no act \"take-offsets\" is known"), 9, true, true},
		{"no answer", func(r *server.Request) {
			p := newReply(remoting.RespSuccess, "")
			p.cmd.Body = []byte("{")
			p.to(r)
		}, 9, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			commit(9)
			master := fakeServer(t, map[int32]func(*server.Request){remoting.ReqMqxHA: c.answer})
			if err := s.bringBackTo(t.Context(), master); (err != nil) != c.fails {
				t.Errorf("it ends with %v", err)
			}
			off, ok := s.offsets.Committed("T", "G", 0)
			if !ok {
				off = -1
			}
			if off != c.want {
				t.Errorf("the offset is %d, want %d", off, c.want)
			}
			if _, own := s.offsets.own.copy()[k]; own != c.own {
				t.Errorf("its own: %v, want %v", own, c.own)
			}
		})
	}
	commit(9)
	if err := s.bringBackTo(t.Context(), "127.0.0.1:1"); err == nil {
		t.Error("nobody was asked")
	}
}

// The text by which a slave knows an older master is what a master says.
func TestUnknownAct(t *testing.T) {
	b := start(t, testConfig(t.TempDir()))
	code, text := b.askHA("what", nil, nil)
	if code != remoting.RespInvalidParameter || text != `no act "what" is known` || text != unknownAct("what") {
		t.Errorf("the answer is %d %q", code, text)
	}
}

// What was committed to a slave comes back also where it is more than goes into one frame, whoever asks; a piece in the order of keys
// and queues each, and an older master is told all at once.
func TestMoreOffsetsThanAFrame(t *testing.T) {
	const groups, queues = 30_000, 3
	sc := testConfig(t.TempDir())
	sc.BrokerRole, sc.BrokerID = "SLAVE", 1
	s := start(t, sc)
	topic := strings.Repeat("T", 100)
	group := func(i int) string { return fmt.Sprintf("%s%05d", strings.Repeat("G", 200), i) }
	for i := range groups {
		for q := range int32(queues) {
			s.offsets.Commit([]byte(topic), []byte(group(i)), q, 0)
			s.offsets.noteOwn(topic, group(i), q, 0)
		}
	}
	for name, bring := range map[string]func(m *running) error{
		"the master asks":  func(m *running) error { _, err := m.takeBackFrom(t.Context(), s.addr); return err },
		"the slave brings": func(m *running) error { return s.bringBackTo(t.Context(), m.addr) },
	} {
		m := start(t, testConfig(t.TempDir()))
		m.createTopic(topic, queues)
		if err := bring(m); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for i := range groups {
			if n := len(m.offsets.Queues(topic, group(i))); n != queues {
				t.Fatalf("%s: group %d has %d queues", name, i, n)
			}
		}
		m.stop()
	}
	if all := s.haOffsets(nil); len(all.OffsetTable) != groups || all.More != nil {
		t.Errorf("at once: %d groups, more: %v", len(all.OffsetTable), all.More)
	}
	seen := map[string]int{}
	for more, last := (&remoting.HAOffsetsAfter{Most: 1000}), ""; more != nil; {
		piece := s.haOffsets(more)
		n := 0
		for key, at := range piece.OffsetTable {
			if seen[key] += len(at); key < last {
				t.Fatal("a piece goes back")
			}
			n += len(at)
		}
		if n > 1000 {
			t.Fatalf("%d queues in one piece", n)
		}
		if more = piece.More; more != nil {
			last = more.Key
		}
	}
	for key, n := range seen {
		if n != queues {
			t.Errorf("%s was told %d times", key, n)
		}
	}
	if len(seen) != groups {
		t.Errorf("%d groups were told", len(seen))
	}
}

// A slave whose pieces do not go on is not asked for ever.
func TestPiecesThatDoNotGoOn(t *testing.T) {
	m := start(t, testConfig(t.TempDir()))
	var asked atomic.Int32
	slave := fakeServer(t, map[int32]func(*server.Request){remoting.ReqMqxHA: func(r *server.Request) {
		asked.Add(1)
		answer(t, &remoting.HAOffsets{More: &remoting.HAOffsetsAfter{Key: "T@G", Queue: 1}})(r)
	}})
	if _, err := m.takeBackFrom(t.Context(), slave); err == nil || !strings.Contains(err.Error(), "T@G") || asked.Load() != 2 {
		t.Errorf("asked %d times: %v", asked.Load(), err)
	}
}
