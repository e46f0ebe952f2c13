package crash

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"mqx/internal/failpoint"
)

// ending is how a round ends.
type ending int

const (
	killed  ending = iota // SIGKILL at a random moment of the load
	atPoint               // by itself, at a point passed under load
	atStart               // by itself, at a point passed while it starts; then it is started again
	atStop                // by itself, at a point passed while it stops in order
	stopped               // in order
)

func (e ending) String() string {
	return [...]string{"killed", "at a point", "at start", "at stop", "stopped"}[e]
}

// plan is what a round is to do.
type plan struct {
	end   ending
	point string // name:n
	sync  bool   // SYNC_FLUSH
	after time.Duration
	tear  bool // a broken record is put behind the end of the log before the next start
	// What is done beside the load.
	expire bool // log files go
	remove bool // a topic is made, written to and deleted
}

// loadPoints are passed while the broker works, with the most passings to wait for.
var loadPoints = map[failpoint.Point]int{
	failpoint.Appended: 400, failpoint.LogRoll: 2, failpoint.LogCreated: 2, failpoint.LogSynced: 10,
	failpoint.Dispatch: 400, failpoint.Dispatched: 400, failpoint.QueueCreated: 6, failpoint.QueueWritten: 60,
	failpoint.IndexEntries: 6, failpoint.IndexSlots: 6, failpoint.IndexCreated: 2,
	failpoint.CheckpointDue: 3, failpoint.CheckpointWritten: 3,
	failpoint.JSONWritten: 4, failpoint.JSONShifted: 4,
	failpoint.LogRemoved: 1, failpoint.QueuesExpired: 1, failpoint.TopicNoted: 1,
}

var startPoints = []failpoint.Point{
	failpoint.RecoveryLog, failpoint.RecoveryQueues, failpoint.FileRename, failpoint.CheckpointWritten,
	failpoint.LogSalvaged, failpoint.LogCutHalf,
}

var stopPoints = []failpoint.Point{failpoint.StopNoted, failpoint.CheckpointDue, failpoint.FileRename, failpoint.JSONWritten, failpoint.JSONShifted}

// turns hands out points in turn, so that a run of consecutive seeds comes to all of them.
type turns struct{ load, start, stop uint64 }

func turnsOf(seed uint64) turns { return turns{load: 4 * seed, start: seed, stop: seed / 2} }

func next(n *uint64, points []failpoint.Point) failpoint.Point {
	*n++
	return points[*n%uint64(len(points))]
}

func newPlan(r *rand.Rand, turn *turns) plan {
	p := plan{sync: r.IntN(2) == 0, after: 20*time.Millisecond + time.Duration(r.Int64N(int64(500*time.Millisecond)))}
	p.expire, p.remove = r.IntN(6) == 0, r.IntN(6) == 0
	switch n := r.IntN(100); {
	case n < 40:
		p.end = killed
		if r.IntN(40) == 0 {
			p.after += offsetsOldest + time.Second // long enough for committed offsets to be old
		}
		p.tear = r.IntN(6) == 0
	case n < 75:
		p.end = atPoint
		point := next(&turn.load, slices.Sorted(maps.Keys(loadPoints)))
		p.point = fmt.Sprintf("%s:%d", point, 1+r.IntN(loadPoints[point]))
		p.expire = p.expire || point == failpoint.LogRemoved || point == failpoint.QueuesExpired
		p.remove = p.remove || point == failpoint.TopicNoted
		p.tear = r.IntN(6) == 0
	case n < 85:
		p.end = atStart
		point := next(&turn.start, startPoints)
		p.point = string(point)
		p.tear = point == failpoint.LogSalvaged || point == failpoint.LogCutHalf
	case n < 90:
		p.end = atStop
		p.point = string(next(&turn.stop, stopPoints))
	default:
		p.end = stopped
	}
	return p
}

func (p plan) String() string {
	mode := "ASYNC_FLUSH"
	if p.sync {
		mode = "SYNC_FLUSH"
	}
	text := fmt.Sprintf("%s, %s", p.end, mode)
	if p.point != "" {
		text += " " + p.point
	}
	for _, x := range []struct {
		is   bool
		what string
	}{{p.tear, "torn tail"}, {p.expire, "expiry"}, {p.remove, "topic deleted"}} {
		if x.is {
			text += ", " + x.what
		}
	}
	return text
}

// totals are what a run went through.
type totals struct {
	rounds, sent, acked, commits, read int
	bytes                              int64
	endings                            map[ending]int
	died                               map[string]int // at points
	missed                             int            // points that were not passed in time
	starts                             []time.Duration
	torn                               int
}

func (t *totals) add(o totals) {
	t.rounds += o.rounds
	t.sent += o.sent
	t.acked += o.acked
	t.commits += o.commits
	t.read += o.read
	t.bytes += o.bytes
	t.missed += o.missed
	t.torn += o.torn
	t.starts = append(t.starts, o.starts...)
	if t.endings == nil {
		t.endings, t.died = map[ending]int{}, map[string]int{}
	}
	for k, n := range o.endings {
		t.endings[k] += n
	}
	for k, n := range o.died {
		t.died[k] += n
	}
}

func (t *totals) String() string {
	var ends []string
	for e := killed; e <= stopped; e++ {
		ends = append(ends, fmt.Sprintf("%d %s", t.endings[e], e))
	}
	slices.Sort(t.starts)
	at := func(q float64) time.Duration {
		if len(t.starts) == 0 {
			return 0
		}
		return t.starts[int(q*float64(len(t.starts)-1))].Round(time.Millisecond)
	}
	return fmt.Sprintf("%d rounds: %s; %d torn tails; %d points not reached; %d messages sent, %d answered, %d read back, %d MiB; %d commits; restart p50 %s, p99 %s",
		t.rounds, strings.Join(ends, ", "), t.torn, t.missed, t.sent, t.acked, t.read, t.bytes>>20, t.commits, at(0.5), at(0.99))
}

// points lists how often the broker died at each point, and those at which it never did.
func (t *totals) points() string {
	var out []string
	for _, p := range failpoint.All() {
		out = append(out, fmt.Sprintf("%s %d", p, t.died[string(p)]))
	}
	return strings.Join(out, ", ")
}
