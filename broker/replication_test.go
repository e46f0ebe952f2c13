package broker

import (
	"context"
	"sync"
	"testing"
	"time"

	"mqx/remoting"
	"mqx/store"
	"mqx/store/ha"
)

// followerOf is a store that follows a broker, for as long as the returned function is not called.
func followerOf(t *testing.T, b *Broker) (*store.Store, func()) {
	t.Helper()
	sc := testConfig(t.TempDir()).Store
	sc.Follow, sc.Logger = true, quiet
	st, err := store.Open(sc)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	f := ha.NewFollower(ha.FollowerConfig{Log: st, Logger: quiet, Master: func() string { return b.at().haAddr }, Retry: 10 * time.Millisecond})
	wg.Go(func() { _ = st.Run(ctx) })
	wg.Go(func() { f.Run(ctx) })
	return st, sync.OnceFunc(func() {
		cancel()
		wg.Wait()
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A SYNC_MASTER answers SEND_OK when a slave has the message, FLUSH_SLAVE_TIMEOUT when none has it in time, and asks for
// nothing where the message says so.
func TestSyncMaster(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.BrokerRole, cfg.InSyncReplicas, cfg.SlaveTimeout = "SYNC_MASTER", 2, 300*time.Millisecond
	b := start(t, cfg)
	st, stop := followerOf(t, b.Broker)
	defer stop()
	send := func(props string) int32 {
		t.Helper()
		req := remoting.NewRequest(remoting.ReqSendMessageV2, nil)
		for k, v := range map[string]string{"a": "P", "b": "TBW102", "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1", "h": "0", "i": props, "j": "0", "k": "false"} {
			req.Fields.Set(k, v)
		}
		req.Body = []byte("hello")
		resp, err := b.c.Call(t.Context(), b.addr, req)
		if err != nil {
			t.Fatal(err)
		}
		return resp.Code
	}
	for end := time.Now().Add(30 * time.Second); send("") != remoting.RespSuccess; { // until the slave has come
		if time.Now().After(end) {
			t.Fatal("no send was acknowledged")
		}
	}
	if code := send(""); code != remoting.RespSuccess {
		t.Fatalf("with a slave: code %d", code)
	}
	if end := b.store.LogEnd(); st.LogEnd() < end {
		t.Errorf("acknowledged up to %d, the slave has %d", end, st.LogEnd())
	}
	stop()
	for end := time.Now().Add(30 * time.Second); len(b.ha.master.Replicas()) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the slave has gone, and the master does not see it")
		}
	}
	if code := send(""); code != remoting.RespFlushSlaveTimeout {
		t.Errorf("without a slave: code %d", code)
	}
	if code := send("WAIT\x01false\x02"); code != remoting.RespSuccess {
		t.Errorf("a message that does not wait: code %d", code)
	}
}
