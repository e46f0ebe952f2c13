package client

import (
	"maps"
	"strconv"
	"strings"

	"mqx/internal/fastjson"
	"mqx/remoting"
)

// snapshot is the queues that are read now.
func (c *Consumer) snapshot() map[remoting.MessageQueue]*assigned {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.mu.queues)
}

// reset takes new offsets from the broker (RESET_CONSUMER_CLIENT_OFFSET). What was
// pulled before is dropped, and the new offset is what is committed next.
func (c *Consumer) reset(req *remoting.Command) {
	var h remoting.ResetOffsetHeader
	if err := remoting.DecodeHeader(req.Fields, &h); err != nil || h.Group != c.cfg.Group {
		c.core.log.Warn("offset reset not understood", "group", h.Group, "error", err)
		return
	}
	var body remoting.ResetOffsetBody
	if err := fastjson.Unmarshal(req.Body, &body); err != nil {
		c.core.log.Warn("offset reset not understood", "group", h.Group, "error", err)
		return
	}
	queues := c.snapshot()
	for q, offset := range body.OffsetTable {
		if a := queues[q]; a != nil {
			a.reset(offset)
			c.core.log.Info("offset reset", "queue", q.String(), "offset", offset)
		}
	}
}

// status answers GET_CONSUMER_STATUS_FROM_CLIENT: the offsets of a topic.
func (c *Consumer) status(req *remoting.Command) *remoting.Command {
	var h remoting.GetConsumerStatusHeader
	if err := remoting.DecodeHeader(req.Fields, &h); err != nil {
		return remoting.NewResponse(req, remoting.RespSystemError, err.Error())
	}
	body := remoting.GetConsumerStatusBody{
		ConsumerTable: map[string]map[remoting.MessageQueue]int64{}, MessageQueueTable: map[remoting.MessageQueue]int64{},
	}
	for q, a := range c.snapshot() {
		if q.Topic == h.Topic {
			body.MessageQueueTable[q], _ = a.toCommit()
		}
	}
	return respond(req, body)
}

// runningInfo answers GET_CONSUMER_RUNNING_INFO.
func (c *Consumer) runningInfo(req *remoting.Command) *remoting.Command {
	info := remoting.ConsumerRunningInfo{
		MQPopTable: map[remoting.MessageQueue]remoting.PopProcessQueueInfo{}, MQTable: map[remoting.MessageQueue]remoting.ProcessQueueInfo{},
		StatusTable: map[string]remoting.ConsumeStatus{}, UserConsumerInfo: map[string]string{},
		Properties: map[string]string{
			remoting.PropClientVersion: remoting.VersionName(remoting.Version), remoting.PropConsumeType: remoting.ConsumePassively,
			remoting.PropConsumeOrderly: "false", remoting.PropThreadPoolCoreSize: "1",
			remoting.PropConsumerStartTimestamp: strconv.FormatInt(c.began.UnixMilli(), 10),
			remoting.PropNameServerAddr:         strings.Join(c.core.cfg.NameServers, ";"),
		},
	}
	for topic, s := range c.subs {
		info.SubscriptionSet = append(info.SubscriptionSet, s.filter.subscription(topic, s.version))
	}
	for q, a := range c.snapshot() {
		info.MQTable[q] = a.info()
	}
	return respond(req, info)
}

func (a *assigned) info() remoting.ProcessQueueInfo {
	a.mu.Lock()
	defer a.mu.Unlock()
	return remoting.ProcessQueueInfo{
		CommitOffset: a.mu.done, CachedMsgMinOffset: a.mu.done, CachedMsgMaxOffset: max(a.mu.pullAt-1, 0),
		CachedMsgCount: int32(a.mu.waiting), CachedMsgSizeInMiB: int32(a.mu.bytes >> 20),
		LastPullTimestamp: a.mu.lastPull, LastConsumeTimestamp: a.mu.lastTaken, Dropped: a.mu.dropped,
	}
}

func respond(req *remoting.Command, body any) *remoting.Command {
	b, err := fastjson.Marshal(body)
	if err != nil {
		return remoting.NewResponse(req, remoting.RespSystemError, err.Error())
	}
	resp := remoting.NewResponse(req, remoting.RespSuccess, "")
	resp.Body = b
	return resp
}
