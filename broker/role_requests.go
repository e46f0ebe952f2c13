package broker

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"time"

	"mqx/internal/fastjson"
	"mqx/message"
	"mqx/remoting"
	"mqx/remoting/server"
	"mqx/store/ha"
)

const (
	// compareTimeout bounds a comparison of logs.
	compareTimeout = 5 * time.Minute
	// compareCount bounds the records that are counted behind a common point.
	compareCount = 2_000_000
)

// handleHA serves ReqMqxHA, mqx's own request about the part of a broker in its group.
func (b *Broker) handleHA(r *server.Request) {
	peer := r.Conn().Remote().String()
	act := r.Fields.String(remoting.FieldAct)
	var out any
	var err error
	switch act {
	case remoting.HAActStatus:
		out, err = b.haState()
	case remoting.HAActFence:
		err = withArgs(r, func(a *remoting.HAFence) error { return b.haFence(a, peer) })
	case remoting.HAActPromote:
		err = withArgs(r, func(a *remoting.HAPromote) error { return b.haPromote(a, peer) })
	case remoting.HAActDemote:
		err = withArgs(r, func(a *remoting.HADemote) error { return b.haDemote(a, peer) })
	case remoting.HAActResync:
		err = withArgs(r, func(a *remoting.HAResync) error { return b.haResync(a, peer) })
	case remoting.HAActCompare:
		err = withArgs(r, func(a *remoting.HACompare) error {
			ctx, cancel := context.WithTimeout(b.ctx, compareTimeout)
			defer cancel()
			out, err = b.haCompare(ctx, a)
			return err
		})
	case remoting.HAActOffsets:
		out, err = b.haTellOffsets(r)
	case remoting.HAActTakeOffsets:
		err = withArgs(r, func(a *remoting.HAOffsets) error {
			out, err = b.haTakeOffsets(a, peer)
			return err
		})
	case remoting.HAActKept:
		out, err = b.haKept()
	case remoting.HAActRead:
		err = withArgs(r, func(a *remoting.HARead) error {
			out, err = b.haRead(a)
			return err
		})
	default:
		err = refuse(remoting.RespInvalidParameter, "%s", unknownAct(act))
	}
	var refused *refusedError
	switch {
	case errors.As(err, &refused):
		r.Reply(refused.Code, refused.Text)
		return
	case err != nil:
		r.Reply(remoting.RespSystemError, err.Error())
		return
	}
	p := newReply(remoting.RespSuccess, "")
	switch v := out.(type) {
	case nil:
	case []byte:
		p.cmd.Body = v
	default:
		b.body(p, v)
	}
	p.to(r)
}

// haTellOffsets serves a master that asks for all at once, as those of an older mqx do, or for a piece.
func (b *Broker) haTellOffsets(r *server.Request) (told *remoting.HAOffsets, err error) {
	if len(r.Body) == 0 {
		return b.haOffsets(nil), nil
	}
	err = withArgs(r, func(a *remoting.HAOffsetsAfter) error {
		told = b.haOffsets(a)
		return nil
	})
	return told, err
}

// unknownAct is what every mqx answers, with RespInvalidParameter, that does not know an act.
func unknownAct(act string) string { return fmt.Sprintf("no act %q is known", act) }

// withArgs reads the body of a request.
func withArgs[T any](r *server.Request, f func(*T) error) error {
	v := new(T)
	if err := json.Unmarshal(r.Body, v); err != nil {
		return refuse(remoting.RespInvalidParameter, "the body of the request cannot be read: %v", err)
	}
	return f(v)
}

// haState is what the broker says of itself in its group.
func (b *Broker) haState() (*remoting.HAState, error) {
	cfg, at, st := b.cfg(), b.at(), b.role.Get()
	kept, err := b.haKept()
	if err != nil {
		return nil, err
	}
	end := b.store.LogEnd()
	last := ha.LastEpoch(st.Epochs, end)
	s := &remoting.HAState{
		Cluster: cfg.BrokerClusterName, BrokerName: cfg.BrokerName, BrokerID: cfg.BrokerID, Role: cfg.BrokerRole, Addr: at.Addr(), HAAddr: at.haAddr,
		Epoch: st.Epoch, LogMin: b.store.LogMin(), LogEnd: end, Flushed: b.store.LogFlushed(), Fenced: b.fence.why(),
		Epochs: haEpochs(st.Epochs), LastEpoch: &last, Kept: len(kept),
	}
	s.Number = cfg.BrokerID
	if st.Number != nil {
		s.Number = *st.Number
	}
	if st.Fenced != nil {
		s.FencedBy, s.FencedEpoch = st.Fenced.Addr, st.Fenced.Epoch
	}
	if b.slave != nil {
		f := b.slave.follower.State()
		s.Phase, s.Master = string(f.Phase), b.slave.masterAddr()
		if f.Err != nil {
			s.Error = f.Err.Error()
		}
		if parted := (*ha.PartedError)(nil); errors.As(f.Err, &parted) && parted.At > 0 {
			s.PartedAt = &parted.At
		}
	}
	return s, nil
}

// handleEpochs serves GET_BROKER_EPOCH_CACHE: where in this log the epochs begin that promotions have given. Before the first there are
// none, and it answers as Apache's broker without a controller does.
func (b *Broker) handleEpochs(r *server.Request) {
	cfg := b.cfg()
	cache := &remoting.EpochEntryCache{
		ClusterName: cfg.BrokerClusterName, BrokerName: cfg.BrokerName, BrokerID: cfg.BrokerID, EpochList: []remoting.EpochEntry{}, MaxOffset: b.store.LogEnd(),
	}
	for _, e := range b.role.Get().Epochs {
		if e.Start < 0 || e.Start > cache.MaxOffset {
			continue // it is not known yet, or nothing of it has come
		}
		if n := len(cache.EpochList); n > 0 {
			cache.EpochList[n-1].EndOffset = e.Start
		}
		cache.EpochList = append(cache.EpochList, remoting.EpochEntry{
			Epoch: int32(min(e.Epoch, math.MaxInt32)), StartOffset: e.Start, EndOffset: math.MaxInt64, // as Apache's: the last one is open
		})
	}
	if len(cache.EpochList) == 0 {
		r.Reply(remoting.RespSystemError, "this request only for controllerMode ")
		return
	}
	p := newReply(remoting.RespSuccess, "")
	b.body(p, cache)
	p.to(r)
}

func haEpochs(list []ha.RoleEpoch) (out []remoting.HAEpoch) {
	for _, e := range list {
		out = append(out, remoting.HAEpoch(e))
	}
	return out
}

func roleEpochs(list []remoting.HAEpoch) (out []ha.RoleEpoch) {
	for _, e := range list {
		out = append(out, ha.RoleEpoch(e))
	}
	return out
}

// haInfo is the part of it that GET_BROKER_HA_STATUS tells.
func (b *Broker) haInfo() *remoting.HAInfo {
	i := &remoting.HAInfo{Epoch: b.role.Epoch(), Fenced: b.fence.why(), FencedEpoch: b.fence.rivalEpoch()}
	if b.slave != nil {
		f := b.slave.follower.State()
		i.Phase = string(f.Phase)
		if f.Err != nil {
			i.Error = f.Err.Error()
		}
		return i
	}
	i.Epochs, i.Master = haEpochs(b.role.Get().Epochs), b.ha.copies()
	return i
}

func (b *Broker) haFence(a *remoting.HAFence, peer string) error {
	if b.slave != nil {
		return refuse(remoting.RespInvalidParameter, "this broker is a slave, which takes no messages anyway")
	}
	b.log.Info("a fence is asked for", "seconds", a.Seconds, "peer", peer)
	b.fenceFor(time.Duration(max(0, min(a.Seconds, int(fenceMost/time.Second)))) * time.Second)
	return nil
}

func (b *Broker) haPromote(a *remoting.HAPromote, peer string) error {
	switch {
	case b.slave == nil:
		return refuse(remoting.RespInvalidParameter, "this broker is a master already")
	case a.Role != "ASYNC_MASTER" && a.Role != "SYNC_MASTER":
		return refuse(remoting.RespInvalidParameter, "a master is ASYNC_MASTER or SYNC_MASTER, not %q", a.Role)
	}
	// What this slave has counts from now on as the log of the group: a loss of power must not take the end of it.
	if err := b.store.Flush(); err != nil {
		return refuse(remoting.RespSystemError, "the log could not be made durable: %v", err)
	}
	where, err := b.takeRole(a.Role, 0, func(s *roleState) error {
		switch err := s.Promote(a.Epoch); {
		case errors.Is(err, ha.ErrOldEpoch):
			return refuse(remoting.RespInvalidParameter, "the epoch must be above %d, which this broker knows, got %d", s.Epoch, a.Epoch)
		case err != nil:
			return refuse(remoting.RespSystemError, "%v", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	b.log.Warn("this slave becomes the master", "epoch", a.Epoch, "end", b.store.LogEnd(), "saved", where, "peer", peer)
	b.reopen("it becomes the master, epoch " + fmt.Sprint(a.Epoch))
	return nil
}

func (b *Broker) haDemote(a *remoting.HADemote, peer string) error {
	if b.slave != nil {
		return refuse(remoting.RespInvalidParameter, "this broker is a slave already")
	}
	if a.ID <= 0 {
		return refuse(remoting.RespInvalidParameter, "the id of a slave is above 0, got %d", a.ID)
	}
	unfence, ok := b.fenceToGo() // what is cut is what was there
	if !ok {
		return refuse(remoting.RespInvalidParameter, "this broker becomes a slave already")
	}
	cut, err := b.pendingCut(a.Cut)
	var where string
	if err == nil {
		where, err = b.takeRole("SLAVE", a.ID, func(s *roleState) error {
			s.Demote(a.Epoch, cut)
			return nil
		})
	}
	if err != nil {
		unfence()
		return err
	}
	b.log.Warn("this master becomes a slave", "id", a.ID, "saved", where, "peer", peer)
	b.reopen("it becomes a slave")
	return nil
}

func (b *Broker) haResync(a *remoting.HAResync, peer string) error {
	if b.slave == nil {
		return refuse(remoting.RespInvalidParameter, "this broker is a master: its log is the group's")
	}
	cut, err := b.pendingCut(a.Cut)
	if err != nil {
		return err
	}
	if cut == nil {
		b.slave.follower.Resume()
		return nil
	}
	if err := b.role.Change(func(s *roleState) error { s.Pending = cut; return nil }); err != nil {
		return err
	}
	b.log.Warn("the log of this slave is cut", "to", a.Cut.To, "wipe", a.Cut.Wipe, "peer", peer)
	b.reopen("its log is cut to what its master has")
	return nil
}

// pendingCut is what the next start does with the log, nil for nothing.
func (b *Broker) pendingCut(c remoting.HACut) (*rolePending, error) {
	end := b.store.LogEnd()
	name := "wiped-" + b.now().UTC().Format("20060102T150405.000Z")
	switch {
	case c.Wipe:
		return &rolePending{To: -1, Wipe: true, Discard: c.Discard, Name: name}, nil
	case c.To < 0 || c.To >= end:
		return nil, nil
	}
	if at, err := b.store.RecordFloor(c.To); err != nil || at != c.To {
		return nil, refuse(remoting.RespInvalidParameter, "no record begins at %d (%v): nothing is cut", c.To, err)
	}
	return &rolePending{To: c.To, Name: name}, nil
}

// haCompare finds where the log parts from that of a master.
func (b *Broker) haCompare(ctx context.Context, a *remoting.HACompare) (*remoting.HACommon, error) {
	c := &remoting.HACommon{Master: a.Master, MasterHA: a.MasterHA, Min: b.store.LogMin(), Messages: -1}
	if b.slave != nil && c.Master == "" {
		c.Master, c.MasterHA = b.slave.masterAddr(), b.slave.haAddr()
	}
	if c.Master == "" {
		return nil, refuse(remoting.RespSystemError, "the master is not known: no name server has told it")
	}
	if c.MasterHA == "" {
		host, _, err := net.SplitHostPort(c.Master)
		if err != nil {
			return nil, err
		}
		return nil, refuse(remoting.RespInvalidParameter, "the replication port of %s is missing", host)
	}
	var err error
	c.End = b.store.LogEnd()
	if c.Low, c.High, err = b.logOf(ctx, c.Master); err != nil {
		return nil, err
	}
	switch c.Common, err = ha.CommonPoint(ctx, c.MasterHA, b.store, c.Low, c.High); {
	case errors.Is(err, ha.ErrNothingCommon):
		c.Common = -1
		return c, nil
	case err != nil:
		return nil, fmt.Errorf("cannot compare the log with that of %s: %w", c.MasterHA, err)
	}
	c.Messages, err = b.countRecords(c.Common, c.End)
	return c, err
}

// countRecords counts the messages of the log from a position on, -1 where there are too many.
func (b *Broker) countRecords(from, to int64) (int64, error) {
	var head [8]byte
	n := int64(0)
	for at := from; at+int64(len(head)) <= to; {
		if n > compareCount {
			return -1, nil
		}
		if err := b.store.ReadLog(head[:], at); err != nil {
			return -1, err
		}
		size, magic := int64(int32(binary.BigEndian.Uint32(head[:]))), int32(binary.BigEndian.Uint32(head[4:]))
		if size < int64(len(head)) || at+size > to {
			break // a record of which the rest has not come
		}
		if magic != message.MagicBlank {
			n++
		}
		at += size
	}
	return n, nil
}

// logOf asks a broker for the beginning and the end of its log.
func (b *Broker) logOf(ctx context.Context, addr string) (low, high int64, err error) {
	body, err := b.askMaster(ctx, addr, remoting.ReqGetBrokerRuntimeInfo)
	var info remoting.KVTable
	if err == nil {
		err = fastjson.Unmarshal(body, &info)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("cannot ask the master %s for the range of its log: %w", addr, err)
	}
	if low, high, err = logRange(info.Table); err != nil {
		return 0, 0, fmt.Errorf("cannot read the range of the log of master %s: %w", addr, err)
	}
	return low, high, nil
}

// masterRange is what a slave asks before it follows (ha.FollowerConfig.Range). A master with an older epoch than this slave
// knows is none: another one has taken its place.
func (s *slave) masterRange(ctx context.Context) (low, high int64, ok bool, err error) {
	master := s.masterAddr()
	if master == "" {
		return 0, 0, false, nil
	}
	if err := s.learnEpoch(ctx, master); err != nil {
		return 0, 0, false, err
	}
	low, high, err = s.b.logOf(ctx, master)
	return low, high, err == nil, err
}

// learnEpoch keeps the epoch of the master. Masters of Apache have none.
func (s *slave) learnEpoch(ctx context.Context, master string) error {
	body, err := s.b.askMaster(ctx, master, remoting.ReqGetBrokerHAStatus)
	if err != nil {
		return fmt.Errorf("cannot ask the master %s for its epoch: %w", master, err)
	}
	var info remoting.HARuntimeInfo
	if err := fastjson.Unmarshal(body, &info); err != nil || info.Mqx == nil {
		return nil //nolint:nilerr // what it says is for others: an epoch is all that counts here
	}
	own := s.b.role.Get()
	news, err := own.Learn(master, info.Mqx.Epoch, info.Mqx.FencedEpoch, info.Mqx.Fenced)
	if err != nil {
		return err
	}
	s.mu.Lock()
	if s.mu.broker == master { // else it is only looked at: these are kept once the log is known to be its
		s.mu.epochs = append([]ha.RoleEpoch{}, roleEpochs(info.Mqx.Epochs)...)
	}
	s.mu.Unlock()
	if !news {
		return nil
	}
	return s.b.role.Change(func(st *roleState) error { st.Epoch = max(st.Epoch, info.Mqx.Epoch); return nil })
}
