package ha_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mqx/store"
	"mqx/store/ha"
)

// beginsAt is a log whose beginning has been deleted up to low, as a full disk makes a master do.
type beginsAt struct {
	*store.Store
	low int64
}

func (b beginsAt) LogMin() int64 { return b.low }

// r#3388: a slave that cannot ask for the range of its master's log, and whose last record the master has deleted, follows where its own
// log ends no earlier than the master's begins, and else says what it is.
func TestMasterBeginsLater(t *testing.T) {
	src, stopSrc := running(t, config(t.TempDir()))
	defer stopSrc()
	cfg := config(t.TempDir())
	cfg.Follow = true
	dst, stopDst := running(t, cfg)
	defer stopDst()
	for src.LogEnd() <= src.LogFileSize() {
		put(t, src, "T", 0, make([]byte, 100))
	}
	file := make([]byte, src.LogFileSize()) // all that the slave gets
	if err := src.ReadLog(file, 0); err != nil {
		t.Fatal(err)
	}
	if err := dst.AppendRaw(0, file); err != nil {
		t.Fatal(err)
	}
	follow := func(low int64, change func(*ha.FollowerConfig)) (f *ha.Follower, end func()) {
		m := ha.NewMaster(ha.MasterConfig{Log: beginsAt{src, low}, Logger: slog.New(slog.DiscardHandler)})
		addr, stop := serve(t, m)
		f = follower(dst, addr, change)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { f.Run(ctx) })
		return f, func() { cancel(); wg.Wait(); stop() }
	}
	f, end := follow(src.LogFileSize()+1, nil)
	eventually(t, "a slave behind its master's log does not say so", func() bool { return f.State().Phase == ha.PhaseBehind })
	end()
	f, end = follow(src.LogFileSize(), nil)
	eventually(t, "a slave that ends where its master begins does not follow", func() bool { return dst.LogEnd() == src.LogEnd() })
	if st := f.State(); st.Phase != ha.PhaseFollowing || st.Err != nil {
		t.Errorf("it follows as %+v", st)
	}
	end()
	more := src.LogEnd()
	put(t, src, "T", 0, make([]byte, 100))
	f, end = follow(0, nil)
	eventually(t, "the slave does not have all", func() bool { return dst.LogEnd() > more })
	end()
	short, stopShort := running(t, config(t.TempDir()))
	defer stopShort()
	put(t, short, "T", 0, make([]byte, 100))
	src = short
	f, end = follow(0, nil)
	eventually(t, "a slave with more than its master does not say so", func() bool { return f.State().Phase == ha.PhaseAhead })
	end()
}

// A slave whose master ends each connection without a word says so after a few, and tries again, seldom, until it is let in.
func TestRefusedWithoutAWord(t *testing.T) {
	src, stopSrc := running(t, config(t.TempDir()))
	defer stopSrc()
	put(t, src, "T", 0, make([]byte, 100))
	cfg := config(t.TempDir())
	cfg.Follow = true
	dst, stopDst := running(t, cfg)
	defer stopDst()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var tries atomic.Int64
	open := make(chan struct{})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			select {
			case <-open:
				_, _ = c.Write(make([]byte, 12))
				_, _ = io.Copy(io.Discard, c)
			default:
				_, _ = io.ReadFull(c, make([]byte, 8))
			}
			_ = c.Close()
			tries.Add(1)
		}
	}()
	f := follower(dst, l.Addr().String(), func(c *ha.FollowerConfig) { c.Retry = 5 * time.Millisecond })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { f.Run(ctx); close(done) }()
	eventually(t, "the slave does not say that it is refused", func() bool { return f.State().Phase == ha.PhaseRefused })
	if st := f.State(); st.Err == nil || !strings.Contains(st.Err.Error(), "without a frame, after the report of 0") || st.Phase.Stopped() {
		t.Errorf("%+v", st)
	}
	eventually(t, "it does not go on trying", func() bool { return tries.Load() >= 5 })
	close(open)
	eventually(t, "the slave does not follow once it is let in", func() bool { return f.State().Phase == ha.PhaseFollowing })
	cancel()
	<-done
	_ = l.Close()
}

// silent is a master that has nothing where it is asked for, and says so as Apache's do: with empty frames for that position.
func silent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			var b [12]byte
			_, _ = io.ReadFull(c, b[:8])
			_, _ = c.Write(b[:])
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
		}
	}()
	return l.Addr().String()
}

// A master of Apache's that cannot be asked, and sends nothing of the slave's last record: the slave stops and says what that may be.
func TestSilentMaster(t *testing.T) {
	src, stopSrc := running(t, config(t.TempDir()))
	defer stopSrc()
	put(t, src, "T", 0, make([]byte, 100))
	put(t, src, "T", 0, make([]byte, 100))
	f := follower(src, silent(t), nil)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { f.Run(ctx) })
	eventually(t, "the slave does not stop", func() bool { return f.State().Phase == ha.PhaseAhead })
	if err := f.State().Err; err == nil || !strings.Contains(err.Error(), "does not begin before a later position") {
		t.Errorf("it says %v", err)
	}
	cancel()
	wg.Wait()
}
