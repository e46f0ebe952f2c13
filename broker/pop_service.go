package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mqx/broker/pop"
	"mqx/internal/jsonfile"
	"mqx/remoting"
	"mqx/remoting/server"
	"mqx/store"
)

// popService is pop consumption: the queues that are being popped, the held
// pops, the buffer of checkpoints, the state of ordered consumption and the
// revival of what nobody acknowledged.
type popService struct {
	b           *Broker
	reviveTopic string
	queues      *popQueues
	hold        *popHold // POP_MESSAGE
	notices     *popHold // NOTIFICATION
	woken       *wokenPulls
	turn        atomic.Uint32 // of the revive queues
	reviveTurns uint32        // revive queues that pops take in turn (reviveQueueNum at the start)
	merging     bool          // checkpoints may be in the buffer

	mu struct {
		sync.Mutex
		buffer  *pop.Buffer
		orders  *pop.Orders
		dirty   bool                         // orders have changed since they were saved
		free    map[pop.QueueKey]*time.Timer // fire when an ordered queue opens
		stopped bool
		deleted map[string]int64 // topics, when they were deleted, ms
	}
	saving    sync.Mutex
	changed   changedTimes
	flushSoon chan struct{} // the buffer has something that is due earlier
	records   chan struct{} // the revive topic has records
	revived   reviveStats
	// behindUntil is the newest store time of a message that was popped before that time, ms.
	behindUntil atomic.Int64
}

// maxDeleted bounds the deleted topics that are remembered.
const maxDeleted = 10_000

// longestTimerMs is the longest time that a timer is set for: some three
// hundred years.
const longestTimerMs = math.MaxInt64 / int64(time.Millisecond)

// maxParkedOrders bounds the timers of ordered queues.
const maxParkedOrders = 100_000

func newPopService(b *Broker, cfg *Config) *popService {
	limits := func() *Pop { return &b.cfg().Pop }
	s := &popService{
		b: b, reviveTopic: pop.ReviveTopic(cfg.BrokerClusterName), queues: newPopQueues(b.now),
		hold: newPopHold(b.now, limits, false), notices: newPopHold(b.now, limits, true),
		reviveTurns: uint32(cfg.ReviveQueueNum), merging: cfg.PopMerge, flushSoon: make(chan struct{}, 1), records: make(chan struct{}, 1),
	}
	s.changed.more = make(chan struct{}, 1)
	s.woken = newWokenPulls(b.classes.vip, func(r *server.Request, _ bool) {
		if r.Code == remoting.ReqNotification {
			b.handleNotification(r)
			return
		}
		b.handlePop(r)
	})
	s.mu.buffer = pop.NewBuffer(cfg.Pop.limits())
	s.mu.orders = pop.NewOrders()
	s.mu.deleted = map[string]int64{}
	s.mu.free = map[pop.QueueKey]*time.Timer{}
	return s
}

// Load makes sure of the revive topic's queues and reads consumerOrderInfo.json.
func (s *popService) Load() error {
	if err := s.growReviveTopic(); err != nil {
		return err
	}
	_, err := jsonfile.Load(s.b.fsys, s.b.configFile("consumerOrderInfo.json"), s.mu.orders.Decode)
	return err
}

// growReviveTopic gives the revive topic as many queues as pops take; the topic
// remembers them when there are fewer again.
func (s *popService) growReviveTopic() error {
	tp := s.b.topics.Get(s.reviveTopic)
	if tp == nil || tp.WriteQueueNums >= int32(s.reviveTurns) {
		return nil
	}
	c := tp.TopicConfig
	c.ReadQueueNums, c.WriteQueueNums = max(c.ReadQueueNums, int32(s.reviveTurns)), int32(s.reviveTurns)
	saved := make(chan error, 1)
	s.b.topics.Put([]remoting.TopicConfig{c}, func(err error) { saved <- err })
	if err := <-saved; err != nil {
		return fmt.Errorf("cannot save the queues of the revive topic: %w", err)
	}
	return nil
}

// Start sets the timers of ordered queues that were closed at the last stop.
func (s *popService) Start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for q := range s.mu.orders.All {
		s.watchFree(q)
	}
}

// Save writes consumerOrderInfo.json when it has changed.
func (s *popService) Save() error {
	s.saving.Lock()
	defer s.saving.Unlock()
	s.mu.Lock()
	if !s.mu.dirty {
		s.mu.Unlock()
		return nil
	}
	s.mu.dirty = false
	s.mu.orders.Clean(s.b.now().UnixMilli(), s.known)
	data, err := s.mu.orders.Encode()
	s.mu.Unlock()
	if err == nil {
		err = jsonfile.Save(s.b.fsys, s.b.configFile("consumerOrderInfo.json"), data)
	}
	if err != nil {
		s.mu.Lock()
		s.mu.dirty = true
		s.mu.Unlock()
		err = fmt.Errorf("cannot save the state of ordered consumption: %w", err)
		s.b.log.Error("the state of ordered consumption could not be saved", "error", err)
	}
	return err
}

// known reports whether topic, queue and group of an entry exist.
func (s *popService) known(q pop.QueueKey) bool {
	tp := s.b.topics.Get(q.Topic)
	return tp != nil && q.Queue < tp.ReadQueueNums && s.b.groups.Get(q.Group) != nil
}

// Run writes what has to leave the buffer and revives what nobody acknowledged
// until ctx ends; then it writes the rest of the buffer.
func (s *popService) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { s.woken.Run(ctx, wokenWorkers) })
	wg.Go(func() { s.runRevive(ctx) })
	wg.Go(func() { s.ackOldTimes(ctx) })
	s.runBuffer(ctx)
	wg.Wait()
}

// Stop answers the held pops and takes no more.
func (s *popService) Stop() {
	s.hold.Close()
	s.notices.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.stopped = true
	for q, t := range s.mu.free {
		t.Stop()
		delete(s.mu.free, q)
	}
}

// Finish writes the rest of the buffer. Nothing is popped or acknowledged any
// more.
func (s *popService) Finish() error {
	s.mu.Lock()
	s.mu.buffer.Close()
	s.mu.Unlock()
	stopped, cancel := context.WithCancel(context.Background())
	cancel() // nothing waits longer than puts do
	for tries := 0; tries < finishTries && s.left() > 0; tries++ {
		before := s.left()
		s.flush(stopped, s.b.now().UnixMilli())
		if s.left() < before {
			tries = 0
		}
	}
	if n := s.left(); n > 0 && s.b.fence.why() != "" {
		s.b.log.Warn("checkpoints could not be written, since this broker takes no messages: what was popped is popped again", "checkpoints", n)
	} else if n > 0 && s.b.ha.Waits() {
		s.b.log.Warn("checkpoints do not have their copies: what was popped is popped again", "checkpoints", n)
	} else if n > 0 {
		return errors.Join(s.Save(), fmt.Errorf("%d checkpoints could not be written: their messages are popped again", n))
	}
	return s.Save()
}

// finishTries is how often writing the buffer is tried without progress at a stop.
const finishTries = 3

func (s *popService) left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.buffer.Points()
}

// Sweep forgets what is not used any more.
func (s *popService) Sweep() { s.queues.Sweep() }

// Arrived wakes what waits for a message. The dispatcher calls it.
func (s *popService) Arrived(topic []byte, queue int32, offset, tagsCode int64, props []byte) {
	s.hold.Arrived(topic, queue, offset, tagsCode, props)
	s.notices.Arrived(topic, queue, offset, tagsCode, props)
	if len(topic) == len(s.reviveTopic) && string(topic) == s.reviveTopic {
		signal(s.records)
	}
}

// Closed drops what waits for a connection that has closed.
func (s *popService) Closed(conn uint64) {
	s.hold.Closed(conn)
	s.notices.Closed(conn)
}

// Forget drops the state of topics or groups that are deleted.
func (s *popService) Forget(match func(topic, group string) bool) {
	of := func(q pop.QueueKey) bool { return match(q.Topic, q.Group) }
	s.queues.Drop(of)
	s.mu.Lock()
	s.mu.orders.Clean(s.b.now().UnixMilli(), func(q pop.QueueKey) bool { return !of(q) })
	s.mu.buffer.Forget(of)
	s.mu.dirty = true
	s.mu.Unlock()
	s.hold.WakeAll(match)
	s.notices.WakeAll(match)
}

// Deleted notes that topics are deleted: what was popped of them before is not
// revived out of a topic of the same name.
func (s *popService) Deleted(topics []string) {
	now := s.b.now().UnixMilli()
	s.mu.Lock()
	for _, name := range topics {
		s.mu.deleted[name] = now
	}
	forgetOldest(s.mu.deleted, maxDeleted)
	s.mu.Unlock()
	s.Forget(func(topic, _ string) bool { return slices.Contains(topics, topic) })
}

// forgetOldest leaves the newest of what happened at times, no more than most of
// them; some fewer, so that it is not called for at each one that comes.
func forgetOldest(at map[string]int64, most int) {
	if len(at) <= most {
		return
	}
	byAge := slices.SortedFunc(maps.Keys(at), func(a, b string) int { return cmp.Compare(at[a], at[b]) })
	for _, name := range byAge[:len(at)-most*9/10] {
		delete(at, name)
	}
}

// offset is where the next pop of a queue begins; nothing is changed.
func (s *popService) offset(q pop.QueueKey, initMode int32) int64 {
	// Together: what leaves the buffer is committed under the same lock, and would be in neither for who asks one after the
	// other.
	s.mu.Lock()
	latest, waits := s.mu.buffer.Latest(q)
	at, ok := s.b.offsets.Committed(q.Topic, q.Group, q.Queue)
	s.mu.Unlock()
	if !ok {
		at = s.initial(q, initMode)
	}
	if waits {
		at = max(at, latest)
	}
	return at
}

// claim is offset for a pop that goes on to read: a first offset is committed,
// and one that an operator has set is taken. The queue is locked.
func (s *popService) claim(q pop.QueueKey, initMode int32) int64 {
	topic, group := []byte(q.Topic), []byte(q.Group)
	if _, ok := s.b.offsets.Committed(q.Topic, q.Group, q.Queue); !ok {
		s.b.offsets.Commit(topic, group, q.Queue, s.initial(q, initMode))
	}
	if at, ok := s.b.offsets.TakeReset(topic, group, q.Queue); ok {
		s.mu.Lock()
		s.mu.orders.Clear(q)
		s.mu.dirty = true
		s.mu.buffer.Clear(q)
		s.mu.Unlock()
		s.b.offsets.Commit(topic, group, q.Queue, at)
		return at
	}
	return s.offset(q, initMode)
}

// Values of initMode.
const initMin = 0

// initial is where a group without an offset begins: retry topics and initMode
// 0 at the start of the queue; else at 0 when the queue begins there and its
// start is still in memory, or at its last message.
func (s *popService) initial(q pop.QueueKey, initMode int32) int64 {
	st := s.b.store
	low := st.MinOffset(q.Topic, q.Queue)
	if initMode == initMin || pop.Kind(q.Topic) != pop.KindNormal {
		return low
	}
	if s.b.cfg().PopInitInMemory && low <= 0 {
		if near, err := st.IsNearEnd(q.Topic, q.Queue, 0); err == nil && near {
			return 0
		}
	}
	return max(0, st.MaxOffset(q.Topic, q.Queue)-1)
}

// commit commits what the buffer says is ready. Needs mu, so that an older
// offset cannot come after a newer one.
func (s *popService) commit() {
	for _, c := range s.mu.buffer.Commits() {
		s.b.offsets.Commit([]byte(c.Queue.Topic), []byte(c.Queue.Group), c.Queue.Queue, c.Next)
	}
}

// done notes a pop of a queue whose checkpoint is in the log or that needs none.
func (s *popService) done(q pop.QueueKey, next int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.buffer.Done(q, next)
	s.commit()
}

// unlock ends a pop of a queue; who passed it by meanwhile is woken.
func (s *popService) unlock(q *popQueue) {
	q.lock.Unlock()
	if !q.missed.Swap(false) {
		return
	}
	normal := pop.NormalTopic(q.key.Topic, q.key.Group)
	s.hold.Wake(normal, q.key.Group, -1)
	s.hold.Wake(normal, q.key.Group, q.key.Queue)
}

// watchFree wakes pops when an ordered queue opens by time. Needs mu.
func (s *popService) watchFree(q pop.QueueKey) {
	now := s.b.now().UnixMilli()
	at, ok := s.mu.orders.FreeAt(q, now)
	if !s.b.cfg().PopNotifyOrderFree || s.mu.stopped || !ok {
		return
	}
	wait := time.Duration(min(max(0, at-now), longestTimerMs)) * time.Millisecond
	if t := s.mu.free[q]; t != nil {
		t.Reset(wait)
		return
	}
	if len(s.mu.free) >= maxParkedOrders {
		return // pops of it end at their own time
	}
	s.mu.free[q] = time.AfterFunc(wait, func() { s.freed(q) })
}

// freed wakes who waits for an ordered queue that may be open now.
func (s *popService) freed(q pop.QueueKey) {
	now := s.b.now().UnixMilli()
	s.mu.Lock()
	if at, ok := s.mu.orders.FreeAt(q, now); !ok || at <= now {
		if t := s.mu.free[q]; t != nil {
			t.Stop()
			delete(s.mu.free, q)
		}
	}
	s.mu.Unlock()
	s.wakeIfMore(q)
}

// wakeIfMore wakes pops of a queue that has messages left.
func (s *popService) wakeIfMore(q pop.QueueKey) {
	if s.b.store.MaxOffset(q.Topic, q.Queue) <= s.offset(q, initMin) {
		return
	}
	s.hold.Wake(q.Topic, q.Group, -1)
	s.hold.Wake(q.Topic, q.Group, q.Queue)
	s.notices.Wake(q.Topic, q.Group, -1)
	s.notices.Wake(q.Topic, q.Group, q.Queue)
}

// runBuffer writes what is due in the buffer, until ctx ends.
func (s *popService) runBuffer(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		s.mu.Lock()
		at, ok := s.mu.buffer.NextDue()
		s.mu.Unlock()
		wait := time.Hour
		if ok {
			wait = max(bufferTick, time.Duration(at-s.b.now().UnixMilli())*time.Millisecond)
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-s.flushSoon:
		case <-timer.C:
			s.flush(ctx, s.b.now().UnixMilli())
		}
	}
}

const (
	// bufferTick is the least time between two looks at a buffer that has
	// something due.
	bufferTick = 10 * time.Millisecond
	// bufferBatch is how many checkpoints are written in one go.
	bufferBatch = 256
	// bufferRetryMs is when a checkpoint that could not be written comes up again.
	bufferRetryMs = 1000
)

// flush writes checkpoints that are due, with their acks behind them. It waits
// for the store.
func (s *popService) flush(ctx context.Context, now int64) {
	s.mu.Lock()
	points := s.mu.buffer.Due(now, bufferBatch)
	s.mu.Unlock()
	if len(points) == 0 {
		return
	}
	var puts []*store.Put
	for _, p := range points {
		if p.NeedsCheckpoint() {
			if put, e := s.checkpointPut(p.Checkpoint, p.ReviveQueue, p); e == nil {
				puts = append(puts, put)
			}
		}
	}
	s.putAll(ctx, puts)
	s.mu.Lock()
	for _, put := range puts {
		if put.Status == store.PutOK {
			s.mu.buffer.CheckpointStored(put.User.(*pop.Point))
		}
	}
	type ackOf struct {
		point *pop.Point
		ack   *pop.Ack
	}
	puts = puts[:0]
	for _, p := range points {
		if p.NeedsCheckpoint() {
			continue
		}
		for _, a := range p.Acks(s.b.cfg().PopBatchAck) {
			if put, e := s.ackPut(a, p.ReviveQueue, p.Checkpoint.ReviveTime(), ackOf{p, a}); e == nil {
				puts = append(puts, put)
			}
		}
	}
	s.mu.Unlock()
	s.putAll(ctx, puts)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, put := range puts {
		if put.Status == store.PutOK {
			of := put.User.(ackOf)
			s.mu.buffer.AckStored(of.point, of.ack)
		}
	}
	for _, p := range points {
		s.mu.buffer.Written(p, now+bufferRetryMs)
	}
	s.commit()
}

// putAll stores the puts and waits until all are done and have their copies, or ctx ends.
func (s *popService) putAll(ctx context.Context, puts []*store.Put) {
	if len(puts) == 0 {
		return
	}
	var wg sync.WaitGroup
	wg.Add(len(puts))
	for _, p := range puts {
		p.Done = func(*store.Put) { wg.Done() }
	}
	s.b.putOwnBatch(puts)
	wg.Wait()
	s.b.copied(ctx, puts)
	for _, p := range puts {
		s.failed(p)
	}
}

// failed logs a record of pop consumption that could not be written.
func (s *popService) failed(p *store.Put) {
	if p.Status != store.PutOK {
		s.b.quiet.Warn("a record of pop consumption could not be written", "topic", string(p.Record.Topic), "status", p.Status.String(), "error", p.Err)
	}
}
