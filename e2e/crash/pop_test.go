package crash

import (
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"mqx/message"
	"mqx/remoting"
)

// popWindow is how far back a death may repeat what was acknowledged: offsets
// are saved every second here, and with merging what was popped stays in memory
// for two.
const popWindow = 5 * time.Second

// popLife is a broker that is killed while messages are popped.
type popLife struct {
	killable

	mu     sync.Mutex
	stored map[string]bool      // sends that were answered
	popped map[string]time.Time // first delivery
	acked  map[string]time.Time // acks that were answered
	again  []string             // findings
}

// Messages in flight by pop survive deaths of the broker: none is lost, and none
// comes again after an answered ack, but for the interval in which offsets are
// not saved yet.
func TestPopCrash(t *testing.T) {
	rounds := int(number(t, "MQX_POP_CRASH_ROUNDS", 4))
	seed := number(t, seedEnv, uint64(time.Now().UnixNano())%1_000_000)
	for _, merge := range []bool{false, true} {
		t.Run(fmt.Sprintf("merge=%v", merge), func(t *testing.T) {
			t.Parallel()
			t.Logf("%d rounds from seed %d", rounds, seed)
			l := newPopLife(t, merge)
			r := rand.New(rand.NewPCG(seed, 3))
			for range rounds {
				l.start()
				l.round(time.Duration(2000+r.IntN(2500)) * time.Millisecond)
				l.deaths = append(l.deaths, time.Now())
				l.broker.kill()
			}
			l.start()
			l.drain()
			if err := l.broker.stop(20 * time.Second); err != nil {
				t.Error(err)
			}
			for _, what := range l.again {
				t.Error(what)
			}
			for body := range l.stored {
				if _, ok := l.popped[body]; !ok {
					t.Errorf("%s was stored and never popped", body)
				} else if _, ok := l.acked[body]; !ok {
					t.Errorf("%s was not acknowledged and did not come back", body)
				}
			}
			t.Logf("%d messages stored, %d acknowledged", len(l.stored), len(l.acked))
			if len(l.stored) < 100 {
				t.Error("too few messages")
			}
		})
	}
}

func newPopLife(t *testing.T, merge bool) *popLife {
	t.Helper()
	settings := fmt.Sprintf("flushConsumerOffsetInterval=1000\nreviveInterval=100\nenablePopBufferMerge=%v\npopCkStayBufferTime=2000\npopCkStayBufferTimeOut=500\n", merge)
	return &popLife{killable: newKillable(t, settings, nil), stored: map[string]bool{}, popped: map[string]time.Time{}, acked: map[string]time.Time{}}
}

// round sends, pops and acknowledges for a while.
func (l *popLife) round(d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var work sync.WaitGroup
	round := len(l.deaths)
	work.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			l.send(fmt.Sprintf("r%d-%d", round, i))
			time.Sleep(3 * time.Millisecond)
		}
	})
	for range 2 {
		work.Go(func() {
			for ctx.Err() == nil {
				l.pop(ctx, true)
			}
		})
	}
	work.Wait()
}

// drain acknowledges everything until nothing has come for a while.
func (l *popLife) drain() {
	last := time.Now()
	for time.Since(last) < 12*time.Second {
		if l.pop(context.Background(), false) > 0 {
			last = time.Now()
		}
		l.mu.Lock()
		done := len(l.acked) >= len(l.stored)
		l.mu.Unlock()
		if done && time.Since(last) > 6*time.Second {
			return
		}
	}
}

func (l *popLife) send(body string) {
	resp := l.call(remoting.ReqSendMessageV2, &remoting.SendMessageHeader{
		ProducerGroup: "P", Topic: "Popped", DefaultTopic: "TBW102", DefaultTopicQueueNums: 2, QueueID: -1, BornTimestamp: time.Now().UnixMilli(),
	}, []byte(body))
	if resp != nil && resp.Code == remoting.RespSuccess {
		l.mu.Lock()
		l.stored[body] = true
		l.mu.Unlock()
	}
}

// pop takes messages and acknowledges them; some are left alone when some is
// set. It returns how many came.
func (l *popLife) pop(ctx context.Context, some bool) int {
	resp := l.call(remoting.ReqPopMessage, &remoting.PopMessageHeader{
		ConsumerGroup: "G", Topic: "Popped", QueueID: -1, MaxMsgNums: 16, InvisibleTime: 3000, PollTime: 500, BornTime: time.Now().UnixMilli(),
	}, nil)
	if resp == nil || resp.Code != remoting.RespSuccess {
		time.Sleep(20 * time.Millisecond)
		return 0
	}
	popTime, _, _ := resp.Fields.Int64("popTime")
	n, starts := 0, map[string]string{}
	for entry := range strings.SplitSeq(resp.Fields.String("startOffsetInfo"), ";") {
		if part := strings.Split(entry, " "); len(part) == 3 {
			starts[part[0]+" "+part[1]] = part[2]
		}
	}
	for m, err := range message.DecodeMessages(resp.Body, message.ReceiveOptions{}) {
		if err != nil {
			l.finding("a popped message cannot be read: %v", err)
			return n
		}
		n++
		body := string(m.Body)
		l.arrived(body)
		if ctx.Err() != nil || some && rand.IntN(5) == 0 {
			continue
		}
		receipt, kind := m.Property(message.PropPopCK), "0"
		if receipt == "" {
			receipt = fmt.Sprintf("%s %d 3000 %s 0 b %d %d", starts[fmt.Sprintf("0 %d", m.QueueID)], popTime, resp.Fields.String("reviveQid"), m.QueueID, m.QueueOffset)
		} else {
			kind = "1"
		}
		l.ack(body, kind, receipt, m.QueueID, m.QueueOffset)
	}
	return n
}

// arrived notes a delivery and judges one after an ack.
func (l *popLife) arrived(body string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first, ok := l.popped[body]
	if !ok {
		l.popped[body] = time.Now()
		return
	}
	at, ok := l.acked[body]
	if !ok {
		return
	}
	for _, death := range l.deaths {
		if death.After(first) && death.Sub(at) < popWindow {
			return // its offset, or its ack in memory, was not saved yet
		}
	}
	l.again = append(l.again, fmt.Sprintf("%s came again %v after its ack, and no death explains it", body, time.Since(at)))
}

func (l *popLife) finding(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.again = append(l.again, fmt.Sprintf(format, args...))
}

func (l *popLife) ack(body, kind, receipt string, queue int32, offset int64) {
	topic := "Popped"
	if kind == "1" {
		topic = message.PopRetryTopic("G", topic, false)
	}
	var resp *remoting.Command
	if part := strings.Split(receipt, " "); offset%2 == 0 && len(part) == 8 {
		start, _ := strconv.ParseInt(part[0], 10, 64)
		bits := make([]byte, (offset-start)/8+1)
		bits[(offset-start)/8] = 1 << ((offset - start) % 8)
		resp = l.call(remoting.ReqBatchAckMessage, nil, fmt.Appendf(nil,
			`{"brokerName":"b","acks":[{"b":%q,"c":"G","it":%s,"pt":%s,"q":%d,"r":%q,"rq":%s,"so":%s,"t":"Popped"}]}`,
			base64.StdEncoding.EncodeToString(bits), part[2], part[1], queue, kind, part[3], part[0]))
	} else {
		resp = l.call(remoting.ReqAckMessage, &remoting.AckMessageHeader{ConsumerGroup: "G", Topic: topic, QueueID: queue, ExtraInfo: receipt, Offset: offset}, nil)
	}
	if resp == nil {
		return
	}
	if resp.Code != remoting.RespSuccess {
		l.finding("ack of %s: %s", body, resp.Remark)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.acked[body]; !ok {
		l.acked[body] = time.Now()
	}
}
