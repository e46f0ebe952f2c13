package broker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"mqx/remoting"
)

// What is read from disk is answered at a rate while producers send, at a quarter more than theirs where that is more, and at once
// while nobody does.
func TestColdPullsGiveWay(t *testing.T) {
	const piece = 100_000
	for name, c := range map[string]struct {
		sent int64 // bytes a second
		want int64
	}{
		"nobody sends": {0, 0},
		"some":         {1_000_000, coldRate},
		"many":         {400_000_000, 500_000_000},
	} {
		now := fixedNow()
		p := &coldPulls{rate: coldRate, due: now, look: now}
		var end, answered int64
		begin := now
		for now.Sub(begin) < time.Second {
			end = c.sent * now.Sub(begin).Nanoseconds() / int64(time.Second)
			wait := p.wait(piece, end, now)
			now = now.Add(max(0, wait) + 10*time.Microsecond)
			answered += piece
		}
		if c.want == 0 && answered < 5e9 || c.want > 0 && (answered < c.want*9/10 || answered > c.want*11/10) {
			t.Errorf("%s: %d bytes in a second, want %d", name, answered, c.want)
		}
	}
}

// After a start the log is read from its files, not from the map, until something new stands there; readers get the same.
func TestPullsOfColdMessages(t *testing.T) {
	cfg := testConfig(t.TempDir())
	b := start(t, cfg)
	b.createTopic("T", 1)
	const messages = 100
	body := strings.Repeat("x", 4000)
	for i := range messages {
		b.send("T", 0, "", fmt.Sprint(i, body))
	}
	b.stop()
	b = start(t, cfg)
	b.send("T", 0, "", fmt.Sprint(messages, body)) // somebody sends
	b.settle()
	got := 0
	for got <= messages {
		resp := b.ok(remoting.ReqPullMessage, pullHeaderOf("G", "T", 0, int64(got)), nil)
		before := got
		for _, m := range records(t, resp.Body) {
			if string(m.Body) != fmt.Sprint(got, body) {
				t.Fatalf("message %d is %.10q", got, m.Body)
			}
			got++
		}
		if got == before {
			t.Fatalf("nothing at %d", got)
		}
	}
	if cold, all := b.store.Stats().GetCold, b.store.Stats().GetFound; cold == 0 || cold > all {
		t.Errorf("%d of %d pulls were cold", cold, all)
	}
}
