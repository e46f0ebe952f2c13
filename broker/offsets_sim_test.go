package broker

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"mqx/internal/vfs"
	"mqx/remoting"
)

// offsetSim is a group of a master and two slaves with a topic of a few queues and one group of consumers. The tables of offsets and
// all that merges them are the broker's; the logs are their ends, and the connections calls.
type offsetSim struct {
	t      *testing.T
	r      *rand.Rand
	now    int64 // ms
	nodes  [3]*offsetNode
	master int
	events []string
	epoch  int64

	// floor is what the master has at least: what was committed to it, goes back by a reset, a removal, a kill and with a lost tail only.
	floor [simQueues]int64
	// most is what it has at most: once somebody has set it back, what was committed since. simAny where that is not known.
	most [simQueues]int64
	// ahead is what a slave may have that its master has lost.
	ahead [simQueues]int64
}

type offsetNode struct {
	b     *Broker
	t     tables
	ends  [simQueues]int64
	up    bool
	queue []simPush // what it was told and has not looked at yet
	// epoch is that of the master that it knows.
	epoch int64
	// owed is what consumers have committed to this slave and its master may not have, -1 for nothing.
	owed [simQueues]int64
	// saved is what floor, of a master, and owed were when the table was last saved: a kill takes the rest.
	saved struct{ floor, owed [simQueues]int64 }
}

type simPush struct {
	at int64
	remoting.ChangedOffset
}

const (
	simQueues     = 2
	simAny        = math.MaxInt64
	simNone       = -1
	offsetSeeds   = 2000
	offsetSimEnv  = "MQX_OFFSETSIM_SEEDS"
	offsetSimSeed = "MQX_OFFSETSIM_SEED"
)

func simAll(v int64) (out [simQueues]int64) {
	for q := range out {
		out[q] = v
	}
	return out
}

func (n *offsetNode) end(_ string, q int32) int64 { return n.ends[q] }

func (n *offsetNode) at(q int32) int64 {
	at, _ := n.b.offsets.Committed("T", "G", q)
	return at
}

func (s *offsetSim) clock() time.Time { return time.UnixMilli(s.now) }

func (s *offsetSim) name(i int) string { return "broker" + strconv.Itoa(i) }

// C5 of a group: committed offsets do not go back over pushes, looks at the table, reads at slaves while the master is away, its
// return and promotions, unless somebody resets or removes them, a kill takes what was not saved, or the log itself is cut; a
// master's are never behind the end of its log; and what was reset or removed does not come back.
func TestOffsetSimulation(t *testing.T) {
	first, seeds := uint64(0), uint64(offsetSeeds)
	if n, err := strconv.ParseUint(os.Getenv(offsetSimEnv), 10, 64); err == nil {
		seeds = n
	}
	if n, err := strconv.ParseUint(os.Getenv(offsetSimSeed), 10, 64); err == nil {
		first, seeds = n, 1
	}
	kinds := map[string]int{}
	for seed := first; seed < first+seeds && !t.Failed(); seed++ {
		s := &offsetSim{t: t, r: rand.New(rand.NewPCG(seed, 5)), now: fixedNow().UnixMilli(), most: simAll(simAny), ahead: simAll(simNone)}
		for i := range s.nodes {
			s.nodes[i] = &offsetNode{up: true, owed: simAll(simNone)}
			s.nodes[i].saved.owed = simAll(simNone)
			s.load(i, vfs.NewMem())
		}
		for range 80 {
			s.event()
			s.check()
		}
		s.rest()
		if t.Failed() {
			t.Logf("%s=%d: %v", offsetSimSeed, seed, s.events)
		}
		for _, e := range s.events {
			kind, _, _ := strings.Cut(e, " ")
			kinds[kind]++
		}
	}
	t.Logf("%d seeds: %v", seeds, kinds)
}

// note keeps an event for the log; its first word counts.
func (s *offsetSim) note(format string, args ...any) {
	s.events = append(s.events, fmt.Sprintf(format, args...))
}

func (s *offsetSim) event() {
	s.now += 1 + s.r.Int64N(10_000)
	s.deliverOld()
	q := int32(s.r.IntN(simQueues))
	i := s.r.IntN(len(s.nodes))
	m, n := s.nodes[s.master], s.nodes[i]
	slave := n != m && n.up
	switch s.r.IntN(18) {
	case 0:
		if m.up {
			m.ends[q] += 1 + s.r.Int64N(5)
			s.note("send %d to %d", q, m.ends[q])
		}
	case 1, 2: // the log comes, maybe not all of it
		if slave && m.up {
			n.ends[q] += s.r.Int64N(m.ends[q] - n.ends[q] + 1)
			s.note("log of %d: %d has %d", q, i, n.ends[q])
		}
	case 3, 4, 5:
		s.consume(i, q)
	case 6:
		if _, there := m.b.offsets.Committed("T", "G", q); m.up && there {
			s.push(i, remoting.ChangedOffset{Topic: "T", Group: "G", Queue: q, Offset: m.at(q), At: s.now})
		}
	case 7:
		s.deliver(i)
	case 8, 9:
		if slave && m.up {
			s.look(i)
		}
	case 10, 11:
		s.upOrDown(i)
	case 12:
		if slave && !m.up {
			s.promote(i)
		}
	case 13:
		if m.up && s.r.IntN(2) == 0 {
			s.reset(q)
		}
	case 14:
		if slave && s.r.IntN(3) == 0 {
			s.restart(i)
			s.note("restart of %d", i)
		}
	case 15:
		if m.up && s.r.IntN(8) == 0 {
			s.remove()
		}
	case 16:
		if n.up {
			s.save(i)
			s.note("save of %d", i)
		}
	case 17:
		if slave && m.up {
			s.bringBack(i)
		}
	}
}

// load starts a broker on what is on its disk.
func (s *offsetSim) load(i int, fsys vfs.FS) {
	b := &Broker{log: quiet, offsets: s.table(fsys)}
	n := s.nodes[i]
	n.b, n.t, n.queue = b, tables{b: b, master: s.name(s.master)}, nil
}

func (s *offsetSim) table(fsys vfs.FS) *offsetTable {
	t := newOffsetTable(fsys, "/config/consumerOffset.json", s.clock, 1, quiet)
	if err := t.Load(); err != nil {
		panic(err)
	}
	return t
}

// save is what a broker does every few seconds.
func (s *offsetSim) save(i int) {
	n := s.nodes[i]
	if err := n.b.offsets.Save(); err != nil {
		panic(err)
	}
	n.saved.floor, n.saved.owed = s.floor, n.owed
}

// restart is a stop in order and a start: the file has the table, and what was committed to this slave alone.
func (s *offsetSim) restart(i int) {
	s.save(i)
	s.load(i, s.nodes[i].b.offsets.fsys)
}

// kill is an end that saves nothing.
func (s *offsetSim) kill(i int) {
	n := s.nodes[i]
	if i == s.master {
		s.mayBeAhead()
		s.floor, s.most = n.saved.floor, simAll(simAny) // what was reset and not saved is lost too
	}
	n.owed = n.saved.owed
	s.load(i, n.b.offsets.fsys)
}

// mayBeAhead notes that the master is to lose some of what is known now. Kills of slaves may bring back what their files have.
func (s *offsetSim) mayBeAhead() {
	for _, n := range s.nodes {
		file := s.table(n.b.offsets.fsys)
		for q := range int32(simQueues) {
			saved, _ := file.Committed("T", "G", q)
			s.ahead[q] = max(s.ahead[q], n.at(q), saved, n.owed[q])
			for _, p := range n.queue { // told and on its way
				if p.Queue == q {
					s.ahead[q] = max(s.ahead[q], p.Offset)
				}
			}
		}
	}
}

// consume reads at the master, or at a slave while that is away, and commits there. A consumer that has read all commits all the same.
func (s *offsetSim) consume(i int, q int32) {
	if s.nodes[s.master].up {
		i = s.master
	}
	n := s.nodes[i]
	at := n.at(q)
	switch {
	case !n.up:
		return
	case i != s.master:
		s.consumeAtSlave(i, q)
		return
	case at >= n.ends[q]:
		return
	}
	to := at + 1 + s.r.Int64N(n.ends[q]-at)
	n.b.offsets.Commit([]byte("T"), []byte("G"), q, to)
	s.floor[q] = max(s.floor[q], to)
	s.most[q] = max(s.most[q], to)
	s.note("commit %d at %d: %d", q, i, to)
}

func (s *offsetSim) consumeAtSlave(i int, q int32) {
	n := s.nodes[i]
	at, there := n.b.offsets.Committed("T", "G", q)
	to := at + s.r.Int64N(max(0, n.ends[q]-at)+1)
	if to == at && !there {
		return
	}
	n.b.offsets.commitOwn([]byte("T"), []byte("G"), q, to, n.epoch)
	if to == at {
		s.note("repeat %d at %d: %d", q, i, to)
		return
	}
	n.owed[q] = to
	s.most[q] = max(s.most[q], to)
	s.note("slave-commit %d at %d: %d", q, i, to)
}

// push is what the master tells a slave, which takes it over at once or later.
func (s *offsetSim) push(i int, o remoting.ChangedOffset) {
	n := s.nodes[i]
	if i == s.master || !n.up || n.t.offsets == nil {
		return
	}
	n.queue = append(n.queue, simPush{s.now, o})
	s.note("push %+v to %d", o, i)
	if s.r.IntN(2) == 0 {
		s.deliver(i)
	}
}

func (s *offsetSim) deliver(i int) {
	n := s.nodes[i]
	if n.t.offsets != nil {
		for _, p := range n.queue {
			n.t.takeOffsets([]remoting.ChangedOffset{p.ChangedOffset})
			if p.Reset { // it counts as of when it is told
				n.owed[p.Queue] = simNone
			}
			s.note("told %d: %d of %d", i, p.Offset, p.Queue)
		}
	}
	n.queue = nil
}

// deliverOld delivers what has waited as long as it can: the slave's turn has come.
func (s *offsetSim) deliverOld() {
	for i, n := range s.nodes {
		if len(n.queue) > 0 && s.now-n.queue[0].at > setBackOverlap.Milliseconds()/2 {
			s.deliver(i)
		}
	}
}

// look is a look of a slave at the whole table, while consumers that do not know that the master is there commit to it.
func (s *offsetSim) look(i int) {
	n, m := s.nodes[i], s.nodes[s.master]
	n.t.replaced = n.t.replaced || n.t.offsets == nil && len(n.b.offsets.own.copy()) > 0 && n.b.offsets.ownEpoch.Load() != s.epoch // as sameEpoch
	n.epoch = s.epoch
	told := m.b.offsets.Told(n.b.offsets.taken.since(n.t.master))
	s.note("look of %d", i)
	n.t.between = func() {
		if s.r.IntN(8) == 0 {
			s.now++
			s.consumeAtSlave(i, int32(s.r.IntN(simQueues)))
		}
	}
	n.t.takeTold(told, n.end)
	n.t.between = nil
	for q := range int32(simQueues) {
		if m.at(q) >= n.owed[q] { // it has that
			n.owed[q], n.saved.owed[q] = simNone, simNone
		}
	}
}

// bringBack is how a slave tells the master that is there, in pieces of one queue.
func (s *offsetSim) bringBack(i int) {
	n, m := s.nodes[i], s.nodes[s.master]
	if n.t.offsets == nil {
		return
	}
	for more := (&remoting.HAOffsetsAfter{Most: 1}); more != nil; {
		have := n.b.haOffsets(more)
		more = have.More
		told := &remoting.HAOffsets{OffsetTable: map[string]map[int32]int64{}, CommittedAt: have.CommittedAt}
		for key, queues := range have.OffsetTable {
			told.OffsetTable[key] = map[int32]int64{}
			for q, at := range queues {
				told.OffsetTable[key][q] = min(at, n.ends[q])
			}
		}
		back := m.b.mergeBackTo("slave", told, func(string) bool { return true }, m.end)
		n.b.takeStanding(have, back)
	}
	s.isOwed(i)
	s.note("brought by %d", i)
}

// isOwed notes that the master must have now what was committed to a slave.
func (s *offsetSim) isOwed(i int) {
	n, m := s.nodes[i], s.nodes[s.master]
	for q := range simQueues {
		s.floor[q] = max(s.floor[q], min(n.owed[q], n.ends[q], m.ends[q]))
	}
}

// upOrDown stops or kills a broker, or lets it come back.
func (s *offsetSim) upOrDown(i int) {
	n := s.nodes[i]
	switch {
	case !n.up && i == s.master:
		s.masterBack()
	case !n.up:
		s.load(i, n.b.offsets.fsys)
		n.up = true
		s.note("start of %d", i)
	case i != s.master && s.r.IntN(3) > 0:
	case s.r.IntN(2) == 0:
		s.kill(i)
		n.up = false
		s.note("kill of %d", i)
	default:
		s.restart(i)
		n.up = false
		s.note("stop of %d", i)
	}
}

// masterBack lets the master come back: it asks its slaves before it serves.
func (s *offsetSim) masterBack() {
	m := s.nodes[s.master]
	s.load(s.master, m.b.offsets.fsys)
	m.up = true
	s.takeBack()
	s.note("return of %d", s.master)
}

func (s *offsetSim) takeBack() {
	m := s.nodes[s.master]
	for i, n := range s.nodes {
		if n != m && n.up {
			m.b.mergeBackTo("slave", n.b.haOffsets(nil), func(string) bool { return true }, m.end)
			s.isOwed(i)
		}
	}
}

// promote makes a slave the master. What it has not of the log is lost, and so are the offsets there: the others are cut.
func (s *offsetSim) promote(i int) {
	n := s.nodes[i]
	s.mayBeAhead()
	// What its own table lacks and only the old master had been told is consumed again: that is the age of its last look.
	for q := range int32(simQueues) {
		s.floor[q] = min(max(s.floor[q], n.owed[q]), max(n.at(q), n.owed[q]), n.ends[q])
	}
	s.master = i
	s.restart(i)
	n.b.offsets.cut(n.end)
	if err := n.b.offsets.forgetOwn(); err != nil {
		panic(err)
	}
	s.epoch++
	n.epoch, s.most = s.epoch, simAll(simAny)
	s.takeBack()
	for j, o := range s.nodes {
		o.owed, o.saved.owed = simAll(simNone), simAll(simNone)
		if o == n {
			continue
		}
		was := o.ends
		for q := range simQueues {
			o.ends[q] = min(o.ends[q], n.ends[q])
		}
		if o.ends != was { // as with the log of a slave that parts from its master's (cutLog)
			o.b.offsets.cut(o.end)
			s.save(j)
		}
		o.t, o.queue = tables{b: o.b, master: s.name(i), replaced: true}, nil
	}
	s.save(i)
	s.note("promotion of %d", i)
}

// reset sets an offset back at the master, which tells its slaves.
func (s *offsetSim) reset(q int32) {
	m := s.nodes[s.master]
	at := m.at(q)
	if at == 0 {
		return
	}
	to := s.r.Int64N(at)
	m.b.offsets.Commit([]byte("T"), []byte("G"), q, to)
	s.note("reset %d to %d", q, to)
	s.setBack(q, to)
	for i := range s.nodes {
		if s.r.IntN(2) == 0 { // else the slave is late and told nothing for a while
			s.push(i, remoting.ChangedOffset{Topic: "T", Group: "G", Queue: q, Offset: to, Reset: true, At: s.now})
		}
	}
}

// setBack notes that what was committed to a queue before does not count any more.
func (s *offsetSim) setBack(q int32, to int64) {
	s.floor[q], s.most[q], s.ahead[q] = to, to, simNone
	for _, n := range s.nodes {
		n.owed[q], n.saved.owed[q] = simNone, simNone
	}
}

// remove deletes the group, or the topic, and makes it anew: the queues of a topic begin again. Slaves are told or, as those that
// are away or look too late, find out by a look.
func (s *offsetSim) remove() {
	m, topic := s.nodes[s.master], s.r.IntN(2) == 0
	drop := func(o *offsetTable) { o.RemoveGroup("G") }
	if topic {
		drop = func(o *offsetTable) { o.RemoveTopic("T") }
	}
	drop(m.b.offsets)
	for q := range int32(simQueues) {
		s.setBack(q, 0)
	}
	s.save(s.master)
	for _, n := range s.nodes {
		if topic {
			n.ends = simAll(0)
		}
		if n != m && n.up && n.t.offsets != nil && s.r.IntN(2) == 0 {
			drop(n.b.offsets)
		}
	}
	s.note("removal, the topic: %v", topic)
}

func (s *offsetSim) check() {
	m := s.nodes[s.master]
	if !m.up {
		return
	}
	for q := range int32(simQueues) {
		if at := m.at(q); at < s.floor[q] || at > m.ends[q] || at > s.most[q] {
			s.t.Errorf("queue %d of the master %d is at %d: %d was committed, %d at most, and its log ends at %d", q, s.master, at, s.floor[q], s.most[q], m.ends[q])
		}
	}
}

// rest lets all have all: then they have the same, but for what a master has lost by a kill.
func (s *offsetSim) rest() {
	for i, n := range s.nodes {
		if !n.up {
			s.upOrDown(i)
		}
		s.now++
	}
	s.check()
	m := s.nodes[s.master]
	for i, n := range s.nodes {
		if n == m {
			continue
		}
		n.ends = m.ends
		s.look(i)
		s.deliver(i)
		s.bringBack(i)
	}
	s.check()
	for i, n := range s.nodes {
		if n == m {
			continue
		}
		s.now++
		s.look(i)
		s.bringBack(i)
		for q := range int32(simQueues) {
			if n.at(q) < m.at(q) || n.at(q) > max(m.at(q), s.ahead[q]) || n.at(q) > n.ends[q] {
				s.t.Errorf("queue %d of the slave %d is at %d, of its master at %d, at most at %d, and its log ends at %d", q, i, n.at(q), m.at(q), s.ahead[q], n.ends[q])
			}
		}
	}
	s.check()
}
