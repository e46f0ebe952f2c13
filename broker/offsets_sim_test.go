package broker

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"mqx/internal/vfs"
	"mqx/remoting"
)

// offsetSim is a group of a master and two slaves with a topic of a few queues and one group of consumers. The tables of offsets and
// all that merges them are the broker's; the logs are their ends, and the connections calls.
type offsetSim struct {
	t      *testing.T
	r      *rand.Rand
	nodes  [3]*offsetNode
	master int
	floor  [simQueues]int64 // what was committed: it goes back by a reset and with a lost tail only
	events []string
	epoch  int64
}

type offsetNode struct {
	b    *Broker
	t    tables
	ends [simQueues]int64
	up   bool
	// epoch is that of the master that it knows.
	epoch int64
}

const (
	simQueues     = 2
	offsetSeeds   = 2000
	offsetSimEnv  = "MQX_OFFSETSIM_SEEDS"
	offsetSimSeed = "MQX_OFFSETSIM_SEED"
)

func (n *offsetNode) end(_ string, q int32) int64 { return n.ends[q] }

func (n *offsetNode) at(q int32) int64 {
	at, _ := n.b.offsets.Committed("T", "G", q)
	return at
}

// restart is a stop in order and a start: the file has the table, and what was committed to this slave alone.
func (n *offsetNode) restart() {
	if err := n.b.offsets.Save(); err != nil {
		panic(err)
	}
	b := &Broker{log: quiet, offsets: newOffsetTable(n.b.offsets.fsys, n.b.offsets.path, fixedNow, 1, quiet)}
	if err := b.offsets.Load(); err != nil {
		panic(err)
	}
	n.b, n.t = b, tables{b: b}
}

// C5 of a group: committed offsets do not go back over pushes, looks at the table, reads at slaves while the master is away, its
// return and promotions, unless somebody resets them or the log itself is cut; and a master's are never behind the end of its log.
func TestOffsetSimulation(t *testing.T) {
	first, seeds := uint64(0), uint64(offsetSeeds)
	if n, err := strconv.ParseUint(os.Getenv(offsetSimEnv), 10, 64); err == nil {
		seeds = n
	}
	if n, err := strconv.ParseUint(os.Getenv(offsetSimSeed), 10, 64); err == nil {
		first, seeds = n, 1
	}
	for seed := first; seed < first+seeds && !t.Failed(); seed++ {
		s := &offsetSim{t: t, r: rand.New(rand.NewPCG(seed, 5))}
		for i := range s.nodes {
			b := &Broker{log: quiet, offsets: newOffsetTable(vfs.NewMem(), "/config/consumerOffset.json", fixedNow, 1, quiet)}
			s.nodes[i] = &offsetNode{b: b, t: tables{b: b}, up: true}
		}
		for range 60 {
			s.event()
			s.check()
		}
		s.rest()
		if t.Failed() {
			t.Logf("%s=%d: %v", offsetSimSeed, seed, s.events)
		}
	}
}

func (s *offsetSim) note(format string, args ...any) {
	s.events = append(s.events, fmt.Sprintf(format, args...))
}

func (s *offsetSim) event() {
	m, q := s.nodes[s.master], int32(s.r.IntN(simQueues))
	i := s.r.IntN(len(s.nodes))
	n := s.nodes[i]
	slave := n != m && n.up
	switch s.r.IntN(11) {
	case 0:
		if m.up {
			m.ends[q] += 1 + s.r.Int64N(5)
			s.note("send %d to %d", q, m.ends[q])
		}
	case 1, 2: // the log comes, maybe not all of it
		if slave && m.up {
			n.ends[q] += s.r.Int64N(m.ends[q] - n.ends[q] + 1)
			s.note("%d has %d to %d", i, q, n.ends[q])
		}
	case 3, 4:
		s.consume(i, q)
	case 5:
		if slave && m.up && n.t.offsets != nil {
			n.t.takeOffsets([]remoting.ChangedOffset{{Topic: "T", Group: "G", Queue: q, Offset: m.at(q)}})
			s.note("push %d to %d", q, i)
		}
	case 6:
		if slave && m.up {
			s.look(i)
		}
	case 7:
		s.upOrDown(i)
	case 8:
		if slave && !m.up {
			s.promote(i)
		}
	case 9:
		if m.up && s.r.IntN(4) == 0 {
			s.reset(q)
		}
	case 10:
		if slave {
			n.restart()
			s.note("%d is restarted", i)
		}
	}
}

// consume reads at the master, or at a slave while that is away, and commits there.
func (s *offsetSim) consume(i int, q int32) {
	n := s.nodes[i]
	if s.nodes[s.master].up {
		i, n = s.master, s.nodes[s.master]
	}
	if !n.up || n.at(q) >= n.ends[q] {
		return
	}
	to := n.at(q) + 1 + s.r.Int64N(n.ends[q]-n.at(q))
	n.b.offsets.Commit([]byte("T"), []byte("G"), q, to)
	if i != s.master {
		n.b.offsets.noteOwn("T", "G", q, n.epoch)
	}
	s.floor[q] = max(s.floor[q], to)
	s.note("commit %d at %d: %d", q, i, to)
}

// look is a look of a slave at the whole table.
func (s *offsetSim) look(i int) {
	n := s.nodes[i]
	n.t.replaced = n.t.replaced || n.t.offsets == nil && len(n.b.offsets.own.copy()) > 0 && n.b.offsets.ownEpoch.Load() != s.epoch // as sameEpoch
	n.epoch = s.epoch
	n.t.mergeTable(s.nodes[s.master].b.offsets.Snapshot().OffsetTable, n.end)
	s.note("look of %d", i)
}

// upOrDown stops the master in order, or lets it come back: it asks its slaves before it serves.
func (s *offsetSim) upOrDown(i int) {
	m := s.nodes[s.master]
	if m.up {
		if i == s.master {
			m.up = false
			s.note("%d stops", i)
		}
		return
	}
	m.restart()
	m.up = true
	s.takeBack()
	s.note("%d comes back", s.master)
}

func (s *offsetSim) takeBack() {
	m := s.nodes[s.master]
	for _, n := range s.nodes {
		if n != m {
			m.b.mergeBackTo("slave", n.b.haOffsets(nil), func(string) bool { return true }, m.end)
		}
	}
}

// promote makes a slave the master. What it has not of the log is lost, and so are the offsets there: the others are cut.
func (s *offsetSim) promote(i int) {
	n := s.nodes[i]
	// What its own table lacks and only the old master had been told is consumed again: that is the age of its last look.
	for q := range int32(simQueues) {
		known := n.at(q)
		for _, o := range s.nodes {
			if o != n && o.up {
				known = max(known, s.told(o, q))
			}
		}
		s.floor[q] = min(s.floor[q], known, n.ends[q])
	}

	n.restart()
	n.b.offsets.cut(n.end)
	if err := n.b.offsets.forgetOwn(); err != nil {
		panic(err)
	}
	s.epoch++
	s.master, n.epoch = i, s.epoch
	s.takeBack()
	for _, o := range s.nodes {
		if o == n {
			continue
		}
		for q := range simQueues {
			o.ends[q] = min(o.ends[q], n.ends[q])
		}
		if !o.up { // the old master becomes a slave
			o.restart()
			o.up = true
		}
		o.t = tables{b: o.b, replaced: true}
	}
	s.note("%d is promoted", i)
}

// told is what a slave tells of a queue that was committed to it alone.
func (s *offsetSim) told(n *offsetNode, q int32) int64 {
	return n.b.haOffsets(nil).OffsetTable["T@G"][q]
}

// reset sets an offset back at the master, which tells its slaves.
func (s *offsetSim) reset(q int32) {
	m := s.nodes[s.master]
	to := s.r.Int64N(m.at(q) + 1)
	m.b.offsets.Commit([]byte("T"), []byte("G"), q, to)
	for _, n := range s.nodes {
		if n != m && n.t.offsets != nil {
			n.t.takeOffsets([]remoting.ChangedOffset{{Topic: "T", Group: "G", Queue: q, Offset: to, Reset: true}})
		}
	}
	s.floor[q] = to
	s.note("reset %d to %d", q, to)
}

func (s *offsetSim) check() {
	m := s.nodes[s.master]
	if !m.up {
		return
	}
	for q := range int32(simQueues) {
		if at := m.at(q); at < s.floor[q] || at > m.ends[q] {
			s.t.Errorf("queue %d of the master %d is at %d: %d was committed, and its log ends at %d", q, s.master, at, s.floor[q], m.ends[q])
		}
	}
}

// rest lets all have all: then they have the same.
func (s *offsetSim) rest() {
	if m := s.nodes[s.master]; !m.up {
		s.upOrDown(s.master)
	}
	s.check()
	m := s.nodes[s.master]
	for i, n := range s.nodes {
		if n == m {
			continue
		}
		n.ends = m.ends
		s.look(i)
		s.look(i)
		for q := range int32(simQueues) {
			if n.at(q) < m.at(q) || n.at(q) > n.ends[q] {
				s.t.Errorf("queue %d of the slave %d is at %d, of its master at %d, and its log ends at %d", q, i, n.at(q), m.at(q), n.ends[q])
			}
		}
	}
}
