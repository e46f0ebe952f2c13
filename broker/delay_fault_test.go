package broker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mqx/internal/clock"
	"mqx/message"
	"mqx/remoting"
	"mqx/store"
)

// badPuts fails puts of the delay service by their body.
type badPuts struct {
	sync.Mutex
	put   func([]*store.Put)
	times map[string]int // how often a body still fails
	tries map[string]int
}

func (f *badPuts) do(ps []*store.Put) {
	var good []*store.Put
	for _, p := range ps {
		body := string(p.Record.Body)
		f.Lock()
		f.tries[body]++
		fails := f.times[body] > 0
		f.times[body]--
		f.Unlock()
		if fails {
			p.Status, p.Err = store.ServiceNotAvailable, errors.New("no room")
			p.Done(p)
			continue
		}
		good = append(good, p)
	}
	if len(good) > 0 {
		f.put(good)
	}
}

func (f *badPuts) triesOf(body string) int {
	f.Lock()
	defer f.Unlock()
	return f.tries[body]
}

// A delivery that fails is tried again, that message and none of the others of
// its batch (N057, N058); the level goes on afterwards.
func TestFailedDeliveryIsTriedAgain(t *testing.T) {
	cfg := delayConfigOf(t, "1s")
	man := clock.NewManual(time.Now())
	cfg.Clock = man
	b, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	f := &badPuts{put: b.delays.put, times: map[string]int{"m3": 2}, tries: map[string]int{}}
	b.delays.put = f.do
	r := run(t, b)
	r.createTopic("T", 1)
	var want []string
	for i := range 10 {
		body := fmt.Sprint("m", i)
		r.send("T", 0, prop("DELAY", "1"), body)
		want = append(want, body)
	}
	r.settle()
	man.Advance(time.Second)
	var got []string
	for _, rec := range r.waitRecords("T", 0, 10) {
		got = append(got, string(rec.Body))
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("delivered %v", got)
	}
	for _, body := range want {
		if n, most := f.triesOf(body), map[string]int{"m3": 3}[body]; n != max(1, most) {
			t.Errorf("%s was stored %d times", body, n)
		}
	}
	r.send("T", 0, prop("DELAY", "1"), "m10")
	man.Advance(time.Second)
	r.waitRecords("T", 0, 11)
}

// What cannot be delivered (a record that says no place, one whose body is
// damaged, one that is gone) is passed over; the messages around it arrive.
func TestBadMessageBlocksNoOther(t *testing.T) {
	cfg := delayConfigOf(t, "1s")
	man := clock.NewManual(time.Now())
	cfg.Clock = man
	r := start(t, cfg)
	r.createTopic("T", 1)
	r.send("T", 0, prop("DELAY", "1"), "first")
	for _, props := range []string{"", prop("DELAY", "1", "REAL_TOPIC", "T"), prop("DELAY", "1", "REAL_TOPIC", "T", "REAL_QID", "x"), prop("DELAY", "1", "REAL_TOPIC", message.TopicSchedule, "REAL_QID", "0")} {
		putDirect(t, r, message.Record{
			Topic: []byte(message.TopicSchedule), Body: []byte("bad"), Properties: []byte(props), BornHost: r.at().storeHost, StoreHost: r.at().storeHost,
		})
	}
	r.send("T", 0, prop("DELAY", "1"), "to be damaged")
	r.send("T", 0, prop("DELAY", "1"), "last")
	r.settle()
	damage(t, cfg.Store.RootDir, "to be damaged")
	man.Advance(2 * time.Second)
	var got []string
	for _, rec := range r.waitRecords("T", 0, 2) {
		got = append(got, string(rec.Body))
	}
	if !slices.Equal(got, []string{"first", "last"}) {
		t.Errorf("delivered %v", got)
	}
	waitFor(t, "progress", func() bool { return r.delays.table().OffsetTable[1] == 7 })
}

// damage changes one byte of a body in the commit log.
func damage(t *testing.T, root, body string) {
	t.Helper()
	name := filepath.Join(root, "commitlog", "00000000000000000000")
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	i := strings.Index(string(b), body)
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil || i < 0 {
		t.Fatal(err, i)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte{'T'}, int64(i)); err != nil {
		t.Fatal(err)
	}
}

// A message that was accepted is delivered although the limit of messages has
// become smaller, and one just under the limit survives delays and retries.
func TestLargeMessages(t *testing.T) {
	cfg := delayConfigOf(t, "1s")
	cfg.Store.MaxMessageBytes = 100_000
	man := clock.NewManual(time.Now())
	cfg.Clock = man
	r := start(t, cfg)
	r.createTopic("T", 1)
	body := strings.Repeat("x", 100_000)
	r.send("T", 0, prop("DELAY", "1"), body)
	r.send("T", 0, "", body)
	offset := r.waitPhys("T", 0, 0)
	for range 3 {
		had := r.store.MaxOffset("%RETRY%G", 0)
		r.ok(remoting.ReqConsumerSendMsgBack, &remoting.ConsumerSendMsgBackHeader{Offset: offset, Group: "G", DelayLevel: 1}, nil)
		r.settle()
		man.Advance(2 * time.Second)
		waitFor(t, "the retry", func() bool { return r.store.MaxOffset("%RETRY%G", 0) > had })
		offset = r.waitPhys("%RETRY%G", 0, r.store.MaxOffset("%RETRY%G", 0)-1)
	}
	r.stop()
	cfg.Store.MaxMessageBytes = 1000
	man.Advance(time.Hour)
	r = start(t, cfg)
	waitFor(t, "the retries", func() bool { return r.store.MaxOffset("%RETRY%G", 0) == 3 })
	if n := len(r.waitRecords("T", 0, 2)[1].Body); n != 100_000 {
		t.Errorf("a body of %d bytes", n)
	}
}

// waitPhys is where the record of a queue offset lies.
func (r *running) waitPhys(topic string, q int32, off int64) int64 {
	r.t.Helper()
	waitFor(r.t, topic, func() bool { return r.store.MaxOffset(topic, q) > off })
	units, err := r.store.Units(topic, q, off, 1)
	if err != nil || len(units) != 1 {
		r.t.Fatal(units, err)
	}
	return units[0].PhysicalOffset
}

// Messages of levels that the table has no more come at the time they carry;
// shortened levels come after the new delay; a store with level 20 is served.
func TestChangedLevelTable(t *testing.T) {
	cfg := delayConfigOf(t, strings.Repeat("1h ", 19)+"2h")
	man := clock.NewManual(time.Now())
	cfg.Clock = man
	r := start(t, cfg)
	r.createTopic("T", 4)
	for q, level := range []string{"1", "2", "20"} {
		r.send("T", int32(q), prop("DELAY", level), "x")
	}
	r.settle()
	r.stop()
	cfg.Store.MessageDelayLevel = "1s"
	r = start(t, cfg)
	r.waitRecords("T", 0, 1) // an hour became a second
	man.Advance(time.Hour)
	r.waitRecords("T", 1, 1)
	if r.store.MaxOffset("T", 2) != 0 {
		t.Error("level 20 came early")
	}
	man.Advance(time.Hour)
	r.waitRecords("T", 2, 1)
}

// The wall clock is set back by a day and forward again: what is sent meanwhile
// comes after its delay, not at once and not a day late.
func TestDelayAcrossClockSteps(t *testing.T) {
	cfg := delayConfigOf(t, "1s")
	man := clock.NewManual(time.Now())
	cfg.Clock = man
	r := start(t, cfg)
	r.createTopic("T", 1)
	r.send("T", 0, "", "now")
	man.Advance(-24 * time.Hour)
	sent := time.Now()
	r.send("T", 0, prop("DELAY", "1"), "while the clock is wrong") // its store time is that of the message before
	r.settle()
	waitFor(t, "the delivery", func() bool { return r.store.MaxOffset("T", 0) == 2 })
	if took := time.Since(sent); took < time.Second {
		t.Errorf("delivered after %v", took)
	}
	r.send("T", 0, prop("DELAY", "1"), "before a step forward")
	r.settle()
	man.Advance(48 * time.Hour)
	waitFor(t, "the delivery", func() bool { return r.store.MaxOffset("T", 0) == 3 })
}

// With two bad files the start is refused: nothing is delivered again.
func TestBadProgressStopsTheStart(t *testing.T) {
	cfg := delayConfigOf(t, "1s")
	dir := filepath.Join(cfg.Store.RootDir, "config")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"delayOffset.json", "delayOffset.json.bak"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "progress of delayed messages") {
		t.Errorf("%v", err)
	}
}
