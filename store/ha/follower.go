package ha

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"
)

// Copy is the log of a slave.
type Copy interface {
	LogEnd() int64
	LogFlushed() int64
	// AppendRaw appends at the end; a log without a file takes any position at which one begins.
	AppendRaw(at int64, b []byte) error
	Flush() error
}

// PartedError says that the slave's log is no beginning of the master's. No retry mends it.
type PartedError struct {
	End int64 // of the slave's log
	Err error
}

func (e *PartedError) Error() string {
	return fmt.Sprintf("the log of this slave, which goes to %d, is not that of its master: %v", e.End, e.Err)
}

func (e *PartedError) Unwrap() error { return e.Err }

// FollowerConfig configures a slave. Zero values take the defaults.
type FollowerConfig struct {
	Log    Copy
	Logger *slog.Logger
	// Master is the address of the master's replication port; empty while none is known.
	Master func() string
	// Blank is what a slave without a log reports to the master: 0, or the beginning of the master's log where that
	// would not send it all otherwise; 1 stands for a log that begins at 0. Nil is 0.
	Blank func(ctx context.Context) (int64, error)
	// Parted tells errors of AppendRaw that no retry mends.
	Parted func(error) bool
	// AckFlushed reports what is durable instead of what is written.
	AckFlushed bool
	// Heartbeat is the time between reports of an idle slave (5 s), Silence that after which a master is given up (20 s),
	// Retry that to the next try (1 s).
	Heartbeat, Silence, Retry time.Duration
}

// Phase is what a slave is doing.
type Phase string

// The phases of a slave.
const (
	PhaseNoMaster   Phase = "no-master"  // the address of none is known
	PhaseConnecting Phase = "connecting" // the last try failed, or none was made yet
	PhaseFollowing  Phase = "following"
	PhaseParted     Phase = "parted" // it has stopped: see PartedError
)

// State is how a slave stands.
type State struct {
	Phase  Phase
	Master string
	Err    error     // of the last try
	Since  time.Time // of the phase
	Heard  time.Time // the last frame
}

// Follower copies the log of a master. It is safe to share.
type Follower struct {
	cfg    FollowerConfig
	resume chan struct{}
	mu     struct {
		sync.Mutex
		State
	}
}

// NewFollower makes a follower. It starts nothing.
func NewFollower(cfg FollowerConfig) *Follower {
	cfg.Heartbeat, cfg.Silence = cmp.Or(cfg.Heartbeat, 5*time.Second), cmp.Or(cfg.Silence, 20*time.Second)
	cfg.Retry = cmp.Or(cfg.Retry, time.Second)
	f := &Follower{cfg: cfg, resume: make(chan struct{}, 1)}
	f.mu.Phase = PhaseNoMaster
	return f
}

// State tells how the slave stands.
func (f *Follower) State() State {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.State
}

// Resume lets a slave that has stopped try again.
func (f *Follower) Resume() {
	select {
	case f.resume <- struct{}{}:
	default:
	}
}

func (f *Follower) set(p Phase, master string, err error) {
	f.mu.Lock()
	changed := f.mu.Phase != p || (f.mu.Err == nil) != (err == nil)
	if f.mu.Phase != p {
		f.mu.Since = time.Now()
	}
	f.mu.Phase, f.mu.Master, f.mu.Err = p, master, err
	f.mu.Unlock()
	if !changed {
		return
	}
	if err != nil {
		f.cfg.Logger.Error("this slave does not follow its master", "phase", string(p), "master", master, "err", err)
		return
	}
	f.cfg.Logger.Info("replication", "phase", string(p), "master", master, "end", f.cfg.Log.LogEnd())
}

// Run follows until ctx ends.
func (f *Follower) Run(ctx context.Context) {
	for ctx.Err() == nil {
		addr := f.cfg.Master()
		if addr == "" {
			f.set(PhaseNoMaster, "", nil)
			_ = sleep(ctx, f.cfg.Retry)
			continue
		}
		err := f.follow(ctx, addr)
		if ctx.Err() != nil {
			return
		}
		if parted := (*PartedError)(nil); errors.As(err, &parted) {
			f.set(PhaseParted, addr, err)
			select {
			case <-ctx.Done():
			case <-f.resume:
			}
			continue
		}
		f.set(PhaseConnecting, addr, err)
		_ = sleep(ctx, f.cfg.Retry)
	}
}

// link is one connection to a master.
type link struct {
	f      *Follower
	c      net.Conn
	at     int64 // where the next byte belongs
	prefix bool  // the first byte of the log, a zero, was not asked for
	wmu    sync.Mutex
	buf    []byte
}

// follow copies from one connection until it ends.
func (f *Follower) follow(ctx context.Context, addr string) error {
	if f.cfg.AckFlushed { // or a later report would be behind the first
		if err := f.cfg.Log.Flush(); err != nil {
			return err
		}
	}
	end := f.cfg.Log.LogEnd()
	report := end
	if end == 0 && f.cfg.Blank != nil {
		var err error
		if report, err = f.cfg.Blank(ctx); err != nil {
			return err
		}
	}
	d := net.Dialer{Timeout: f.cfg.Silence / 4}
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	l := &link{f: f, c: c, at: -1, prefix: end == 0 && report == 1}
	if end > 0 {
		l.at = end
	}
	if err := l.report(report); err != nil {
		return err
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(stop)
	wg.Go(func() { l.beat(stop, report) })
	return l.receive(addr)
}

func (l *link) report(end int64) error {
	l.wmu.Lock()
	defer l.wmu.Unlock()
	if err := l.c.SetWriteDeadline(time.Now().Add(l.f.cfg.Silence)); err != nil {
		return err
	}
	_, err := l.c.Write(appendReport(nil, end))
	return err
}

// beat reports from time to time, so that the master does not give the slave up. No report is behind the first one.
func (l *link) beat(stop chan struct{}, first int64) {
	t := time.NewTicker(l.f.cfg.Heartbeat)
	defer t.Stop()
	for {
		select {
		case <-stop:
			return
		case <-t.C:
			if end := l.acked(); end >= first && l.report(end) != nil {
				return
			}
		}
	}
}

// acked is how far the copy goes that the master may count on.
func (l *link) acked() int64 {
	if l.f.cfg.AckFlushed {
		return l.f.cfg.Log.LogFlushed()
	}
	return l.f.cfg.Log.LogEnd()
}

// receive takes frames until the connection ends.
func (l *link) receive(addr string) error {
	r := bufio.NewReaderSize(l.c, 256<<10)
	var head [headLen]byte
	for {
		if err := l.c.SetReadDeadline(time.Now().Add(l.f.cfg.Silence)); err != nil {
			return err
		}
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return err
		}
		l.f.heard(addr)
		off, n, err := parseHead(head[:])
		if err != nil {
			return err
		}
		if n == 0 {
			continue
		}
		if err := l.take(r, off, n); err != nil {
			return err
		}
		if r.Buffered() >= headLen {
			continue // one report for all of them
		}
		if l.f.cfg.AckFlushed {
			if err := l.f.cfg.Log.Flush(); err != nil {
				return err
			}
		}
		if err := l.report(l.acked()); err != nil {
			return err
		}
	}
}

// take appends the n bytes of a frame.
func (l *link) take(r io.Reader, off int64, n int) error {
	b := l.buf[:0]
	if l.prefix && off == 1 {
		b, off = append(b, 0), 0
	}
	l.prefix = false
	if l.at >= 0 && off != l.at {
		return &PartedError{End: l.at, Err: fmt.Errorf("the master sends what belongs at %d", off)}
	}
	have := len(b)
	if need := have + n; cap(b) < need {
		b = append(make([]byte, 0, need), b...)
	}
	b = b[:have+n]
	if _, err := io.ReadFull(r, b[have:]); err != nil {
		return err
	}
	l.buf = b
	if err := l.f.cfg.Log.AppendRaw(off, b); err != nil {
		if l.f.cfg.Parted != nil && l.f.cfg.Parted(err) {
			return &PartedError{End: off, Err: err}
		}
		return err
	}
	l.at = off + int64(len(b))
	return nil
}

func (f *Follower) heard(addr string) {
	f.mu.Lock()
	following := f.mu.Phase == PhaseFollowing
	f.mu.Heard = time.Now()
	f.mu.Unlock()
	if !following {
		f.set(PhaseFollowing, addr, nil)
	}
}
