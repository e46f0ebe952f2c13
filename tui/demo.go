package tui

import (
	"context"
	"fmt"
	"math"
	"time"

	"mqx/internal/sorted"
)

// Demo is a cluster that is not there: figures that move by the clock, the same at the
// same time.
type Demo struct {
	Start time.Time
	Now   func() time.Time
	Many  int // so many more topics and groups
}

// Read gives the cluster at this moment.
func (d *Demo) Read(_ context.Context, want Want) (*Snapshot, error) {
	now := d.Now()
	t := now.Sub(d.Start).Seconds()
	s := &Snapshot{At: now, Took: 4 * time.Millisecond, Requests: 14, Bound: 252, Clusters: []string{"demo"}, Whole: true}
	for i, name := range []string{"broker-a", "broker-b"} {
		s.Brokers = append(s.Brokers, Broker{
			Cluster: "demo", Name: name, Addr: fmt.Sprintf("10.0.0.%d:10911", i+1), Version: "V5_5_0", Puts: Known(d.total(t, 900+300*float64(i))), At: now,
			Gets: Known(d.total(t, 850+280*float64(i))), PutMax: Known(12 + 30*i), PutP99: Known(0.42 + 3*float64(i)), Disk: Known(0.41 + 0.37*float64(i)),
			FlushBehind: "128.0 KiB", SendWaiting: Known(2 * i), SendWait: Known(0), LockHeld: Known(620 * i), DispatchLeft: Known(0), HAGap: Known(4096 * i),
			Replicas: Known(i), Conns: Known(3 + i), Started: d.Start.Add(-time.Hour),
		})
	}
	s.Brokers = append(s.Brokers, Broker{
		Cluster: "demo", Name: "broker-b", ID: 1, Addr: "10.0.0.4:10911", Version: "V5_5_0", Puts: Known(d.total(t, 1200)), Gets: Known(0), At: now,
		Disk: Known(0.86), PutMax: Known(4), PutP99: Known(0.2), FlushBehind: "0 B", SendWaiting: Known(0), LockHeld: Known(0), Started: d.Start.Add(-time.Hour),
	}, Broker{Cluster: "demo", Name: "broker-c", Addr: "10.0.0.3:10911", Err: "no answer within 3s"})
	s.Errors = []Failure{{"broker-c", "10.0.0.3:10911", "no answer within 3s"}}
	d.group(s, t, demoGroup{"billing", "ORDERS", 600, 540, 1200, 2})
	d.group(s, t, demoGroup{"search", "ORDERS", 600, 600, 0, 3})
	d.group(s, t, demoGroup{"发货通知", "SHIPMENTS", 220, 225, 4000, 1})
	d.group(s, t, demoGroup{"audit", "PAYMENTS", 380, 0, 90_000, 0})
	d.group(s, t, demoGroup{"reports", "PAYMENTS", 380, 0, 500, 1})
	for i := range d.Many {
		d.group(s, t, demoGroup{fmt.Sprintf("group-%03d", i), fmt.Sprintf("TOPIC_%03d", i), float64(10 + i%7), float64(10 + i%7), float64(i % 11), 1})
	}
	sorted.By(s.Groups, func(a, b Group) int { return compareText(a.Name, b.Name) })
	s.Topics = append(s.Topics, Topic{Name: "AUDIT_LOG", Kind: "normal", Brokers: 1, Queues: 4})
	if want.Clients {
		s.Clients, s.ClientsOf = d.clients(now), len(s.Groups)
	}
	return s, nil
}

func (d *Demo) clients(now time.Time) (out []Client) {
	for i, lang := range []string{"JAVA", "GO", "CPP"} {
		out = append(out, Client{
			ID: fmt.Sprintf("10.1.0.%d@%d#17", i+1, 100+i), Addrs: []string{fmt.Sprintf("10.1.0.%d:40%d", i+1, 110+i)}, Language: lang, Version: "V5_5_0",
			Consumes: []string{"billing", "search"}[:1+i%2], Seen: now.Add(-time.Duration(5*i) * time.Second), At: now.Add(-time.Duration(9*i) * time.Second),
			Brokers: []string{"broker-a", "broker-b"}[:1+i%2],
		})
	}
	return out
}

// Message gives a message that looks like one of the place.
func (d *Demo) Message(_ context.Context, ref MessageRef) (*Message, error) {
	if ref.Topic == "" {
		ref = MessageRef{Topic: "ORDERS", Broker: "broker-a", Queue: 1, Offset: 4711}
	}
	at := d.Start.Add(-time.Minute)
	return &Message{
		Ref: ref, ID: "0A01000100640000000000000000126B", OffsetID: "0A00000100002A9F00000000004D2F11", Tags: "paid", Keys: fmt.Sprintf("order-%d", ref.Offset),
		Born: at, Stored: at.Add(3 * time.Millisecond), BornHost: "10.1.0.1:40110", StoreHost: "10.0.0.1:10911", Size: 291, BodySize: 46,
		Properties: [][2]string{{"CLUSTER", "demo"}, {"WAIT", "true"}, {"客户", "张三"}}, Body: []byte(fmt.Sprintf("{\"order\": %d,\n \"客户\": \"张三\", \"total\": 12.50}", ref.Offset)),
	}, nil
}

// total is the sum of a rate that swings.
func (d *Demo) total(t, rate float64) float64 {
	return math.Floor(rate*(t+3600) + rate*8*math.Sin(t/20))
}

// demoGroup reads a topic: messages a second in and out, how far it was behind at the
// start, and its members.
type demoGroup struct {
	name, topic     string
	in, out, behind float64
	members         int
}

func (d *Demo) group(s *Snapshot, t float64, o demoGroup) {
	end := d.total(t, o.in)
	done := math.Floor(min(end, max(0, o.out*(t+3600)-o.behind)))
	switch o.out {
	case o.in:
		done = end - math.Floor(o.behind)
	case 0:
		done = math.Floor(d.total(0, o.in) - o.behind)
	}
	g := Group{
		Name: o.name, Online: o.members > 0, Members: o.members, Model: "CLUSTERING", Type: "CONSUME_PASSIVELY", DetailAt: s.At, TPS: Known(o.out),
		Flight: Known(32 * o.members), Expires: "no",
	}
	if end > done {
		g.Age = time.Duration((end-done)/o.in*1000) * time.Millisecond
	}
	if o.members == 0 {
		g.Model, g.Type, g.Marks, g.Expires, g.Lost, g.DetailAt = "", "", []string{"offline"}, "yes", 17, s.At.Add(-14*time.Second)
	}
	for q := range int32(4) {
		one := Queue{
			Topic: o.topic, Broker: []string{"broker-a", "broker-b"}[q%2], ID: q / 2, Committed: Known(part(done, q)), End: Known(part(end, q)),
			Lag: Known(part(end, q) - part(done, q)), Flight: Known(8 * o.members), At: s.At, Age: g.Age,
		}
		if o.members > 0 {
			one.Owner = fmt.Sprintf("10.1.0.%d@%d#17", q%int32(o.members)+1, 100+q%int32(o.members))
		}
		g.Queues = append(g.Queues, one)
	}
	sorted.By(g.Queues, func(a, b Queue) int { return a.compare(&b) })
	g.sum(s.At)
	s.Groups = append(s.Groups, g)
	if s.topic(o.topic) == nil {
		s.Topics = append(s.Topics, Topic{Name: o.topic, Kind: "normal", Brokers: 2, Queues: 4, End: Known(end), EndAt: s.At, Stored: Known(math.Floor(end / 2)), SizeAt: s.At})
	}
	s.topic(o.topic).Groups++
}

// part is one of four parts of a sum, the first ones the larger.
func part(sum float64, i int32) float64 { return math.Floor((sum + float64(3-i)) / 4) }

func (s *Snapshot) topic(name string) *Topic {
	for i := range s.Topics {
		if s.Topics[i].Name == name {
			return &s.Topics[i]
		}
	}
	return nil
}
