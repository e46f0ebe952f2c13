package ha

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Log is what a master sends.
type Log interface {
	LogMin() int64
	LogEnd() int64
	LogFileSize() int64
	ReadLog(b []byte, off int64) error
	WatchLog(ch chan struct{}) (stop func())
}

// MasterConfig configures a master. Zero values take the defaults, which are Apache's.
type MasterConfig struct {
	Log    Log
	Logger *slog.Logger
	// BatchBytes is the most of the log in one frame (32 KiB).
	BatchBytes int
	// BytesPerSecond bounds what one slave gets; 0 is no bound.
	BytesPerSecond int64
	// Heartbeat is the time without a frame after which an empty one is sent (5 s), Silence that without a report after
	// which a slave is given up (20 s).
	Heartbeat, Silence time.Duration
	// LastFile lets a blank slave begin with the last file of the log, as Apache's do, instead of the first.
	LastFile bool
	// Together, if set, calls the function that it is given once: it tells all waiters that one report releases.
	Together func(func())
	// Rules are when waits are over, at the beginning (SetRules); Gate is told what consumers may see. Nil: nobody is.
	Rules Rules
	Gate  Gate
	// Held says that the gate is closed at the beginning; consumers have seen what is before Shown.
	Held  bool
	Shown int64
	// Recorded are the times of fewer copies that were recorded before, what is before Base had its copies when it was
	// acknowledged, and Record makes the times of now durable. Without Record they are forgotten.
	Recorded []Interval
	Base     int64
	Record   func([]Interval) error
	// Async, if set, says that nobody waits for a slave.
	Async func(Peer) bool
	// Copied, if set, is told of each slave that begins to follow, before it is sent anything, and of each that has left.
	Copied func(follows bool)
	// MaxConns bounds the connections of slaves (64).
	MaxConns int
}

func (c *MasterConfig) setDefaults() {
	c.BatchBytes = min(cmp.Or(c.BatchBytes, 32<<10), MaxFrame)
	c.Heartbeat, c.Silence = cmp.Or(c.Heartbeat, 5*time.Second), cmp.Or(c.Silence, 20*time.Second)
	c.MaxConns = cmp.Or(c.MaxConns, 64)
	if c.Together == nil {
		c.Together = func(f func()) { f() }
	}
}

// Gate holds back what consumers must not see yet. It must not call the master.
type Gate interface {
	Gate()
	Ungate()
	Confirm(pos int64)
}

// Master sends a log to slaves and tells who waits for their copies. It is safe to share.
type Master struct {
	cfg   MasterConfig
	conns atomic.Int64 // the next number

	inSync atomic.Pointer[NotEnoughError] // nil: puts that wait are let in
	waits  atomic.Bool
	kick   chan struct{} // there is something to record

	mu struct {
		sync.Mutex
		group   *Group
		gated   bool
		record  *Decision // not durable yet
		open    map[int64]*slaveConn
		hellos  map[string]hello
		refused []Refused
		closed  bool
		timer   *time.Timer
	}
}

// slaveConn is one connection of a slave.
type slaveConn struct {
	net.Conn
	id   string       // what the slave has told of itself
	next atomic.Int64 // what is sent next
	rate byteRate
}

// byteRate is how much was sent in the last whole second.
type byteRate struct {
	sync.Mutex
	since      time.Time
	now, whole int64
}

func (r *byteRate) add(n int, now time.Time) {
	r.Lock()
	defer r.Unlock()
	r.turn(now)
	r.now += int64(n)
}

func (r *byteRate) read(now time.Time) int64 {
	r.Lock()
	defer r.Unlock()
	r.turn(now)
	return r.whole
}

func (r *byteRate) turn(now time.Time) {
	switch d := now.Sub(r.since); {
	case d < time.Second:
	case d < 2*time.Second:
		r.since, r.whole, r.now = r.since.Add(time.Second), r.now, 0
	default:
		r.since, r.whole, r.now = now, 0, 0
	}
}

// Conn is a connection of a slave, as its master sees it.
type Conn struct {
	Peer           string
	Replica        string // Replica.ID
	InSync         bool   // the replica is
	End            int64  // behind the last byte that the slave has reported
	Next           int64  // what is sent next
	BytesPerSecond int64
}

// Conns are the connections of the slaves that follow, in the order in which they came.
func (m *Master) Conns() (out []Conn) {
	m.event(func(g *Group, now time.Time) {
		g.Tick(now)
		for _, a := range g.conns {
			c := m.mu.open[a.conn]
			if c == nil {
				continue
			}
			in := slices.ContainsFunc(g.all, func(r Replica) bool {
				return r.InSync && r.ID == a.name() && r.Known == (a.who.ID != "")
			})
			out = append(out, Conn{
				Peer: c.RemoteAddr().String(), Replica: a.name(), InSync: in, End: a.end, Next: c.next.Load(), BytesPerSecond: c.rate.read(now),
			})
		}
	})
	return out
}

// NewMaster makes a master. It starts nothing.
func NewMaster(cfg MasterConfig) *Master {
	cfg.setDefaults()
	m := &Master{cfg: cfg, kick: make(chan struct{}, 1)}
	shown := cfg.Log.LogEnd()
	if cfg.Held {
		shown, m.mu.gated = cfg.Shown, true
	}
	m.mu.group = NewGroup(cfg.Rules, cfg.Base, shown, cfg.Log.LogEnd(), cfg.Recorded, time.Now())
	m.mu.open, m.mu.hellos = map[int64]*slaveConn{}, map[string]hello{}
	m.mu.Lock()
	m.decide()
	m.mu.Unlock()
	return m
}

// Serve accepts slaves at l until ctx ends, closes l and every connection, and waits for them. Who still waits for a copy
// is told that there is none.
func (m *Master) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer m.close()
	wg.Go(func() { m.tick(ctx) })
	wg.Go(func() { m.recorder(ctx) })
	for {
		c, err := l.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return fmt.Errorf("cannot accept slaves: %w", err)
			}
			m.cfg.Logger.Warn("cannot accept a slave", "err", err)
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		sc := &slaveConn{Conn: c}
		id, ok := m.enter(sc)
		if !ok {
			m.cfg.Logger.Warn("a slave is refused: too many connections of slaves", "peer", c.RemoteAddr(), "limit", m.cfg.MaxConns)
			_ = c.Close()
			continue
		}
		wg.Go(func() { m.serve(ctx, id, sc) })
	}
}

func (m *Master) enter(c *slaveConn) (id int64, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.closed || len(m.mu.open) >= m.cfg.MaxConns {
		return 0, false
	}
	id = m.conns.Add(1)
	m.mu.open[id] = c
	return id, true
}

func (m *Master) close() {
	m.mu.Lock()
	m.mu.closed = true
	for _, id := range slices.Sorted(maps.Keys(m.mu.open)) {
		_ = m.mu.open[id].Close()
	}
	if m.mu.timer != nil {
		m.mu.timer.Stop()
	}
	m.mu.group.Close()
	ws := m.decide()
	m.mu.Unlock()
	m.finish(ws)
}

// serve is the life of one connection.
func (m *Master) serve(ctx context.Context, id int64, c *slaveConn) {
	peer := c.RemoteAddr().String()
	log := m.cfg.Logger.With("peer", peer)
	defer func() {
		_ = c.Close()
		m.mu.Lock()
		delete(m.mu.open, id)
		m.mu.Unlock()
		m.event(func(g *Group, now time.Time) { g.Leave(id, now) })
	}()
	report, err := m.firstReport(c)
	if err != nil {
		log.Info("a connection to the replication port has ended before a report", "err", err)
		return
	}
	who := m.whoIs(peer)
	c.id = who.ID
	span := Span{Min: m.cfg.Log.LogMin(), End: m.cfg.Log.LogEnd(), FileSize: m.cfg.Log.LogFileSize()}
	start, err := span.start(report, m.cfg.LastFile)
	if err != nil {
		log.Error("a slave is refused", "err", err)
		m.refuse(who, peer, err)
		m.turnAway(c, span, report)
		return
	}
	log.Info("a slave follows", "replica", who.ID, "reported", report, "from", start)
	c.next.Store(start)
	m.event(func(g *Group, now time.Time) { g.Join(id, who, report, now) })
	if m.cfg.Copied != nil {
		m.cfg.Copied(true)
		defer m.cfg.Copied(false)
	}

	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		cancel(m.receive(id, c))
		_ = c.Close()
	})
	err = m.send(ctx, c, start)
	_ = c.Close()
	wg.Wait()
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	log.Info("a slave has left", "err", err)
}

// mostReported is above what any log has. Who begins with more is no slave but a scanner, a browser or a client with the wrong port:
// as a slave that is refused it would be an alarm.
const mostReported = 1 << 50

func (m *Master) firstReport(c net.Conn) (int64, error) {
	var b [reportLen]byte
	if err := c.SetReadDeadline(time.Now().Add(m.cfg.Silence)); err != nil {
		return 0, err
	}
	if _, err := io.ReadFull(c, b[:]); err != nil {
		return 0, err
	}
	end, _, _ := lastReport(b[:])
	if end < 0 || end > mostReported {
		return 0, fmt.Errorf("%q is no report of a slave", b)
	}
	return end, nil
}

// receive takes reports until the connection ends.
func (m *Master) receive(id int64, c net.Conn) error {
	buf := make([]byte, 4<<10)
	have := 0
	for {
		if err := c.SetReadDeadline(time.Now().Add(m.cfg.Silence)); err != nil {
			return err
		}
		n, err := c.Read(buf[have:])
		if err != nil {
			return err
		}
		have += n
		end, used, ok := lastReport(buf[:have])
		if !ok {
			continue
		}
		have = copy(buf, buf[used:have])
		m.event(func(g *Group, now time.Time) { err = g.Report(id, end, now) })
		if err != nil {
			who := Peer{}
			if s, ok := c.(*slaveConn); ok {
				who.ID = s.id
			}
			m.refuse(who, c.RemoteAddr().String(), err)
			return err
		}
	}
}

// send sends the log from pos on until ctx ends.
func (m *Master) send(ctx context.Context, c *slaveConn, pos int64) error {
	wake := make(chan struct{}, 1)
	defer m.cfg.Log.WatchLog(wake)()
	beat := time.NewTimer(m.cfg.Heartbeat)
	defer beat.Stop()
	buf := make([]byte, headLen+m.batch(c, true))
	fileSize := m.cfg.Log.LogFileSize()
	bound, yield := pace{due: time.Now(), credit: paceCredit}, newYield(m.cfg.Log.LogEnd(), time.Now())
	for {
		end := m.cfg.Log.LogEnd()
		far := end-pos > farBehind
		batch := m.batch(c, far)
		// No frame crosses the end of a file: Apache's slaves drop one that does, and the connection with it, for ever.
		n := int(min(end-pos, int64(batch), fileSize-pos%fileSize))
		if n <= 0 {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-wake:
				continue
			case <-beat.C:
				n = 0
			}
		}
		if err := m.frame(c, buf, pos, n); err != nil {
			return err
		}
		pos += int64(n)
		c.next.Store(pos)
		c.rate.add(n, time.Now())
		beat.Reset(m.cfg.Heartbeat)
		var wait time.Duration
		switch now := time.Now(); {
		case n == 0:
		case m.cfg.BytesPerSecond > 0:
			wait = bound.sent(n, m.cfg.BytesPerSecond, now)
		case far:
			wait = yield.sent(n, end, now)
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// batch is the most of the log in one frame to a slave. One of mqx is told by the size whether it is far behind, and gives way then
// (aside); the frames of one of Apache are as large as they are set to be.
func (m *Master) batch(c *slaveConn, far bool) int {
	switch {
	case c.id == "":
		return m.cfg.BatchBytes
	case far:
		return max(m.cfg.BatchBytes, farBatch)
	}
	return min(m.cfg.BatchBytes, farBatch-1)
}

func (m *Master) frame(c net.Conn, buf []byte, pos int64, n int) error {
	putHead(buf, pos, n)
	if n > 0 {
		if err := m.cfg.Log.ReadLog(buf[headLen:headLen+n], pos); err != nil {
			return err
		}
	}
	if err := c.SetWriteDeadline(time.Now().Add(m.cfg.Silence)); err != nil {
		return err
	}
	for b := buf[:headLen+n]; len(b) > 0; {
		piece := min(len(b), writePiece)
		if _, err := c.Write(b[:piece]); err != nil {
			return err
		}
		b = b[piece:]
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
