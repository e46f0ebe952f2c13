package stats

import (
	"testing"
	"time"
)

func TestWindows(t *testing.T) {
	t0 := time.Unix(1_700_000_000, 0)
	s := NewSet()
	c := s.Counter(TopicPutNums, "T")
	if got := c.Minute(); got != (Item{}) {
		t.Fatalf("before a sample: %+v", got)
	}
	s.Sample(t0)
	for i := range 12 { // 10 units in 5 events a period
		for range 5 {
			c.Add(2)
		}
		s.Sample(t0.Add(time.Duration(i+1) * MinutePeriod))
	}
	got := c.Minute()
	if got.Sum != 60 || got.TPS != 1 || got.AvgPT != 2 {
		t.Errorf("minute: %+v, want sum 60, 1 tps, 2 an event", got)
	}
	if c.Total() != 120 {
		t.Errorf("total %d", c.Total())
	}
	s.Sample(t0.Add(HourPeriod + time.Second))
	if got := c.Hour(); got.Sum != 120 {
		t.Errorf("hour: %+v, want sum 120", got)
	}
	if got := c.Day(); got.Sum != 0 {
		t.Errorf("day before its second sample: %+v", got)
	}
	s.Sample(t0.Add(DayPeriod + time.Second))
	if got := c.Day(); got.Sum != 120 {
		t.Errorf("day: %+v, want sum 120", got)
	}
}

func TestFirstSampleCountsFromZero(t *testing.T) {
	s := NewSet()
	c := s.Counter(GroupGetNums, "T@G")
	c.AddTimes(7, 1)
	s.Sample(time.Unix(10, 0))
	if got := c.Minute(); got.Sum != 7 {
		t.Errorf("first sample: %+v, want sum 7", got)
	}
}

func TestLookupAndRemove(t *testing.T) {
	s := NewSet()
	if _, ok := s.Lookup(TopicPutNums, "T"); ok {
		t.Error("a counter exists before anything was counted")
	}
	c := s.Counter(TopicPutNums, "T")
	if c != s.Counter(TopicPutNums, "T") {
		t.Error("one key has two counters")
	}
	s.Counter(TopicPutNums, "U")
	s.Remove(func(_, k string) bool { return k == "T" })
	if _, ok := s.Lookup(TopicPutNums, "T"); ok {
		t.Error("T is still counted")
	}
	if _, ok := s.Lookup(TopicPutNums, "U"); !ok {
		t.Error("U is gone too")
	}
}
