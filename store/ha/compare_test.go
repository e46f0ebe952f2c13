package ha_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"mqx/store"
	"mqx/store/ha"
)

// parting makes two stores that are the same up to a record boundary, which is returned, and have messages of their own
// behind it: of the same sizes where same is set. slave says that the second follows in the end.
func parting(t *testing.T, common, more int, same, slave bool) (a, b *store.Store, at int64) {
	t.Helper()
	a, stopA := running(t, config(t.TempDir()))
	t.Cleanup(stopA)
	r := rand.New(rand.NewPCG(7, uint64(common)))
	for range common {
		put(t, a, fmt.Sprint("T", r.IntN(3)), 0, bytes.Repeat([]byte("c"), r.IntN(3000)))
	}
	at = a.LogEnd()
	cfg := config(t.TempDir())
	cfg.Follow = true
	f, stopF := running(t, cfg)
	if at > 0 {
		all := make([]byte, at)
		if err := a.ReadLog(all, 0); err != nil {
			t.Fatal(err)
		}
		if err := f.AppendRaw(0, all); err != nil {
			t.Fatal(err)
		}
	}
	stopF()
	cfg.Follow = false
	b, stopB := running(t, cfg)
	size := func(i int) int {
		if same {
			return 1000
		}
		return r.IntN(2000)
	}
	for i := range more {
		put(t, a, "T0", 0, bytes.Repeat([]byte("a"), size(i)))
		put(t, b, "T0", 0, bytes.Repeat([]byte("b"), size(i)))
	}
	if cfg.Follow = slave; slave {
		stopB()
		b, stopB = running(t, cfg)
	}
	t.Cleanup(stopB)
	return a, b, at
}

// Two logs that have parted are the same up to the record before, whatever they have in common.
func TestCommonPoint(t *testing.T) {
	for _, tt := range []struct {
		common, more int
		same         bool
	}{{1, 1, true}, {1, 40, false}, {40, 1, true}, {300, 1, false}, {300, 200, true}, {200, 900, false}, {10, 0, false}, {0, 5, true}} {
		a, b, at := parting(t, tt.common, tt.more, tt.same, false)
		m := ha.NewMaster(ha.MasterConfig{Log: a, Logger: slog.New(slog.DiscardHandler), BatchBytes: 5000})
		addr, stop := serve(t, m)
		got, err := ha.CommonPoint(t.Context(), addr, b, a.LogMin(), a.LogEnd())
		switch {
		case tt.common == 0:
			if !errors.Is(err, ha.ErrNothingCommon) {
				t.Errorf("%+v: %d, %v", tt, got, err)
			}
		case err != nil || got != at:
			t.Errorf("%+v: common up to %d (%v), want %d", tt, got, err, at)
		}
		// One connection after another gives the same.
		var d net.Dialer
		conns := 0
		more, err := ha.CommonPointBy(t.Context(), func(ctx context.Context) (net.Conn, error) {
			conns++
			return d.DialContext(ctx, "tcp", addr)
		}, -time.Second, b, a.LogMin(), a.LogEnd())
		switch {
		case tt.common == 0:
			if !errors.Is(err, ha.ErrNothingCommon) {
				t.Errorf("%+v, in parts: %d, %v", tt, more, err)
			}
		case err != nil || more != at || at > 20_000 && conns < 3:
			t.Errorf("%+v, in parts: common up to %d (%v), want %d, over %d connections", tt, more, err, at, conns)
		}
		stop()
	}
}

// A slave whose log has parted from its master's at the end of a record, to the same length or a shorter one, takes nothing,
// stops, and never counts as a copy; cut at the common point it follows (r#3388, r#323, N082).
func TestPartedAtARecord(t *testing.T) {
	a, b, at := parting(t, 50, 3, true, true)
	put(t, a, "T0", 0, []byte("and one more"))
	m := ha.NewMaster(ha.MasterConfig{Log: a, Logger: slog.New(slog.DiscardHandler), Heartbeat: 5 * time.Millisecond, Rules: ha.Rules{Level: ha.LevelQuorum, Copies: 1}})
	addr, stopMaster := serve(t, m)
	defer stopMaster()
	end := b.LogEnd()
	f := follower(b, addr, nil)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { f.Run(ctx) })
	defer wg.Wait()
	defer cancel()
	eventually(t, "a slave with other messages goes on", func() bool { return f.State().Phase == ha.PhaseParted })
	if b.LogEnd() != end {
		t.Errorf("the slave has taken %d bytes", b.LogEnd()-end)
	}
	got := make(chan bool, 1)
	m.Wait(end, 20*time.Millisecond, func(ok bool) { got <- ok })
	if <-got {
		t.Error("a slave with other bytes has counted as a copy")
	}
	if common, err := ha.CommonPoint(ctx, addr, b, a.LogMin(), a.LogEnd()); err != nil || common != at {
		t.Fatalf("common up to %d, %v, want %d", common, err, at)
	}
	if err := b.Truncate(at); err != nil {
		t.Fatal(err)
	}
	f.Resume()
	eventually(t, "the slave does not follow once it is cut", func() bool { return b.LogEnd() == a.LogEnd() && b.Dispatched() == b.LogEnd() })
	if !bytes.Equal(logBytes(t, a), logBytes(t, b)) {
		t.Error("the logs differ")
	}
	if x, y := queues(a), queues(b); fmt.Sprint(x) != fmt.Sprint(y) {
		t.Errorf("queues of the master %v, of the slave %v", x, y)
	}
}

// N083 (r#3388): a slave that has more than its master, or ends before its master begins, stops and says which.
func TestOutOfRange(t *testing.T) {
	_, b, _ := parting(t, 5, 0, true, true)
	for _, tt := range []struct {
		low, high int64
		want      ha.Phase
	}{{0, b.LogEnd() - 1, ha.PhaseAhead}, {b.LogEnd() + 1, b.LogEnd() + 100, ha.PhaseBehind}} {
		f := follower(b, "127.0.0.1:1", func(c *ha.FollowerConfig) {
			c.Range = func(context.Context) (int64, int64, bool, error) { return tt.low, tt.high, true, nil }
		})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { f.Run(ctx) })
		eventually(t, "the slave does not stop", func() bool { return f.State().Phase.Stopped() })
		if s := f.State(); s.Phase != tt.want || s.Err == nil {
			t.Errorf("%+v, want %s", s, tt.want)
		}
		cancel()
		wg.Wait()
	}
}
