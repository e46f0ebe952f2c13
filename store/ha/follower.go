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
	"sync/atomic"
	"time"

	"mqx/internal/clock"
	"mqx/internal/vfs"
)

// Copy is the log of a slave.
type Copy interface {
	LogEnd() int64
	LogFlushed() int64
	ReadLog(b []byte, off int64) error
	// LastRecord is where the last whole record begins, -1 where there is none.
	LastRecord() (int64, error)
	// AppendRaw appends at the end; a log without a file takes any position at which one begins.
	AppendRaw(at int64, b []byte) error
	// GiveWay says whether what is made of the log leaves the processor to everybody else.
	GiveWay(on bool)
	Flush() error
}

// PartedError says that the slave's log is no beginning of the master's. No retry mends it.
type PartedError struct {
	Phase Phase // PhaseParted, PhaseAhead or PhaseBehind
	End   int64 // of the slave's log
	// At is where the slave's log parts from the master's at the latest: nothing from there on is the master's. 0: not known.
	At  int64
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
	Clock  clock.Clock // of State; nil: the system's, as that of the deadlines of connections
	// Master is the address of the master's replication port; empty while none is known.
	Master func() string
	// Blank is what a slave without a log reports to the master: 0, or the beginning of the master's log where that
	// would not send it all otherwise; 1 stands for a log that begins at 0. Nil is 0.
	Blank func(ctx context.Context) (int64, error)
	// Range, if set, asks for the beginning and the end of the master's log; ok is false where nobody can be asked. Masters
	// of Apache do not tell a slave that is outside of it.
	Range func(ctx context.Context) (low, high int64, ok bool, err error)
	// Parted tells errors of AppendRaw that no retry mends.
	Parted func(error) bool
	// Hello, if set, tells the master who has opened the connection from the address local, and returns whether the master
	// wants to be told what is durable. A master that does not know the question gets on without. It must end by itself.
	// An error ends the connection: who is asked is not the master.
	Hello func(ctx context.Context, local string) (flushed bool, err error)
	// Followed, if set, is called on each connection once the log is known to be a beginning of the master's, before the slave
	// counts as a copy. An error ends the connection.
	Followed func() error
	// Dial opens a connection to a master; nil dials TCP.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
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
	PhaseParted     Phase = "parted" // its log has other bytes than the master's; it has stopped, as in the next two
	PhaseAhead      Phase = "ahead"  // its log goes on where the master's has ended
	PhaseBehind     Phase = "behind" // its log ends where the master has nothing any more
	// PhaseRefused: the master ends each connection before it sends a frame. The slave goes on trying, seldom.
	PhaseRefused Phase = "refused"
)

// Stopped reports whether the slave waits for somebody to mend it.
func (p Phase) Stopped() bool { return p == PhaseParted || p == PhaseAhead || p == PhaseBehind }

// State is how a slave stands.
type State struct {
	Phase  Phase
	Master string
	Err    error     // of the last try
	Since  time.Time // of the phase
	Heard  time.Time // the last frame
	Told   time.Time // the last report
	// BytesPerSecond is what came in the last whole second.
	BytesPerSecond int64
}

// Follower copies the log of a master. It is safe to share.
type Follower struct {
	cfg    FollowerConfig
	resume chan struct{}
	near   nearest // as turned, the goroutine's that runs Run
	turned int     // connections in a row that the master ended before a frame
	rate   byteRate
	mu     struct {
		sync.Mutex
		State
		leave context.CancelFunc // ends the connection that is open; nil: none is
	}
}

// NewFollower makes a follower. It starts nothing.
func NewFollower(cfg FollowerConfig) *Follower {
	cfg.Heartbeat, cfg.Silence = cmp.Or(cfg.Heartbeat, 5*time.Second), cmp.Or(cfg.Silence, 20*time.Second)
	cfg.Retry = cmp.Or(cfg.Retry, time.Second)
	if cfg.Clock == nil {
		cfg.Clock = clock.System
	}
	if cfg.Dial == nil {
		d := net.Dialer{Timeout: cfg.Silence / 4}
		cfg.Dial = func(ctx context.Context, addr string) (net.Conn, error) { return d.DialContext(ctx, "tcp", addr) }
	}
	f := &Follower{cfg: cfg, resume: make(chan struct{}, 1)}
	f.mu.Phase = PhaseNoMaster
	return f
}

// State tells how the slave stands.
func (f *Follower) State() State {
	f.mu.Lock()
	defer f.mu.Unlock()
	st := f.mu.State
	st.BytesPerSecond = f.rate.read(f.cfg.Clock.Now())
	return st
}

// Resume lets a slave that has stopped look at its master once more.
func (f *Follower) Resume() {
	select {
	case f.resume <- struct{}{}:
	default:
	}
}

// Reconnect ends the connection to the master, if one is open, and makes it anew: the master is told once more who has opened it.
func (f *Follower) Reconnect() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.leave != nil {
		f.mu.leave()
	}
}

func (f *Follower) setLeave(leave context.CancelFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.leave = leave
}

func (f *Follower) set(p Phase, master string, err error) {
	f.mu.Lock()
	changed := f.mu.Phase != p || (f.mu.Err == nil) != (err == nil)
	if f.mu.Phase != p {
		f.mu.Since = f.cfg.Clock.Now()
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
		if f.State().Phase == PhaseNoMaster {
			f.set(PhaseConnecting, addr, nil) // a master with nothing to send may be silent for a while
		}
		err := f.follow(ctx, addr)
		if ctx.Err() != nil {
			return
		}
		if parted := (*PartedError)(nil); errors.As(err, &parted) {
			f.set(cmp.Or(parted.Phase, PhaseParted), addr, err)
			f.awaitChange(ctx, addr)
			continue
		}
		if refusal := f.refusal(addr, err); refusal != nil {
			f.refused(ctx, addr, refusal)
			continue
		}
		f.set(PhaseConnecting, addr, err)
		_ = sleep(ctx, f.cfg.Retry)
	}
}

// awaitChange waits until Resume is called or another master is known than the one at addr.
func (f *Follower) awaitChange(ctx context.Context, addr string) {
	t := time.NewTicker(f.cfg.Retry)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.resume:
			return
		case <-t.C:
			if now := f.cfg.Master(); now != addr && now != "" {
				return
			}
		}
	}
}

// link is one connection to a master.
type link struct {
	f      *Follower
	c      net.Conn
	at     int64       // where the next byte belongs
	prefix bool        // the first byte of the log, a zero, was not asked for
	first  int64       // the first report
	own    int64       // bytes of the master before this are compared with the log, not appended
	ranged bool        // the master has told the range of its log
	heard  bool        // the master has sent a frame
	moved  bool        // and one with something in it
	same   atomic.Bool // they have been, or there are none
	flush  bool        // reports tell what is durable
	wmu    sync.Mutex
	last   int64 // the last report; needs wmu
	buf    []byte
	far    aside
}

// follow copies from one connection until it ends.
func (f *Follower) follow(ctx context.Context, addr string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f.setLeave(cancel)
	defer f.setLeave(nil)
	end := f.cfg.Log.LogEnd()
	report, ranged, err := f.begin(ctx, addr, end)
	if err != nil {
		return err
	}
	c, err := f.cfg.Dial(ctx, addr)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	l := &link{f: f, c: c, at: -1, prefix: end == 0 && report == 1, first: report, own: end, ranged: ranged}
	if f.cfg.Hello != nil {
		flush, err := f.cfg.Hello(ctx, c.LocalAddr().String())
		if err != nil {
			return err
		}
		l.flush = flush
	}
	if l.flush { // or a later report would be behind the first
		if err := f.cfg.Log.Flush(); err != nil {
			return err
		}
	}
	if end > 0 {
		l.at = report
	}
	if err := l.report(l.begins); err != nil {
		return err
	}
	if report >= end {
		if err := l.found(); err != nil {
			return err
		}
	}
	if l.same.Load() { // there is nothing to compare: masters count a slave from its second report on
		if err := l.report(l.begins); err != nil {
			return err
		}
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(stop)
	wg.Go(func() { l.beat(stop) })
	return l.receive(addr)
}

// begin is what a slave reports first: where its last record begins, so that the master sends that record once more. A slave
// whose log has parted from the master's, maybe at the end of a record, is found by that before it counts as a copy. ranged
// tells whether the range of the master's log is known.
func (f *Follower) begin(ctx context.Context, addr string, end int64) (report int64, ranged bool, err error) {
	near := f.near
	f.near = nearest{}
	if end == 0 {
		if f.cfg.Blank == nil {
			return 0, false, nil
		}
		report, err = f.cfg.Blank(ctx)
		return report, false, err
	}
	low := int64(0)
	if near.addr == addr && near.at <= end {
		low = near.at
	}
	if f.cfg.Range != nil {
		first, last, ok, err := f.cfg.Range(ctx)
		switch {
		case err != nil:
			return 0, false, err
		case ok && end > last:
			return 0, true, &PartedError{Phase: PhaseAhead, End: end, At: last, Err: fmt.Errorf("that of the master ends at %d", last)}
		case ok && end < first:
			return 0, true, &PartedError{Phase: PhaseBehind, End: end, Err: fmt.Errorf("the master has nothing before %d any more", first)}
		case ok:
			low, ranged = first, true
		}
	}
	report, err = f.lastRecord(end)
	return max(report, low), ranged, err // what is before low is gone at the master
}

func (f *Follower) lastRecord(end int64) (int64, error) {
	start, err := f.cfg.Log.LastRecord()
	if err != nil || start < 0 {
		return end, err
	}
	return max(start, 1), nil // masters of Apache take 0 for a slave without a log
}

// report tells the master how far the copy goes by end, which is asked in turn: reports never go back.
func (l *link) report(end func() int64) error {
	l.wmu.Lock()
	defer l.wmu.Unlock()
	l.last = max(l.last, end())
	if err := l.c.SetWriteDeadline(time.Now().Add(l.f.cfg.Silence)); err != nil {
		return err
	}
	_, err := l.c.Write(appendReport(nil, l.last))
	if err == nil {
		l.f.mu.Lock()
		l.f.mu.Told = time.Now()
		l.f.mu.Unlock()
	}
	return err
}

// beat reports from time to time, so that the master does not give the slave up. Before the slave has compared its log it is
// silent: the second report on a connection makes it a copy. A master that does not send what is to be compared gives it up.
func (l *link) beat(stop chan struct{}) {
	t := time.NewTicker(l.f.cfg.Heartbeat)
	defer t.Stop()
	for {
		select {
		case <-stop:
			return
		case <-t.C:
			if l.same.Load() && l.report(l.acked) != nil {
				return
			}
		}
	}
}

func (l *link) begins() int64 { return l.first }

// acked is how far the copy goes that the master may count on.
func (l *link) acked() int64 {
	if !l.same.Load() {
		return l.first
	}
	if l.flush {
		return l.f.cfg.Log.LogFlushed()
	}
	return l.f.cfg.Log.LogEnd()
}

// receive takes frames until the connection ends: on a thread that gives way to everybody else while the slave is far behind, so
// that producers on the same machine do not notice.
func (l *link) receive(addr string) error {
	r := bufio.NewReaderSize(l.c, 256<<10)
	for {
		if err := l.next(addr, r); err != nil {
			return err
		}
		if !l.far.now() {
			continue
		}
		var err error
		l.f.cfg.Log.GiveWay(true)
		vfs.Aside(func() {
			for err == nil && l.far.now() {
				err = l.next(addr, r)
			}
		})
		l.f.cfg.Log.GiveWay(false)
		if err != nil {
			return err
		}
	}
}

// next takes a frame.
func (l *link) next(addr string, r *bufio.Reader) error {
	if err := l.c.SetReadDeadline(time.Now().Add(l.f.cfg.Silence)); err != nil {
		return err
	}
	var head [headLen]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return l.turned(err)
	}
	l.heard = true
	off, n, err := parseHead(head[:])
	if err != nil {
		return err
	}
	l.far.took(n, time.Now())
	if n == 0 {
		if err := l.empty(off); err != nil {
			return err
		}
		l.f.heard(addr, 0)
		return nil
	}
	l.f.heard(addr, n)
	l.moved = true
	if err := l.take(r, off, n); err != nil {
		return err
	}
	if r.Buffered() >= headLen {
		return nil // one report for all of them
	}
	if l.flush {
		if err := l.f.cfg.Log.Flush(); err != nil {
			return err
		}
	}
	return l.report(l.acked)
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
	l.at = off + int64(len(b))
	if !l.same.Load() {
		n, err := l.compare(off, b)
		if off, b = off+int64(n), b[n:]; err != nil || len(b) == 0 {
			return err
		}
	}
	if err := l.f.cfg.Log.AppendRaw(off, b); err != nil {
		if l.f.cfg.Parted != nil && l.f.cfg.Parted(err) {
			return &PartedError{End: off, Err: err}
		}
		return err
	}
	return nil
}

// compare compares what of b, which belongs at off, the slave has already, and tells how much that is.
func (l *link) compare(off int64, b []byte) (int, error) {
	n := int(min(int64(len(b)), l.own-off))
	mine := make([]byte, n)
	if err := l.f.cfg.Log.ReadLog(mine, off); err != nil {
		return 0, err
	}
	if i := firstDifference(mine, b[:n]); i >= 0 {
		return 0, &PartedError{End: l.own, At: off, Err: fmt.Errorf("its last record has other bytes at %d", off+int64(i))}
	}
	if off+int64(n) == l.own {
		return n, l.found()
	}
	return n, nil
}

// found notes that the log is a beginning of the master's.
func (l *link) found() error {
	if f := l.f.cfg.Followed; f != nil {
		if err := f(); err != nil {
			return err
		}
	}
	l.same.Store(true)
	return nil
}

// firstDifference is the first place where two slices of the same length differ, -1 where they do not.
func firstDifference(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

// heard notes a frame with n bytes of the log.
func (f *Follower) heard(addr string, n int) {
	now := f.cfg.Clock.Now()
	f.rate.add(n, now)
	f.mu.Lock()
	following := f.mu.Phase == PhaseFollowing
	f.mu.Heard = now
	f.mu.Unlock()
	if !following {
		f.set(PhaseFollowing, addr, nil)
	}
}
