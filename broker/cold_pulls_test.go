package broker

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"mqx/remoting"
)

// What is read from disk is answered at a rate while producers send (N135), at a quarter more than theirs where that is more, and at once
// while nobody does.
func TestColdPullsGiveWay(t *testing.T) {
	const piece = 100_000
	for name, c := range map[string]struct {
		sent int64 // bytes a second
		want int64
	}{
		"nobody sends": {0, 0},
		"some":         {1_000_000, coldRate},
		"many":         {400_000_000, 500_000_000},
	} {
		now := fixedNow()
		p := &coldPulls{rate: coldRate, due: now, look: now}
		var end, answered int64
		begin := now
		for now.Sub(begin) < time.Second {
			end = c.sent * now.Sub(begin).Nanoseconds() / int64(time.Second)
			wait := p.wait(piece, end, now)
			now = now.Add(max(0, wait) + 10*time.Microsecond)
			answered += piece
		}
		if c.want == 0 && answered < 5e9 || c.want > 0 && (answered < c.want*9/10 || answered > c.want*11/10) {
			t.Errorf("%s: %d bytes in a second, want %d", name, answered, c.want)
		}
	}
}

// After a start the log is read from its files, not from the map, until something new stands there; readers get the same.
func TestPullsOfColdMessages(t *testing.T) {
	cfg := testConfig(t.TempDir())
	b := start(t, cfg)
	b.createTopic("T", 1)
	const messages = 100
	body := strings.Repeat("x", 4000)
	for i := range messages {
		b.send("T", 0, "", fmt.Sprint(i, body))
	}
	b.stop()
	b = start(t, cfg)
	b.send("T", 0, "", fmt.Sprint(messages, body)) // somebody sends
	b.settle()
	got := 0
	for got <= messages {
		resp := b.ok(remoting.ReqPullMessage, pullHeaderOf("G", "T", 0, int64(got)), nil)
		before := got
		for _, m := range records(t, resp.Body) {
			if string(m.Body) != fmt.Sprint(got, body) {
				t.Fatalf("message %d is %.10q", got, m.Body)
			}
			got++
		}
		if got == before {
			t.Fatalf("nothing at %d", got)
		}
	}
	if cold, all := b.store.Stats().GetCold, b.store.Stats().GetFound; cold == 0 || cold > all {
		t.Errorf("%d of %d pulls were cold", cold, all)
	}
}

// A peer that asks for much that is read from disk and reads slowly gets all of it in the end, and keeps its connection. A pull that
// has waited for a message and waits for room then does not commit once more what came with it.
func TestPullsOfAPeerThatReadsSlowly(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.Store.HotWindowBytes = 1 // read, not mapped
	r := start(t, cfg)
	r.createTopic("T", 2)
	for range 4 {
		r.send("T", 0, "", strings.Repeat("x", 60_000))
	}
	for range 6 {
		r.send("T", 1, "", "x")
	}
	r.settle()
	c, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.(*net.TCPConn).SetReadBuffer(64 << 10); err != nil {
		t.Fatal(err)
	}
	ask := func(opaque int32, h *remoting.PullMessageHeader) {
		t.Helper()
		req := remoting.NewRequest(remoting.ReqPullMessage, h)
		req.Opaque = opaque
		frame, err := req.AppendFrame(nil, remoting.SerializeJSON)
		if err == nil {
			_, err = c.Write(frame)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	const pulls, waiting = 200, -1
	h := pullHeaderOf("G", "T", 1, 6)
	h.SysFlag |= pullSuspend | pullCommit
	h.SuspendTimeoutMillis, h.CommitOffset = 600_000, 1
	ask(waiting, h)
	waitFor(t, "the first pull to wait for a message", func() bool { return r.hold.Len() == 1 })
	for i := range int32(pulls) {
		ask(i, pullHeaderOf("G", "T", 0, 0))
	}
	unwritable := func() (n int) {
		r.hold.mu.Lock()
		defer r.hold.mu.Unlock()
		for _, c := range r.hold.mu.conns {
			n += c.unwritable
		}
		return n
	}
	waitFor(t, "pulls to wait for room", func() bool { return unwritable() > pulls/2 || r.open() == 0 })
	r.commit("G", "T", 1, 5)
	before := unwritable()
	r.send("T", 1, "", "wanted")
	waitFor(t, "the first pull to wait for room", func() bool { return unwritable() > before || r.open() == 0 })
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	in := bufio.NewReader(c)
	seen := map[int32]bool{}
	for range pulls + 1 {
		var size [4]byte
		if _, err := io.ReadFull(in, size[:]); err != nil {
			t.Fatalf("after %d answers: %v; closed: %v", len(seen), err, r.main.Stats().Closed)
		}
		frame := append(size[:], make([]byte, binary.BigEndian.Uint32(size[:]))...)
		if _, err := io.ReadFull(in, frame[4:]); err != nil {
			t.Fatalf("after %d answers: %v; closed: %v", len(seen), err, r.main.Stats().Closed)
		}
		var resp remoting.Command
		if err := resp.Decode(frame); err != nil || resp.Code != remoting.RespSuccess || seen[resp.Opaque] {
			t.Fatalf("answer to %d: %d %s, %v", resp.Opaque, resp.Code, resp.Remark, err)
		}
		seen[resp.Opaque] = true
	}
	if at, _ := r.offsets.Committed("T", "G", 1); at != 5 {
		t.Errorf("the offset is %d, and 5 was committed", at)
	}
}
