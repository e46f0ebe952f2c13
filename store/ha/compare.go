package ha

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// Mine is the log of a slave that is compared with its master's.
type Mine interface {
	LogMin() int64
	LogEnd() int64
	ReadLog(b []byte, off int64) error
	// RecordFloor is the last position at or before off where a record begins or the last one ends.
	RecordFloor(off int64) (int64, error)
	// RecordBefore is where the last whole record that ends at or before off begins, blanks not counted; -1 where there is none.
	RecordBefore(off int64) (int64, error)
}

const (
	compareFirst = 1 << 20 // bytes at the end that are compared first
	compareMore  = 8       // times as many the next time
	compareWait  = 20 * time.Second
	// compareLease bounds one connection: a master gives one up that has had no second report for 20 s, and a second report
	// would make a copy of what is only compared.
	compareLease = compareWait / 2
)

// ErrNothingCommon says that no record is the same in two logs.
var ErrNothingCommon = errors.New("the logs have no record in common")

// CommonPoint finds where a slave's log parts from that of the master at the replication address addr, which has the bytes
// from low to high: everything before the position it returns, where a record begins or the log ends, is the same. It looks
// at the end first and goes back until it meets a record that is the same in both: a record holds its position, the time and
// the address of the broker that wrote it, so that the logs before it are one and the same log. ErrNothingCommon where
// there is none.
func CommonPoint(ctx context.Context, addr string, mine Mine, low, high int64) (int64, error) {
	d := net.Dialer{Timeout: compareWait / 4}
	return commonPoint(ctx, func(ctx context.Context) (net.Conn, error) { return d.DialContext(ctx, "tcp", addr) }, compareLease, mine, low, high)
}

func commonPoint(ctx context.Context, dial func(context.Context) (net.Conn, error), lease time.Duration, mine Mine, low, high int64) (int64, error) {
	low, high = max(low, mine.LogMin()), min(high, mine.LogEnd())
	for n := int64(compareFirst); low < high; n *= compareMore {
		from, err := mine.RecordFloor(max(low, high-n))
		if err != nil {
			return 0, err
		}
		if from = max(from, low); from >= high {
			from = low
		}
		same, err := compareWith(ctx, dial, lease, mine, from, high)
		if err != nil {
			return 0, err
		}
		at, err := mine.RecordFloor(same)
		if err != nil {
			return 0, err
		}
		switch rec, err := mine.RecordBefore(at); {
		case err != nil:
			return 0, err
		case rec >= from:
			return at, nil
		case from == low:
			return 0, ErrNothingCommon
		}
	}
	return 0, ErrNothingCommon
}

// compareWith reads what the master has in [from, to) and returns how far that is what the slave has. Each connection is for
// lease, and one frame at least.
func compareWith(ctx context.Context, dial func(context.Context) (net.Conn, error), lease time.Duration, mine Mine, from, to int64) (int64, error) {
	at := max(from, 1) // masters of Apache take 0 for a slave without a log
	for same := true; same && at < to; {
		c, err := dial(ctx)
		if err != nil {
			return 0, err
		}
		stop := context.AfterFunc(ctx, func() { _ = c.Close() })
		at, same, err = compareOn(c, time.Now().Add(lease), mine, at, to)
		stop()
		_ = c.Close()
		if err != nil {
			return 0, err
		}
	}
	return min(at, to), nil
}

// compareOn compares on one connection, from at on, until something differs, to is reached, or the time is over. It returns
// how far that is the same.
func compareOn(c net.Conn, until time.Time, mine Mine, at, to int64) (upTo int64, same bool, err error) {
	if _, err := c.Write(appendReport(nil, at)); err != nil {
		return 0, false, err
	}
	r := bufio.NewReaderSize(c, 256<<10)
	var head [headLen]byte
	var theirs, ours []byte
	for first := at; at < to && (at == first || time.Now().Before(until)); {
		if err := c.SetReadDeadline(time.Now().Add(compareWait)); err != nil {
			return 0, false, err
		}
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return 0, false, fmt.Errorf("cannot read the log of the master at %d: %w", at, err)
		}
		off, n, err := parseHead(head[:])
		if err != nil {
			return 0, false, err
		}
		if n == 0 && off == at {
			continue
		}
		if off != at {
			return 0, false, fmt.Errorf("cannot compare with the log of the master: asked for %d, it sends %d", at, off)
		}
		theirs, ours = grown(theirs, n), grown(ours, n)
		if _, err := io.ReadFull(r, theirs); err != nil {
			return 0, false, fmt.Errorf("cannot read the log of the master at %d: %w", at, err)
		}
		part := int(min(int64(n), to-at))
		if err := mine.ReadLog(ours[:part], at); err != nil {
			return 0, false, err
		}
		if i := firstDifference(ours[:part], theirs[:part]); i >= 0 {
			return at + int64(i), false, nil
		}
		at += int64(n)
	}
	return at, true, nil
}

func grown(b []byte, n int) []byte {
	if cap(b) < n {
		return make([]byte, n)
	}
	return b[:n]
}
