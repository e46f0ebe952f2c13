package broker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mqx/broker/stats"
	"mqx/internal/fastjson"
	"mqx/remoting"
)

// fakeNameServers answers registrations in memory.
type fakeNameServers struct {
	mu    sync.Mutex
	calls []nsCall
	// stuck name servers never answer; down ones refuse.
	stuck, down map[string]bool
	order       string // topic in ORDER_TOPIC_CONFIG
	takes       time.Duration
}

type nsCall struct {
	addr     string
	code     int32
	topics   map[string]remoting.TopicConfig
	complete bool
	at       time.Time
	header   remoting.RegisterBrokerHeader
	version  remoting.DataVersion
}

func (f *fakeNameServers) Call(ctx context.Context, addr string, req *remoting.Command) (*remoting.Command, error) {
	c := nsCall{addr: addr, code: req.Code, at: time.Now()}
	if req.Code == remoting.ReqRegisterBroker {
		body, err := remoting.DecodeRegisterBroker(req.Body, false, req.Version)
		if err != nil {
			return nil, err
		}
		if err := remoting.DecodeHeader(req.Fields, &c.header); err != nil {
			return nil, err
		}
		c.topics, c.version = body.Topics.TopicConfigTable, body.Topics.DataVersion
		c.complete, _ = req.Fields.Bool(fieldComplete)
	}
	f.mu.Lock()
	f.calls = append(f.calls, c)
	stuck, down, order, takes := f.stuck[addr], f.down[addr], f.order, f.takes
	f.mu.Unlock()
	time.Sleep(takes) // of a bubble
	if down {
		return nil, errors.New("connection refused")
	}
	if stuck {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	resp := remoting.NewResponse(req, remoting.RespSuccess, "")
	if order != "" {
		resp.Body, _ = fastjson.Marshal(&remoting.KVTable{Table: map[string]string{order: "b:4"}})
	}
	return resp, nil
}

func (f *fakeNameServers) take() []nsCall {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.calls
	f.calls = nil
	return c
}

// set makes name server a:1 stuck or down, or well again.
func (f *fakeNameServers) set(m *map[string]bool, v bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	*m = map[string]bool{"a:1": v}
}

var testWho = identity{cluster: "C", name: "b", addr: "10.0.0.1:10911", haAddr: "10.0.0.1:10912"}

// newTestRegistrar must be called inside a bubble; its table writes nowhere.
func newTestRegistrar(f *fakeNameServers, tt *topicTable, s registerSettings) *registrar {
	r := newRegistrar(f, func() identity { return testWho }, tt, func() registerSettings { return s }, time.Now, quiet)
	tt.watch(r.Changed)
	return r
}

var usual = registerSettings{period: 30 * time.Second, timeout: 24 * time.Second, force: true, permission: 6}

func memTopics() *topicTable {
	tt := newTopicTable(testRules, nil, "", time.Now, stats.NewSet(), quiet)
	tt.saver.write = func() error { return nil }
	for _, c := range systemTopics(testRules) {
		tt.mu.topics[c.TopicName] = tt.newTopic(c)
	}
	return tt
}

func TestRegistration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeNameServers{}
		tt := memTopics()
		r := newTestRegistrar(f, tt, usual)
		r.SetServers([]string{"a:1", "b:2"})
		r.Tried(context.Background())
		calls := f.take()
		if len(calls) != 2 || calls[0].addr == calls[1].addr {
			t.Fatalf("first round: %+v", calls)
		}
		for _, c := range calls {
			if len(c.topics) != tt.Len() || !c.complete || c.header.BrokerAddr != testWho.addr || c.header.HAServerAddr != testWho.haAddr ||
				c.header.BrokerID != 0 || c.header.Compressed || !c.header.BodyCRC32.OK || !c.header.EnableActingMaster.OK {
				t.Errorf("%+v", c.header)
			}
		}
		time.Sleep(31 * time.Second)
		synctest.Wait()
		if calls := f.take(); len(calls) != 2 || !calls[0].complete {
			t.Errorf("after the period: %d calls", len(calls))
		}
		r.Close()
		calls = f.take()
		if len(calls) != 2 || calls[0].code != remoting.ReqUnregisterBroker {
			t.Errorf("at the stop: %+v", calls)
		}
	})
}

func TestIncrementalRegistration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeNameServers{}
		tt := memTopics()
		r := newTestRegistrar(f, tt, usual)
		r.SetServers([]string{"a:1"})
		r.Tried(context.Background())
		f.take()
		f.mu.Lock()
		f.takes = 10 * time.Millisecond
		f.mu.Unlock()
		known := make(chan struct{})
		for i := range 50 {
			tt.Put([]remoting.TopicConfig{remoting.NewTopicConfig(fmt.Sprintf("T%d", i))}, func(error) {})
		}
		r.Await(func() { close(known) })
		<-known
		calls := f.take()
		seen := map[string]bool{}
		for _, c := range calls {
			if c.complete {
				t.Error("a full registration for a new topic")
			}
			for name := range c.topics {
				seen[name] = true
			}
		}
		if len(seen) != 50 || len(calls) > 2 {
			t.Errorf("%d topics in %d calls", len(seen), len(calls))
		}
		if v := calls[len(calls)-1].version; v != tt.Version() {
			t.Errorf("version %+v, want %+v", v, tt.Version())
		}
		tt.Delete([]string{"T1"}, func(error) {})
		time.Sleep(time.Second)
		synctest.Wait()
		calls = f.take()
		if len(calls) != 1 || !calls[0].complete || len(calls[0].topics) != tt.Len() {
			t.Errorf("after a deletion: %d calls", len(calls))
		}
		done := make(chan struct{})
		r.Await(func() { close(done) }) // nothing is due
		<-done
		r.Close()
	})
}

// One dead name server holds up neither the start, nor the others, nor a create.
func TestDeadNameServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeNameServers{stuck: map[string]bool{"dead:1": true}}
		tt := memTopics()
		r := newTestRegistrar(f, tt, usual)
		start := time.Now()
		r.SetServers([]string{"dead:1", "b:2"})
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		r.Tried(ctx)
		if d := time.Since(start); d != 2*time.Second {
			t.Errorf("the start took %v", d)
		}
		if s := r.Servers(); s["dead:1"] || !s["b:2"] {
			t.Errorf("%v", s)
		}
		f.take()
		begin := time.Now()
		known := make(chan struct{})
		tt.Put([]remoting.TopicConfig{remoting.NewTopicConfig("T")}, func(error) {})
		r.Await(func() { close(known) })
		<-known
		if d := time.Since(begin); d != 0 {
			t.Errorf("the create waited %v for a dead name server", d)
		}
		if calls := f.take(); len(calls) != 1 || calls[0].addr != "b:2" {
			t.Errorf("%+v", calls)
		}
		begin = time.Now()
		r.Close()
		if d := time.Since(begin); d > time.Second {
			t.Errorf("the stop took %v", d)
		}
	})
}

// A name server that stops answering after it was fine is waited for once, and
// not longer than a second.
func TestNameServerStopsAnswering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeNameServers{}
		tt := memTopics()
		r := newTestRegistrar(f, tt, usual)
		r.SetServers([]string{"a:1"})
		r.Tried(context.Background())
		f.set(&f.stuck, true)
		for i, want := range []time.Duration{time.Second, 0} {
			begin := time.Now()
			known := make(chan struct{})
			tt.Put([]remoting.TopicConfig{remoting.NewTopicConfig(fmt.Sprint("T", i))}, func(error) {})
			r.Await(func() { close(known) })
			<-known
			if d := time.Since(begin); d != want {
				t.Errorf("create %d waited %v, want %v", i, d, want)
			}
		}
		f.set(&f.stuck, false)
		r.Close()
	})
}

// A restarted, empty name server gets everything again soon.
func TestNameServerRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeNameServers{}
		tt := memTopics()
		r := newTestRegistrar(f, tt, usual)
		r.SetServers([]string{"a:1"})
		r.Tried(context.Background())
		f.take()
		f.set(&f.down, true)
		lost := time.Now()
		r.Lost("a:1")
		r.Lost("unknown:1")
		time.Sleep(4 * time.Second)
		f.set(&f.down, false)
		for {
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			if r.Servers()["a:1"] {
				break
			}
		}
		if d := time.Since(lost); d > 12*time.Second {
			t.Errorf("registered again after %v", d)
		}
		calls := f.take()
		if last := calls[len(calls)-1]; !last.complete || len(last.topics) != tt.Len() {
			t.Errorf("%+v", last)
		}
		r.Close()
	})
}

func TestNameServerListChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeNameServers{}
		r := newTestRegistrar(f, memTopics(), usual)
		r.SetServers([]string{"a:1", "b:2"})
		r.Tried(context.Background())
		f.take()
		r.SetServers([]string{"b:2", "c:3"}) // N092
		r.Tried(context.Background())
		synctest.Wait()
		if calls := f.take(); len(calls) != 1 || calls[0].addr != "c:3" {
			t.Errorf("%+v", calls)
		}
		if s := r.Servers(); len(s) != 2 || !s["b:2"] || !s["c:3"] {
			t.Errorf("%v", s)
		}
		r.Close()
	})
}

func TestRegistrationPeriodIsClamped(t *testing.T) {
	for _, tt := range []struct{ period, want time.Duration }{{time.Second, 10 * time.Second}, {time.Hour, time.Minute}} {
		synctest.Test(t, func(t *testing.T) {
			f := &fakeNameServers{}
			s := usual
			s.period = tt.period
			r := newTestRegistrar(f, memTopics(), s)
			r.SetServers([]string{"a:1"})
			time.Sleep(tt.want + time.Second)
			synctest.Wait()
			if calls := f.take(); len(calls) != 2 || calls[1].at.Sub(calls[0].at) != tt.want {
				t.Errorf("%v: %d calls", tt.period, len(calls))
			}
			r.Close()
		})
	}
}

func TestRegistrationMasksPermissions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeNameServers{order: "OFFSET_MOVED_EVENT"}
		s := usual
		s.permission = permRead
		tt := memTopics()
		r := newTestRegistrar(f, tt, s)
		r.onOrder = tt.SetOrder
		r.SetServers([]string{"a:1"})
		r.Tried(context.Background())
		synctest.Wait()
		calls := f.take()
		if p := calls[0].topics["TBW102"].Perm; p != permRead|permInherit {
			t.Errorf("perm %d", p)
		}
		if p := tt.Get("TBW102").Perm; p != 7 {
			t.Errorf("the topic itself changed: %d", p)
		}
		if !tt.Get("OFFSET_MOVED_EVENT").Order {
			t.Error("ORDER_TOPIC_CONFIG was not taken over")
		}
		r.Close()
	})
}

// With forceRegister=false a name server that knows the version gets nothing.
func TestForceRegisterOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeNameServers{}
		s := usual
		s.force = false
		r := newTestRegistrar(f, memTopics(), s)
		r.SetServers([]string{"a:1"})
		r.Tried(context.Background())
		f.take()
		time.Sleep(31 * time.Second)
		synctest.Wait()
		calls := f.take()
		if len(calls) == 0 || calls[0].code != remoting.ReqQueryDataVersion {
			t.Errorf("%+v", calls)
		}
		r.Close()
	})
}
