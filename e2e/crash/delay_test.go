package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mqx/message"
	"mqx/remoting"
)

// delayWindow is how far before the last save of the progress (every second here)
// a death may repeat deliveries: the log is made durable between taking down the
// progress and saving it.
const delayWindow = 3 * time.Second

// delayLife is a broker that is killed while messages wait for their time.
type delayLife struct {
	killable

	mu    sync.Mutex
	due   map[string]time.Time // answered sends and send-backs: not before
	asked map[string]time.Time // all of them, answered or not
	back  int64                // next offset of the topic to send back from
	saved []time.Time          // of each death, when the progress had been saved last
}

// Delayed messages and retries in flight survive deaths of the broker: none is
// lost, none comes early, and only what was delivered shortly before a death may
// come again.
func TestDelayCrash(t *testing.T) {
	t.Parallel()
	rounds := int(number(t, "MQX_DELAY_CRASH_ROUNDS", 4))
	seed := number(t, seedEnv, uint64(time.Now().UnixNano())%1_000_000)
	t.Logf("%d rounds from seed %d", rounds, seed)
	l := newDelayLife(t)
	r := rand.New(rand.NewPCG(seed, 4))
	for range rounds {
		l.start()
		l.round(time.Duration(1500+r.IntN(2000)) * time.Millisecond)
		l.deaths = append(l.deaths, time.Now())
		l.broker.kill()
		l.saved = append(l.saved, l.savedAt())
	}
	l.start()
	l.judge()
	if err := l.broker.stop(20 * time.Second); err != nil {
		t.Error(err)
	}
}

func newDelayLife(t *testing.T) *delayLife {
	t.Helper()
	return &delayLife{
		killable: newKillable(t, "flushDelayOffsetInterval=1000\nmessageDelayLevel=1s 2s 3s\n", nil), due: map[string]time.Time{}, asked: map[string]time.Time{},
	}
}

// savedAt is when the progress was saved last.
func (l *delayLife) savedAt() time.Time {
	st, err := os.Stat(filepath.Join(l.dir, "store", "config", "delayOffset.json"))
	if err != nil {
		l.t.Errorf("the progress of delayed messages: %v", err)
		return time.Now()
	}
	return st.ModTime()
}

// round sends delayed messages and sends back what was delivered, for a while.
func (l *delayLife) round(d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var work sync.WaitGroup
	for sender := range 3 {
		work.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				l.send(fmt.Sprintf("r%d-s%d-%d", len(l.deaths), sender, i), 1+sender)
			}
		})
	}
	work.Go(func() {
		for ctx.Err() == nil {
			l.sendBack()
		}
	})
	work.Wait()
}

// note remembers a message that is to come to a topic, level seconds from now.
func (l *delayLife) note(key string, level int, do func() *remoting.Command) {
	due := time.Now().Add(time.Duration(level) * time.Second)
	l.mu.Lock()
	l.asked[key] = due
	l.mu.Unlock()
	if resp := do(); resp != nil && resp.Code == remoting.RespSuccess {
		l.mu.Lock()
		l.due[key] = due
		l.mu.Unlock()
	}
}

func (l *delayLife) send(body string, level int) {
	l.note("Delayed "+body, level, func() *remoting.Command {
		return l.call(remoting.ReqSendMessageV2, &remoting.SendMessageHeader{
			ProducerGroup: "P", Topic: "Delayed", DefaultTopic: "TBW102", DefaultTopicQueueNums: 1, BornTimestamp: time.Now().UnixMilli(),
			Properties: message.PropDelay + "\x01" + fmt.Sprint(level) + "\x02",
		}, []byte(body))
	})
	time.Sleep(4 * time.Millisecond)
}

// sendBack sends back the next messages that were delivered, each once.
func (l *delayLife) sendBack() {
	records := l.pull("Delayed", l.back)
	for _, rec := range records {
		key := fmt.Sprintf("%%RETRY%%G %s@%d", rec.Body, rec.QueueOffset)
		l.note(key, 1, func() *remoting.Command {
			return l.call(remoting.ReqConsumerSendMsgBack, &remoting.ConsumerSendMsgBackHeader{Offset: rec.PhysicalOffset, Group: "G", DelayLevel: 1}, nil)
		})
		l.back = rec.QueueOffset + 1
	}
	if len(records) == 0 {
		time.Sleep(20 * time.Millisecond)
	}
}

func (l *delayLife) pull(topic string, offset int64) []message.Record {
	resp := l.call(remoting.ReqPullMessage, &remoting.PullMessageHeader{
		ConsumerGroup: "G", Topic: topic, QueueOffset: offset, MaxMsgNums: 32, SysFlag: 4, Subscription: "*", ExpressionType: "TAG",
	}, nil)
	if resp == nil || resp.Code != remoting.RespSuccess {
		return nil
	}
	var out []message.Record
	for b := resp.Body; len(b) > 0; {
		rec, err := message.DecodeRecord(b, message.DecodeOptions{VerifyBodyCRC: true})
		if err != nil {
			l.t.Errorf("a message of %s cannot be read: %v", topic, err)
			return out
		}
		out = append(out, rec)
		b = b[rec.Size:]
	}
	return out
}

// judge reads all that came and compares it with what was to come.
func (l *delayLife) judge() {
	came := map[string][]message.Record{}
	next := map[string]int64{}
	missing := func() (n int) {
		for key := range l.due {
			if len(came[key]) == 0 {
				n++
			}
		}
		return n
	}
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); { // 30 s behind the last one that came
		got := 0
		for _, topic := range []string{"Delayed", message.RetryTopic("G")} {
			for _, rec := range l.pull(topic, next[topic]) {
				next[topic] = rec.QueueOffset + 1
				got++
				came[l.keyOf(topic, &rec)] = append(came[l.keyOf(topic, &rec)], rec)
			}
		}
		if got > 0 {
			deadline = time.Now().Add(30 * time.Second)
		} else if missing() == 0 {
			break
		}
		if got == 0 {
			time.Sleep(50 * time.Millisecond)
		}
	}
	if n := missing(); n > 0 || len(l.due) < 100 {
		l.t.Errorf("%d of %d messages were lost", n, len(l.due))
	}
	twice := 0
	for key, records := range came {
		due, ok := l.asked[key]
		if !ok {
			l.t.Errorf("%s came from nowhere", key)
			continue
		}
		for i, rec := range records {
			at := time.UnixMilli(rec.StoreTimestamp)
			if at.Add(2 * time.Millisecond).Before(due) {
				l.t.Errorf("%s came %v early", key, due.Sub(at))
			}
			if i > 0 {
				twice++
				l.explain(key, time.UnixMilli(records[i-1].StoreTimestamp), at)
			}
		}
	}
	l.t.Logf("%d messages, %d came again", len(l.due), twice)
}

// keyOf names a message as note did: of a retry, by the record that was sent back.
func (l *delayLife) keyOf(topic string, rec *message.Record) string {
	if !strings.HasPrefix(topic, message.RetryTopicPrefix) {
		return topic + " " + string(rec.Body)
	}
	// Of the same body, the one sent back has the physical offset in the first id.
	id, _ := message.Property(rec.Properties, message.PropOriginMessageID)
	_, phys, err := message.ParseOffsetID(string(id))
	if err != nil {
		l.t.Errorf("first id %q: %v", id, err)
	}
	origin := l.call(remoting.ReqViewMessageByID, &remoting.ViewMessageHeader{Offset: phys}, nil)
	if origin == nil || origin.Code != remoting.RespSuccess {
		return topic + " ?"
	}
	first, err := message.DecodeRecord(origin.Body, message.DecodeOptions{})
	if err != nil {
		l.t.Error(err)
	}
	return fmt.Sprintf("%s %s@%d", topic, rec.Body, first.QueueOffset)
}

// explain judges a delivery that was repeated: a death must lie between, before which
// the first one was not saved.
func (l *delayLife) explain(key string, first, again time.Time) {
	for i, death := range l.deaths {
		if death.After(first.Add(-time.Second)) && death.Before(again) && l.saved[i].Sub(first) < delayWindow {
			return
		}
	}
	l.t.Errorf("%s came again %v after the first time, and no death explains it", key, again.Sub(first))
}
