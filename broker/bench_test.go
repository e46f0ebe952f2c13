package broker

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"mqx/remoting"
	"mqx/remoting/client"
)

// startBench runs a broker for a benchmark and returns its address.
func startBench(b *testing.B) (*Broker, string) {
	b.Helper()
	cfg := testConfig(b.TempDir())
	cfg.Store.CommitLogFileBytes = 256 << 20
	cfg.Store.ConsumeQueueFileBytes = 6_000_000
	cfg.Store.MaxHashSlotNum, cfg.Store.MaxIndexNum = 5_000_000, 20_000_000
	cfg.Store.CleanFileForciblyEnable = true
	cfg.FlushConsumerOffset = 5 * time.Second
	br, err := New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- br.Run(ctx) }()
	select {
	case <-br.Ready():
	case err := <-ended:
		b.Fatal(err)
	}
	b.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
	c := remoting.NewTopicConfig("T")
	c.ReadQueueNums, c.WriteQueueNums = 4, 4
	done := make(chan error, 1)
	br.topics.Put([]remoting.TopicConfig{c}, func(err error) { done <- err })
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	return br, br.Addr().String()
}

// BenchmarkSend sends 1 KiB messages over one connection, 64 in flight. The
// allocations are those of both ends.
func BenchmarkSend(b *testing.B) {
	_, addr := startBench(b)
	cl := client.New(client.Config{Logger: quiet})
	defer cl.Close()
	body := make([]byte, 1024)
	window := make(chan struct{}, 64)
	var failed atomic.Int64
	req := remoting.NewRequest(remoting.ReqSendMessageV2, sendHeaderOf("T", 0, prop("UNIQ_KEY", "C0A80001000000000000000000000001", "WAIT", "true")))
	req.Body = body
	b.SetBytes(1024)
	b.ReportAllocs()
	for b.Loop() {
		window <- struct{}{}
		err := cl.Go(addr, req, 10*time.Second, func(resp *remoting.Command, err error) {
			if err != nil || resp.Code != remoting.RespSuccess {
				failed.Add(1)
			}
			<-window
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	for range cap(window) {
		window <- struct{}{}
	}
	if n := failed.Load(); n > 0 {
		b.Fatalf("%d sends failed", n)
	}
}

// BenchmarkPull pulls batches of 32 messages of 1 KiB.
func BenchmarkPull(b *testing.B) {
	br, addr := startBench(b)
	fill(b, br, addr, 20_000)
	cl := client.New(client.Config{Logger: quiet})
	defer cl.Close()
	ctx := context.Background()
	next := int64(0)
	b.SetBytes(32 * 1024)
	b.ReportAllocs()
	for b.Loop() {
		resp, err := cl.Call(ctx, addr, remoting.NewRequest(remoting.ReqPullMessage, pullHeaderOf("G", "T", 0, next)))
		if err != nil || resp.Code != remoting.RespSuccess {
			b.Fatalf("%v %v", resp, err)
		}
		if next, _, _ = resp.Fields.Int64("nextBeginOffset"); next >= 19_900 {
			next = 0
		}
	}
}

func fill(b *testing.B, br *Broker, addr string, n int) {
	b.Helper()
	cl := client.New(client.Config{Logger: quiet})
	defer cl.Close()
	window := make(chan struct{}, 64)
	for i := range n {
		req := remoting.NewRequest(remoting.ReqSendMessageV2, sendHeaderOf("T", 0, prop("UNIQ_KEY", fmt.Sprint("K", i))))
		req.Body = make([]byte, 1024)
		window <- struct{}{}
		if err := cl.Go(addr, req, 10*time.Second, func(*remoting.Command, error) { <-window }); err != nil {
			b.Fatal(err)
		}
	}
	for range cap(window) {
		window <- struct{}{}
	}
	for br.store.MaxOffset("T", 0) < int64(n) {
		time.Sleep(time.Millisecond)
	}
}

// BenchmarkScanProps and BenchmarkStoredProps are the property work of a send.
func BenchmarkScanProps(b *testing.B) {
	raw := []byte(prop("KEYS", "order-1", "UNIQ_KEY", "C0A80001000000000000000000000001", "WAIT", "true", "TAGS", "TagA", "colour", "red"))
	b.ReportAllocs()
	for b.Loop() {
		_ = scanProps(raw)
	}
}

func BenchmarkStoredProps(b *testing.B) {
	raw := []byte(prop("KEYS", "order-1", "UNIQ_KEY", "C0A80001000000000000000000000001", "WAIT", "true", "TAGS", "TagA", "colour", "red"))
	own := &brokerProps{region: "DefaultRegion", traceOn: "true", cluster: "DefaultCluster"}
	p := scanProps(raw)
	dst := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		dst = own.appendStored(dst[:0], raw, &p, nil)
	}
}

func BenchmarkSendHeader(b *testing.B) {
	var f remoting.Fields
	remoting.EncodeSend(&f, sendHeaderOf("T", 0, prop("TAGS", "a")), true)
	var h remoting.SendMessageView
	b.ReportAllocs()
	for b.Loop() {
		if err := h.Decode(f, true); err != nil {
			b.Fatal(err)
		}
	}
}
