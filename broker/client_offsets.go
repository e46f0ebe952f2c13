package broker

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"mqx/internal/fastjson"
	"mqx/remoting"
	"mqx/remoting/server"
	"mqx/store"
)

// statusTimeout is how long each client gets to tell its offsets.
const statusTimeout = 5 * time.Second

// resetThroughClients serves INVOKE_BROKER_TO_RESET_OFFSET with
// useServerSideResetOffset=false: the members of the group are told their new
// offsets, which they then commit. Every queue must have a committed offset;
// without isForce no offset moves forward.
func (b *Broker) resetThroughClients(r *server.Request, h *remoting.ResetOffsetHeader) {
	table, e := b.clientTargets(h)
	if e != nil {
		r.Reply(e.Code, e.Text)
		return
	}
	members, _ := b.consumers.Clients(h.Group)
	if len(members) == 0 {
		r.Reply(remoting.RespConsumerNotOnline, fmt.Sprintf("Consumer not online, so can not reset offset, Group: %s Topic: %s Timestamp: %d", h.Group, h.Topic, h.Timestamp))
		return
	}
	for _, m := range members {
		if v := m.peer.Version(); v < remoting.V3_0_7_SNAPSHOT {
			r.Reply(remoting.RespSystemError, "the client does not support this feature. version="+remoting.VersionName(v))
			return
		}
	}
	cmd, err := resetCommand(r.Language, h, table)
	if err != nil {
		r.Reply(remoting.RespSystemError, err.Error())
		return
	}
	var failed []string
	for _, m := range members {
		if err := m.peer.Send(cmd); err != nil {
			failed = append(failed, fmt.Sprintf("%s: %v", m.id, err))
		}
	}
	if len(failed) > 0 { // Apache only logs it
		r.Reply(remoting.RespSystemError, "some members could not be told: "+strings.Join(failed, ", "))
		return
	}
	b.log.Info("members were told to reset their offsets", "group", h.Group, "topic", h.Topic, "members", len(members), "peer", r.Conn().Remote())
	p := newReply(remoting.RespSuccess, "")
	b.body(p, &remoting.ResetOffsetBody{OffsetTable: table})
	p.to(r)
}

// clientTargets are the offsets that the members are told, by queue.
func (b *Broker) clientTargets(h *remoting.ResetOffsetHeader) (map[remoting.MessageQueue]int64, *refusedError) {
	tp := b.topics.Get(h.Topic)
	if tp == nil {
		return nil, refuse(remoting.RespTopicNotExist, "[reset-offset] reset offset failed, no topic in this broker. topic=%s", h.Topic)
	}
	table := map[remoting.MessageQueue]int64{}
	for q := range tp.WriteQueueNums {
		committed, ok := b.offsets.Committed(h.Topic, h.Group, q)
		if !ok {
			return nil, refuse(remoting.RespSystemError, "THe consumer group <%s> not exist", h.Group)
		}
		target := b.store.MaxOffset(h.Topic, q)
		if h.Timestamp != -1 {
			var err error
			if target, err = b.store.OffsetByTime(h.Topic, q, h.Timestamp, store.Lower); err != nil {
				return nil, refuse(remoting.RespSystemError, "%v", err)
			}
		}
		if !h.IsForce {
			target = min(target, committed)
		}
		table[b.queue(h.Topic, q)] = max(0, target)
	}
	return table, nil
}

// resetCommand is RESET_CONSUMER_CLIENT_OFFSET, in the form that the language
// of the requester asks for.
func resetCommand(asked remoting.Language, h *remoting.ResetOffsetHeader, table map[remoting.MessageQueue]int64) (*remoting.Command, error) {
	cmd := remoting.NewRequest(remoting.ReqResetConsumerClientOffset, &remoting.ResetOffsetHeader{
		Topic: h.Topic, Group: h.Group, QueueID: -1, Timestamp: h.Timestamp,
	})
	cmd.Flag |= remoting.FlagOneway
	var body any = &remoting.ResetOffsetBody{OffsetTable: table}
	if asked == remoting.LanguageCPP {
		list := &remoting.ResetOffsetBodyForC{}
		for q, off := range table {
			list.OffsetTable = append(list.OffsetTable, remoting.MessageQueueForC{Topic: q.Topic, BrokerName: q.BrokerName, QueueID: q.QueueID, Offset: off})
		}
		body = list
	}
	var err error
	cmd.Body, err = fastjson.Marshal(body)
	return cmd, err
}

// handleConsumerStatus serves INVOKE_BROKER_TO_GET_CONSUMER_STATUS: what the
// members of a group have in memory, or one of them.
func (b *Broker) handleConsumerStatus(r *server.Request) {
	var h remoting.GetConsumerStatusHeader
	if !header(r, &h) {
		return
	}
	members, _ := b.consumers.Clients(h.Group)
	if len(members) == 0 {
		r.Reply(remoting.RespSystemError, fmt.Sprintf("No Any Consumer online in the consumer group: [%s]", h.Group))
		return
	}
	var asked []*member
	for _, m := range members {
		if v := m.peer.Version(); v < remoting.V3_0_7_SNAPSHOT {
			r.Reply(remoting.RespSystemError, "the client does not support this feature. version="+remoting.VersionName(v))
			return
		}
		if h.ClientAddr == "" || h.ClientAddr == m.id {
			asked = append(asked, m)
		}
	}
	tables, err := b.askStatus(asked, &h)
	if err != nil {
		r.Reply(remoting.RespSystemError, err.Error())
		return
	}
	p := newReply(remoting.RespSuccess, "")
	b.body(p, &remoting.GetConsumerStatusBody{ConsumerTable: tables})
	p.to(r)
}

// askStatus asks members for their offsets, all at a time. One that does not
// answer is an error with its name: a table without it would look like a member
// without queues.
func (b *Broker) askStatus(members []*member, h *remoting.GetConsumerStatusHeader) (map[string]map[remoting.MessageQueue]int64, error) {
	ctx, cancel := context.WithTimeout(b.ctx, statusTimeout)
	defer cancel()
	var mu sync.Mutex
	var first error
	tables := map[string]map[remoting.MessageQueue]int64{}
	var wg sync.WaitGroup
	for _, m := range members {
		wg.Go(func() {
			table, err := memberStatus(ctx, m, h)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				first = fmt.Errorf("consumer <%s> <%s> does not tell its offsets: %w", h.Group, m.id, err)
				return
			}
			tables[m.id] = table
		})
	}
	wg.Wait()
	return tables, first
}

func memberStatus(ctx context.Context, m *member, h *remoting.GetConsumerStatusHeader) (map[remoting.MessageQueue]int64, error) {
	peer, ok := m.peer.(caller)
	if !ok {
		return nil, fmt.Errorf("it cannot be asked")
	}
	answer, err := peer.Call(ctx, remoting.NewRequest(remoting.ReqGetConsumerStatusFromClient, &remoting.GetConsumerStatusHeader{Topic: h.Topic, Group: h.Group}))
	if err != nil {
		return nil, err
	}
	if answer.Code != remoting.RespSuccess {
		return nil, fmt.Errorf("%s %s", remoting.ResponseName(answer.Code), answer.Remark)
	}
	var body remoting.GetConsumerStatusBody
	if len(answer.Body) > 0 {
		if err := fastjson.Unmarshal(answer.Body, &body); err != nil {
			return nil, err
		}
	}
	if body.MessageQueueTable == nil {
		body.MessageQueueTable = map[remoting.MessageQueue]int64{}
	}
	return body.MessageQueueTable, nil
}

// handleCorrection serves QUERY_CORRECTION_OFFSET: by queue, the least offset
// that any group but those to be left out has committed and that still exists;
// Long.MAX_VALUE where the compared group is behind it. (Apache also deletes the
// offsets of the groups to be left out.)
func (b *Broker) handleCorrection(r *server.Request) {
	var h remoting.QueryCorrectionOffsetHeader
	if !header(r, &h) {
		return
	}
	left := map[string]bool{}
	for g := range strings.SplitSeq(h.FilterGroups, ",") {
		left[strings.TrimSpace(g)] = true
	}
	out := map[int32]int64{}
	for _, g := range b.offsets.Groups(h.Topic) {
		if left[g] {
			continue
		}
		for q, off := range b.offsets.Queues(h.Topic, g) {
			if off < b.store.MinOffset(h.Topic, q) {
				continue
			}
			if old, ok := out[q]; !ok || off < old {
				out[q] = off
			}
		}
	}
	for q, off := range b.offsets.Queues(h.Topic, h.CompareGroup) {
		if least, ok := out[q]; ok && least > off {
			out[q] = math.MaxInt64
		}
	}
	p := newReply(remoting.RespSuccess, "")
	b.body(p, &remoting.QueryCorrectionOffsetBody{CorrectionOffsets: out})
	p.to(r)
}
