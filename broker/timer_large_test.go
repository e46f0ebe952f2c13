package broker

import (
	"strings"
	"testing"
	"time"

	"mqx/message"
	"mqx/remoting"
)

// A message as large as maxMessageSize allows waits, rolls, is delivered and is sent back by its consumer, whole. One whose
// properties leave no room for the times of its waiting comes without them.
func TestTimerLargestMessage(t *testing.T) {
	cfg, ck := timerBroker(t)
	cfg.Store.MaxMessageBytes = 100_000
	cfg.TimerRollWindow = 10
	r := start(t, cfg)
	r.createTopic("T", 1)
	body := strings.Repeat("x", 100_000)
	full := prop("TIMER_DELAY_MS", "25000", "UNIQ_KEY", "K")
	room := 32767 - len(full) - 300 // what the broker adds at the send has to fit
	full += prop("big", strings.Repeat("p", room))
	for i, props := range []string{prop("TIMER_DELAY_MS", "25000"), full} {
		r.send("T", 0, props, body)
		r.takenUp()
		r.reach(ck, 500*time.Millisecond, "T", 0, i+1)
		rec := r.waitRecords("T", 0, i+1)[i]
		p := message.ParseProperties(rec.Properties)
		if len(rec.Body) != len(body) || p["REAL_TOPIC"] != "T" || (i == 1 && len(p["big"]) != room) {
			t.Errorf("%d: body of %d bytes, properties of %d", i, len(rec.Body), len(rec.Properties))
		}
		if p["TIMER_ROLL_TIMES"] == "" && i == 0 {
			t.Error("it did not roll")
		}
		at := r.waitPhys("T", 0, int64(i))
		r.ok(remoting.ReqConsumerSendMsgBack, &remoting.ConsumerSendMsgBackHeader{Offset: at, Group: "G", DelayLevel: 1}, nil)
		r.settle()
		ck.Advance(2 * time.Second)
		waitFor(t, "the retry", func() bool { return r.store.MaxOffset("%RETRY%G", 0) == int64(i+1) })
		again := r.waitRecords("%RETRY%G", 0, i+1)[i]
		if len(again.Body) != len(body) || again.ReconsumeTimes != 1 {
			t.Errorf("%d: came back with %d bytes, attempt %d", i, len(again.Body), again.ReconsumeTimes)
		}
	}
	if n := r.store.MaxOffset("T", 0); n != 2 {
		t.Errorf("%d messages, 2 were sent", n)
	}
}
