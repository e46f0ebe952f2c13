package tui

import (
	"testing"
	"time"
)

// A broker that has never said where groups stand leaves no sum over brokers; one that has said it once keeps what it said.
func TestUnheardBroker(t *testing.T) {
	at := time.Unix(1000, 0)
	h := NewHistory()
	look := func(bAnswers bool) *Rated {
		at = at.Add(time.Second)
		g := Group{Name: "g", Queues: []Queue{{Topic: "T", Broker: "a", Lag: Known(3), Committed: Known(1), At: at}}}
		s := &Snapshot{At: at, Brokers: []Broker{{Name: "a", Addr: "a:1"}, {Name: "b", Addr: "b:1"}}}
		if bAnswers {
			g.Queues = append(g.Queues, Queue{Topic: "T", Broker: "b", Lag: Known(4), Committed: Known(1), At: at})
		} else {
			s.Brokers[1].Err, s.Missing = "no answer", []string{"b"}
		}
		g.sum(at)
		s.Groups = []Group{g}
		return h.Add(s)
	}
	if r := look(false); r.Lag.OK || r.Groups[0].Lag.OK || r.Groups[0].Retry.OK {
		t.Errorf("never heard of: %+v, %+v", r.Lag, r.Groups[0])
	}
	if r := look(true); r.Lag != Known(7) || r.Groups[0].Lag != Known(7) {
		t.Errorf("all told: %+v, %+v", r.Lag, r.Groups[0])
	}
	if r := look(false); r.Groups[0].Lag != Known(7) || !r.Groups[0].Stale {
		t.Errorf("silent now: %+v", r.Groups[0])
	}
}
