package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"mqx/internal/failpoint"
	"mqx/message"
	"mqx/remoting"
)

// timerBatch is what the broker stores of due messages in one go: after a kill so many may come again.
const timerBatch = 512

// timerLife is a broker that is killed while timer messages wait, roll and are recalled.
type timerLife struct {
	*delayLife
	r        *rand.Rand
	handles  []timerHandle        // of messages that may be recalled
	recalled map[string]time.Time // recalls that were answered
	doubtful map[string]bool      // recalls that were not
}

type timerHandle struct {
	key, handle string
	due         time.Time
}

// Timer messages survive deaths of the broker at any moment and at each named point of their way: none is lost, none comes
// early, none comes after an answered recall, and no more than a batch a death comes again. The long form is
//
//	MQX_TIMER_CRASH_ROUNDS=200 go test ./crash -run TestTimerCrash -v -timeout 1h
func TestTimerCrash(t *testing.T) {
	t.Parallel()
	points := failpoint.Timers()
	rounds := int(number(t, "MQX_TIMER_CRASH_ROUNDS", 6))
	seed := number(t, seedEnv, uint64(time.Now().UnixNano())%1_000_000)
	t.Logf("%d rounds from seed %d", rounds, seed)
	l := &timerLife{
		delayLife: newDelayLife(t), r: rand.New(rand.NewPCG(seed, 5)),
		recalled: map[string]time.Time{}, doubtful: map[string]bool{},
	}
	l.configure()
	died := map[string]int{}
	for i := range rounds {
		l.point = ""
		if i%(len(points)+1) != 0 { // else at a random moment
			l.point = fmt.Sprintf("%s:%d", points[i%(len(points)+1)-1], 1+l.r.IntN(4))
		}
		l.start()
		l.round(time.Duration(1000+l.r.IntN(1000)) * time.Millisecond)
		if l.broker.gone() && l.broker.killed() {
			died[strings.Split(l.point, ":")[0]]++
		} else {
			died["SIGKILL"]++
		}
		l.deaths = append(l.deaths, time.Now())
		l.broker.kill()
	}
	l.point = ""
	l.start()
	l.judge()
	if err := l.broker.stop(20 * time.Second); err != nil {
		t.Error(err)
	}
	t.Logf("died at %v", died)
	for _, p := range points {
		if rounds > 3*len(points) && died[string(p)] == 0 {
			t.Errorf("no broker died at %s", p)
		}
	}
}

// configure makes slots short, the wheel's window narrower than the delays, and files of the timer log small.
func (l *timerLife) configure() {
	l.t.Helper()
	text, err := os.ReadFile(l.conf)
	if err != nil {
		l.t.Fatal(err)
	}
	more := "recallMessageEnable=true\ntimerPrecisionMs=100\ntimerRollWindowSlot=15\ntimerFlushIntervalMs=200\nmappedFileSizeTimerLog=20800\n"
	if err := os.WriteFile(l.conf, append(text, more...), 0o644); err != nil {
		l.t.Fatal(err)
	}
	if filepath.Base(l.conf) != "broker.conf" {
		l.t.Fatal(l.conf)
	}
}

// round sends and recalls for a while, or until the broker has died.
func (l *timerLife) round(d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var work sync.WaitGroup
	for sender := range 3 {
		r := rand.New(rand.NewPCG(l.r.Uint64(), 6))
		work.Go(func() {
			for i := 0; ctx.Err() == nil && !l.broker.gone(); i++ {
				l.sendTimer(r, fmt.Sprintf("r%d-s%d-%d", len(l.deaths), sender, i))
				if i%4 == 0 {
					l.recall(r)
				}
				time.Sleep(3 * time.Millisecond)
			}
		})
	}
	work.Wait()
}

// sendTimer sends a message with one of the three properties.
func (l *timerLife) sendTimer(r *rand.Rand, key string) {
	now := time.Now()
	delay := time.Duration(1+r.IntN(4000)) * time.Millisecond
	props := message.AppendProperty(nil, message.PropUniqKey, key)
	switch r.IntN(3) {
	case 0:
		props = message.AppendProperty(props, message.PropTimerDelayMs, strconv.FormatInt(delay.Milliseconds(), 10))
	case 1:
		delay = delay.Truncate(time.Second) + time.Second
		props = message.AppendProperty(props, message.PropTimerDelaySec, strconv.Itoa(int(delay/time.Second)))
	case 2:
		props = message.AppendProperty(props, message.PropTimerDeliverMs, strconv.FormatInt(now.Add(delay).UnixMilli(), 10))
	}
	due := now.Add(delay)
	l.mu.Lock()
	l.asked[key] = due
	l.mu.Unlock()
	resp := l.call(remoting.ReqSendMessageV2, &remoting.SendMessageHeader{
		ProducerGroup: "P", Topic: "Delayed", DefaultTopic: "TBW102", DefaultTopicQueueNums: 1, BornTimestamp: now.UnixMilli(), Properties: string(props),
	}, []byte(key))
	if resp == nil || resp.Code != remoting.RespSuccess {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.due[key] = due
	if handle := resp.Fields.String("recallHandle"); handle != "" && r.IntN(3) == 0 {
		l.handles = append(l.handles, timerHandle{key, handle, due})
	}
}

// recall takes back one of the messages that are not due for a while.
func (l *timerLife) recall(r *rand.Rand) {
	l.mu.Lock()
	if len(l.handles) == 0 {
		l.mu.Unlock()
		return
	}
	i := r.IntN(len(l.handles))
	h := l.handles[i]
	l.handles[i] = l.handles[len(l.handles)-1]
	l.handles = l.handles[:len(l.handles)-1]
	l.mu.Unlock()
	resp := l.call(remoting.ReqRecallMessage, &remoting.RecallMessageHeader{ProducerGroup: "P", Topic: "Delayed", RecallHandle: h.handle}, nil)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case resp == nil:
		l.doubtful[h.key] = true
	case resp.Code == remoting.RespSuccess:
		l.recalled[h.key] = time.Now()
	}
}

// judge reads all that came and compares it with what was to come.
func (l *timerLife) judge() {
	came, next := map[string][]message.Record{}, int64(0)
	missing := func() (keys []string) {
		for key := range l.due {
			if _, gone := l.recalled[key]; len(came[key]) == 0 && !gone && !l.doubtful[key] {
				keys = append(keys, key)
			}
		}
		return keys
	}
	quiet := time.Now()
	for deadline := time.Now().Add(40 * time.Second); time.Now().Before(deadline); {
		records := l.pull("Delayed", next)
		for _, rec := range records {
			next = rec.QueueOffset + 1
			came[string(rec.Body)] = append(came[string(rec.Body)], rec)
		}
		if len(records) > 0 {
			quiet, deadline = time.Now(), time.Now().Add(40*time.Second)
			continue
		}
		if len(missing()) == 0 && time.Since(quiet) > 5*time.Second { // what was recalled would have come by now
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if lost := missing(); len(lost) > 0 || len(l.due) < 100 {
		l.t.Errorf("%d of %d messages were lost: %v", len(lost), len(l.due), lost[:min(len(lost), 5)])
	}
	twice, rolled := 0, 0
	for key, records := range came {
		due, ok := l.asked[key]
		if !ok {
			l.t.Errorf("%s came from nowhere", key)
			continue
		}
		twice += len(records) - 1
		if at, ok := l.recalled[key]; ok {
			l.t.Errorf("%s came at %v, and its recall was answered at %v", key, time.UnixMilli(records[0].StoreTimestamp), at)
		}
		for _, rec := range records {
			if at := time.UnixMilli(rec.StoreTimestamp); at.Add(2 * time.Millisecond).Before(due) {
				l.t.Errorf("%s came %v early", key, due.Sub(at))
			}
			if _, ok := message.Property(rec.Properties, message.PropTimerRollTimes); ok {
				rolled++
			}
		}
	}
	if twice > timerBatch*len(l.deaths) {
		l.t.Errorf("%d copies too many after %d deaths", twice, len(l.deaths))
	}
	if len(l.recalled) == 0 || rolled == 0 {
		l.t.Errorf("%d recalls, %d messages that rolled", len(l.recalled), rolled)
	}
	l.t.Logf("%d messages, %d of them recalled, %d rolled; %d came again", len(l.due), len(l.recalled), rolled, twice)
}
