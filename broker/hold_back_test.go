package broker

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"mqx/internal/clock"
	"mqx/message"
	"mqx/store"
)

// What consumers and the broker's own services had come to stays where it was when a start holds back messages that were seen
// before: nothing is delivered, asked about or committed twice once they are shown again.
func TestProgressOverAHeldBackStart(t *testing.T) {
	cfg, _ := timerBroker(t)
	ck := clock.NewManual(time.Now())
	cfg.Clock = ck
	cfg.FlushDelayOffset, cfg.TransactionCheckInterval, cfg.TransactionTimeOut = 20*time.Millisecond, 50*time.Millisecond, 20*time.Millisecond
	m := start(t, cfg)
	m.createTopic("T", 2)
	later := func(body string, n int) {
		t.Helper()
		m.send("T", 0, prop("DELAY", "1"), body)
		m.reach(ck, 100*time.Millisecond, "T", 0, n-1)
		m.send("T", 0, prop("TIMER_DELAY_MS", "2000"), body)
		m.takenUp()
		m.reach(ck, 100*time.Millisecond, "T", 0, n)
	}
	later("before", 2)
	m.end(m.half("c"), message.TransactionCommit)
	m.end(m.half("r"), message.TransactionRollback)
	m.settle()
	m.stop()

	// A crash that takes all units with it.
	if err := os.WriteFile(filepath.Join(cfg.Store.RootDir, "abort"), []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"consumequeue", "checkpoint"} {
		if err := os.RemoveAll(filepath.Join(cfg.Store.RootDir, name)); err != nil {
			t.Fatal(err)
		}
	}
	cfg.BrokerRole, cfg.ReplicationLevel, cfg.SemiSyncDegradeAlone = "SYNC_MASTER", "semi-sync", time.Hour
	m = start(t, cfg)
	for topic, end := range map[string]int64{"T": 2, message.TopicSchedule: 1, message.TopicTimer: 1, message.TopicHalfOp: 1} {
		if n, e := m.store.MaxOffset(topic, 0), m.store.EndOffset(topic, 0); n != 0 || e != end {
			t.Errorf("%s is not held back: %d of %d", topic, n, e)
		}
	}
	if at := m.delays.levels[0].progress.Load(); at != 1 {
		t.Errorf("the progress of the delayed messages has gone back to %d", at)
	}
	if at := m.timers.t.Offset(); at != 1 {
		t.Errorf("the position of the timer has gone back to %d", at)
	}
	m.transactions.mu.Lock()
	if off := m.transactions.mu.book.Next(0); off != 2 {
		t.Errorf("transaction %d has not ended", off)
	}
	m.transactions.mu.Unlock()
	if res := m.store.Get(store.GetRequest{Topic: "T", Offset: 2, MaxMsgs: 1}); res.NextOffset != 2 {
		t.Errorf("a consumer is sent to %d", res.NextOffset)
	}

	s := startSlave(t, m, 1, nil)
	m.until("not all is shown once it has its copies", func() bool {
		return s.store.LogEnd() == m.store.LogEnd() && m.store.Dispatched() == m.store.LogEnd() && m.store.MaxOffset("T", 0) >= 2
	})
	p := m.producer("a", func(askedHalf) int32 { return message.TransactionCommit })
	later("after", 4)
	open := m.half("open")
	ck.Advance(time.Minute)
	m.until("the transaction that is open is not asked about", func() bool { return m.store.MaxOffset("T", 1) >= 2 })
	if got := bodyText(m.all("T", 0)); got != "before "+"before "+"after "+"after" {
		t.Errorf("delivered %q", got)
	}
	if got := bodyText(m.all("T", 1)); got != "c open" {
		t.Errorf("committed %q", got)
	}
	for _, a := range p.asked() {
		if a.head.MsgID != open.MsgID {
			t.Errorf("asked about %s", a.head.MsgID)
		}
	}
}
