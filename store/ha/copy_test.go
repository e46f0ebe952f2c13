package ha_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"mqx/message"
	"mqx/store"
	"mqx/store/ha"
)

func config(dir string) store.Config {
	cfg := store.DefaultConfig()
	cfg.RootDir, cfg.Logger, cfg.Location = dir, slog.New(slog.DiscardHandler), time.UTC
	cfg.CommitLogFileBytes, cfg.ConsumeQueueFileBytes = 64<<10, 2000
	cfg.MaxHashSlotNum, cfg.MaxIndexNum = 100, 400
	cfg.MaxMessageBytes = 32 << 10
	return cfg
}

// running opens a store and runs it until the returned function is called.
func running(t *testing.T, cfg store.Config) (s *store.Store, stop func()) {
	t.Helper()
	s, err := store.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Run(ctx) })
	return s, sync.OnceFunc(func() {
		cancel()
		wg.Wait()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

func put(t *testing.T, s *store.Store, topic string, queue int32, body []byte) {
	t.Helper()
	host := netip.MustParseAddrPort("127.0.0.1:10911")
	done := make(chan *store.Put, 1)
	s.PutBatch([]*store.Put{{Record: message.Record{
		Topic: []byte(topic), QueueID: queue, Body: body, BornHost: host, StoreHost: host, Properties: []byte("KEYS\x01k\x02"),
	}, Done: func(p *store.Put) { done <- p }}})
	if p := <-done; p.Status != store.PutOK {
		t.Fatal(p.Status, p.Err)
	}
}

func serve(t *testing.T, m *ha.Master) (addr string, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = m.Serve(ctx, l) })
	return l.Addr().String(), func() { cancel(); wg.Wait() }
}

// cutter carries bytes to addr and cuts each connection after some of them.
func cutter(t *testing.T, addr string, r *rand.Rand) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			limit := 1 + r.Int64N(60_000)
			wg.Go(func() {
				defer c.Close()
				up, err := net.Dial("tcp", addr)
				if err != nil {
					return
				}
				defer up.Close()
				go func() { _, _ = io.Copy(up, c); _ = up.Close() }()
				_, _ = io.CopyN(c, up, limit)
			})
		}
	})
	return l.Addr().String()
}

func logBytes(t *testing.T, s *store.Store) []byte {
	t.Helper()
	b := make([]byte, s.LogEnd()-s.LogMin())
	if err := s.ReadLog(b, s.LogMin()); err != nil {
		t.Fatal(err)
	}
	return b
}

func queues(s *store.Store) []string {
	var out []string
	for q := range s.Queues() {
		out = append(out, fmt.Sprint(q.Topic, q.QueueID, q.Min, q.Max))
	}
	slices.Sort(out)
	return out
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

func follower(s *store.Store, addr string, change func(*ha.FollowerConfig)) *ha.Follower {
	cfg := ha.FollowerConfig{
		Log: s, Logger: slog.New(slog.DiscardHandler), Master: func() string { return addr }, Retry: time.Millisecond, Heartbeat: 20 * time.Millisecond,
		Parted: store.IsForeign,
	}
	if change != nil {
		change(&cfg)
	}
	return ha.NewFollower(cfg)
}

// A slave that is cut off at random bytes and restarted now and then ends with the same bytes, queues and offsets, from
// the first file on, while its master takes messages.
func TestCopy(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	src, stopSrc := running(t, config(t.TempDir()))
	defer stopSrc()
	send := func(n int) {
		for range n {
			put(t, src, fmt.Sprint("T", r.IntN(3)), r.Int32N(2), bytes.Repeat([]byte{byte(r.Uint32())}, r.IntN(3000)))
		}
	}
	send(200)
	m := ha.NewMaster(ha.MasterConfig{Log: src, Logger: slog.New(slog.DiscardHandler), BatchBytes: 7000, Heartbeat: 10 * time.Millisecond, Rules: ha.Rules{Level: ha.LevelQuorum, Copies: 1}})
	addr, stopMaster := serve(t, m)
	defer stopMaster()
	addr = cutter(t, addr, rand.New(rand.NewPCG(seed, 1)))

	cfg := config(t.TempDir())
	cfg.Follow = true
	for round := range 4 {
		dst, stopDst := running(t, cfg)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		f := follower(dst, addr, func(c *ha.FollowerConfig) {
			c.Hello = func(context.Context, string) (bool, error) { return round%2 == 0, nil } // whether it reports what is durable
		})
		wg.Go(func() { f.Run(ctx) })
		send(100)
		if round == 3 {
			end := src.LogEnd()
			eventually(t, "the slave does not come to the end", func() bool { return dst.LogEnd() == end && dst.Dispatched() == end })
			if a, b := logBytes(t, src), logBytes(t, dst); sha256.Sum256(a) != sha256.Sum256(b) || dst.LogMin() != src.LogMin() {
				t.Errorf("the logs differ: %d and %d bytes from %d and %d", len(a), len(b), src.LogMin(), dst.LogMin())
			}
			eventually(t, "the master does not dispatch", func() bool { return src.Dispatched() == end })
			if a, b := queues(src), queues(dst); !slices.Equal(a, b) {
				t.Errorf("queues of the master %v\nand of the slave %v", a, b)
			}
			done := make(chan bool, 1)
			m.Wait(end, time.Minute, func(ok bool) { done <- ok })
			if !<-done {
				t.Error("the slave has everything, and the master does not know")
			}
		}
		cancel()
		wg.Wait()
		stopDst()
		if s := f.State(); s.Phase == ha.PhaseParted {
			t.Fatalf("parted: %v", s.Err)
		}
	}
	// What the slave has is a store of its own.
	cfg.Follow = false
	alone, stopAlone := running(t, cfg)
	defer stopAlone()
	if len(alone.Findings()) != 0 {
		t.Errorf("findings: %v", alone.Findings())
	}
	before := alone.MaxOffset("T0", 0)
	put(t, alone, "T0", 0, []byte("own"))
	eventually(t, "the message is not dispatched", func() bool { return alone.MaxOffset("T0", 0) == before+1 })
}

// A slave takes no messages; one that has parted from its master stops and says why; a wait without a slave ends.
func TestParted(t *testing.T) {
	src, stopSrc := running(t, config(t.TempDir()))
	defer stopSrc()
	put(t, src, "T", 0, []byte("one"))
	m := ha.NewMaster(ha.MasterConfig{Log: src, Logger: slog.New(slog.DiscardHandler), Rules: ha.Rules{Level: ha.LevelQuorum, Copies: 2}})
	addr, stopMaster := serve(t, m)
	defer stopMaster()

	cfg := config(t.TempDir())
	cfg.Follow, cfg.CommitLogFileBytes = true, 4096
	small, stopSmall := running(t, cfg)
	defer stopSmall()
	done := make(chan *store.Put, 1)
	small.PutBatch([]*store.Put{{Record: message.Record{Topic: []byte("T")}, Done: func(p *store.Put) { done <- p }}})
	if p := <-done; p.Status != store.ServiceNotAvailable {
		t.Errorf("a slave took a message: %v", p.Status)
	}
	put(t, src, "T", 0, bytes.Repeat([]byte("y"), 6000)) // crosses a file of the slave
	f := follower(small, addr, nil)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { f.Run(ctx) })
	defer wg.Wait()
	defer cancel()
	eventually(t, "a slave with files of another size goes on", func() bool { return f.State().Phase == ha.PhaseParted })
	got := make(chan bool, 1)
	m.Wait(src.LogEnd(), 10*time.Millisecond, func(ok bool) { got <- ok })
	if <-got {
		t.Error("two copies without two slaves")
	}
}

// giving notes when a slave was told to give way.
type giving struct {
	*store.Store
	told chan bool
}

func (g giving) GiveWay(on bool) {
	g.Store.GiveWay(on)
	g.told <- on
}

// A slave that is far behind gives way to everybody else, and does not any longer when it has caught up; queues and index follow
// in both cases.
func TestFarBehindGivesWay(t *testing.T) {
	cfg := config(t.TempDir())
	cfg.CommitLogFileBytes = 16 << 20
	src, stopSrc := running(t, cfg)
	defer stopSrc()
	for range 300 {
		put(t, src, "T", 0, make([]byte, 30_000))
	}
	m := ha.NewMaster(ha.MasterConfig{Log: src, Logger: slog.New(slog.DiscardHandler), BatchBytes: 256 << 10})
	addr, stopMaster := serve(t, m)
	defer stopMaster()
	cfg = config(t.TempDir())
	cfg.CommitLogFileBytes, cfg.Follow = 16<<20, true
	dst, stopDst := running(t, cfg)
	defer stopDst()
	g := giving{dst, make(chan bool, 100)}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	f := follower(dst, addr, func(c *ha.FollowerConfig) { c.Log = g })
	wg.Go(func() { f.Run(ctx) })
	defer wg.Wait()
	defer cancel()
	caughtUp := func() bool { return dst.LogEnd() == src.LogEnd() && dst.Dispatched() == src.LogEnd() }
	eventually(t, "the slave does not catch up", caughtUp)
	if !<-g.told {
		t.Fatal("it does not give way")
	}
	eventually(t, "it goes on giving way", func() bool {
		put(t, src, "T", 0, []byte("small"))
		select {
		case on := <-g.told:
			return !on
		default:
			return false
		}
	})
	eventually(t, "the slave does not follow", caughtUp)
	eventually(t, "the queues differ", func() bool { return slices.Equal(queues(src), queues(dst)) })
}
