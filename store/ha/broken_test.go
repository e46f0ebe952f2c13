package ha_test

import (
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"mqx/store/ha"
)

// aged is a log whose first files have been deleted.
type aged struct{ ha.Log }

func (aged) LogMin() int64                           { return 4096 }
func (aged) LogEnd() int64                           { return 8192 }
func (aged) LogFileSize() int64                      { return 1024 }
func (aged) ReadLog(b []byte, _ int64) error         { clear(b); return nil }
func (aged) WatchLog(ch chan struct{}) (stop func()) { return func() {} }

// long is a log of one large file, most of which is still to come.
type long struct{ aged }

func (long) LogMin() int64      { return 0 }
func (long) LogEnd() int64      { return 9 << 20 }
func (long) LogFileSize() int64 { return 1 << 30 }

// raw connects to a master and reports.
func raw(t *testing.T, addr string, report int64) net.Conn {
	t.Helper()
	c := dial(t, addr)
	send(t, c, report)
	return c
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func send(t *testing.T, c net.Conn, report int64) {
	t.Helper()
	if _, err := c.Write(binary.BigEndian.AppendUint64(nil, uint64(report))); err != nil {
		t.Fatal(err)
	}
}

// N083 (r#3388): a slave that asks for what the master has deleted, or that has more than the master, is refused, the master
// says so, and it counts as no copy.
func TestRefusedSlaves(t *testing.T) {
	m := ha.NewMaster(ha.MasterConfig{Log: aged{}, Logger: slog.New(slog.DiscardHandler), Rules: ha.Rules{Level: ha.LevelQuorum, Copies: 1}})
	addr, stop := serve(t, m)
	defer stop()
	for _, tt := range []struct {
		report int64
		why    string
		near   int64
	}{{100, "has nothing before 4096 any more", 4096}, {9000, "have parted", 8192}} {
		c := raw(t, addr, tt.report)
		var b [12]byte
		if _, err := io.ReadFull(c, b[:]); err != nil {
			t.Fatal(err)
		}
		if at, n := binary.BigEndian.Uint64(b[:]), binary.BigEndian.Uint32(b[8:]); at != uint64(tt.near) || n != 0 {
			t.Errorf("a slave that reports %d is told %d with %d bytes, want %d", tt.report, at, n, tt.near)
		}
		if err := c.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, c); n != 0 || err != nil {
			t.Errorf("a slave that reports %d got %d bytes more (%v)", tt.report, n, err)
		}
		eventually(t, "the master does not say why", func() bool {
			r := m.Refused()
			return len(r) == 1 && strings.Contains(r[0].Why, tt.why)
		})
		if n := len(m.Replicas()); n != 0 {
			t.Errorf("%d replicas", n)
		}
	}
	// One that follows is not refused any more.
	raw(t, addr, 8192)
	eventually(t, "a slave in range does not follow", func() bool { return len(m.Replicas()) == 1 && len(m.Refused()) == 0 })
}

// What comes to the port and is no slave is not one that is refused.
func TestScannersAreNoSlaves(t *testing.T) {
	m := ha.NewMaster(ha.MasterConfig{Log: aged{}, Logger: slog.New(slog.DiscardHandler), Rules: ha.Rules{Level: ha.LevelQuorum, Copies: 1}})
	addr, stop := serve(t, m)
	defer stop()
	for _, text := range []string{"GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc", "\xff\xff\xff\xff\xff\xff\xff\xff", "SSH-2.0-x\r\n", "\x00\x01"} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
		_ = c.(*net.TCPConn).CloseWrite()
		if b, err := io.ReadAll(c); len(b) > 0 {
			t.Errorf("%q is sent %q, %v", text, b, err)
		}
		_ = c.Close()
	}
	if r := m.Refused(); len(r) != 0 || len(m.Replicas()) != 0 {
		t.Errorf("refused: %+v, replicas: %+v", r, m.Replicas())
	}
}

// N084 (r#1082): a pair in which nothing is written keeps its connection: both sides give signs of life.
func TestIdlePair(t *testing.T) {
	src, stopSrc := running(t, config(t.TempDir()))
	defer stopSrc()
	put(t, src, "T", 0, []byte("one"))
	const silence = 500 * time.Millisecond
	m := ha.NewMaster(ha.MasterConfig{Log: src, Logger: slog.New(slog.DiscardHandler), Heartbeat: 20 * time.Millisecond, Silence: silence})
	addr, stop := serve(t, m)
	defer stop()
	cfg := config(t.TempDir())
	cfg.Follow = true
	dst, stopDst := running(t, cfg)
	defer stopDst()
	hellos := 0 // one a connection
	f := follower(dst, addr, func(c *ha.FollowerConfig) {
		c.Silence = silence
		c.Hello = func(context.Context, string) (bool, error) { hellos++; return false, nil }
	})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { f.Run(ctx) })
	eventually(t, "the slave does not follow", func() bool { return dst.LogEnd() == src.LogEnd() })
	first := f.State().Heard
	eventually(t, "no sign of life", func() bool { return f.State().Heard.Sub(first) > 3*silence })
	if c := m.Conns(); len(c) != 1 {
		t.Errorf("%d connections", len(c))
	}
	cancel()
	wg.Wait()
	if hellos != 1 {
		t.Errorf("%d connections were needed", hellos)
	}
}

// N085 (r#2476): frames that cannot be, or that end early, end the connection; the slave comes again after a pause, takes
// nothing of them, and does not spin.
func TestOddFrames(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	head := func(off int64, n uint32) []byte {
		return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(nil, uint64(off)), n)
	}
	odd := [][]byte{
		head(0, 1<<31), head(0, 5<<20), head(-1, 10), head(0, 100)[:7], append(head(0, 100), 1, 2, 3),
	}
	var mu sync.Mutex
	var came []time.Time
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			came = append(came, time.Now())
			mu.Unlock()
			_, _ = io.ReadFull(c, make([]byte, 8))
			_, _ = c.Write(odd[i%len(odd)])
			_ = c.Close()
		}
	})
	cfg := config(t.TempDir())
	cfg.Follow = true
	dst, stopDst := running(t, cfg)
	defer stopDst()
	const retry = 20 * time.Millisecond
	f := follower(dst, l.Addr().String(), func(c *ha.FollowerConfig) { c.Retry = retry })
	ctx, cancel := context.WithCancel(t.Context())
	wg.Go(func() { f.Run(ctx) })
	count := func() int { mu.Lock(); defer mu.Unlock(); return len(came) }
	eventually(t, "the slave does not come again", func() bool { return count() > 2*len(odd) })
	cancel()
	_ = l.Close()
	wg.Wait()
	for i := 1; i < len(came); i++ {
		if d := came[i].Sub(came[i-1]); d < retry/2 {
			t.Errorf("it came again after %v", d)
		}
	}
	if dst.LogEnd() != 0 {
		t.Errorf("it has taken %d bytes", dst.LogEnd())
	}
}

// No frame crosses the end of a file, from wherever a slave begins: Apache's slaves drop one that does, and then every connection.
func TestFramesEndWithTheirFile(t *testing.T) {
	m := ha.NewMaster(ha.MasterConfig{Log: aged{}, Logger: slog.New(slog.DiscardHandler), BatchBytes: 700})
	addr, stop := serve(t, m)
	defer stop()
	for _, from := range []int64{4096, 4196, 5119, 6143, 8100} {
		c := raw(t, addr, from)
		for at := from; at < 8192; {
			var head [12]byte
			if _, err := io.ReadFull(c, head[:]); err != nil {
				t.Fatal(err)
			}
			off, n := int64(binary.BigEndian.Uint64(head[:8])), int64(binary.BigEndian.Uint32(head[8:]))
			if off != at || n <= 0 || off/1024 != (off+n-1)/1024 {
				t.Fatalf("from %d: %d bytes at %d, want them at %d and in one file of 1024", from, n, off, at)
			}
			if _, err := io.CopyN(io.Discard, c, n); err != nil {
				t.Fatal(err)
			}
			at += n
		}
	}
}

// A slave of mqx takes frames of 128 KiB for a sign that it is far behind: it gets no smaller ones while it is, and none as large
// afterwards, however large frames are set to be. Others get what is set.
func TestFramesTellWhoIsFarBehind(t *testing.T) {
	const far, large = 4 << 20, 128 << 10
	end := long{}.LogEnd()
	for _, set := range []int64{32 << 10, 1 << 20} {
		for _, ours := range []bool{true, false} {
			m := ha.NewMaster(ha.MasterConfig{Log: long{}, Logger: slog.New(slog.DiscardHandler), BatchBytes: int(set)})
			addr, stop := serve(t, m)
			c := dial(t, addr)
			if ours && !m.Hello(c.LocalAddr().String(), ha.Peer{ID: "1"}) {
				t.Fatal("the master does not take who it is")
			}
			send(t, c, 1)
			for at := int64(1); at < end; {
				var head [12]byte
				if _, err := io.ReadFull(c, head[:]); err != nil {
					t.Fatal(err)
				}
				n, want := int64(binary.BigEndian.Uint32(head[8:])), set
				switch {
				case ours && end-at > far:
					want = max(set, large)
				case ours:
					want = min(set, large-1)
				}
				if want = min(want, end-at); n != want {
					t.Fatalf("frames of %d, a slave of mqx: %v: %d bytes with %d to come, want %d", set, ours, n, end-at, want)
				}
				if _, err := io.CopyN(io.Discard, c, n); err != nil {
					t.Fatal(err)
				}
				at += n
			}
			stop()
		}
	}
}

// A bound on what a slave gets is nearly reached, although no sleep is as short as it was asked to be, and not passed by much.
func TestBoundedRate(t *testing.T) {
	src, stopSrc := running(t, config(t.TempDir()))
	defer stopSrc()
	for range 60 {
		put(t, src, "T", 0, make([]byte, 10_000))
	}
	const rate = 1_000_000
	m := ha.NewMaster(ha.MasterConfig{Log: src, Logger: slog.New(slog.DiscardHandler), BatchBytes: 1 << 10, BytesPerSecond: rate})
	addr, stop := serve(t, m)
	defer stop()
	began := time.Now()
	c := raw(t, addr, 0)
	var got int64
	for got < 500_000 {
		n, err := io.CopyN(io.Discard, c, 1<<10)
		if got += n; err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(began); took < 400*time.Millisecond {
		t.Errorf("500,000 bytes at %d a second took %v", rate, took)
	}
}
