package store

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"mqx/internal/vfs"
	"mqx/message"
)

// modelMessage is a message that was answered PUT_OK.
type modelMessage struct {
	body, key string
	phys      int64
	lost      bool // by a power loss, before it was flushed
}

// model is what a store has to hold: the messages of each queue by offset.
type model struct {
	queues  map[stopKey][]modelMessage
	durable map[stopKey]int // messages that no power loss may take
	n       int
}

// A store under puts, restarts, kills, power losses, expiry, deletion of topics and truncation holds what was
// acknowledged, in order, at the offset that was answered, with its body, and finds it by key.
func TestAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := vfs.NewMem()
		cfg := memConfig(m)
		s, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		x := &model{queues: map[stopKey][]modelMessage{}, durable: map[stopKey]int{}}
		reopen := func(fsys *vfs.Mem) {
			m = fsys
			cfg.FS = m
			if s, err = Open(cfg); err != nil {
				t.Fatal(err)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"put":      func(t *rapid.T) { x.put(t, s) },
			"dispatch": func(t *rapid.T) { stepAll(t, s) },
			"flush": func(t *rapid.T) {
				if err := s.log.Flush(); err != nil {
					t.Fatal(err)
				}
				for k, list := range x.queues {
					x.durable[k] = len(list)
				}
			},
			"checkpoint": func(t *rapid.T) {
				if err := s.checkpoint(rapid.Bool().Draw(t, "full")); err != nil {
					t.Fatal(err)
				}
				for k, list := range x.queues {
					x.durable[k] = len(list)
				}
			},
			"close": func(t *rapid.T) {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				reopen(m.PowerLoss(rapid.Uint64().Draw(t, "seed")))
				if len(s.Findings()) > 0 {
					t.Fatal("findings after a clean stop:", s.Findings())
				}
				for k, list := range x.queues {
					x.durable[k] = len(list)
				}
			},
			"kill": func(t *rapid.T) { reopen(m.Kill()) },
			"powerLoss": func(t *rapid.T) {
				reopen(m.PowerLoss(rapid.Uint64().Draw(t, "seed")))
				x.forget(t, s)
			},
			"delete": func(t *rapid.T) {
				topic := rapid.SampledFrom(modelTopics).Draw(t, "topic")
				if err := s.DeleteTopic(topic); err != nil {
					t.Fatal(err)
				}
				for k := range x.queues {
					if k.topic == topic {
						delete(x.queues, k)
						delete(x.durable, k)
					}
				}
			},
			"": func(t *rapid.T) {
				stepAll(t, s)
				x.check(t, s)
			},
		})
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

var modelTopics = []string{"A", "B", "%RETRY%g"}

func (x *model) put(t *rapid.T, s *Store) {
	var puts []*Put
	for range rapid.IntRange(1, 12).Draw(t, "n") {
		x.n++
		topic := rapid.SampledFrom(modelTopics).Draw(t, "topic")
		key := fmt.Sprintf("key%d", x.n)
		r := newRecord(topic, int32(rapid.IntRange(0, 2).Draw(t, "queue")), "", "KEYS\x01"+key+"\x02")
		body := fmt.Sprintf("%d %s", x.n, strings.Repeat("x", rapid.IntRange(0, 1500).Draw(t, "size")))
		r.Body = []byte(body)
		r.SysFlag = rapid.SampledFrom([]int32{0, 0, 0, message.TransactionPrepared, message.TransactionRollback, message.TransactionCommit}).Draw(t, "kind")
		puts = append(puts, &Put{Record: r, Done: func(*Put) {}, User: modelMessage{body: body, key: key}})
	}
	s.PutBatch(puts)
	for _, p := range puts {
		if p.Status != PutOK {
			t.Fatalf("put: %v %v", p.Status, p.Err)
		}
		if kind := message.Transaction(p.Record.SysFlag); kind == message.TransactionPrepared || kind == message.TransactionRollback {
			continue
		}
		k := stopKey{string(p.Record.Topic), p.Record.QueueID}
		if p.QueueOffset != int64(len(x.queues[k])) {
			t.Fatalf("%v: queue offset %d, want %d", k, p.QueueOffset, len(x.queues[k]))
		}
		mm := p.User.(modelMessage)
		mm.phys = p.PhysicalOffset
		x.queues[k] = append(x.queues[k], mm)
	}
}

// forget takes out of the model what a power loss took from the store. That may only be what was not flushed; what is
// there behind it keeps its offset.
func (x *model) forget(t *rapid.T, s *Store) {
	for k, list := range x.queues {
		for i := range list {
			rec, err := s.RecordAt(list[i].phys)
			if err == nil && string(message.View(rec).Body()) == list[i].body && hasUnit(t, s, k, i, list[i].phys) {
				if key, _ := message.View(rec).Property(message.PropKeys); string(key) != list[i].key {
					list[i].key = "" // torn in the properties, which no checksum covers
				}
				continue
			}
			if i < x.durable[k] && !list[i].lost {
				t.Fatalf("%v: message %d of %d durable ones is gone: %v", k, i, x.durable[k], err)
			}
			list[i].lost = true
		}
		high := s.MaxOffset(k.topic, k.id)
		for int64(len(list)) > high && list[len(list)-1].lost {
			list = list[:len(list)-1]
		}
		x.queues[k] = list
		x.durable[k] = len(list)
	}
}

// hasUnit reports whether recovery took the record at phys for whole.
func hasUnit(t *rapid.T, s *Store, k stopKey, off int, phys int64) bool {
	units, err := s.Units(k.topic, k.id, int64(off), 1)
	if err != nil {
		t.Fatal(err)
	}
	return len(units) == 1 && units[0].QueueOffset == int64(off) && units[0].PhysicalOffset == phys
}

func (x *model) check(t *rapid.T, s *Store) {
	for _, topic := range modelTopics {
		for id := range int32(3) {
			list := x.queues[stopKey{topic, id}]
			if got := s.MaxOffset(topic, id); got != int64(len(list)) {
				t.Fatalf("%s/%d: max offset %d, want %d; findings %v", topic, id, got, len(list), s.Findings())
			}
			x.checkQueue(t, s, topic, id, list)
		}
	}
}

func (x *model) checkQueue(t *rapid.T, s *Store, topic string, id int32, list []modelMessage) {
	var got []int64
	for off := int64(0); off < int64(len(list)); {
		res := s.Get(GetRequest{Topic: topic, QueueID: id, Offset: off, MaxMsgs: 32})
		if res.Err != nil || res.NextOffset <= off {
			t.Fatalf("%s/%d at %d: %v, next %d, %v", topic, id, off, res.Status, res.NextOffset, res.Err)
		}
		for _, part := range res.Parts {
			for len(part) > 0 {
				v, err := message.ParseView(part, message.DecodeOptions{VerifyBodyCRC: true})
				if err != nil {
					t.Fatal(err)
				}
				if o := v.QueueOffset(); o < off || o >= res.NextOffset || string(v.Body()) != list[o].body {
					t.Fatalf("%s/%d at %d: offset %d, body %.20q", topic, id, off, o, v.Body())
				}
				got = append(got, v.QueueOffset())
				part = part[len(v):]
			}
		}
		off = res.NextOffset
		res.Release()
	}
	var want []int64
	for off, mm := range list {
		if !mm.lost {
			want = append(want, int64(off))
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%s/%d: offsets %v, want %v", topic, id, got, want)
	}
	if len(want) == 0 {
		return
	}
	mm := list[want[rapid.IntRange(0, len(want)-1).Draw(t, "by key")]]
	if mm.key == "" {
		return
	}
	res, err := s.Query(context.Background(), QueryRequest{Topic: topic, Key: mm.key, End: math.MaxInt64})
	if err != nil || len(res.PhysicalOffsets) != 1 || res.PhysicalOffsets[0] != mm.phys {
		t.Fatalf("%s by key %s: %v, %v, want %d", topic, mm.key, res, err, mm.phys)
	}
}

// stepAll is catchUp for rapid.
func stepAll(t *rapid.T, s *Store) {
	for s.dispatcher.pos.Load() < s.log.End() {
		if _, err := s.dispatcher.step(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	for s.indexer.pos.Load() < s.log.End() {
		if _, err := s.indexer.step(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}
