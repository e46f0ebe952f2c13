package client

import (
	"slices"
	"testing"

	"mqx/remoting"
)

func TestPopReceipts(t *testing.T) {
	st := &popSlot{topic: "T"}
	header := `{"code":0,"extFields":{"popTime":"1795993739895","invisibleTime":"60000","reviveQid":"3","restNum":"0",` +
		`"startOffsetInfo":"0 0 10;1 2 4","msgOffsetInfo":"0 0 10,12,18;1 2 4"},"opaque":1}`
	if failed := st.receipts("G", []byte(header)); failed != "" {
		t.Fatal(failed)
	}
	want := []remoting.BatchAck{
		{BitSet: "BQE=", ConsumerGroup: "G", InvisibleTime: 60000, PopTime: 1795993739895, Retry: "0", ReviveQueueID: 3, StartOffset: 10, Topic: "T"},
		{BitSet: "AQ==", ConsumerGroup: "G", InvisibleTime: 60000, PopTime: 1795993739895, QueueID: 2, Retry: "1", ReviveQueueID: 3, StartOffset: 4, Topic: "T"},
	}
	if !slices.Equal(st.acks, want) {
		t.Errorf("%+v", st.acks)
	}
	for _, bad := range []string{"", "{}", `{"extFields":{"popTime":"1","invisibleTime":"2","reviveQid":"x","startOffsetInfo":"0 0 1","msgOffsetInfo":"0 0 1"}}`, popAnswer("1,x"), popAnswer("0"), popAnswer("1,40000"), popAnswer("")} {
		if failed := (&popSlot{}).receipts("G", []byte(bad)); failed == "" {
			t.Errorf("%q is taken", bad)
		}
	}
}

// popAnswer is the header of an answer with a list of offsets that begins at 1.
func popAnswer(offsets string) string {
	return `{"extFields":{"popTime":"1","invisibleTime":"2","reviveQid":"3","startOffsetInfo":"0 0 1","msgOffsetInfo":"0 0 ` + offsets + `"}}`
}

// A source pops, acknowledges what it got, and ends when nothing has come for a while.
func TestPopSource(t *testing.T) {
	s := &popSource{cfg: &LoadConfig{Batch: 8}, group: "G", broker: "b", topics: []string{"T"}, slots: make([]popSlot, 1)}
	sent := func() *remoting.Command {
		out, done := s.build(nil, 0, 7, 1)
		if done {
			return nil
		}
		c := &remoting.Command{}
		if err := c.Decode(out); err != nil {
			t.Fatal(err)
		}
		return c
	}
	if c := sent(); c.Code != remoting.ReqPopMessage || c.Opaque != 7 || c.Fields.String("maxMsgNums") != "8" {
		t.Fatalf("%+v", c)
	}
	header := `{"extFields":{"popTime":"1","invisibleTime":"2","reviveQid":"3","startOffsetInfo":"0 0 1","msgOffsetInfo":"0 0 1"}}`
	if _, _, failed := s.answered(0, remoting.RespSuccess, []byte(header), nil); failed != "" {
		t.Fatal(failed)
	}
	if c := sent(); c.Code != remoting.ReqBatchAckMessage || len(c.Body) == 0 {
		t.Fatalf("%+v", c)
	}
	if _, _, failed := s.answered(0, remoting.RespSystemError, nil, nil); failed != "SYSTEM_ERROR" {
		t.Errorf("a failed ack: %q", failed)
	}
	for range popDry {
		if sent() == nil {
			t.Fatal("it ends too early")
		}
		s.answered(0, remoting.RespPollingTimeout, nil, nil)
	}
	if sent() != nil {
		t.Error("it does not end")
	}
}
