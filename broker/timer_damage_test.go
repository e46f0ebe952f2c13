package broker

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mqx/internal/clock"
	"mqx/internal/vfs"
	"mqx/message"
	"mqx/remoting"
)

// sayings collects what a broker logs.
type sayings struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *sayings) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *sayings) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// overwrite changes a part of a file.
func overwrite(t *testing.T, path string, off int64, b []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(b, off); err != nil {
		t.Fatal(err)
	}
}

// usedPage is where the first page of a sparse file lies that holds something.
func usedPage(t *testing.T, path string) int64 {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for off := 0; off < len(b); off += 4096 {
		if !vfs.AllZero(b[off:min(off+4096, len(b))]) {
			return int64(off)
		}
	}
	t.Fatalf("%s is empty", path)
	return 0
}

// timerFiles are the paths of the timer's files.
type timerFiles struct{ wheel, log, check, metrics, note string }

// first is the first file of the timer log.
func (f *timerFiles) first() string { return filepath.Join(f.log, "00000000000000000000") }

// timerDamage is what a start finds. says is what it or the delivery has to say. again: what was delivered may come once more, as
// nobody knows any more; uncounted: the counts at the start are only those of what the log still tells.
type timerDamage struct {
	damage           func(*testing.T, timerFiles)
	says             string
	again, uncounted bool
}

func timerDamages() map[string]timerDamage {
	rm := func(paths ...string) func(*testing.T) {
		return func(t *testing.T) {
			for _, p := range paths {
				must(t, os.RemoveAll(p))
			}
		}
	}
	write := func(t *testing.T, path, text string) { must(t, os.WriteFile(path, []byte(text), 0o600)) }
	junk := func(n int) []byte { return bytes.Repeat([]byte{0x5a}, n) }
	return map[string]timerDamage{
		"no wheel":        {damage: func(t *testing.T, f timerFiles) { rm(f.wheel)(t) }},
		"a short wheel":   {damage: func(t *testing.T, f timerFiles) { must(t, os.Truncate(f.wheel, 100)) }, says: "timerwheel has 100 bytes"},
		"a page of zeros": {damage: func(t *testing.T, f timerFiles) { overwrite(t, f.wheel, usedPage(t, f.wheel), make([]byte, 4096)) }, says: "was repaired"},
		"a wheel of zeros": {damage: func(t *testing.T, f timerFiles) {
			must(t, os.Truncate(f.wheel, 0))
			must(t, os.Truncate(f.wheel, 2*7*24*3600*32))
		}, says: "was repaired"},
		"a page of junk":  {damage: func(t *testing.T, f timerFiles) { overwrite(t, f.wheel, usedPage(t, f.wheel), junk(4096)) }, says: "was repaired"},
		"no log":          {damage: func(t *testing.T, f timerFiles) { rm(f.log)(t) }, says: "the timer topic was read"},
		"neither":         {damage: func(t *testing.T, f timerFiles) { rm(f.log, f.wheel)(t) }, says: "the timer topic was read"},
		"a log cut short": {damage: func(t *testing.T, f timerFiles) { must(t, os.Truncate(f.first(), 52*5)) }, says: "searched for in the timer topic"},
		"junk in the log": {damage: func(t *testing.T, f timerFiles) { overwrite(t, f.first(), 52*8, junk(104)) }, says: "searched for in the timer topic"},
		"junk and no wheel": {damage: func(t *testing.T, f timerFiles) {
			rm(f.wheel)(t)
			overwrite(t, f.first(), 52*8, junk(104))
		}, says: "the timer topic was read", uncounted: true},
		"no checkpoint": {damage: func(t *testing.T, f timerFiles) { rm(f.check, f.note)(t) }, again: true},
		"counts alone": {damage: func(t *testing.T, f timerFiles) {
			rm(f.wheel, f.log, f.check, f.note, f.metrics+".bak")(t)
			write(t, f.metrics, `{"dataVersion":{"counter":1,"stateVersion":0,"timestamp":1},"timingCount":{"T":{"count":16,"timeStamp":1}}}`)
		}, again: true},
		"nothing at all":     {damage: func(t *testing.T, f timerFiles) { rm(f.wheel, f.log, f.check, f.metrics, f.note)(t) }, again: true},
		"garbled metrics":    {damage: func(t *testing.T, f timerFiles) { write(t, f.metrics, "{{{"); rm(f.metrics + ".bak")(t) }, says: "put aside"},
		"metrics and backup": {damage: func(t *testing.T, f timerFiles) { write(t, f.metrics, ""); write(t, f.metrics+".bak", "x") }, says: "put aside"},
	}
}

// Whatever of the timer's files is missing or damaged at a start: that is said, and each message that the log holds comes, at its
// time, the recalled ones do not, and what was delivered before does not come again. The counts of messages are right afterwards.
func TestTimerFilesDamaged(t *testing.T) {
	for name, tt := range timerDamages() {
		t.Run(name, func(t *testing.T) {
			cfg, ck := timerBroker(t)
			want := leaveTimers(t, cfg, ck)
			root := cfg.Store.RootDir
			tt.damage(t, timerFiles{
				wheel: filepath.Join(root, "timerwheel"), log: filepath.Join(root, "timerlog"), check: filepath.Join(root, "config", "timercheck"),
				metrics: filepath.Join(root, "config", "timermetrics"), note: filepath.Join(root, "mqx", "timer-progress"),
			})
			var said sayings
			cfg.Logger = slog.New(slog.NewTextHandler(&said, nil))
			r := start(t, cfg)
			m := r.timers.t.Metrics()
			if n := m.Topics["T"].Count; n != 20-4 && !tt.again && !tt.uncounted {
				t.Errorf("%d messages are counted, 16 wait", n)
			}
			r.reach(ck, 300*time.Millisecond, "T", 0, 20)
			// Where messages come again, the wheel may be empty before they have been taken up.
			waitFor(t, "the end", func() bool {
				ck.Advance(500 * time.Millisecond)
				r.poke()
				return r.timers.t.Num() == 0 && r.timers.t.Metrics().Topics["T"].Count == 0
			})
			r.checkTimers(want, tt.again)
			r.send("T", 0, prop("TIMER_DELAY_SEC", "3600"), "one more")
			waitFor(t, "the count of one more", func() bool { r.poke(); return r.timers.t.Metrics().Topics["T"].Count == 1 })
			if !strings.Contains(said.String(), tt.says) {
				t.Errorf("said %s, want %q", said.String(), tt.says)
			}
		})
	}
}

// leaveTimers leaves a stopped broker with 16 messages that wait, 4 that were delivered and 4 that were recalled. It returns the bodies
// of the first two.
func leaveTimers(t *testing.T, cfg Config, ck *clock.Manual) map[string]bool {
	t.Helper()
	r := start(t, cfg)
	r.createTopic("T", 1)
	want := map[string]bool{}
	var handles []string
	for i := range 24 {
		body := "m" + strconv.Itoa(i)
		resp := r.send("T", 0, prop("TIMER_DELIVER_MS", strconv.FormatInt(ck.Now().UnixMilli()+1500+int64(i%6)*2000, 10), "UNIQ_KEY", body), body)
		if i%6 == 4 {
			handles = append(handles, resp.Fields.String("recallHandle"))
			continue
		}
		want[body] = true
	}
	for _, h := range handles {
		r.ok(remoting.ReqRecallMessage, &remoting.RecallMessageHeader{ProducerGroup: "P", Topic: "T", RecallHandle: h}, nil)
	}
	r.takenUp()
	r.reach(ck, 300*time.Millisecond, "T", 0, 4)
	waitFor(t, "the slot", func() bool { return r.timers.t.Num() == 20-4 })
	r.stop()
	return want
}

// checkTimers compares what came in T with what was to come: each once (or more often where again says so), none early, nothing else.
func (r *running) checkTimers(want map[string]bool, again bool) {
	r.t.Helper()
	got := map[string]int{}
	for _, rec := range r.waitRecords("T", 0, int(r.store.MaxOffset("T", 0))) {
		got[string(rec.Body)]++
		out, _ := strconv.ParseInt(message.ParseProperties(rec.Properties)["TIMER_OUT_MS"], 10, 64)
		if rec.StoreTimestamp < out+1000 {
			r.t.Errorf("%s was delivered %d ms before its time", rec.Body, out+1000-rec.StoreTimestamp)
		}
	}
	for body := range want {
		if n := got[body]; n == 0 || n > 1 && !again {
			r.t.Errorf("%s came %d times", body, n)
		}
		delete(got, body)
	}
	if len(got) > 0 {
		r.t.Errorf("these were not to come: %v", got)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A volume that is full while timer messages come: in the wheel's file, the timer log, the checkpoint, the metrics. Nothing that
// was answered is lost, nothing comes early or twice, and the broker goes on by itself when there is room, also after a kill.
func TestTimerFilesOnAFullDisk(t *testing.T) {
	for _, killed := range []bool{false, true} {
		for _, part := range []string{"timerlog", "timerwheel", "timercheck", "timermetrics", "timer-progress"} {
			t.Run(fmt.Sprint(part, " killed ", killed), func(t *testing.T) {
				cfg, disk := onMem()
				cfg.TimerLogFileBytes = 20 * 52 // a new file every 19 messages
				cfg.TimerFlushEvery = 10 * time.Millisecond
				ck := clock.NewManual(time.UnixMilli(1_800_000_000_400))
				cfg.Clock = ck
				r := start(t, cfg)
				r.createTopic("T", 1)
				send := func(from, to int) {
					for i := from; i < to; i++ {
						r.send("T", 0, prop("TIMER_DELAY_MS", strconv.Itoa(2000+i%5*1000)), strconv.Itoa(i))
					}
				}
				send(0, 30)
				r.takenUp()
				full := func(op vfs.Op) error {
					if (op.Kind == vfs.OpWrite || op.Kind == vfs.OpTruncate || op.Kind == vfs.OpCreate) && strings.Contains(op.Path, part) {
						return &os.PathError{Op: op.Kind.String(), Path: op.Path, Err: syscall.ENOSPC}
					}
					return nil
				}
				disk.Inject(full)
				send(30, 90)
				if killed { // the broker works on what it has in memory, and dies
					after := disk.Kill()
					disk.Inject(nil)
					r.stop()
					cfg.Store.FS = after
					r = start(t, cfg)
				} else {
					ck.Advance(100 * time.Millisecond)
					r.poke()
					disk.Inject(nil)
				}
				r.reach(ck, 300*time.Millisecond, "T", 0, 90)
				waitFor(t, "the end", func() bool { r.poke(); return r.timers.t.Num() == 0 })
				want := map[string]bool{}
				for i := range 90 {
					want[strconv.Itoa(i)] = true
				}
				r.checkTimers(want, false)
				waitFor(t, "the checkpoint", func() bool { c := r.timers.t.Checkpoint(); return c.QueueOffset == 90 })
			})
		}
	}
}

// Messages that wait for a topic that is deleted meanwhile hold nobody up. As with Apache they are stored under its name when they
// are due, and are there when the topic is made again. The topic is counted as long as they wait.
func TestTimerOfADeletedTopic(t *testing.T) {
	cfg, ck := timerBroker(t)
	r := start(t, cfg)
	for _, topic := range []string{"T", "U", "V"} {
		r.createTopic(topic, 1)
	}
	for i := range 3 {
		r.send("T", 0, prop("TIMER_DELAY_MS", strconv.Itoa(2000+1000*i)), "gone")
		r.send("U", 0, prop("TIMER_DELAY_MS", strconv.Itoa(2000+1000*i)), "kept")
	}
	r.send("V", 0, prop("TIMER_DELAY_MS", "1000"), "soon")
	r.takenUp()
	r.reach(ck, 300*time.Millisecond, "V", 0, 1)
	for _, topic := range []string{"T", "V"} {
		r.ok(remoting.ReqDeleteTopicInBroker, &remoting.DeleteTopicHeader{Topic: topic}, nil)
	}
	m := r.timers.t.Metrics()
	if _, there := m.Topics["V"]; there || m.Topics["T"].Count != 3 {
		t.Errorf("counted: %v", m.Topics)
	}
	r.reach(ck, 300*time.Millisecond, "U", 0, 3)
	waitFor(t, "the wheel", func() bool { return r.timers.t.Num() == 0 })
	m = r.timers.t.Metrics()
	if _, there := m.Topics["T"]; there {
		t.Errorf("counted in the end: %v", m.Topics)
	}
	r.createTopic("T", 1)
	if n := len(r.waitRecords("T", 0, 3)); n != 3 {
		t.Errorf("%d messages", n)
	}
}

// Files of the timer log go when the commit log no longer has their messages, not before, and what waits then still comes.
func TestTimerLogExpires(t *testing.T) {
	cfg, ck := timerBroker(t)
	cfg.TimerLogFileBytes = 20 * 52
	cfg.Store.CommitLogFileBytes = 64 << 10
	r := start(t, cfg)
	r.createTopic("T", 1)
	body := strings.Repeat("x", 2000)
	for i := range 60 {
		r.send("T", 0, prop("TIMER_DELAY_MS", "1500"), fmt.Sprint(i, body))
	}
	r.takenUp()
	r.reach(ck, 300*time.Millisecond, "T", 0, 60)
	waitFor(t, "the wheel", func() bool { return r.timers.t.Num() == 0 })
	for range 100 {
		r.send("T", 0, "", body)
	}
	r.send("T", 0, prop("TIMER_DELAY_SEC", "7200", "UNIQ_KEY", "late"), "late")
	r.takenUp()
	dir := filepath.Join(cfg.Store.RootDir, "timerlog")
	before := len(fileNames(t, dir))
	r.timers.expire()
	if n := len(fileNames(t, dir)); n != before {
		t.Fatalf("%d files of %d are left, and no log file has gone", n, before)
	}
	old := time.Now().Add(-100 * time.Hour)
	for _, name := range fileNames(t, filepath.Join(cfg.Store.RootDir, "commitlog")) {
		must(t, os.Chtimes(filepath.Join(cfg.Store.RootDir, "commitlog", name), old, old))
	}
	r.store.DeleteExpiredNow()
	waitFor(t, "old log files", func() bool { return r.store.LogMin() > 0 })
	waitFor(t, "old timer files", func() bool { r.timers.expire(); return len(fileNames(t, dir)) < before })
	r.stop()
	r = start(t, cfg)
	had := int(r.store.MaxOffset("T", 0))
	ck.Advance(2 * time.Hour)
	r.reach(ck, 300*time.Millisecond, "T", 0, had+1)
}

func fileNames(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// timerMaxDelaySec bounds the delay, also while running: one more millisecond is refused with Apache's words and the limit.
func TestTimerMaxDelay(t *testing.T) {
	cfg, _ := timerBroker(t)
	cfg.TimerMaxDelay = 10 * time.Second
	r := start(t, cfg)
	r.createTopic("T", 1)
	try := func(ms string) *remoting.Command {
		return r.call(remoting.ReqSendMessageV2, sendHeaderOf("T", 0, prop("TIMER_DELAY_MS", ms)), []byte("x"))
	}
	if resp := try("10000"); resp.Code != 0 {
		t.Errorf("just at the limit: %d %q", resp.Code, resp.Remark)
	}
	resp := try("10001")
	if want := "timer message illegal, the delay time should not be bigger than the max delay 10000ms"; resp.Code != remoting.RespMessageIllegal || !strings.Contains(resp.Remark, want) {
		t.Errorf("above the limit: %d %q", resp.Code, resp.Remark)
	}
	r.ok(remoting.ReqUpdateBrokerConfig, nil, []byte("timerMaxDelaySec=20\n"))
	if resp := try("20000"); resp.Code != 0 {
		t.Errorf("after the change: %d %q", resp.Code, resp.Remark)
	}
	if resp := try("20001"); resp.Code != remoting.RespMessageIllegal {
		t.Errorf("above the new limit: %d %q", resp.Code, resp.Remark)
	}
	if n := r.store.MaxOffset(message.TopicTimer, 0); n != 2 {
		t.Errorf("%d messages were taken", n)
	}
}

// timerPrecisionMs is the width of a slot: no message is early, none later than one width after its slot. While messages wait
// the width cannot be changed: the start is refused and says which it was; with that one they come.
func TestTimerPrecision(t *testing.T) {
	for _, precision := range []int{100, 200, 500, 1000} {
		t.Run(strconv.Itoa(precision), func(t *testing.T) {
			cfg, ck := timerBroker(t)
			cfg.TimerPrecisionMs = precision
			r := start(t, cfg)
			r.createTopic("T", 1)
			deliver := ck.Now().UnixMilli() + 2345
			r.send("T", 0, prop("TIMER_DELIVER_MS", strconv.FormatInt(deliver, 10)), "x")
			r.send("T", 0, prop("TIMER_DELAY_SEC", "3600"), "waits")
			r.takenUp()
			r.reach(ck, 10*time.Millisecond, "T", 0, 1)
			rec := r.waitRecords("T", 0, 1)[0]
			if late := rec.StoreTimestamp - deliver; late < 0 || late > int64(precision)+20 {
				t.Errorf("stored %d ms after its time", late)
			}
			r.stop()
			other := cfg
			other.TimerPrecisionMs = 1100 - precision // it becomes the next smaller one that is known
			if precision == 500 || precision == 200 {
				other.TimerPrecisionMs = 100
			}
			b, err := New(other)
			must(t, err)
			if err := b.Run(t.Context()); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("timerPrecisionMs=%d", precision)) {
				t.Fatalf("started with another precision: %v", err)
			}
			r = start(t, cfg)
			ck.Advance(time.Hour)
			r.reach(ck, 10*time.Millisecond, "T", 0, 2)
		})
	}
}
