package delay

import (
	"testing"
	"time"

	"mqx/message"
)

func TestLevels(t *testing.T) {
	l := Levels{time.Second, time.Minute}
	for level, want := range map[int]int{1: 1, 2: 2, 3: 2, 1 << 30: 2, -1: -1} {
		if got := l.Cap(level); got != want {
			t.Errorf("level %d counts as %d, want %d", level, got, want)
		}
	}
	if d, ok := l.Of(2); !ok || d != time.Minute {
		t.Error(d, ok)
	}
	for _, level := range []int{0, -1, 3} {
		if _, ok := l.Of(level); ok {
			t.Errorf("level %d has a delay", level)
		}
	}
	if QueueOf(7) != 6 || QueueOf(1) != 0 || l.Max() != 2 {
		t.Error("queues and levels")
	}
}

func TestLevelIn(t *testing.T) {
	for text, want := range map[string]int{"": 0, "DELAY\x013\x02": 3, "DELAY\x01-1\x02": -1, "A\x01DELAY\x02": 0, "DELAY\x01+4\x02": 4} {
		if got, err := LevelIn([]byte(text)); err != nil || got != want {
			t.Errorf("%q: %d %v", text, got, err)
		}
	}
	for _, text := range []string{"DELAY\x01x\x02", "DELAY\x011s\x02", "DELAY\x0199999999999\x02"} {
		if _, err := LevelIn([]byte(text)); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

func TestDeliver(t *testing.T) {
	wait := func(props string) message.View {
		r := message.Record{Topic: []byte(message.TopicSchedule), QueueID: 2, Body: []byte("b"), Properties: []byte(props), ReconsumeTimes: 4, PreparedTransactionOffset: 9, SysFlag: message.TransactionCommit}
		return r.Append(nil, false)
	}
	rec, err := Deliver(wait("DELAY\x013\x02REAL_TOPIC\x01T\x02REAL_QID\x017\x02"))
	if err != nil || string(rec.Topic) != "T" || rec.QueueID != 7 || rec.ReconsumeTimes != 4 || rec.PreparedTransactionOffset != 0 ||
		rec.SysFlag != message.TransactionCommit || string(rec.Properties) != "DELAY\x013\x02REAL_TOPIC\x01T\x02REAL_QID\x017\x02" {
		t.Errorf("%+v %v", rec, err)
	}
	for _, props := range []string{
		"", "REAL_TOPIC\x01T\x02", "REAL_QID\x017\x02", "REAL_TOPIC\x01T\x02REAL_QID\x01x\x02", "REAL_TOPIC\x01T\x02REAL_QID\x01-1\x02",
		"REAL_TOPIC\x01RMQ_SYS_TRANS_HALF_TOPIC\x02REAL_QID\x010\x02", "REAL_TOPIC\x01SCHEDULE_TOPIC_XXXX\x02REAL_QID\x010\x02",
	} {
		if _, err := Deliver(wait(props)); err == nil {
			t.Errorf("%q is delivered", props)
		}
	}
}

// What cannot be delivered waits a little longer each time, up to a minute; a table without such levels gives the nearest.
func TestLater(t *testing.T) {
	const s, m = time.Second, time.Minute
	usual := Levels{s, 5 * s, 10 * s, 30 * s, m, 2 * m, 120 * m}
	for _, tt := range []struct {
		table  Levels
		waited time.Duration
		want   int
	}{
		{usual, s, 3},
		{usual, -1, 3},
		{usual, 10 * s, 4},
		{usual, 30 * s, 5},
		{usual, m, 5},
		{usual, 120 * m, 5},
		{Levels{s, 2 * s}, s, 2},
		{Levels{s}, s, 1},
		{Levels{3 * m, 2 * m}, s, 2},
		{nil, s, 0},
	} {
		if got, ok := tt.table.Later(tt.waited); got != tt.want || ok != (tt.want > 0) {
			t.Errorf("%v after %v: %d, %v", tt.table, tt.waited, got, ok)
		}
	}
}
