package broker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mqx/internal/testkit"
	"mqx/message"
	"mqx/remoting"
	"mqx/remoting/client"
	"mqx/store"
)

// transactionConfig is testConfig with short times.
func transactionConfig(dir string) Config {
	cfg := testConfig(dir)
	cfg.TransactionCheckInterval, cfg.TransactionTimeOut = 50*time.Millisecond, 20*time.Millisecond
	cfg.TransactionOpBatchInterval = 20 * time.Millisecond
	return cfg
}

// askedHalf is one CHECK_TRANSACTION_STATE as a producer got it.
type askedHalf struct {
	head remoting.CheckTransactionStateHeader
	rec  message.Record
}

// txProducer is a producer of group PG that decides about what it is asked.
type txProducer struct {
	*client.Client
	r  *running
	mu struct {
		sync.Mutex
		asked []askedHalf
	}
}

// producer registers a producer. decide tells how a transaction ends (8, 12, or
// 0 for not yet); nil for never.
func (r *running) producer(id string, decide func(a askedHalf) int32) *txProducer {
	r.t.Helper()
	p := &txProducer{r: r}
	p.Client = client.New(client.Config{Logger: quiet, RequestTimeout: 5 * time.Second, OnRequest: func(addr string, req *remoting.Command) *remoting.Command {
		if req.Code != remoting.ReqCheckTransactionState {
			return nil
		}
		var a askedHalf
		if err := remoting.DecodeHeader(req.Fields, &a.head); err != nil {
			r.t.Errorf("a check without its fields: %v", err)
			return nil
		}
		rec, err := message.DecodeRecord(append([]byte(nil), req.Body...), message.DecodeOptions{VerifyBodyCRC: true})
		if err != nil {
			r.t.Errorf("a check whose body is no record: %v", err)
			return nil
		}
		a.rec = rec
		p.mu.Lock()
		p.mu.asked = append(p.mu.asked, a)
		p.mu.Unlock()
		if decide == nil {
			return nil
		}
		end := remoting.NewRequest(remoting.ReqEndTransaction, &remoting.EndTransactionHeader{
			ProducerGroup: "PG", TranStateTableOffset: a.head.TranStateTableOffset, CommitLogOffset: a.head.CommitLogOffset,
			CommitOrRollback: decide(a), FromTransactionCheck: true, MsgID: a.head.MsgID, TransactionID: a.head.TransactionID,
		})
		end.Flag |= remoting.FlagOneway
		go func() { _ = p.Oneway(context.Background(), addr, end) }()
		return nil
	}})
	r.t.Cleanup(func() { _ = p.Close() })
	r.beat(p.Client, remoting.HeartbeatData{ClientID: id, ProducerDataSet: []remoting.ProducerData{{GroupName: "PG"}}})
	return p
}

func (p *txProducer) asked() []askedHalf {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]askedHalf(nil), p.mu.asked...)
}

// half sends a half message and returns what its producer needs to end it.
func (r *running) half(body string, props ...string) remoting.EndTransactionHeader {
	r.t.Helper()
	key := fmt.Sprintf("%032X", r.store.LogEnd())
	all := append([]string{"TRAN_MSG", "true", "PGROUP", "PG", "UNIQ_KEY", key}, props...)
	h := sendHeaderOf("T", 1, prop(all...))
	h.SysFlag = message.TransactionPrepared
	resp := r.ok(remoting.ReqSendMessageV2, h, []byte(body))
	_, phys, err := message.ParseOffsetID(resp.Fields.String("msgId"))
	if err != nil {
		r.t.Fatal(err)
	}
	off, _, _ := resp.Fields.Int64("queueOffset")
	if q, _, _ := resp.Fields.Int32("queueId"); q != 1 || resp.Fields.String("transactionId") != key {
		r.t.Errorf("answer to a half message: %v", fieldText(resp.Fields))
	}
	return remoting.EndTransactionHeader{ProducerGroup: "PG", TranStateTableOffset: off, CommitLogOffset: phys, MsgID: key, TransactionID: key}
}

func (r *running) end(h remoting.EndTransactionHeader, d int32) *remoting.Command {
	r.t.Helper()
	h.CommitOrRollback = d
	return r.call(remoting.ReqEndTransaction, &h, nil)
}

// queueOf is everything in a queue, as a consumer gets it.
func (r *running) all(topic string, q int32) []message.Record {
	r.t.Helper()
	r.settle()
	var out []message.Record
	for off := int64(0); off < r.store.MaxOffset(topic, q); {
		res := r.store.Get(store.GetRequest{Topic: topic, QueueID: q, Offset: off, MaxMsgs: 32})
		for _, part := range res.Parts {
			out = append(out, records(r.t, append([]byte(nil), part...))...)
		}
		off = max(off+1, res.NextOffset)
		res.Release()
	}
	return out
}

func bodyText(recs []message.Record) string {
	var out []string
	for _, r := range recs {
		out = append(out, string(r.Body))
	}
	return strings.Join(out, " ")
}

func TestTransaction(t *testing.T) {
	cfg := transactionConfig(t.TempDir())
	cfg.TransactionTimeOut = time.Hour
	r := start(t, cfg)
	r.createTopic("T", 2)
	committed, rolled, open := r.half("c", "KEYS", "k"), r.half("r"), r.half("o")
	if got := r.all("T", 1); len(got) > 0 {
		t.Errorf("half messages can be read: %s", bodyText(got))
	}
	if resp := r.end(committed, message.TransactionCommit); resp.Code != 0 || resp.Remark != "" || len(resp.Fields) > 0 {
		t.Errorf("commit: %d %q %v", resp.Code, resp.Remark, fieldText(resp.Fields))
	}
	if resp := r.end(rolled, message.TransactionRollback); resp.Code != 0 || resp.Remark != "not set any response code" {
		t.Errorf("rollback: %d %q", resp.Code, resp.Remark)
	}
	got := r.all("T", 1)
	if bodyText(got) != "c" {
		t.Fatalf("consumers see %q", bodyText(got))
	}
	props := message.ParseProperties(got[0].Properties)
	for _, mark := range []string{"REAL_TOPIC", "REAL_QID", "TRANSACTION_CHECK_TIMES", "TRAN_PREPARED_QUEUE_OFFSET", "DELAY"} { // N068
		if v, ok := props[mark]; ok {
			t.Errorf("a consumer gets the broker's mark %s=%s", mark, v)
		}
	}
	if props["__transactionId__"] != committed.MsgID || props["PGROUP"] != "PG" || props["KEYS"] != "k" ||
		got[0].PreparedTransactionOffset != committed.CommitLogOffset || message.Transaction(got[0].SysFlag) != message.TransactionCommit {
		t.Errorf("%v %+v", props, got[0])
	}
	waitFor(t, "the op message", func() bool { return bodyText(r.all(message.TopicHalfOp, 0)) == "0,1," })
	if resp := r.end(committed, message.TransactionCommit); resp.Code != 0 { // said twice
		t.Errorf("second commit: %d %q", resp.Code, resp.Remark)
	}
	if resp := r.end(rolled, message.TransactionCommit); resp.Code != remoting.RespSystemError || !strings.Contains(resp.Remark, "ended already") {
		t.Errorf("commit of what was rolled back: %d %q", resp.Code, resp.Remark)
	}
	if got := r.all("T", 1); bodyText(got) != "c" {
		t.Errorf("consumers see %q", bodyText(got))
	}
	_ = open
}

// Ends that do not fit get Apache's answers; an end that is not decided gets
// none.
func TestEndRefusals(t *testing.T) {
	cfg := transactionConfig(t.TempDir())
	cfg.TransactionTimeOut = time.Hour
	r := start(t, cfg)
	r.createTopic("T", 2)
	h := r.half("x")
	late := r.half("late", "CHECK_IMMUNITY_TIME_IN_SECONDS", "0")
	plain := r.send("T", 0, "", "plain")
	_, plainPhys, _ := message.ParseOffsetID(plain.Fields.String("msgId"))
	for _, tt := range []struct {
		name string
		edit func(*remoting.EndTransactionHeader)
		code int32
		text string
	}{
		{"group", func(h *remoting.EndTransactionHeader) { h.ProducerGroup = "other" }, 1, "The producer group wrong"},
		{"queue offset", func(h *remoting.EndTransactionHeader) { h.TranStateTableOffset++ }, 1, "The transaction state table offset wrong"},
		{"nowhere", func(h *remoting.EndTransactionHeader) { h.CommitLogOffset = 1 << 40 }, 1, "Find prepared transaction message failed"},
		{"inside a record", func(h *remoting.EndTransactionHeader) { h.CommitLogOffset++ }, 1, "Find prepared transaction message failed"},
		{"no half message", func(h *remoting.EndTransactionHeader) { h.CommitLogOffset = plainPhys }, 1, "Find prepared transaction message failed"},
		{"after its own time", func(h *remoting.EndTransactionHeader) { *h = late }, 604, "not set any response code"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, d := range []int32{message.TransactionCommit, message.TransactionRollback} {
				bad := h
				tt.edit(&bad)
				if resp := r.end(bad, d); resp.Code != tt.code || resp.Remark != tt.text {
					t.Errorf("%d %q", resp.Code, resp.Remark)
				}
			}
		})
	}
	late.FromTransactionCheck = true
	if resp := r.end(late, message.TransactionCommit); resp.Code != 0 {
		t.Errorf("the same end as the answer to a check: %d %q", resp.Code, resp.Remark)
	}
	if resp := r.end(h, 5); resp.Code != remoting.RespSystemError {
		t.Errorf("%d", resp.Code)
	}
	req := remoting.NewRequest(remoting.ReqEndTransaction, &h)
	if err := r.c.Go(r.addr, req, 100*time.Millisecond, func(resp *remoting.Command, err error) {
		if err == nil {
			t.Errorf("an end that is not decided is answered: %d", resp.Code)
		}
	}); err != nil {
		t.Fatal(err)
	}
	cfg.RejectTransaction = true
	refusing := start(t, func() Config { c := cfg; c.Store.RootDir = t.TempDir(); return c }())
	refusing.createTopic("T", 2)
	resp := refusing.call(remoting.ReqSendMessageV2, sendHeaderOf("T", 0, prop("TRAN_MSG", "true", "PGROUP", "PG")), []byte("x"))
	if resp.Code != remoting.RespNoPermission || !strings.Contains(resp.Remark, "sending transaction message is forbidden") {
		t.Errorf("%d %q", resp.Code, resp.Remark)
	}
}

// A producer that never knows is asked transactionCheckMax times, in turn with
// the others of its group; then the half message is given up.
// deafPeer is a producer's connection that takes nothing.
type deafPeer struct {
	fakePeer
	asked atomic.Int64
}

func (p *deafPeer) Send(*remoting.Command) error { p.asked.Add(1); return errors.New("closed") }

// A check that no producer got does not count towards transactionCheckMax.
func TestChecksThatCannotBeSent(t *testing.T) {
	cfg := transactionConfig(t.TempDir())
	cfg.TransactionCheckMax = 3
	r := start(t, cfg)
	r.createTopic("T", 2)
	deaf := &deafPeer{fakePeer: fakePeer{id: math.MaxUint64}}
	r.producers.Register("PG", deaf, "deaf", r.now())
	r.half("x")
	waitFor(t, "many checks that fail", func() bool { return deaf.asked.Load() > 10*producerTries })
	if n := r.transactions.counts.discarded.Load(); n != 0 {
		t.Fatalf("%d half messages were given up without a question to anybody", n)
	}
	r.producers.Closed(math.MaxUint64)
	r.producer("a", func(askedHalf) int32 { return message.TransactionCommit })
	waitFor(t, "the commit", func() bool { return r.store.MaxOffset("T", 1) == 1 })
}

// What nobody could deliver once it is committed is no half message, whichever way the client says that it is one.
func TestUndeliverableHalves(t *testing.T) {
	cfg := transactionConfig(t.TempDir())
	cfg.TransactionTimeOut = time.Hour
	r := start(t, cfg)
	r.createTopic("T", 2)
	for _, sys := range []int32{0, message.TransactionPrepared} {
		for _, late := range [][]string{{"TIMER_DELAY_SEC", "999999999"}, {"DELAY", "abc"}, {"TIMER_DELIVER_MS", "x"}} {
			h := sendHeaderOf("T", 1, prop(append([]string{"TRAN_MSG", "true", "PGROUP", "PG", "UNIQ_KEY", "k"}, late...)...))
			h.SysFlag = sys
			if resp := r.call(remoting.ReqSendMessageV2, h, []byte("x")); resp.Code != remoting.RespMessageIllegal {
				t.Errorf("%v, system flag %d: %d %q", late, sys, resp.Code, resp.Remark)
			}
		}
	}
	if n := r.store.MaxOffset(message.TopicHalf, 0); n != 0 {
		t.Errorf("%d half messages", n)
	}
}

func TestTransactionChecks(t *testing.T) {
	cfg := transactionConfig(t.TempDir())
	cfg.TransactionCheckMax = 4 // N064: the number that is configured
	r := start(t, cfg)
	r.createTopic("T", 2)
	a, b := r.producer("a", nil), r.producer("b", nil)
	h := r.half("x", "KEYS", "k")
	waitFor(t, "the end of the checks", func() bool { return r.store.MaxOffset(message.TopicTransCheckMaxTime, 0) > 0 })
	if na, nb := len(a.asked()), len(b.asked()); na != 2 || nb != 2 {
		t.Errorf("asked %d and %d times, want 2 and 2", na, nb)
	}
	asked := a.asked()[0]
	if asked.head.Topic != message.TopicHalf || asked.head.MsgID != h.MsgID || asked.head.TransactionID != h.MsgID || asked.head.BName != "b" ||
		asked.head.CommitLogOffset == h.CommitLogOffset || string(asked.rec.Topic) != "T" || asked.rec.QueueID != 1 || string(asked.rec.Body) != "x" {
		t.Errorf("%+v %+v", asked.head, asked.rec)
	}
	given := r.all(message.TopicTransCheckMaxTime, 0)
	props := message.ParseProperties(given[0].Properties)
	if string(given[0].Body) != "x" || props["REAL_TOPIC"] != "T" || props["TRANSACTION_CHECK_TIMES"] != "4" {
		t.Errorf("%v", props)
	}
	if got := r.all("T", 1); len(got) > 0 {
		t.Errorf("%s", bodyText(got))
	}
	// RESUME_CHECK_HALF_MESSAGE begins again.
	id := string(message.AppendOffsetID(nil, r.at().storeHost, given[0].PhysicalOffset))
	before := len(a.asked()) + len(b.asked())
	r.ok(remoting.ReqResumeCheckHalfMessage, &remoting.ResumeCheckHalfMessageHeader{MsgID: id}, nil)
	waitFor(t, "a check after the resumption", func() bool { return len(a.asked())+len(b.asked()) > before })
	if resp := r.call(remoting.ReqResumeCheckHalfMessage, &remoting.ResumeCheckHalfMessageHeader{MsgID: "x"}, nil); resp.Code == 0 {
		t.Error("nonsense is resumed")
	}
}

// Only real checks count: while no producer is there, nothing is copied, counted
// or given up. What has ended is not asked about.
func TestChecksWithoutProducer(t *testing.T) {
	r := start(t, transactionConfig(t.TempDir()))
	r.createTopic("T", 2)
	open := r.half("open")
	ended := r.half("ended")
	r.end(ended, message.TransactionRollback)
	waitFor(t, "rounds of checks", func() bool { return r.transactions.counts.unanswerable.Load() > 20 })
	if n := r.store.MaxOffset(message.TopicHalf, 0); n != 2 {
		t.Errorf("%d half messages, want 2", n)
	}
	p := r.producer("a", func(askedHalf) int32 { return message.TransactionCommit })
	waitFor(t, "the commit", func() bool { return r.store.MaxOffset("T", 1) == 1 })
	if got := r.all("T", 1); bodyText(got) != "open" {
		t.Errorf("%s", bodyText(got))
	}
	waitFor(t, "the offsets", func() bool {
		half, _ := r.offsets.Committed(message.TopicHalf, message.GroupTransaction, 0)
		return half == 3
	})
	for _, a := range p.asked() { // N065
		if a.head.MsgID != open.MsgID {
			t.Errorf("asked about what has ended: %+v", a.head)
		}
	}
	if n := len(p.asked()); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// A late end of the first half message ends its copies too.
func TestLateEndStopsChecks(t *testing.T) {
	r := start(t, transactionConfig(t.TempDir()))
	r.createTopic("T", 2)
	p := r.producer("a", nil)
	h := r.half("x")
	waitFor(t, "two checks", func() bool { return len(p.asked()) >= 2 })
	if resp := r.end(h, message.TransactionCommit); resp.Code != 0 { // N067
		t.Errorf("%d %q", resp.Code, resp.Remark)
	}
	n := len(p.asked())
	waitFor(t, "the offsets", func() bool {
		half, _ := r.offsets.Committed(message.TopicHalf, message.GroupTransaction, 0)
		return half == r.store.MaxOffset(message.TopicHalf, 0)
	})
	if got := len(p.asked()); got > n+1 { // one may have been on the way
		t.Errorf("asked %d times after the end", got-n)
	}
	if got := r.all("T", 1); bodyText(got) != "x" {
		t.Errorf("%s", bodyText(got))
	}
	if _, ok := message.Property(r.all("T", 1)[0].Properties, message.PropTransactionCheckTimes); ok {
		t.Error("the count of checks reaches consumers")
	}
}

// A record that is no half message is put aside; those behind it are worked on.
func TestPoisonHalf(t *testing.T) { // N066
	r := start(t, transactionConfig(t.TempDir()))
	r.createTopic("T", 2)
	rec := message.Record{Topic: []byte(message.TopicHalf), Body: []byte("poison"), BornHost: r.at().storeHost, StoreHost: r.at().storeHost}
	putDirect(t, r, rec)
	r.producer("a", func(askedHalf) int32 { return message.TransactionCommit })
	r.half("x")
	waitFor(t, "the commit", func() bool { return r.store.MaxOffset("T", 1) == 1 })
	waitFor(t, "the poison", func() bool { return bodyText(r.all(message.TopicTransCheckMaxTime, 0)) == "poison" })
	waitFor(t, "the offsets", func() bool {
		half, _ := r.offsets.Committed(message.TopicHalf, message.GroupTransaction, 0)
		return half == r.store.MaxOffset(message.TopicHalf, 0)
	})
}

// What has ended is known after an orderly stop; what has not is asked about.
func TestTransactionsSurviveAStop(t *testing.T) {
	dir := t.TempDir()
	cfg := transactionConfig(dir)
	cfg.TransactionTimeOut, cfg.TransactionOpBatchInterval = time.Hour, time.Hour
	r := start(t, cfg)
	r.createTopic("T", 2)
	r.end(r.half("c"), message.TransactionCommit)
	open := r.half("open")
	r.end(r.half("r"), message.TransactionRollback)
	if n := r.store.MaxOffset(message.TopicHalfOp, 0); n != 0 {
		t.Errorf("%d op messages before the interval", n)
	}
	r.stop()
	r = start(t, transactionConfig(dir))
	if got := bodyText(r.all(message.TopicHalfOp, 0)); !strings.HasPrefix(got, "0,2,") {
		t.Errorf("op messages after the stop: %q", got)
	}
	p := r.producer("a", func(askedHalf) int32 { return message.TransactionCommit })
	waitFor(t, "the commit", func() bool { return r.store.MaxOffset("T", 1) == 2 })
	if got := bodyText(r.all("T", 1)); got != "c open" {
		t.Errorf("%q", got)
	}
	for _, a := range p.asked() {
		if a.head.MsgID != open.MsgID {
			t.Errorf("asked about %s", a.head.MsgID)
		}
	}
}

// mqx goes on with the half messages that Apache's broker left: those that it
// saw end are left alone, the others are asked about and delivered once.
func TestGoldenTransactions(t *testing.T) {
	for _, variant := range []string{"trans", "trans_running"} {
		t.Run(variant, func(t *testing.T) {
			dir := testkit.GoldenStore(t, variant)
			cfg := transactionConfig(dir)
			cfg.BrokerClusterName, cfg.BrokerName = "GoldenCluster", "broker-g"
			cfg.Store.CommitLogFileBytes = 1 << 20
			cfg.Store.FileReservedHours = 1 << 20 // the records are old
			cfg.TransactionCheckMax = 100
			r := start(t, cfg)
			before := map[string]bool{}
			for q := range int32(2) {
				for _, rec := range r.all("TransTopic", q) {
					before[uniq(rec)] = true
				}
			}
			open := map[string]bool{}
			for _, m := range testkit.GoldenManifest(t, variant).StoreView.CommitLogRecords {
				if m.Topic == message.TopicHalf && !before[m.UniqKey] && !strings.Contains(m.Properties["KEYS"], "rollback") {
					open[m.UniqKey] = true
				}
			}
			if len(open) == 0 {
				t.Fatal("no open half messages")
			}
			p := client.New(client.Config{Logger: quiet, RequestTimeout: 5 * time.Second, OnRequest: func(addr string, req *remoting.Command) *remoting.Command {
				var h remoting.CheckTransactionStateHeader
				if err := remoting.DecodeHeader(req.Fields, &h); err != nil || !open[h.MsgID] {
					t.Errorf("asked about %+v: %v", h, err)
					return nil
				}
				end := remoting.NewRequest(remoting.ReqEndTransaction, &remoting.EndTransactionHeader{
					ProducerGroup: "PG_trans", TranStateTableOffset: h.TranStateTableOffset, CommitLogOffset: h.CommitLogOffset,
					CommitOrRollback: message.TransactionCommit, FromTransactionCheck: true, MsgID: h.MsgID,
				})
				end.Flag |= remoting.FlagOneway
				go func() { _ = r.c.Oneway(context.Background(), addr, end) }()
				return nil
			}})
			t.Cleanup(func() { _ = p.Close() })
			r.beat(p, remoting.HeartbeatData{ClientID: "p", ProducerDataSet: []remoting.ProducerData{{GroupName: "PG_trans"}}})
			waitFor(t, "all half messages to be done with", func() bool {
				half, _ := r.offsets.Committed(message.TopicHalf, message.GroupTransaction, 0)
				return half == r.store.MaxOffset(message.TopicHalf, 0)
			})
			got := map[string]int{}
			for q := range int32(2) {
				for _, rec := range r.all("TransTopic", q) {
					if !before[uniq(rec)] {
						got[uniq(rec)]++
					}
				}
			}
			for key := range open {
				if got[key] != 1 {
					t.Errorf("%s is delivered %d times", key, got[key])
				}
			}
			if len(got) != len(open) {
				t.Errorf("%d messages delivered, %d were open", len(got), len(open))
			}
		})
	}
}

func uniq(r message.Record) string {
	v, _ := message.Property(r.Properties, message.PropUniqKey)
	return string(v)
}
