package broker

import (
	"encoding/json"
	"fmt"
	"strings"

	"mqx/remoting"
	"mqx/remoting/server"
	"mqx/store"
)

// maxUnits bounds the units of one QUERY_CONSUME_QUEUE.
const maxUnits = 1024

// handleQueryQueue serves QUERY_CONSUME_QUEUE: the units of a queue, and
// whether the subscription of a group would let them pass.
func (b *Broker) handleQueryQueue(r *server.Request) {
	var h remoting.QueryConsumeQueueHeader
	if !header(r, &h) {
		return
	}
	lo, hi := b.store.MinOffset(h.Topic, h.QueueID), b.store.MaxOffset(h.Topic, h.QueueID)
	if b.topics.Get(h.Topic) == nil {
		r.Reply(remoting.RespSystemError, fmt.Sprintf("%d@%s is not exist!", h.QueueID, h.Topic))
		return
	}
	body := &remoting.QueryConsumeQueueBody{MinQueueIndex: lo, MaxQueueIndex: hi, QueueData: []remoting.ConsumeQueueData{}}
	passes := func(store.Unit) bool { return false }
	if h.ConsumerGroup != "" {
		passes = b.describeFilter(h.ConsumerGroup, h.Topic, body)
	}
	units, err := b.store.Units(h.Topic, h.QueueID, max(lo, h.Index), min(max(0, int(h.Count)), maxUnits))
	if err != nil {
		r.Reply(remoting.RespSystemError, err.Error())
		return
	}
	for _, u := range units {
		one := remoting.ConsumeQueueData{PhysicOffset: u.PhysicalOffset, PhysicSize: u.Size, TagsCode: u.TagsCode, Eval: passes(u)}
		if u.Ext != nil {
			describeExt(&one, u.Ext)
		}
		body.QueueData = append(body.QueueData, one)
	}
	p := newReply(remoting.RespSuccess, "")
	b.body(p, body)
	p.to(r)
}

// describeFilter fills in what a group wants of a topic, and returns whether the
// queue alone lets a unit pass: of an expression, by the bit map.
func (b *Broker) describeFilter(group, topic string, body *remoting.QueryConsumeQueueBody) func(store.Unit) bool {
	sub, ok := b.consumers.Subscriptions(group)[topic]
	if !ok {
		body.FilterData = fmt.Sprintf("%s@%s is not online!", group, topic)
		return func(store.Unit) bool { return false }
	}
	body.SubscriptionData = &sub
	d := b.filters.Get([]byte(topic), []byte(group))
	body.FilterData = filterText(d)
	if !isTagType(sub.ExpressionType) {
		return func(u store.Unit) bool { return d != nil && d.compiled != nil && (u.Ext == nil || d.mayMatch(*u.Ext)) }
	}
	tags := tagFilterOf(&sub)
	return func(u store.Unit) bool { return tags == nil || tags.MatchCQ(u.TagsCode) }
}

// filterText is filter data as Apache prints them, null without any.
func filterText(d *filterData) string {
	if d == nil {
		return "null"
	}
	text, err := json.MarshalIndent(d.stored(), "", "\t")
	if err != nil { // strings and numbers only
		return err.Error()
	}
	return string(text)
}

// describeExt fills in the extension of a unit: as JSON, and its bits from the
// last to the first, with a line end behind every eighth byte from the end.
func describeExt(one *remoting.ConsumeQueueData, ext *store.ExtUnit) {
	numbers := make([]int8, len(ext.BitMap)) // a byte of Java has a sign
	for i, c := range ext.BitMap {
		numbers[i] = int8(c)
	}
	text, err := json.Marshal(struct {
		FilterBitMap []int8 `json:"filterBitMap,omitempty"`
		MsgStoreTime int64  `json:"msgStoreTime"`
		Size         int    `json:"size"`
		TagsCode     int64  `json:"tagsCode"`
	}{numbers, ext.StoreTime, ext.Len(), ext.TagsCode})
	if err != nil { // numbers only
		one.Msg = err.Error()
		return
	}
	one.ExtendDataJSON = string(text)
	if len(ext.BitMap) == 0 {
		return
	}
	var bits strings.Builder
	for i := len(ext.BitMap) - 1; i >= 0; i-- {
		fmt.Fprintf(&bits, "%08b", ext.BitMap[i])
		if i%8 == 0 {
			bits.WriteByte('\n')
		}
	}
	one.BitMap = bits.String()
}
