package tui

import (
	"context"
	"fmt"
	"math"
	"time"
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
	s := &Snapshot{At: now, Took: 4 * time.Millisecond, Requests: 14, Clusters: []string{"demo"}}
	for i, name := range []string{"broker-a", "broker-b"} {
		s.Brokers = append(s.Brokers, Broker{
			Cluster: "demo", Name: name, Addr: fmt.Sprintf("10.0.0.%d:10911", i+1), Version: "V5_5_0", Puts: Known(d.total(t, 900+300*float64(i))),
			Gets: Known(d.total(t, 850+280*float64(i))), PutMax: Known(12 + 30*i), Disk: Known(0.41 + 0.37*float64(i)), FlushBehind: "128.0 KiB",
			SendWaiting: Known(2 * i), SendWait: Known(0), LockHeld: Known(0), DispatchLeft: Known(0), Started: d.Start.Add(-time.Hour),
		})
	}
	s.Brokers = append(s.Brokers, Broker{Cluster: "demo", Name: "broker-c", Addr: "10.0.0.3:10911", Err: "no answer within 3s"})
	s.Errors = []Failure{{"broker-c", "10.0.0.3:10911", "no answer within 3s"}}
	d.group(s, t, "billing", "ORDERS", 600, 540, 1200, 2)
	d.group(s, t, "search", "ORDERS", 600, 600, 0, 3)
	d.group(s, t, "发货通知", "SHIPMENTS", 220, 225, 4000, 1)
	d.group(s, t, "audit", "PAYMENTS", 380, 0, 90_000, 0)
	for i := range d.Many {
		d.group(s, t, fmt.Sprintf("group-%03d", i), fmt.Sprintf("TOPIC_%03d", i), float64(10+i%7), float64(10+i%7), float64(i%11), 1)
	}
	s.Topics = append(s.Topics, Topic{Name: "AUDIT_LOG", Kind: "normal", Brokers: 1, Queues: 4})
	if want.Clients {
		for i, lang := range []string{"JAVA", "GO", "CPP"} {
			s.Clients = append(s.Clients, Client{
				ID: fmt.Sprintf("10.1.0.%d@%d#17", i+1, 100+i), Addr: fmt.Sprintf("10.1.0.%d:40%d", i+1, 110+i), Language: lang, Version: "V5_5_0",
				Consumes: []string{"billing", "search"}[:1+i%2], Seen: now.Add(-time.Duration(5*i) * time.Second),
			})
		}
	}
	return s, nil
}

// total is the sum of a rate that swings.
func (d *Demo) total(t, rate float64) float64 {
	return math.Floor(rate*(t+3600) + rate*8*math.Sin(t/20))
}

// group adds a group that reads a topic, both at so many messages a second.
func (d *Demo) group(s *Snapshot, t float64, name, topic string, in, out, behind float64, members int) {
	end := d.total(t, in)
	done := math.Floor(min(end, max(0, out*(t+3600)-behind)))
	if out == in {
		done = end - math.Floor(behind)
	}
	g := Group{
		Name: name, Online: members > 0, Members: members, Model: "CLUSTERING", Type: "CONSUME_PASSIVELY", Topics: []string{topic},
		Lag: Known(end - done), Retry: Known(0), Done: Known(done), Flight: Known(32 * members), Expires: "no",
	}
	if members == 0 {
		g.Model, g.Type, g.Marks = "", "", []string{"no owner"}
	}
	for q := range int32(4) {
		g.Queues = append(g.Queues, Queue{
			Topic: topic, Broker: []string{"broker-a", "broker-b"}[q%2], ID: q / 2, Committed: Known(math.Floor(done / 4)), End: Known(math.Floor(end / 4)),
			Lag: Known(math.Floor((end - done) / 4)), Flight: Known(0),
		})
	}
	s.Groups = append(s.Groups, g)
	if s.topic(topic) == nil {
		s.Topics = append(s.Topics, Topic{Name: topic, Kind: "normal", Brokers: 2, Queues: 4, Groups: 0, End: Known(end)})
	}
	s.topic(topic).Groups++
}

func (s *Snapshot) topic(name string) *Topic {
	for i := range s.Topics {
		if s.Topics[i].Name == name {
			return &s.Topics[i]
		}
	}
	return nil
}
