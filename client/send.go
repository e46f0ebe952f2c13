package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"mqx/internal/words"
	"mqx/message"
	"mqx/remoting"
	remoteclient "mqx/remoting/client"
)

// outgoing is a message or a batch, checked and encoded.
type outgoing struct {
	topic   string
	flag    int32
	sysFlag int32
	born    int64
	props   string
	body    []byte
	ids     string
	again   *Resend
	batch   bool
	code    int32
}

// SizeError says that a body is larger than it may be.
type SizeError struct {
	Topic       string
	Size, Limit int // bytes, before compression
}

// Error names the actual size, the limit and where it is set.
func (e *SizeError) Error() string {
	return fmt.Sprintf("cannot send to topic %q: body has %s, the limit of this producer (MaxMessageSize) is %d, before compression",
		e.Topic, words.Count(e.Size, "byte"), e.Limit)
}

// check applies the rules of the Java client.
func (p *Producer) check(m *message.Message) error {
	if err := m.Validate(); err != nil {
		return fmt.Errorf("cannot send message: %w", err)
	}
	if message.IsUnsendableTopic(m.Topic) {
		return fmt.Errorf("cannot send to topic %q: brokers keep it for themselves", m.Topic)
	}
	if len(m.Body) == 0 {
		return fmt.Errorf("cannot send to topic %q: body is empty", m.Topic)
	}
	if len(m.Body) > p.cfg.MaxMessageSize {
		return &SizeError{Topic: m.Topic, Size: len(m.Body), Limit: p.cfg.MaxMessageSize}
	}
	return nil
}

// properties is the property text of a message with its unique id and WAIT.
func (p *Producer) properties(m *message.Message) (text, id string) {
	b := message.FormatProperties(m.Properties)
	if id = m.UniqKey(); id == "" {
		id = p.ids.Next()
		b = message.AppendProperty(b, message.PropUniqKey, id)
	}
	if m.Property(message.PropWait) == "" {
		b = message.AppendProperty(b, message.PropWait, message.TrueValue)
	}
	return string(b), id
}

func (p *Producer) prepare(m *message.Message, again *Resend) (*outgoing, error) {
	if err := p.check(m); err != nil {
		return nil, err
	}
	out := &outgoing{topic: m.Topic, flag: m.Flag, body: m.Body, born: p.core.cfg.Clock.Now().UnixMilli(), code: remoting.ReqSendMessageV2}
	out.props, out.ids = p.properties(m)
	out.again = again
	method, compress := p.cfg.CompressType, p.cfg.CompressOver >= 0 && len(m.Body) > p.cfg.CompressOver
	if again != nil {
		method, compress = again.Compression, again.Compression != message.CompressionLegacy
	}
	if compress {
		b, err := message.Compress(nil, m.Body, method, p.cfg.CompressLevel)
		if err != nil {
			return nil, err
		}
		out.body, out.sysFlag = b, method.SysFlag()
	}
	if m.Property(message.PropTranMsg) == message.TrueValue {
		out.sysFlag |= message.TransactionPrepared
	}
	return out, nil
}

func (p *Producer) prepareBatch(ms []*message.Message) (*outgoing, error) {
	if len(ms) == 0 {
		return nil, errors.New("cannot send batch: it has no messages")
	}
	first := ms[0]
	out := &outgoing{topic: first.Topic, batch: true, born: p.core.cfg.Clock.Now().UnixMilli(), code: remoting.ReqSendBatchMessage}
	ids := make([]string, 0, len(ms))
	for i, m := range ms {
		if err := p.check(m); err != nil {
			return nil, fmt.Errorf("cannot send batch: message %d: %w", i, err)
		}
		switch {
		case m.Topic != first.Topic:
			return nil, fmt.Errorf("cannot send batch: message %d goes to topic %q, the first to %q", i, m.Topic, first.Topic)
		case m.WaitStore() != first.WaitStore():
			return nil, fmt.Errorf("cannot send batch: message %d differs in WAIT", i)
		case message.IsRetry(m.Topic):
			return nil, fmt.Errorf("cannot send batch: topic %q takes no batches", m.Topic)
		case isDelayed(m):
			return nil, fmt.Errorf("cannot send batch: message %d is delayed", i)
		}
		props, id := p.properties(m)
		ids = append(ids, id)
		out.body = message.AppendBatchItem(out.body, m.Flag, m.Body, []byte(props))
	}
	if len(out.body) > p.cfg.MaxMessageSize {
		return nil, &SizeError{Topic: out.topic, Size: len(out.body), Limit: p.cfg.MaxMessageSize}
	}
	b := message.AppendProperty(nil, message.PropUniqKey, p.ids.Next())
	wait := message.TrueValue
	if !first.WaitStore() {
		wait = message.FalseValue
	}
	out.props = string(message.AppendProperty(b, message.PropWait, wait))
	out.ids = strings.Join(ids, ",")
	return out, nil
}

func isDelayed(m *message.Message) bool {
	return m.DelayLevel() > 0 || m.Property(message.PropTimerDeliverMs) != "" ||
		m.Property(message.PropTimerDelaySec) != "" || m.Property(message.PropTimerDelayMs) != ""
}

// request is the send request for a queue.
func (p *Producer) request(out *outgoing, q remoting.MessageQueue) *remoting.Command {
	h := &remoting.SendMessageHeader{
		ProducerGroup: p.cfg.Group, Topic: out.topic, DefaultTopic: p.cfg.DefaultTopic,
		DefaultTopicQueueNums: int32(p.cfg.DefaultTopicQueues), QueueID: q.QueueID, SysFlag: out.sysFlag,
		BornTimestamp: out.born, Flag: out.flag, Properties: out.props, Batch: out.batch,
	}
	h.BName = q.BrokerName
	if a := out.again; a != nil {
		h.ReconsumeTimes = a.ReconsumeTimes
		if a.BornTimestamp > 0 {
			h.BornTimestamp = a.BornTimestamp
		}
	}
	req := remoting.NewRequest(out.code, h)
	req.Body = out.body
	return req
}

// route is the route of a topic to send to: its own, or that of the template topic
// when it does not exist yet.
func (p *Producer) route(ctx context.Context, topic string) (*route, error) {
	r, err := p.core.routes.get(ctx, topic)
	if err == nil {
		return r, nil
	}
	var none *NoRouteError
	if !errors.As(err, &none) || !none.Unknown() {
		return nil, err
	}
	d, terr := p.core.askRoute(ctx, p.cfg.DefaultTopic)
	if terr != nil {
		return nil, err // the topic is what the caller asked for
	}
	for i := range d.QueueDatas {
		q := &d.QueueDatas[i]
		n := min(int32(p.cfg.DefaultTopicQueues), q.ReadQueueNums)
		q.ReadQueueNums, q.WriteQueueNums = n, n
	}
	r = newRoute(topic, d)
	r.template = true
	if len(r.write) == 0 {
		return nil, err
	}
	p.core.routes.put(r)
	return r, nil
}

// choose picks a queue and the address of its master; last is the broker of a failed
// attempt, which is avoided.
func (p *Producer) choose(r *route, o SendOptions, last string) (q remoting.MessageQueue, addr string, err error) {
	queues := r.write
	if o.Broker != "" {
		queues = queuesOf(queues, o.Broker)
	}
	if len(queues) == 0 {
		why := errors.New("no queue can be written to")
		if o.Broker != "" {
			why = fmt.Errorf("broker %q has no queue that can be written to", o.Broker)
		}
		return q, "", &NoRouteError{Topic: r.topic, Err: why}
	}
	switch {
	case o.HasQueue:
		found := false
		for _, c := range queues {
			if c.QueueID == o.QueueID {
				q, found = c, true
				break
			}
		}
		if !found {
			return q, "", &NoRouteError{Topic: r.topic, Err: fmt.Errorf("queue %d does not exist or cannot be written to", o.QueueID)}
		}
	case o.Select != nil:
		i, err := o.Select(queues)
		if err != nil {
			return q, "", err
		}
		if i < 0 || i >= len(queues) {
			return q, "", fmt.Errorf("cannot send to topic %q: queue %d of %d was selected", r.topic, i, len(queues))
		}
		q = queues[i]
	case o.ShardKey != "":
		q = queues[shard(o.ShardKey, len(queues))]
	case o.Random:
		q = queues[rand.IntN(len(queues))]
	default:
		q = p.faults.pick(queues, p.turn.Add(1), last, p.cfg.AvoidFaulty, p.core.cfg.Clock.Now())
	}
	addr = r.brokers[q.BrokerName][masterID]
	if addr == "" {
		return q, "", &NoRouteError{Topic: r.topic, Err: fmt.Errorf("broker %q has no master", q.BrokerName)}
	}
	return q, addr, nil
}

func queuesOf(queues []remoting.MessageQueue, broker string) (out []remoting.MessageQueue) {
	for _, q := range queues {
		if q.BrokerName == broker {
			out = append(out, q)
		}
	}
	return out
}

// shard is Java's Math.abs(key.hashCode()) % n, with the smallest int taken as 0.
func shard(key string, n int) int {
	h := int64(message.JavaHash([]byte(key)))
	if h < 0 {
		h = -h
	}
	if h > 1<<31-1 {
		h = 0
	}
	return int(h) % n
}

// fixed reports whether the options name one queue, so that another is no substitute.
func (o *SendOptions) fixed() bool { return o.HasQueue || o.ShardKey != "" || o.Select != nil }

// Attempt is one try of a send that failed.
type Attempt struct {
	Queue remoting.MessageQueue
	Addr  string
	Err   error
}

// SendError says that a send failed, with every attempt.
type SendError struct {
	Topic    string
	Attempts []Attempt
}

// Error names the attempts in order.
func (e *SendError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "cannot send to topic %q", e.Topic)
	for i, a := range e.Attempts {
		sep := "; "
		if i == 0 {
			sep = ": "
		}
		fmt.Fprintf(&b, "%sbroker %s: %v", sep, a.Queue.BrokerName, a.Err)
	}
	return b.String()
}

// Unwrap gives the error of each attempt, the last first.
func (e *SendError) Unwrap() []error {
	out := make([]error, 0, len(e.Attempts))
	for i := len(e.Attempts) - 1; i >= 0; i-- {
		out = append(out, e.Attempts[i].Err)
	}
	return out
}

// deliver sends with retries and waits.
func (p *Producer) deliver(ctx context.Context, out *outgoing, o SendOptions) (SendResult, error) {
	failed := &SendError{Topic: out.topic}
	last := ""
	for try := 0; ; try++ {
		r, err := p.route(ctx, out.topic)
		if err != nil {
			return SendResult{}, firstError(failed, err)
		}
		q, addr, err := p.choose(r, o, last)
		if err != nil {
			return SendResult{}, firstError(failed, err)
		}
		addr = p.core.vip(addr)
		began := time.Now()
		resp, err := p.core.callAny(ctx, addr, p.request(out, q))
		res, err := p.result(out, q, addr, time.Since(began), resp, err)
		if err == nil {
			return res, nil
		}
		failed.Attempts = append(failed.Attempts, Attempt{q, addr, err})
		if try >= *p.cfg.Retries || o.fixed() || !retryable(err) || ctx.Err() != nil {
			return SendResult{}, failed
		}
		last = q.BrokerName
	}
}

func firstError(failed *SendError, err error) error {
	if len(failed.Attempts) == 0 {
		return err
	}
	return failed
}

// deliverAsync is deliver with a callback.
func (p *Producer) deliverAsync(ctx context.Context, out *outgoing, o SendOptions, done func(SendResult, error)) {
	r, err := p.route(ctx, out.topic)
	if err != nil {
		go done(SendResult{}, err)
		return
	}
	q, addr, err := p.choose(r, o, "")
	if err != nil {
		go done(SendResult{}, err)
		return
	}
	addr = p.core.vip(addr)
	began := time.Now()
	timeout := p.core.cfg.Timeout
	if d, ok := ctx.Deadline(); ok {
		timeout = min(timeout, max(time.Until(d), time.Millisecond))
	}
	finish := func(resp *remoting.Command, err error) {
		res, err := p.result(out, q, addr, time.Since(began), resp, err)
		if err != nil && retryable(err) && !o.fixed() && *p.cfg.Retries > 0 && ctx.Err() == nil {
			res, err = p.deliver(ctx, out, o)
		}
		done(res, err)
	}
	err = p.core.conn.Go(addr, p.request(out, q), timeout, func(resp *remoting.Command, err error) { go finish(resp, err) })
	if err != nil {
		go finish(nil, err)
	}
}

// result reads the answer to a send.
func (p *Producer) result(out *outgoing, q remoting.MessageQueue, addr string, took time.Duration, resp *remoting.Command, err error) (SendResult, error) {
	now := p.core.cfg.Clock.Now()
	if err != nil {
		p.faults.note(q.BrokerName, took, true, now)
		p.core.routes.doubt(out.topic)
		return SendResult{}, err
	}
	res := SendResult{MessageID: out.ids, Queue: q, Broker: addr, Took: took}
	switch resp.Code {
	case remoting.RespSuccess:
	case remoting.RespFlushDiskTimeout:
		res.Status = SendFlushDiskTimeout
	case remoting.RespFlushSlaveTimeout:
		res.Status = SendFlushSlaveTimeout
	case remoting.RespSlaveNotAvailable:
		res.Status = SendSlaveNotAvailable
	default:
		p.faults.note(q.BrokerName, took, true, now)
		if resp.Code == remoting.RespTopicNotExist || resp.Code == remoting.RespNoPermission {
			p.core.routes.doubt(out.topic)
		}
		return SendResult{}, responseError(addr, out.code, resp)
	}
	p.faults.note(q.BrokerName, took, false, now)
	var h remoting.SendMessageResponseHeader
	if err := remoting.DecodeHeader(resp.Fields, &h); err != nil {
		return SendResult{}, fmt.Errorf("cannot read answer to a send from %q: %w", addr, err)
	}
	res.OffsetID, res.QueueOffset, res.TransactionID, res.RecallHandle = h.MsgID, h.QueueOffset, h.TransactionID, h.RecallHandle
	res.Queue.QueueID = h.QueueID
	res.Region = resp.Fields.String("MSG_REGION")
	return res, nil
}

// retryable reports whether another broker may do better. The codes are those of the
// Java client.
func retryable(err error) bool {
	var re *remoting.ResponseError
	if errors.As(err, &re) {
		switch re.Code {
		case remoting.RespTopicNotExist, remoting.RespServiceNotAvailable, remoting.RespSystemError, remoting.RespSystemBusy,
			remoting.RespNoPermission, remoting.RespNoBuyerID, remoting.RespNotInCurrentUnit, remoting.RespGoAway:
			return true
		}
		return false
	}
	var connect *remoteclient.ConnectError
	var timeout *remoteclient.TimeoutError
	var closed *remoteclient.ClosedError
	return errors.As(err, &connect) || errors.As(err, &timeout) || errors.As(err, &closed)
}
