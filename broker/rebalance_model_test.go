package broker

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"mqx/broker/pop"
	"mqx/internal/clock"
	"mqx/remoting"
)

// What a client of an orderly group goes by: it believes a queue to be its own for 30 s after the broker last said so.
const clientLockLive = 30 * time.Second

// orderlyMember is a client as the official ones behave: it computes its share from the members that it was last told of,
// gives back what is no longer its own, and asks for the rest. It may be slow, deaf or dead.
type orderlyMember struct {
	id    string
	knows []string
	held  map[int32]time.Time // when the broker last said so
}

func (m *orderlyMember) holds(q int32, now time.Time) bool {
	at, ok := m.held[q]
	return ok && now.Sub(at) <= clientLockLive
}

// Whatever members come, go, die, hear late or ask late: no queue is ever believed to be their own by two of them, and once
// all know of each other and a minute has passed, every queue is held by the one who is to read it.
func TestOrderlyGroupsAgainstAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const queues = 6
		ck := clock.NewManual(fixedNow())
		locks := newQueueLocks(ck.Now)
		strategy := rapid.SampledFrom([]string{pop.StrategyAverage, pop.StrategyCircle}).Draw(t, "strategy")
		members, names := map[string]*orderlyMember{}, 0
		ids := func() []string {
			out := []string{}
			for id := range members {
				out = append(out, id)
			}
			slices.Sort(out)
			return out
		}
		pick := func(t *rapid.T) *orderlyMember {
			if len(members) == 0 {
				t.Skip("nobody is there")
			}
			return members[rapid.SampledFrom(ids()).Draw(t, "member")]
		}
		rebalance := func(m *orderlyMember) {
			share, err := pop.Assign(strategy, m.id, queues, m.knows)
			if err != nil {
				return // it was told of nobody yet
			}
			var lose, want []remoting.MessageQueue
			for q := range int32(queues) {
				mine := slices.Contains(share, int(q))
				if _, held := m.held[q]; held && !mine {
					lose = append(lose, mq(q))
					delete(m.held, q)
				} else if mine {
					want = append(want, mq(q))
				}
			}
			locks.Unlock("G", m.id, lose)
			for _, q := range want {
				delete(m.held, q.QueueID)
			}
			for _, q := range locks.Lock("G", m.id, want) {
				m.held[q.QueueID] = ck.Now()
			}
		}
		check := func(t *rapid.T) {
			for q := range int32(queues) {
				var holders []string
				for id, m := range members {
					if m.holds(q, ck.Now()) {
						holders = append(holders, id)
					}
				}
				if len(holders) > 1 {
					t.Fatalf("queue %d is read by %v", q, holders)
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"join": func(*rapid.T) {
				if len(members) < 8 {
					names++
					id := fmt.Sprintf("c%02d", names)
					members[id] = &orderlyMember{id: id, knows: []string{}, held: map[int32]time.Time{}}
				}
			},
			"hear":      func(t *rapid.T) { pick(t).knows = ids() },
			"rebalance": func(t *rapid.T) { rebalance(pick(t)) },
			"leave": func(t *rapid.T) { // in order: it gives back what it has
				m := pick(t)
				var all []remoting.MessageQueue
				for q := range m.held {
					all = append(all, mq(q))
				}
				locks.Unlock("G", m.id, all)
				delete(members, m.id)
			},
			"die":   func(t *rapid.T) { delete(members, pick(t).id) },
			"wait":  func(t *rapid.T) { ck.Advance(time.Duration(rapid.IntRange(1, 70).Draw(t, "seconds")) * time.Second) },
			"sweep": func(*rapid.T) { locks.Sweep(nil) },
			"":      check,
		})
		if len(members) == 0 {
			return
		}
		// All hear of each other and ask every 20 s.
		for range 5 {
			ck.Advance(20 * time.Second)
			for _, id := range ids() {
				members[id].knows = ids()
				rebalance(members[id])
			}
			check(t)
		}
		for q := range int32(queues) {
			if !slices.ContainsFunc(ids(), func(id string) bool { return members[id].holds(q, ck.Now()) }) {
				t.Fatalf("nobody holds queue %d of %v", q, ids())
			}
		}
	})
}

// The table of locks does what a list of who asked for what and when does.
func TestQueueLocksAgainstAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type key struct {
			group string
			queue int32
		}
		type hold struct {
			client string
			at     time.Time
		}
		ck := clock.NewManual(fixedNow())
		locks, model := newQueueLocks(ck.Now), map[key]hold{}
		group := rapid.SampledFrom([]string{"G", "H"})
		client := rapid.SampledFrom([]string{"a", "b", "c"})
		asked := rapid.SliceOfDistinct(rapid.Int32Range(0, 4), func(q int32) int32 { return q })
		list := func(qs []int32) []remoting.MessageQueue {
			out := make([]remoting.MessageQueue, len(qs))
			for i, q := range qs {
				out[i] = mq(q)
			}
			return out
		}
		live := func(h hold) bool { return h.client != "" && ck.Now().Sub(h.at) <= 60*time.Second }
		t.Repeat(map[string]func(*rapid.T){
			"lock": func(t *rapid.T) {
				g, c, qs := group.Draw(t, "group"), client.Draw(t, "client"), asked.Draw(t, "queues")
				var want []remoting.MessageQueue
				for _, q := range qs {
					k := key{g, q}
					if h := model[k]; !live(h) || h.client == c {
						model[k] = hold{c, ck.Now()}
						want = append(want, mq(q))
					}
				}
				if got := locks.Lock(g, c, list(qs)); !slices.EqualFunc(got, want, func(a, b remoting.MessageQueue) bool { return cmp.Compare(a.QueueID, b.QueueID) == 0 }) {
					t.Fatalf("%s of %s asks for %v and gets %v, want %v", c, g, qs, got, want)
				}
			},
			"unlock": func(t *rapid.T) {
				g, c, qs := group.Draw(t, "group"), client.Draw(t, "client"), asked.Draw(t, "queues")
				for _, q := range qs {
					if k := (key{g, q}); model[k].client == c {
						delete(model, k)
					}
				}
				locks.Unlock(g, c, list(qs))
			},
			"wait":  func(t *rapid.T) { ck.Advance(time.Duration(rapid.IntRange(1, 80).Draw(t, "seconds")) * time.Second) },
			"sweep": func(*rapid.T) { locks.Sweep(nil) },
			"": func(t *rapid.T) {
				for _, g := range []string{"G", "H"} {
					want := false
					for k, h := range model {
						want = want || k.group == g && live(h)
					}
					if got := locks.AnyHeld(g); got != want {
						t.Fatalf("%s holds locks: %v, want %v", g, got, want)
					}
				}
			},
		})
	})
}
