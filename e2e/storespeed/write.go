package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"mqx/message"
	"mqx/store"
)

const (
	topicCount  = 4
	queueCount  = 4
	bodyBytes   = 910 // a record of about 1070 bytes with what is around it: 10 million are 10 GiB
	batchSize   = 64
	rareTopic   = "AUDIT"
	rareEvery   = 100 // of these messages one is of it
	reportEvery = 1_000_000
)

// write makes the store: messages of four topics with 4 queues each, with unique id, key and tag. One that is there stays.
func (b *bench) write() error {
	if _, err := os.Stat(filepath.Join(b.store, "commitlog")); err == nil {
		return nil
	}
	cfg := store.DefaultConfig()
	cfg.RootDir, cfg.Logger = b.store, slog.New(slog.DiscardHandler)
	cfg.OSPageCacheBusyTimeoutMs = int64(time.Hour / time.Millisecond) // nothing is refused however slow the disk
	began := time.Now()
	s, err := store.Open(cfg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	if err := b.fill(s); err != nil {
		return err
	}
	for s.Dispatched() < s.LogEnd() && b.ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	err = errors.Join(<-done, s.Close(), b.writeTopics())
	fmt.Printf("store of %d messages written in %s\n", b.messages, time.Since(began).Round(time.Second))
	return err
}

func (b *bench) fill(s *store.Store) error {
	rnd := rand.New(rand.NewPCG(1, 2))
	host := netip.MustParseAddrPort("10.1.2.3:10911")
	body := make([]byte, bodyBytes+256)
	for i := range body {
		body[i] = byte(' ' + rnd.IntN(90))
	}
	puts := make([]*store.Put, batchSize)
	for i := range puts {
		puts[i] = &store.Put{Done: func(*store.Put) {}}
	}
	var props []byte
	for n := 0; n < b.messages; {
		if err := b.ctx.Err(); err != nil {
			return err
		}
		batch := puts[:min(batchSize, b.messages-n)]
		for i, p := range batch {
			id := n + i
			props = message.AppendProperty(nil, message.PropKeys, fmt.Sprintf("order-%d", id))
			props = message.AppendProperty(props, message.PropUniqKey, fmt.Sprintf("C000020272F74E0E2F2A95%010X", id))
			props = message.AppendProperty(props, message.PropTags, []string{"created", "paid", "sent"}[id%3])
			p.Record = message.Record{
				Topic: []byte(topicOf(id)), QueueID: int32(id / topicCount % queueCount), Body: body[rnd.IntN(256):][:bodyBytes],
				Properties: props, BornHost: host, StoreHost: host, BornTimestamp: time.Now().UnixMilli(),
			}
			p.Err = nil
		}
		s.PutBatch(batch)
		for _, p := range batch {
			if p.Err != nil {
				return p.Err
			}
			if p.Status != store.PutOK {
				return fmt.Errorf("cannot write a message: %v", p.Status)
			}
		}
		n += len(batch)
		if n%reportEvery < batchSize {
			fmt.Printf("written: %d\n", n)
		}
		for s.LogEnd()-s.Dispatched() > 64<<20 { // queues and index keep up
			time.Sleep(time.Millisecond)
		}
	}
	return nil
}

// topicOf is the topic of a message by its number.
func topicOf(id int) string {
	if id%rareEvery == 0 {
		return rareTopic
	}
	return topicName(id % topicCount)
}

func topicName(i int) string { return fmt.Sprintf("ORDERS-%d", i) }

func (b *bench) writeTopics() error {
	text := "{\"dataVersion\":{},\"topicConfigTable\":{"
	for i := range topicCount {
		text += fmt.Sprintf("%q:{\"topicName\":%q,\"readQueueNums\":%d,\"writeQueueNums\":%d,\"perm\":6},", topicName(i), topicName(i), queueCount, queueCount)
	}
	text += fmt.Sprintf("%q:{\"topicName\":%q,\"readQueueNums\":%d,\"writeQueueNums\":%d,\"perm\":6}", rareTopic, rareTopic, queueCount, queueCount)
	if err := os.MkdirAll(filepath.Join(b.store, "config"), 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.store, "config", "topics.json"), []byte(text+"}}"), 0o644)
}
