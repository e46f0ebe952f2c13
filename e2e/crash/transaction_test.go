package crash

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"mqx/internal/fastjson"
	"mqx/message"
	"mqx/remoting"
)

// opWindow is how far back a death may take the mark of an end with it: op
// messages are collected for up to 200 ms here, as in Apache for 3 s. On a busy
// machine it is more: see txLife.window.
const opWindow = time.Second

// txKinds are what producers do with a transaction, at once and when they are
// asked: c commits, r rolls back, u does nothing yet.
var txKinds = []string{"c/c", "c/r", "r/r", "r/c", "u/c", "u/r"}

// tx is what is known of one transaction.
type tx struct {
	now, later string
	stored     bool      // the half message was answered
	committed  bool      // a commit was sent by somebody
	endedAt    time.Time // the first end was answered
	asked      []time.Time
	came       []time.Time // store times of what was delivered
}

// txLife is a broker that is killed while transactions are open.
type txLife struct {
	killable

	mu      sync.Mutex
	all     map[string]*tx // by body
	slowest time.Duration  // answer of the broker
}

// Transactions survive deaths of the broker: no committed message is lost, none
// is delivered without a commit or after an answered rollback, and what has
// ended is not asked about, but for ends shortly before a death, whose marks
// were not written yet.
func TestTransactionCrash(t *testing.T) {
	t.Parallel()
	rounds := int(number(t, "MQX_TX_CRASH_ROUNDS", 3))
	seed := number(t, seedEnv, uint64(time.Now().UnixNano())%1_000_000)
	t.Logf("%d rounds from seed %d", rounds, seed)
	l := newTxLife(t) // offsets are not saved meanwhile: after a death only op messages tell what has ended
	r := rand.New(rand.NewPCG(seed, 5))
	for range rounds {
		l.start()
		l.round(time.Duration(2500+r.IntN(1500)) * time.Millisecond)
	}
	l.start()
	l.judge()
	if err := l.broker.stop(20 * time.Second); err != nil {
		t.Error(err)
	}
}

func newTxLife(t *testing.T) *txLife {
	t.Helper()
	l := &txLife{all: map[string]*tx{}}
	l.killable = newKillable(t, "flushConsumerOffsetInterval=60000\ntransactionCheckInterval=300\ntransactionTimeOut=300\n"+
		"transactionOpBatchInterval=200\ntransactionCheckMax=1000\n", l.asked)
	return l
}

// start starts the broker and shows it a producer.
func (l *txLife) start() {
	l.t.Helper()
	l.killable.start()
	body, err := fastjson.Marshal(remoting.HeartbeatData{ClientID: "producer", ProducerDataSet: []remoting.ProducerData{{GroupName: "PG"}}})
	if err != nil {
		l.t.Fatal(err)
	}
	if resp := l.call(remoting.ReqHeartBeat, nil, body); resp == nil || resp.Code != remoting.RespSuccess {
		l.t.Fatalf("the heartbeat is not answered: %v", resp)
	}
}

// call is killable's, and notes how long answers take.
func (l *txLife) call(code int32, head any, body []byte) *remoting.Command {
	began := time.Now()
	resp := l.killable.call(code, head, body)
	if resp == nil {
		return nil
	}
	l.mu.Lock()
	l.slowest = max(l.slowest, time.Since(began))
	l.mu.Unlock()
	return resp
}

// window is opWindow and what a machine needs that takes so long for an answer.
func (l *txLife) window() time.Duration { return opWindow + 4*l.slowest }

// round begins transactions, ends those that are to end at once, and kills the
// broker meanwhile.
func (l *txLife) round(d time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	round := len(l.deaths)
	for sender := range 3 {
		work.Go(func() {
			for i := 0; ctx.Err() == nil && l.begin(fmt.Sprintf("%s %d-%d-%d", txKinds[i%len(txKinds)], round, sender, i)); i++ {
				time.Sleep(3 * time.Millisecond)
			}
		})
	}
	select {
	case <-l.broker.done:
		l.t.Errorf("the broker ended by itself:\n%s", tail(l.broker.log, 20))
	case <-time.After(d):
	}
	l.broker.kill()
	l.mu.Lock()
	l.deaths = append(l.deaths, time.Now())
	l.mu.Unlock()
	cancel()
	work.Wait()
}

// begin reports whether the broker answered.
func (l *txLife) begin(body string) bool {
	kind, _, _ := strings.Cut(body, " ")
	x := &tx{now: kind[:1], later: kind[2:]}
	l.mu.Lock()
	l.all[body] = x
	l.mu.Unlock()
	key := fmt.Sprintf("%032s", strings.ReplaceAll(strings.ReplaceAll(body, " ", ""), "/", ""))
	var props []byte
	for _, p := range [][2]string{{message.PropTranMsg, "true"}, {message.PropProducerGroup, "PG"}, {message.PropUniqKey, key}} {
		props = message.AppendProperty(props, p[0], p[1])
	}
	resp := l.call(remoting.ReqSendMessageV2, &remoting.SendMessageHeader{
		ProducerGroup: "PG", Topic: "Tx", DefaultTopic: "TBW102", DefaultTopicQueueNums: 1, BornTimestamp: time.Now().UnixMilli(),
		SysFlag: message.TransactionPrepared, Properties: string(props),
	}, []byte(body))
	if resp == nil || resp.Code != remoting.RespSuccess {
		return resp != nil
	}
	_, phys, err := message.ParseOffsetID(resp.Fields.String("msgId"))
	off, ok, _ := resp.Fields.Int64("queueOffset")
	if err != nil || !ok {
		l.t.Errorf("answer to a half message: %v", resp.Fields)
		return false
	}
	l.mu.Lock()
	x.stored = true
	l.mu.Unlock()
	if x.now == "u" {
		return true
	}
	resp = l.call(remoting.ReqEndTransaction, l.end(x, x.now, remoting.EndTransactionHeader{TranStateTableOffset: off, CommitLogOffset: phys, MsgID: key}), nil)
	if resp == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if resp.Code == remoting.RespSuccess {
		x.endedAt = time.Now()
	} else if len(x.asked) == 0 { // a check may have been first, with another answer
		l.t.Errorf("%s: the end is answered %d %s", body, resp.Code, resp.Remark)
	}
	return true
}

// end completes the header of an end, and notes a commit.
func (l *txLife) end(x *tx, how string, h remoting.EndTransactionHeader) *remoting.EndTransactionHeader {
	h.ProducerGroup, h.CommitOrRollback = "PG", message.TransactionRollback
	if how == "c" {
		h.CommitOrRollback = message.TransactionCommit
		l.mu.Lock()
		x.committed = true
		l.mu.Unlock()
	}
	return &h
}

// asked answers a question of the broker.
func (l *txLife) asked(addr string, req *remoting.Command) *remoting.Command {
	var h remoting.CheckTransactionStateHeader
	rec, err := message.DecodeRecord(req.Body, message.DecodeOptions{})
	if err != nil || remoting.DecodeHeader(req.Fields, &h) != nil || string(rec.Topic) != "Tx" {
		l.t.Errorf("a question that cannot be read: %v %+v", err, h)
		return nil
	}
	l.mu.Lock()
	x := l.all[string(rec.Body)]
	if x != nil {
		x.asked = append(x.asked, time.Now())
	}
	l.mu.Unlock()
	if x == nil {
		l.t.Errorf("asked about %q, which nobody sent", rec.Body)
		return nil
	}
	end := remoting.NewRequest(remoting.ReqEndTransaction, l.end(x, x.later, remoting.EndTransactionHeader{
		TranStateTableOffset: h.TranStateTableOffset, CommitLogOffset: h.CommitLogOffset, MsgID: h.MsgID, FromTransactionCheck: true,
	}))
	end.Flag |= remoting.FlagOneway
	go func() { _ = l.c.Oneway(context.Background(), addr, end) }()
	return nil
}

// judge waits until all transactions have ended, and looks at what came.
func (l *txLife) judge() {
	l.settle()
	l.read()
	l.mu.Lock()
	defer l.mu.Unlock()
	total, stored, twice := len(l.all), 0, 0
	for body, x := range l.all {
		if x.stored {
			stored++
		}
		for i := 1; i < len(x.came); i++ {
			twice++
			if !l.deathBetween(x.came[i-1], x.came[i], l.window()) {
				l.t.Errorf("%s was delivered at %v and again at %v, and no death explains it", body, x.came[i-1], x.came[i])
			}
		}
		l.judgeOne(body, x)
	}
	l.t.Logf("%d transactions, %d half messages answered, %d delivered again; the slowest answer took %v", total, stored, twice, l.slowest)
	if stored < 100 {
		l.t.Error("too few transactions")
	}
}

func (l *txLife) judgeOne(body string, x *tx) {
	came, answered := len(x.came) > 0, !x.endedAt.IsZero()
	forgotten := answered && l.deathBetween(x.endedAt, time.Now(), l.window()) // its mark went with the broker
	switch {
	case came && !x.committed:
		l.t.Errorf("%s was delivered and nobody has committed it", body)
	case came && x.now == "r" && answered && !forgotten:
		l.t.Errorf("%s was delivered at %v after its rollback, which was answered at %v", body, x.came[0], x.endedAt)
	case !came && x.now == "c" && answered:
		l.t.Errorf("%s is lost: its commit was answered", body)
	case !came && x.stored && x.later == "c" && x.now == "u":
		l.t.Errorf("%s is lost: it was committed when the broker asked (%d questions)", body, len(x.asked))
	case !came && x.stored && x.later == "c" && x.now == "c":
		l.t.Errorf("%s is lost: it was never said to be rolled back", body)
	}
	for _, at := range x.asked {
		// The question may have been on its way while the end was answered.
		if answered && at.After(x.endedAt.Add(l.window())) && !forgotten {
			l.t.Errorf("asked about %s %v after its end", body, at.Sub(x.endedAt))
		}
	}
}

// deathBetween reports whether the broker died between two times, and not later
// than a window behind the first one.
func (l *txLife) deathBetween(from, to time.Time, window time.Duration) bool {
	for _, death := range l.deaths {
		if death.After(from.Add(-10*time.Millisecond)) && death.Before(to) && death.Sub(from) < window {
			return true
		}
	}
	return false
}

// settle waits until the half queue is done with.
func (l *txLife) settle() {
	done, most := int64(-1), int64(0)
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if resp := l.call(remoting.ReqQueryConsumerOffset, &remoting.QueryConsumerOffsetHeader{ConsumerGroup: message.GroupTransaction, Topic: message.TopicHalf}, nil); resp != nil {
			done, _, _ = resp.Fields.Int64("offset")
		}
		if resp := l.call(remoting.ReqGetMaxOffset, &remoting.GetMaxOffsetHeader{Topic: message.TopicHalf}, nil); resp != nil {
			most, _, _ = resp.Fields.Int64("offset")
		}
		if done == most && most > 0 {
			return
		}
	}
	l.t.Errorf("half messages are still open: done with %d of %d", done, most)
}

// read takes everything that was delivered.
func (l *txLife) read() {
	next, most, last := int64(0), int64(-1), "no answer"
	for deadline := time.Now().Add(time.Minute); next != most; {
		if time.Now().After(deadline) {
			l.t.Fatalf("%d of %d messages could be read: %s\n%s", next, most, last, tail(l.broker.log, 30))
		}
		if resp := l.call(remoting.ReqGetMaxOffset, &remoting.GetMaxOffsetHeader{Topic: "Tx"}, nil); resp != nil && resp.Code == remoting.RespSuccess {
			most, _, _ = resp.Fields.Int64("offset")
		}
		resp := l.call(remoting.ReqPullMessage, &remoting.PullMessageHeader{
			ConsumerGroup: "G", Topic: "Tx", QueueOffset: next, MaxMsgNums: 32, SysFlag: 4, Subscription: "*", ExpressionType: "TAG",
		}, nil)
		if resp == nil || resp.Code != remoting.RespSuccess {
			if resp != nil && resp.Code == remoting.RespPullOffsetMoved {
				l.t.Fatalf("offset %d of %d is none of the queue: %s %v", next, most, resp.Remark, resp.Fields)
			}
			if resp != nil {
				last = fmt.Sprintf("%d %s %v", resp.Code, resp.Remark, resp.Fields)
			}
			time.Sleep(50 * time.Millisecond) // a busy machine
			continue
		}
		for b := resp.Body; len(b) > 0; {
			rec, err := message.DecodeRecord(b, message.DecodeOptions{VerifyBodyCRC: true})
			if err != nil {
				l.t.Fatalf("a message cannot be read: %v", err)
			}
			if x := l.all[string(rec.Body)]; x != nil {
				x.came = append(x.came, time.UnixMilli(rec.StoreTimestamp))
			} else {
				l.t.Errorf("%q came from nowhere", rec.Body)
			}
			next, b = rec.QueueOffset+1, b[rec.Size:]
		}
	}
}
