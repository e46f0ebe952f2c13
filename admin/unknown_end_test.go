package admin

import (
	"errors"
	"strings"
	"testing"

	"mqx/admin/move"
	"mqx/client"
	"mqx/remoting"
	"mqx/remoting/server"
)

func replyOffset(offset string) func(*server.Request) {
	return func(r *server.Request) {
		resp := &remoting.Command{}
		resp.Fields.Set("offset", offset)
		r.ReplyWith(resp)
	}
}

// rangeOf is a broker's answer about topic T with one queue.
func rangeOf(t *testing.T, start, end int64) func(*server.Request) {
	t.Helper()
	return replyJSON(t, &remoting.TopicStatsTable{OffsetTable: map[remoting.MessageQueue]remoting.TopicOffset{
		{Topic: "T", BrokerName: "a"}: {MinOffset: start, MaxOffset: end},
	}})
}

// A broker that does not know where a queue ends says -1: that is not an end at 0, on which a step might rest.
func TestUnknownEnd(t *testing.T) {
	c := newClient(t, closedPort(t))
	at := func(handlers map[int32]func(*server.Request)) Broker {
		return Broker{Name: "a", Addr: startFake(t, handlers).addr}
	}
	unknown := at(map[int32]func(*server.Request){
		remoting.ReqGetMaxOffset: replyOffset("-1"), remoting.ReqGetMinOffset: replyOffset("0"),
		remoting.ReqSearchOffsetByTimestamp: replyOffset("-1"), remoting.ReqGetTopicStatsInfo: rangeOf(t, 0, -1),
	})
	startless := at(map[int32]func(*server.Request){
		remoting.ReqGetMaxOffset: replyOffset("7"), remoting.ReqGetMinOffset: replyOffset("-1"), remoting.ReqGetTopicStatsInfo: rangeOf(t, -1, 7),
	})
	empty := at(map[int32]func(*server.Request){
		remoting.ReqGetMaxOffset: replyOffset("0"), remoting.ReqGetMinOffset: replyOffset("-1"), remoting.ReqGetTopicStatsInfo: rangeOf(t, -1, 0),
	})
	wants := func(what string, err error, text string) {
		t.Helper()
		if err == nil && text != "" || err != nil && (text == "" || !strings.Contains(err.Error(), text)) {
			t.Errorf("%s: %v, want %q", what, err, text)
		}
	}
	for _, b := range []struct {
		Broker
		why string
	}{{unknown, "does not know where queue 0"}, {startless, "does not know"}, {empty, ""}} {
		got, err := c.shutQueues(t.Context(), b.Broker, "T", 1)
		wants("shut queues", err, b.why)
		if err == nil && got[0] != (move.Range{}) {
			t.Errorf("an empty queue holds %v", got)
		}
		_, err = c.rangesOn(t.Context(), b.Broker, "T")
		wants("ranges of a move", err, b.why)
		_, err = c.knownRanges(t.Context(), b.Addr, "T")
		wants("ranges", err, b.why)
	}
	for _, p := range []client.Position{{Kind: client.AtEnd}, {Kind: client.AtTime}} {
		_, err := c.queuePosition(t.Context(), unknown.Addr, &remoting.QueryConsumeQueueHeader{Topic: "T", Count: 5}, p)
		wants("a position", err, `does not know where queue 0 of topic "T"`)
	}
	_, err := c.locate(t.Context(), unknown, &OffsetTo{Kind: ToTime, TimeMs: 5}, QueueID{"T", "a", 0}, queueRange{min: some(0), max: some(9)}, &offsetTable{})
	wants("a target of a reset", err, "is at that time")
	ranges, err := c.ranges(t.Context(), unknown.Addr, "T")
	wants("ranges for a lag", err, "")
	if lag, _, _ := behind(some(0), ranges[0], true); lag.OK {
		t.Errorf("a lag of %d before an end that is not known", lag.Value)
	}
}

// A command that rests on the ends of queues is not carried out where one of them is not told, or not known.
func TestEndsAtUnknown(t *testing.T) {
	c := newClient(t, closedPort(t))
	sealed := &move.Topic{Read: 2, Write: 2, Perm: 4}
	shut := &move.Topic{Perm: 4}
	for _, tc := range []struct {
		name  string
		was   *move.Topic
		stats func(*server.Request)
		end   string
		why   string
	}{
		{"a queue is not told of", sealed, rangeOf(t, 0, 7), "9", "does not tell where queue 1 of topic T ends"},
		{"an end is not known", sealed, rangeOf(t, 0, -1), "9", "does not know where queue 0 ends"},
		{"the topic is not there", sealed, func(r *server.Request) { r.Reply(remoting.RespTopicNotExist, "") }, "9", "does not tell where queue 0 of topic T ends"},
		{"a shut queue whose end is not known", shut, rangeOf(t, 0, 0), "-1", "does not know where queue 0 of topic \"T\" ends"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := startFake(t, map[int32]func(*server.Request){
				remoting.ReqGetTopicStatsInfo: tc.stats, remoting.ReqGetMaxOffset: replyOffset(tc.end), remoting.ReqGetMinOffset: replyOffset("0"),
			})
			err := c.endsAt(t.Context(), Broker{Name: "a", Addr: f.addr}, &move.Command{Kind: move.DeleteTopic, Topic: "T", Broker: "a", Was: tc.was, Max: []int64{7, 0}})
			var changed *move.ChangedError
			if err == nil || errors.As(err, &changed) || !strings.Contains(err.Error(), tc.why) {
				t.Errorf("%v", err)
			}
		})
	}
}
