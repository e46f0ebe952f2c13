package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"mqx/message"
	"mqx/remoting"
)

// How many messages one pull may bring: of those in memory, and of those on the disk.
var pullLimits = []string{
	"maxTransferCountOnMessageInMemory=10", "maxTransferBytesOnMessageInMemory=8192",
	"maxTransferCountOnMessageInDisk=4", "maxTransferBytesOnMessageInDisk=4096", "slaveReadEnable=true",
}

// A pull brings no more messages and no more bytes than the broker's limits for memory or for the disk say, whatever the client
// asks for; one message always comes, however large it is. A client that reads from the disk is sent to the replica that its group
// names (whichBrokerWhenConsumeSlowly), others stay. What counts as memory is told by accessMessageInMemoryMaxRatio.
func TestPullLimits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name         string
		extra        []string
		count, bytes int
		suggest      int64
	}{
		{"memory", nil, 10, 8192, 0},
		{"disk", []string{"accessMessageInMemoryMaxRatio=0"}, 4, 4096, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := startCluster(t, slices.Concat(pullLimits, tt.extra)...)
			p := newRawPeer(t, c.broker)
			topic, group := rawNames("limits_" + tt.name)
			p.createTopic(topic, 3)
			p.createGroup(group)
			large := strings.Repeat("x", 10_000)
			bodies := [3][]string{
				repeated(25, func(i int) string { return fmt.Sprintf("small %d", i) }),                         // the count is what limits
				repeated(25, func(i int) string { return fmt.Sprintf("%d ", i) + strings.Repeat("m", 900+i) }), // the bytes
				{large, "after", large, large, "last"},
			}
			for q, bs := range bodies {
				p.send(topic, int32(q), bs...)
			}
			for q, bs := range bodies {
				all := p.pullAll(group, topic, int32(q), 1)
				if len(all) != len(bs) {
					t.Fatalf("queue %d: %d messages, want %d", q, len(all), len(bs))
				}
				for _, most := range []int{32, 3} {
					checkPulls(t, p, pullOf(group, topic, int32(q), 0), all, min(tt.count, most), tt.bytes, most)
				}
			}
			if got := p.int(p.ok(remoting.ReqPullMessage, pullOf(group, topic, 0, 0), nil), "suggestWhichBrokerId"); got != tt.suggest {
				t.Errorf("sent to broker %d, want %d", got, tt.suggest)
			}
			// The clients read everything whatever the limits are.
			var want []outgoing
			for _, b := range slices.Concat(bodies[0], bodies[1]) {
				want = append(want, outgoing{Body: b})
			}
			got := sharedDriver(t).pull(t, c.namesrv, topic, "")
			if why := lost(want, got); why != "" || len(got) != 55 {
				t.Errorf("the Java client: %d messages, %s", len(got), why)
			}
		})
	}
}

func repeated(n int, of func(int) string) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = of(i)
	}
	return out
}

// checkPulls pulls a queue from its beginning to its end and compares each answer with what the limits allow.
func checkPulls(t *testing.T, p *rawPeer, h *remoting.PullMessageHeader, all []int, count, bytes, most int) {
	t.Helper()
	h.MaxMsgNums = int32(most)
	for off := 0; off < len(all); {
		want, sum := 0, 0
		for _, size := range all[off:] {
			if want > 0 && (want == count || sum+size > bytes) {
				break
			}
			want++
			sum += size
		}
		h.QueueOffset = int64(off)
		got := p.records(p.ok(remoting.ReqPullMessage, h, nil))
		if len(got) != want || got[0].QueueOffset != int64(off) {
			t.Fatalf("queue %d, offset %d, asked for %d: %d messages of %d bytes, want %d of %d", h.QueueID, off, most, len(got), sizes(got), want, sum)
		}
		off += len(got)
	}
}

func sizes(recs []message.Record) (sum int) {
	for i := range recs {
		sum += int(recs[i].Size)
	}
	return sum
}

// pullAll pulls a queue in steps and returns the sizes of its records.
func (p *rawPeer) pullAll(group, topic string, queue, step int32) (all []int) {
	p.t.Helper()
	for {
		h := pullOf(group, topic, queue, int64(len(all)))
		h.MaxMsgNums = step
		resp := p.call(remoting.ReqPullMessage, h, nil)
		if resp.Code != remoting.RespSuccess {
			return all
		}
		for _, rec := range p.records(resp) {
			all = append(all, int(rec.Size))
		}
	}
}
