package broker

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"mqx/message"
	"mqx/remoting"
	"mqx/remoting/server"
)

// helloWait bounds the question of a slave to its master who it is: a master that does not answer is got on with without.
const helloWait = 2 * time.Second

// hello tells the master who has opened a connection from the address local to its replication port, and returns whether it
// wants to know what is durable. Masters of Apache's do not know the question, and
// where something of theirs comes before that they say whatever that says. One of mqx that refuses is not the master any more,
// or not yet, or cannot take it now: name servers tell another one soon. No answer at all may have come after the master has noted that this slave
// tells what is durable: so it does, which is never wrong.
func (s *slave) hello(ctx context.Context, local string) (flushed bool, err error) {
	master := s.masterAddr()
	if master == "" {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, helloWait)
	defer cancel()
	cfg := s.b.cfg()
	resp, err := s.b.client.Call(ctx, master, remoting.NewRequest(remoting.ReqReplicaHello, &remoting.ReplicaHelloHeader{
		ClusterName: cfg.BrokerClusterName, BrokerName: cfg.BrokerName, BrokerID: cfg.BrokerID, BrokerAddr: s.b.at().Addr(), HAAddr: local,
	}))
	if err == nil && resp.Code != remoting.RespSuccess {
		err = &remoting.ResponseError{Code: resp.Code, Remark: resp.Remark, Request: "hello of a slave", Addr: master}
		switch resp.Code {
		case remoting.RespNotMaster, remoting.RespInvalidParameter, remoting.RespSystemBusy:
			return false, err
		}
	}
	var h remoting.ReplicaHelloResponseHeader
	if err == nil {
		err = remoting.DecodeHeader(resp.Fields, &h)
	}
	if err != nil {
		s.b.log.Info("the master is not told who this slave is; it counts by its host, and looks at tables every 3 s", "master", master, "error", err)
		return resp == nil, nil
	}
	return h.Flushed, nil
}

// told is what a master has told of its tables.
type told struct {
	body remoting.TablesChangedBody
	done func(error) // once it is here
}

// handleTablesChanged serves a master that tells what has changed.
func (b *Broker) handleTablesChanged(r *server.Request) {
	if b.slave == nil {
		r.Reply(remoting.RespSystemError, "this broker is a master")
		return
	}
	t := told{done: func(err error) {
		if err != nil {
			r.Reply(remoting.RespSystemError, err.Error())
			return
		}
		r.Reply(remoting.RespSuccess, "")
	}}
	if err := json.Unmarshal(r.Body, &t.body); err != nil {
		r.Reply(remoting.RespInvalidParameter, fmt.Sprintf("the body cannot be read: %v", err))
		return
	}
	select {
	case b.slave.told <- t:
	default:
		r.Reply(remoting.RespSystemBusy, "this slave has not taken over yet what it was told before")
	}
}

// take takes over what the master has told.
func (t *tables) take(ctx context.Context, body *remoting.TablesChangedBody) error {
	if t.master == "" || t.offsets == nil {
		return errNotSynced
	}
	t.takeOffsets(body.Offsets)
	for _, part := range body.Parts {
		take := t.parts()[part]
		if take == nil {
			continue
		}
		if err := take(ctx); err != nil {
			return fmt.Errorf("cannot take over the %s of %s: %w", part, t.master, err)
		}
	}
	return nil
}

// takeOffsets merges offsets as mergeOffsets does; one that somebody has set counts in any case. What was told before a reset that
// is known here, and is looked at late, does not count.
func (t *tables) takeOffsets(list []remoting.ChangedOffset) {
	for _, o := range list {
		if o.Topic == "" || o.Group == "" || len(o.Topic)+len(o.Group) > 2*message.MaxTopicLen || o.Offset < 0 {
			continue
		}
		k := offsetKey{o.Topic, o.Group}
		if last := t.b.offsets.setBack.last(ownCommit{k, o.Queue}); o.At > 0 && (o.At < last || o.At == last && !o.Reset) {
			continue
		}
		key := k.String()
		before, known := t.offsets[key][o.Queue]
		t.takeOffset(o.Topic, o.Group, o.Queue, o.Offset, o.At, o.Reset || known && o.Offset < before && !t.notes)
		if t.offsets[key] == nil {
			t.offsets[key] = map[int32]int64{}
		}
		t.offsets[key][o.Queue] = o.Offset
	}
}
