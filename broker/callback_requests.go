package broker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"mqx/message"
	"mqx/remoting"
	"mqx/remoting/server"
)

// callbackTimeout is how long a client gets to answer a request that an
// operator sends through the broker.
const callbackTimeout = 10 * time.Second

// caller is a peer that answers requests.
type caller interface {
	Call(ctx context.Context, cmd *remoting.Command) (*remoting.Command, error)
}

// handleRunningInfo forwards GET_CONSUMER_RUNNING_INFO to the client.
func (b *Broker) handleRunningInfo(r *server.Request) {
	var h remoting.GetConsumerRunningInfoHeader
	if !header(r, &h) {
		return
	}
	b.forward(r, h.ConsumerGroup, h.ClientID, nil, nil)
}

// recordOf returns the record that a message id names, and where it is. When it
// returns nil the request has been answered.
func (b *Broker) recordOf(r *server.Request, msgID string) (rec []byte, phys int64) {
	_, phys, err := message.ParseOffsetID(msgID)
	if err != nil {
		r.Reply(remoting.RespSystemError, fmt.Sprintf("the message id cannot be read: %v", err))
		return nil, 0
	}
	rec, err = b.store.RecordAt(phys)
	if err != nil {
		r.Reply(remoting.RespSystemError, noRecordText(phys, err))
		return nil, 0
	}
	return rec, phys
}

// handleConsumeDirectly forwards CONSUME_MESSAGE_DIRECTLY to the client, with
// the message it names.
func (b *Broker) handleConsumeDirectly(r *server.Request) {
	var h remoting.ConsumeMessageDirectlyHeader
	if !header(r, &h) {
		return
	}
	rec, _ := b.recordOf(r, h.MsgID)
	if rec == nil {
		return
	}
	extra := map[string]string{"brokerName": b.cfg().BrokerName}
	if tp := b.topics.Get(h.Topic); tp != nil {
		extra["topicSysFlag"] = strconv.Itoa(int(tp.TopicSysFlag))
	}
	if g := b.groups.Get(h.ConsumerGroup); g != nil {
		extra["groupSysFlag"] = strconv.Itoa(int(g.GroupSysFlag))
	}
	b.forward(r, h.ConsumerGroup, h.ClientID, rec, extra)
}

// forward sends a request, with fields of its own and some more, on to a member of a group and its answer back.
func (b *Broker) forward(r *server.Request, group, id string, body []byte, extra map[string]string) {
	c := b.consumers.Client(group, id)
	if c == nil {
		r.Reply(remoting.RespSystemError, fmt.Sprintf("The Consumer <%s> <%s> not online", group, id))
		return
	}
	if v := c.peer.Version(); v < remoting.V3_1_8_SNAPSHOT {
		r.Reply(remoting.RespSystemError, fmt.Sprintf("The Consumer <%s> Version <%s> too low to finish, please upgrade it to V3_1_8_SNAPSHOT", id, remoting.VersionName(v)))
		return
	}
	peer, ok := c.peer.(caller)
	if !ok {
		r.Reply(remoting.RespSystemError, fmt.Sprintf("The Consumer <%s> <%s> cannot be asked", group, id))
		return
	}
	cmd := remoting.NewRequest(r.Code, nil)
	for _, f := range r.Fields {
		cmd.Fields.Set(string(f.Key), string(f.Value))
	}
	for k, v := range extra {
		cmd.Fields.Set(k, v)
	}
	cmd.Body = body
	ctx, cancel := context.WithTimeout(b.ctx, callbackTimeout)
	defer cancel()
	answer, err := peer.Call(ctx, cmd)
	if err != nil {
		code := remoting.RespSystemError
		if errors.Is(err, context.DeadlineExceeded) {
			code = remoting.RespConsumeMsgTimeout
		}
		r.Reply(code, fmt.Sprintf("consumer <%s> <%s> did not answer: %v", group, id, err))
		return
	}
	p := newReply(answer.Code, answer.Remark)
	p.cmd.Fields = append(p.cmd.Fields, answer.Fields...)
	p.cmd.Body = answer.Body
	p.to(r)
}
