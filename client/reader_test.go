package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"mqx/message"
	"mqx/remoting"
	"mqx/remoting/server"
)

func bodies(prefix string, n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("%s%d", prefix, i))
	}
	return out
}

func texts(ms []*Received) (out []string) {
	for _, m := range ms {
		out = append(out, string(m.Body))
	}
	return out
}

func TestReadRanges(t *testing.T) {
	ns := startNameServer(t)
	b := startBroker(t, ns, "a", "T:2")
	b.fill(0, bodies("p", 100), "", 1000) // stored at 1000, 1001, ...
	b.fill(1, bodies("q", 3), "", 5000)
	at := func(ms int64) *Position { return &Position{Kind: AtTime, Time: time.UnixMilli(ms)} }
	offset := func(n int64) *Position { return &Position{Kind: AtOffset, Offset: n} }
	for _, c := range []struct {
		what   string
		change func(*ReaderConfig)
		want   []string
	}{
		{"all of queue 1", func(c *ReaderConfig) { c.HasQueue, c.Queue = true, 1 }, bodies("q", 3)},
		{"queue 0", func(c *ReaderConfig) { c.HasQueue = true }, bodies("p", 100)},
		{"offsets", func(c *ReaderConfig) { c.HasQueue, c.Start, c.End = true, *offset(10), offset(13) }, []string{"p10", "p11", "p12"}},
		{"offsets across pulls", func(c *ReaderConfig) { c.HasQueue, c.Start, c.End = true, *offset(20), offset(95) }, bodies("p", 95)[20:]},
		{"a batch of one", func(c *ReaderConfig) { c.HasQueue, c.Batch, c.End = true, 1, offset(4) }, bodies("p", 4)},
		{"times", func(c *ReaderConfig) { c.HasQueue, c.Start, c.End = true, *at(1097), at(1099) }, []string{"p97", "p98"}},
		{"a time behind the end", func(c *ReaderConfig) { c.HasQueue, c.Start, c.End = true, *at(1098), at(999999) }, []string{"p98", "p99"}},
		{"from the end", func(c *ReaderConfig) { c.Start = Position{Kind: AtEnd} }, nil},
		{"an offset behind the end", func(c *ReaderConfig) { c.HasQueue, c.Start = true, *offset(500) }, nil},
		{"an end behind the end", func(c *ReaderConfig) { c.HasQueue, c.Queue, c.End = true, 1, offset(500) }, bodies("q", 3)},
		{"an empty range", func(c *ReaderConfig) { c.HasQueue, c.Start, c.End = true, *offset(5), offset(5) }, nil},
	} {
		if got := texts(readAll(t, ns, c.change)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
	if n := len(b.requests(remoting.ReqUpdateConsumerOffset)) + len(b.requests(remoting.ReqHeartBeat)); n != 0 {
		t.Errorf("a reader committed or registered: %d requests", n)
	}
	if g := b.requests(remoting.ReqPullMessage)[0].fields; g["consumerGroup"] != "TOOLS_CONSUMER" || g["sysFlag"] != "4" || g["subscription"] != "*" {
		t.Errorf("pull: %v", g)
	}
}

func TestReadBelowTheMinimum(t *testing.T) {
	ns := startNameServer(t)
	b := startBroker(t, ns, "a", "T:1")
	b.mu.Lock()
	b.queues[queueKey{"T", 0}].min = 50
	b.mu.Unlock()
	b.fill(0, bodies("p", 5), "", 1000)
	got := readAll(t, ns, func(c *ReaderConfig) { c.Start = Position{Kind: AtOffset, Offset: 3} })
	if len(got) != 5 || got[0].QueueOffset != 50 {
		t.Errorf("%d messages: %v", len(got), texts(got))
	}
}

func TestReadTags(t *testing.T) { // N042
	ns := startNameServer(t)
	b := startBroker(t, ns, "a", "T:1")
	b.fill(0, []string{"1"}, "Aa", 1) // Aa and BB have the same hash
	b.fill(0, []string{"2"}, "BB", 2)
	b.fill(0, []string{"3"}, "C", 3)
	b.fill(0, []string{"4"}, "", 4)
	for expr, want := range map[string][]string{"": {"1", "2", "3", "4"}, "*": {"1", "2", "3", "4"}, "Aa": {"1"}, "BB || C": {"2", "3"}, "Z": nil} {
		if got := texts(readAll(t, ns, func(c *ReaderConfig) { c.Tag = expr })); !slices.Equal(got, want) {
			t.Errorf("tag %q: %v, want %v", expr, got, want)
		}
	}
	for what, change := range map[string]func(*ReaderConfig){
		"tag and SQL": func(c *ReaderConfig) { c.Tag, c.SQL = "a", "b" }, "no tag": func(c *ReaderConfig) { c.Tag = "||" },
		"bad topic": func(c *ReaderConfig) { c.Topic = "a b" }, "bad group": func(c *ReaderConfig) { c.Group = "a b" },
		"batch": func(c *ReaderConfig) { c.Batch = -1 }, "no name server": func(c *ReaderConfig) { c.NameServers = nil },
	} {
		cfg := ReaderConfig{Config: Config{NameServers: []string{ns}}, Topic: "T"}
		change(&cfg)
		if _, err := NewReader(cfg); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
}

func TestReadFollow(t *testing.T) {
	for _, ordered := range []bool{false, true} {
		ns := startNameServer(t)
		b := startBroker(t, ns, "a", "T:2")
		b.fill(0, bodies("old", 3), "", 1)
		r, err := NewReader(ReaderConfig{Config: Config{NameServers: []string{ns}}, Topic: "T", Follow: true, Ordered: ordered, Start: Position{Kind: AtEnd}})
		if err != nil {
			t.Fatal(err)
		}
		started := make(chan struct{})
		go func() {
			defer close(started)
			for {
				n := 0
				for _, s := range b.requests(remoting.ReqPullMessage) {
					if s.fields["sysFlag"] == "6" { // held, with its subscription
						n++
					}
				}
				if n >= 2 {
					b.fill(1, []string{"new"}, "", 10)
					b.fill(0, []string{"newer"}, "", 20)
					return
				}
				time.Sleep(time.Millisecond)
			}
		}()
		var got []string
		err = r.Read(t.Context(), func(m *Received) error {
			got = append(got, string(m.Body))
			if len(got) == 2 {
				return ErrStop
			}
			return nil
		})
		<-started
		slices.Sort(got) // what comes at the same time comes in any order
		if err != nil || !slices.Equal(got, []string{"new", "newer"}) {
			t.Errorf("ordered %v: %v %v", ordered, got, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestReadOrdered(t *testing.T) {
	ns := startNameServer(t)
	a, b := startBroker(t, ns, "a", "T:2"), startBroker(t, ns, "b", "T:1")
	for i := range int64(300) {
		a.fill(0, []string{fmt.Sprint(3 * i)}, "", 1000+3*i)
		a.fill(1, []string{fmt.Sprint(3*i + 1)}, "", 1000+3*i+1)
		b.fill(0, []string{fmt.Sprint(3*i + 2)}, "", 1000+3*i+2)
	}
	for i, m := range readAll(t, ns, func(c *ReaderConfig) { c.Ordered = true }) {
		if string(m.Body) != fmt.Sprint(i) {
			t.Fatalf("message %d is %s", i, m.Body)
		}
	}
	if got := readAll(t, ns, func(c *ReaderConfig) { c.Brokers = []string{"b"} }); len(got) != 300 {
		t.Errorf("broker b alone: %d messages", len(got))
	}
	perQueue := map[remoting.MessageQueue]int64{}
	for _, m := range readAll(t, ns, nil) {
		if m.QueueOffset != perQueue[m.Queue] {
			t.Fatalf("%s: offset %d after %d", m.Queue, m.QueueOffset, perQueue[m.Queue])
		}
		perQueue[m.Queue]++
	}
}

func TestReadErrors(t *testing.T) {
	ns := startNameServer(t)
	b := startBroker(t, ns, "a", "T:1")
	b.fill(0, bodies("p", 3), "", 1)
	r, err := NewReader(ReaderConfig{Config: Config{NameServers: []string{ns}}, Topic: "T"})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	stop := errors.New("disk full")
	if err := r.Read(t.Context(), func(*Received) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("the function's error: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := r.Read(ctx, func(*Received) error { cancel(); return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	b.intercept(remoting.ReqPullMessage, func(r *server.Request) bool { r.Reply(remoting.RespNoPermission, "go away"); return true })
	var re *remoting.ResponseError // an error is never an empty topic (N109, N110)
	if err := r.Read(t.Context(), func(*Received) error { return nil }); !errors.As(err, &re) || re.Code != remoting.RespNoPermission || re.Remark != "go away" {
		t.Errorf("refused: %v", err)
	}
	b.intercept(remoting.ReqPullMessage, nil)
	for _, change := range []func(*ReaderConfig){
		func(c *ReaderConfig) { c.Topic = "Unknown" }, func(c *ReaderConfig) { c.HasQueue, c.Queue = true, 7 }, func(c *ReaderConfig) { c.Brokers = []string{"x"} },
	} {
		cfg := ReaderConfig{Config: Config{NameServers: []string{ns}}, Topic: "T"}
		change(&cfg)
		r, err := NewReader(cfg)
		if err != nil {
			t.Fatal(err)
		}
		var none *NoRouteError
		if err := r.Read(t.Context(), func(*Received) error { return nil }); !errors.As(err, &none) {
			t.Errorf("%+v: %v", cfg, err)
		}
		_ = r.Close()
	}
}

func TestReadBrokenRecord(t *testing.T) {
	ns := startNameServer(t)
	b := startBroker(t, ns, "a", "T:1")
	b.fill(0, bodies("p", 5), "", 1)
	b.mu.Lock()
	rec := message.View(b.queues[queueKey{"T", 0}].records[2])
	rec.Body()[0] ^= 0xFF
	b.mu.Unlock()
	r, err := NewReader(ReaderConfig{Config: Config{NameServers: []string{ns}}, Topic: "T"})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var got []string
	err = r.Read(t.Context(), func(m *Received) error { got = append(got, string(m.Body)); return nil })
	var broken *BrokenError
	if !errors.As(err, &broken) || broken.Count != 1 || !message.IsCorrupt(err) || !strings.Contains(err.Error(), "T@a:0") {
		t.Errorf("error: %v", err)
	}
	if !slices.Equal(got, []string{"p0", "p1", "p3", "p4"}) {
		t.Errorf("read %v", got)
	}
}
