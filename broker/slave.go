package broker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"mqx/remoting"
	"mqx/remoting/server"
	"mqx/store"
	"mqx/store/ha"
)

// slave is the part of a broker that follows a master: it copies the log and takes the tables over. It serves reads and
// offsets, and takes no messages.
type slave struct {
	b        *Broker
	follower *ha.Follower
	tables   tables
	every    time.Duration // between two looks at the master's tables
	failed   bool          // the last look at the master's tables; owned by run
	untold   bool          // the last time that offsets were brought back to the master failed; owned by run
	learned  chan struct{} // there is a master that was not known
	told     chan told     // what the master has told of its tables

	mu struct {
		sync.Mutex
		broker, ha string         // addresses of the master, as a name server told
		epochs     []ha.RoleEpoch // of the master, as it told last; nil: it has not
	}
}

// newSlave makes the slave of a store. It starts nothing.
func newSlave(b *Broker, st *store.Store) *slave {
	cfg := b.cfg()
	s := &slave{b: b, tables: tables{b: b}, every: b.lookEvery, learned: make(chan struct{}, 1), told: make(chan told, 16)}
	s.follower = ha.NewFollower(ha.FollowerConfig{
		Log: st, Logger: b.log, Clock: b.clock, Master: s.haAddr, Blank: s.blank, Heartbeat: cfg.HAHeartbeat, Silence: cfg.HASilence,
		Parted: store.IsForeign, Range: s.masterRange, Hello: s.hello, Followed: s.followed,
	})
	return s
}

// learn notes who the master is. Name servers that know none say nothing, and what was known stays.
func (s *slave) learn(haAddr, broker string) {
	if haAddr == "" || broker == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.ha != haAddr || s.mu.broker != broker {
		s.b.log.Info("the master is known", "master", broker, "replication", haAddr)
		signal(s.learned)
		if s.b.cfg().HAMasterAddress != "" {
			s.follower.Reconnect() // to where it was configured, maybe before anybody could be told who this slave is
		}
	}
	s.mu.broker, s.mu.ha = broker, haAddr
}

// follow is learn of a master of which others than a registration tell. It is asked for its epoch first: one that another has
// replaced takes no slave off that one.
func (s *slave) follow(ctx context.Context, haAddr, broker string) error {
	s.mu.Lock()
	known := s.mu.ha == haAddr && s.mu.broker == broker
	s.mu.Unlock()
	if known || haAddr == "" || broker == "" {
		return nil
	}
	if err := s.learnEpoch(ctx, broker); err != nil {
		return err
	}
	s.learn(haAddr, broker)
	return nil
}

// haAddr is where the log comes from: what is configured, else what a name server told.
func (s *slave) haAddr() string {
	if a := s.b.cfg().HAMasterAddress; len(a) > 6 { // as Apache: shorter ones are none
		return a
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.ha
}

func (s *slave) masterAddr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.broker
}

// run follows until ctx ends.
func (s *slave) run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { s.follower.Run(ctx) })
	t := time.NewTicker(s.every)
	defer t.Stop()
	s.sync(ctx)
	for {
		select {
		case <-ctx.Done():
			wg.Wait()
			return
		case <-t.C:
			if s.follower.State().Phase != ha.PhaseFollowing {
				s.b.registrar.Everything() // a name server may know another master by now
			}
			s.sync(ctx)
		case <-s.learned:
			s.sync(ctx)
		case what := <-s.told:
			what.done(s.tables.take(ctx, &what.body))
		}
	}
}

// sync looks at the tables of the master once. A failure is told once, until it has passed.
func (s *slave) sync(ctx context.Context) {
	master := s.masterAddr()
	if master == "" {
		return
	}
	err := s.tables.sync(ctx, master)
	s.tell(ctx, &s.failed, err, "tables of the master are not up to date here", "tables of the master are up to date again")
	if err == nil {
		s.tell(ctx, &s.untold, s.bringBack(ctx), "offsets that were committed to this slave are not at its master yet", "offsets that were committed to this slave are at its master")
	}
}

// tell logs the first failure of a row, and its end.
func (s *slave) tell(ctx context.Context, failed *bool, err error, bad, good string) {
	if ctx.Err() != nil {
		return
	}
	was := *failed
	*failed = err != nil
	switch {
	case err != nil && !was:
		s.b.log.Warn(bad, "error", err) //nolint:sloglint // the callers give constants
	case err == nil && was:
		s.b.log.Info(good) //nolint:sloglint // the callers give constants
	}
}

// blank is what a slave without a log reports, so that it gets the log from its first byte. Apache's masters send a slave
// that reports 0 their last file only: they are told the start of their log, and where that is 0 the byte behind, since
// the first byte of a log is known (ha.FollowerConfig).
func (s *slave) blank(ctx context.Context) (int64, error) {
	master := s.masterAddr()
	if master == "" {
		return 0, errors.New("a slave without a log has to ask its master where it begins, and no name server has told who that is")
	}
	if err := s.learnEpoch(ctx, master); err != nil {
		return 0, err
	}
	first, last, err := s.b.logOf(ctx, master)
	if err != nil {
		return 0, err
	}
	if last <= 0 {
		return 0, nil
	}
	return max(first, 1), nil
}

// logRange reads the beginning and the end of a log out of what a broker tells about itself.
func logRange(table map[string]string) (first, last int64, err error) {
	first, err = strconv.ParseInt(table["commitLogMinOffset"], 10, 64)
	last, err2 := strconv.ParseInt(table["commitLogMaxOffset"], 10, 64)
	return first, last, errors.Join(err, err2)
}

// masterOnly are the requests that only a master serves, since they write.
var masterOnly = map[int32]bool{
	remoting.ReqSendMessage: true, remoting.ReqSendMessageV2: true, remoting.ReqSendBatchMessage: true, remoting.ReqConsumerSendMsgBack: true,
	remoting.ReqSendReplyMessage: true, remoting.ReqSendReplyMessageV2: true, remoting.ReqEndTransaction: true, remoting.ReqRecallMessage: true,
	remoting.ReqPopMessage: true, remoting.ReqAckMessage: true, remoting.ReqBatchAckMessage: true, remoting.ReqChangeMessageInvisibleTime: true,
	remoting.ReqNotification: true, remoting.ReqPollingInfo: true, remoting.ReqPeekMessage: true,
	remoting.ReqUpdateAndCreateStaticTopic: true,
	remoting.ReqUpdateAndCreateTopic:       true, remoting.ReqUpdateAndCreateTopicList: true, remoting.ReqDeleteTopicInBroker: true,
	remoting.ReqUpdateAndCreateSubscriptionGroup: true, remoting.ReqDeleteSubscriptionGroup: true, remoting.ReqSetMessageRequestMode: true,
	remoting.ReqResumeCheckHalfMessage: true,
}

// refuseOnSlave answers a request that writes: as Apache where that is known, with the master's address.
func (b *Broker) refuseOnSlave(r *server.Request) {
	code := remoting.RespServiceNotAvailable
	if r.Code == remoting.ReqEndTransaction || r.Code == remoting.ReqRecallMessage {
		code = remoting.RespSlaveNotAvailable
	}
	where := "it is not known"
	if m := b.slave.masterAddr(); m != "" {
		where = m
	}
	r.Reply(code, fmt.Sprintf("service not available now. This broker is a slave, which takes no messages and makes no changes; its master: %s", where))
}
