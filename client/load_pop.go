package client

import (
	"context"
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"mqx/internal/fastjson"
	"mqx/message"
	"mqx/remoting"
)

// popSource pops a topic of one broker with a group of its own, and
// acknowledges what it got: each slot pops and acknowledges in turn.
type popSource struct {
	cfg    *LoadConfig
	group  string
	broker string
	topics []string
	next   int
	slots  []popSlot
	dry    int // pops in a row that gave nothing
}

// popSlot is what a slot has to acknowledge; empty: it pops next.
type popSlot struct {
	topic string
	acks  []remoting.BatchAck
	acked bool // the request under way is an ack
}

// LoadPop pops at full speed from the start of all queues, as a group of its own that
// goes again at the end, and acknowledges everything, in batches. It ends early when
// nothing is left.
func LoadPop(ctx context.Context, cfg LoadConfig) (*LoadReport, error) {
	if err := cfg.setDefaults(kindConsume); err != nil {
		return nil, fmt.Errorf("cannot load: %w", err)
	}
	cfg.Batch = min(cfg.Batch, maxPopBatch)
	cfg.Serialize = remoting.SerializeJSON // the codes of pop do not fit a binary header
	c, err := newCore(cfg.Config, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot load: %w", err)
	}
	defer func() { _ = c.close() }()
	brokers, err := loadTargets(ctx, c, &cfg, false)
	if err != nil {
		return nil, err
	}
	group := fmt.Sprintf("mqx_bench_pop_%d", cfg.Clock.Now().UnixMilli())
	defer dropGroup(ctx, c, brokers, group)
	run := newLoadRun(&cfg, kindConsume)
	for _, b := range brokers {
		name := ""
		if len(b.queues) > 0 {
			name = b.queues[0].BrokerName
		}
		err := run.add(b.addr, len(brokers), func(slots int) (loadSource, error) {
			return &popSource{cfg: &cfg, group: group, broker: name, topics: cfg.Topics, slots: make([]popSlot, slots)}, nil
		})
		if err != nil {
			return nil, err
		}
	}
	return run.do(ctx)
}

// popDry is how many pops in a row give nothing until a topic counts as read: one
// passes by the queues that others pop.
const popDry = 2000

// maxPopBatch is the most messages that a broker gives out in one pop.
const maxPopBatch = 32

// popInvisible is how long popped messages stay invisible: longer than a request takes.
const popInvisible = time.Minute

// dropGroup removes the group of a run, as well as that is possible.
func dropGroup(ctx context.Context, c *core, brokers []*loadBroker, group string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.Timeout)
	defer cancel()
	for _, b := range brokers {
		req := remoting.NewRequest(remoting.ReqDeleteSubscriptionGroup, &remoting.DeleteSubscriptionGroupHeader{GroupName: group, CleanOffset: true})
		if _, err := c.call(ctx, b.addr, req); err != nil {
			c.cfg.Logger.Warn("the group of a load could not be removed", "group", group, "broker", b.addr, "error", err)
		}
	}
}

func (s *popSource) build(dst []byte, slot int, opaque int32, nowMs int64) ([]byte, bool) {
	st := &s.slots[slot]
	if st.acked = len(st.acks) > 0; !st.acked && s.dry >= popDry {
		return dst, true
	}
	req := s.request(st, nowMs)
	req.Opaque = opaque
	out, err := req.AppendFrame(dst, remoting.SerializeJSON)
	if err != nil {
		return dst, true // nothing of it depends on the slot: it cannot happen
	}
	return out, false
}

func (s *popSource) request(st *popSlot, nowMs int64) *remoting.Command {
	if st.acked {
		req := remoting.NewRequest(remoting.ReqBatchAckMessage, nil)
		req.Body, _ = fastjson.Marshal(remoting.BatchAckBody{Acks: st.acks, BrokerName: s.broker})
		return req
	}
	st.topic = s.topics[s.next%len(s.topics)]
	s.next++
	return remoting.NewRequest(remoting.ReqPopMessage, &remoting.PopMessageHeader{
		ConsumerGroup: s.group, Topic: st.topic, QueueID: -1, MaxMsgNums: int32(s.cfg.Batch), InvisibleTime: popInvisible.Milliseconds(), BornTime: nowMs,
	})
}

func (s *popSource) answered(slot int, code int32, header, body []byte) (int, int64, string) {
	st := &s.slots[slot]
	if st.acked {
		st.acks = nil
		if code != remoting.RespSuccess {
			return 0, 0, remoting.ResponseName(code)
		}
		return 0, 0, ""
	}
	switch code {
	case remoting.RespSuccess:
	case remoting.RespPollingTimeout:
		s.dry++
		return 0, 0, ""
	default:
		return 0, 0, remoting.ResponseName(code)
	}
	s.dry = 0
	if failed := st.receipts(s.group, header); failed != "" {
		return 0, 0, failed
	}
	n, bytes := 0, int64(0)
	for len(body) > 0 {
		size, _, err := message.PeekRecord(body)
		if err != nil || int(size) > len(body) {
			return n, bytes, "broken records in an answer"
		}
		n, bytes, body = n+1, bytes+int64(size), body[size:]
	}
	return n, bytes, ""
}

// receipts reads out of the header of an answer what has to be acknowledged.
func (st *popSlot) receipts(group string, header []byte) (failed string) {
	var h struct {
		Fields map[string]string `json:"extFields"`
	}
	if err := fastjson.Unmarshal(header, &h); err != nil {
		return "an answer with a header that cannot be read"
	}
	number := func(name string) int64 {
		n, err := strconv.ParseInt(h.Fields[name], 10, 64)
		if err != nil {
			failed = "an answer without " + name
		}
		return n
	}
	popTime, invisible, revive := number("popTime"), number("invisibleTime"), number("reviveQid")
	starts := map[string]int64{}
	for entry := range strings.SplitSeq(h.Fields["startOffsetInfo"], ";") {
		part := strings.Split(entry, " ")
		if len(part) != 3 {
			continue
		}
		if start, err := strconv.ParseInt(part[2], 10, 64); err == nil {
			starts[part[0]+" "+part[1]] = start // what is missing fails below
		}
	}
	for entry := range strings.SplitSeq(h.Fields["msgOffsetInfo"], ";") {
		part := strings.Split(entry, " ")
		if len(part) != 3 {
			return "an answer without msgOffsetInfo"
		}
		queue, err := strconv.ParseInt(part[1], 10, 32)
		start, ok := starts[part[0]+" "+part[1]]
		bits, all := bitSet(start, part[2])
		if err != nil || !ok || !all {
			return "an answer whose offsets cannot be read"
		}
		st.acks = append(st.acks, remoting.BatchAck{
			BitSet: bits, ConsumerGroup: group, InvisibleTime: invisible, PopTime: popTime, QueueID: int32(queue), Retry: part[0],
			ReviveQueueID: int32(revive), StartOffset: start, Topic: st.topic,
		})
	}
	return failed
}

// maxPopSpan bounds the distance of an offset from the start of its pop.
const maxPopSpan = math.MaxInt16

// bitSet is a list of offsets as the bit set of a batch ack; ok is false when one of them cannot be read or set.
func bitSet(start int64, offsets string) (text string, ok bool) {
	var bits []byte
	for text := range strings.SplitSeq(offsets, ",") {
		off, err := strconv.ParseInt(text, 10, 64)
		d := off - start
		if err != nil || d < 0 || d >= maxPopSpan {
			return "", false
		}
		for int64(len(bits)) <= d/8 {
			bits = append(bits, 0)
		}
		bits[d/8] |= 1 << (d % 8)
	}
	return base64.StdEncoding.EncodeToString(bits), true
}

func (s *popSource) unknown(slot int) { s.slots[slot].acks = nil } // what it held comes again
