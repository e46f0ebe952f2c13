package broker

import (
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
