package client

import (
	"fmt"
	"net/netip"
	"sync/atomic"
	"testing"

	"mqx/internal/clock"
	"mqx/message"
	"mqx/remoting"
)

// A slot sends a half message, ends it, and goes on; every fifth is rolled back and leaves its number to the next.
func TestTransactionSource(t *testing.T) {
	cfg := &LoadConfig{BodySize: 64, Batch: 1, Transaction: true, RollbackShare: 20}
	cfg.Serialize, cfg.Clock = remoting.SerializeJSON, clock.System
	b := &loadBroker{addr: "127.0.0.1:10911", queues: []*loadQueue{{MessageQueue: remoting.MessageQueue{Topic: "T", BrokerName: "b", QueueID: 3}}}}
	book, left := newLedger(), &atomic.Int64{}
	left.Store(10)
	s, err := newTransactionSource(cfg, b, 1, book, &loadRun{}, left)
	if err != nil {
		t.Fatal(err)
	}
	next := func(opaque int32) *remoting.Command {
		out, done := s.build(nil, 0, opaque, 1700000000000)
		if done {
			return nil
		}
		c := &remoting.Command{}
		if err := c.Decode(out); err != nil {
			t.Fatal(err)
		}
		return c
	}
	rolled := 0
	for i := range 10 {
		half := next(firstOpaque)
		var h remoting.SendMessageView
		if half == nil || h.Decode(half.Fields, true) != nil || h.SysFlag != message.TransactionPrepared {
			t.Fatalf("%d: %+v", i, half)
		}
		props := message.ParseProperties(h.Properties)
		if props["TRAN_MSG"] != "true" || props["PGROUP"] == "" {
			t.Fatalf("%v", props)
		}
		id := message.AppendOffsetID(nil, netip.MustParseAddrPort("10.0.0.1:10911"), int64(4711+i))
		header := fmt.Sprintf(`{"code":0,"extFields":{"msgId":"%s","queueId":"3","queueOffset":"%d"}}`, id, i)
		if n, _, failed := s.answered(0, remoting.RespSuccess, []byte(header), nil); n != 0 || failed != "" {
			t.Fatalf("%d messages, %q", n, failed)
		}
		end := next(firstOpaque + 1)
		var e remoting.EndTransactionHeader
		if err := remoting.DecodeHeader(end.Fields, &e); err != nil {
			t.Fatal(err)
		}
		if end.Code != remoting.ReqEndTransaction || e.TranStateTableOffset != int64(i) || e.CommitLogOffset != int64(4711+i) || e.ProducerGroup != props["PGROUP"] ||
			e.MsgID != props["UNIQ_KEY"] || e.TransactionID != e.MsgID || e.BName != "b" {
			t.Fatalf("%+v of %v", e, props)
		}
		before := s.producers[0].next
		if n, _, failed := s.answered(0, remoting.RespSuccess, nil, nil); n != 1 || failed != "" {
			t.Fatalf("%d messages, %q", n, failed)
		}
		if e.CommitOrRollback == message.TransactionRollback {
			rolled++
			before--
		}
		if s.producers[0].next != before+1 {
			t.Errorf("number %d after %d", s.producers[0].next, before)
		}
	}
	if rolled != 2 || next(firstOpaque) != nil {
		t.Errorf("%d of 10 rolled back, and it goes on", rolled)
	}
}

func TestPlaceOfHalf(t *testing.T) {
	id := string(message.AppendOffsetID(nil, netip.MustParseAddrPort("10.0.0.1:10911"), 4711))
	for header, want := range map[string]bool{
		`{"extFields":{"queueOffset":"7","msgId":"` + id + `"}}`:   true,
		`{"extFields":{"queueOffset":"7", "msgId": "` + id + `"}}`: true, // other JSON writers
		`{"extFields":{"queueOffset":"7"}}`:                        false,
		`{"extFields":{"queueOffset":"x","msgId":"` + id + `"}}`:   false,
		``: false,
	} {
		off, phys, ok := placeOfHalf([]byte(header))
		if ok != want || want && (off != 7 || phys != 4711) {
			t.Errorf("%s: %d %d %v", header, off, phys, ok)
		}
	}
}
