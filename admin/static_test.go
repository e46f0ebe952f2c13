package admin

import (
	"math"
	"strings"
	"testing"

	"mqx/remoting"
)

// Queues go where the fewest are, stay where they can, and a broker gets some or loses
// some, never both; what was decided is not decided again.
func TestStaticLayout(t *testing.T) {
	const topic = "S"
	all := []string{"a", "b", "c"}
	l, err := staticLayout{}.grow(topic, 5, []string{"a", "b"}, all, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": "leads 0 2 4 of 5", "b": "leads 1 3 of 5", "c": "leads none of 5"} {
		if got := l[name].String(); got != want {
			t.Errorf("%s %s, want %s", name, got, want)
		}
	}
	if l["a"].WriteQueues != 3 || l["c"].WriteQueues != 0 || l["c"].Mapping.Epoch != 1000 {
		t.Errorf("parts are %+v %+v", l["a"], l["c"])
	}
	next, ins, outs, err := l.remap(topic, []string{"b", "c"}, 1500)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(ins, ",") + " " + strings.Join(outs, ","); got != "b,c a" {
		t.Errorf("in and out are %s", got)
	}
	if next["b"].Mapping.Epoch != 2000 || l["a"].Mapping.Epoch != 1000 {
		t.Errorf("epochs are %d and %d", next["b"].Mapping.Epoch, l["a"].Mapping.Epoch)
	}
	if _, _, _, err := next.leaders(); err == nil {
		t.Error("a leader without an offset is taken for whole")
	}
	for id, items := range next["a"].Mapping.HostedQueues {
		if n := len(items); n == 2 {
			next.decide(id, afterBlock(4999))
		}
	}
	queues, total, _, err := next.leaders()
	if err != nil || total != 5 {
		t.Fatalf("%v %d", err, total)
	}
	for id, items := range queues {
		if n := len(items); n == 2 && items[1].LogicOffset != 10000 || leader(items) == "a" {
			t.Errorf("queue %d is %+v", id, items)
		}
	}
	if same, ins, _, err := next.remap(topic, []string{"b", "c"}, 9000); err != nil || len(ins) > 0 || same["b"].Mapping.Epoch != 2000 {
		t.Errorf("a second time: %v %v", ins, err)
	}
	if _, err := next.grow(topic, 4, all, all, 9000); err == nil {
		t.Error("queues become fewer")
	}
	torn := next.clone()
	torn["c"].Mapping.Epoch = 7
	if _, _, _, err := torn.leaders(); err == nil || !strings.Contains(err.Error(), "contradict") {
		t.Errorf("torn: %v", err)
	}
	double := next.clone()
	double["a"].Mapping.HostedQueues[1] = []remoting.LogicQueueMappingItem{{BName: "a"}}
	if _, _, _, err := double.leaders(); err == nil {
		t.Error("two leaders are taken")
	}
}

// What a remap moved goes back to who led it, by a mapping of its own: no file that somebody has to keep (AT08).
func TestStaticUndo(t *testing.T) {
	const topic = "S"
	all := []string{"a", "b"}
	before, err := staticLayout{}.grow(topic, 4, []string{"a"}, all, 1000)
	if err != nil {
		t.Fatal(err)
	}
	p := &StaticPlan{Topic: topic, Before: before, masters: map[string]Broker{"a": {Cluster: "c", Name: "a"}, "b": {Cluster: "c", Name: "b"}}}
	after, ins, outs, err := before.remap(topic, all, 1500)
	if err != nil {
		t.Fatal(err)
	}
	p.moved(after, ins, outs)
	u := p.undone()
	if u == nil || u.Cluster != "c" || u.Epoch != 2000 || len(u.Leaders) != 2 {
		t.Fatalf("the undo is %+v", u)
	}
	for id := range u.Leaders {
		after.decide(id, 10000)
	}
	back, ins, outs, err := after.lead(topic, u.Leaders, 1500)
	if err != nil || strings.Join(ins, "")+strings.Join(outs, "") != "ab" {
		t.Fatalf("back: %v, in %s, out %s", err, ins, outs)
	}
	if got := back["a"].String(); got != "leads 0 1 2 3 of 4" || back["a"].Mapping.Epoch != 3000 {
		t.Errorf("a %s in epoch %d", got, back["a"].Mapping.Epoch)
	}
	if _, _, _, err := after.lead(topic, map[int32]string{9: "a"}, 1500); err == nil {
		t.Error("a queue is led that there is not")
	}
	if _, _, _, err := after.lead(topic, map[int32]string{2: "a", 0: "b"}, 1500); err == nil && leader(after["b"].Mapping.HostedQueues[2]) == "b" {
		t.Error("a broker gets a queue and loses one")
	}
}

// N130: epochs are 64-bit numbers. One of them is never taken for the other by its lower
// half, none is older than 0, and behind the last one there is none.
func TestStaticEpochs(t *testing.T) {
	const topic, last = "S", int64(math.MaxInt64)
	all := []string{"a", "b"}
	l, err := staticLayout{}.grow(topic, 2, all, all, 1000)
	if err != nil {
		t.Fatal(err)
	}
	torn := l.clone()
	torn["a"].Mapping.Epoch, torn["b"].Mapping.Epoch = 0, last
	if _, _, _, err := torn.leaders(); err == nil || !strings.Contains(err.Error(), "contradict") {
		t.Errorf("epochs 0 and 2^63-1: %v", err)
	}
	torn["a"].Mapping.Epoch, torn["b"].Mapping.Epoch = 1<<32+5, 5 // equal when cut to 32 bits
	if _, _, _, err := torn.leaders(); err == nil {
		t.Error("epochs are compared by their lower half")
	}
	for _, epoch := range []int64{1 << 40, last - epochStep} {
		at := l.clone()
		at["a"].Mapping.Epoch, at["b"].Mapping.Epoch = epoch, epoch
		next, err := at.grow(topic, 3, all, all, 1000)
		if err != nil || next["a"].Mapping.Epoch != epoch+epochStep {
			t.Errorf("behind epoch %d: %v", epoch, err)
		}
	}
	full := l.clone()
	full["a"].Mapping.Epoch, full["b"].Mapping.Epoch = last, last
	if _, err := full.grow(topic, 3, all, all, 1000); err == nil {
		t.Error("an epoch went over")
	}
	if _, _, _, err := full.remap(topic, []string{"a"}, 1000); err == nil {
		t.Error("an epoch went over in a remap")
	}
}

func TestAfterBlock(t *testing.T) {
	for end, want := range map[int64]int64{0: 10000, 4999: 10000, 5000: 20000, 10000: 20000, 14999: 20000, 15000: 30000} {
		if got := afterBlock(end); got != want {
			t.Errorf("behind %d is %d, want %d", end, got, want)
		}
	}
}
