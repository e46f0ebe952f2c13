package e2e

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// timerSettings make slots of 100 ms and the window of the wheel narrower than the longer delays, so that messages roll.
func timerSettings(windowSlots int) []string {
	return []string{"recallMessageEnable=true", "timerPrecisionMs=100", fmt.Sprintf("timerRollWindowSlot=%d", windowSlots)}
}

// timerProps are the three ways to ask for a delivery after a delay.
func timerProps(delay time.Duration, now time.Time) []map[string]string {
	return []map[string]string{
		{"TIMER_DELAY_MS": strconv.FormatInt(delay.Milliseconds(), 10)},
		{"TIMER_DELAY_SEC": strconv.Itoa(int(delay / time.Second))},
		{"TIMER_DELIVER_MS": strconv.FormatInt(now.Add(delay).UnixMilli(), 10)},
	}
}

// timerOutgoing are messages of all kinds; due gets the time before which each must not be there.
func timerOutgoing(from string, due map[string]time.Time, delays ...time.Duration) []outgoing {
	var out []outgoing
	now := time.Now()
	for _, delay := range delays {
		for kind, props := range timerProps(delay, now) {
			m := outgoing{Body: fmt.Sprintf("%s %v %d", from, delay, kind), Properties: props}
			due[m.Body] = now.Add(delay)
			out = append(out, m)
		}
	}
	return out
}

// forJava puts properties where the Java client takes those of the broker.
func forJava(out []outgoing) []outgoing {
	for i := range out {
		out[i].System, out[i].Properties = out[i].Properties, nil
	}
	return out
}

func sendTimersWithGo(t *testing.T, namesrv, topic string, out []outgoing) {
	t.Helper()
	p := goProducer(t, namesrv)
	for _, m := range out {
		if _, err := p.SendSync(context.Background(), goMessage(topic, m)); err != nil {
			t.Fatal(err)
		}
	}
}

// recallWithJava takes messages back; each recall answers with the message's id.
func recallWithJava(t *testing.T, namesrv, topic string, what []sent) {
	t.Helper()
	for _, s := range what {
		if s.RecallHandle == "" {
			t.Fatalf("no recall handle: %+v", s)
		}
		var id string
		sharedDriver(t).call(t, "recall", map[string]any{"namesrv": namesrv, "topic": topic, "handle": s.RecallHandle}, &id)
		if id != s.MsgID {
			t.Errorf("recalled %q, want %q", id, s.MsgID)
		}
	}
}

// checkTimers compares what came with what was to come: each once, none early.
func checkTimers(t *testing.T, due map[string]time.Time, got []incoming) {
	t.Helper()
	count := map[string]int{}
	for _, m := range got {
		body := string(m.Body)
		count[body]++
		if early := due[body].Sub(time.UnixMilli(m.StoreTimestamp)); early > time.Millisecond {
			t.Errorf("%q came %v early", body, early)
		}
	}
	want := map[string]int{}
	for body := range due {
		want[body] = 1
	}
	if !maps.Equal(want, count) {
		t.Errorf("delivered %v, want %v", count, want)
	}
}

// Timer messages of the Go and the Java client come once, in their time, by whichever property they ask and whether they
// roll or not; what the Java client recalls does not come.
func TestTimerMessages(t *testing.T) {
	t.Parallel()
	nsPort := freePort(t)
	namesrv := loopback(nsPort)
	mqxNameserver(t, nsPort).cleanup(t)
	window, delays := 20, []time.Duration{4 * time.Second, 6 * time.Second}
	if reference() {
		window, delays = 300, []time.Duration{20 * time.Second} // Apache's broker delivers a message that has rolled though it was recalled
	}
	mqxBroker(t, brokerSpec{port: freePort(t), namesrv: namesrv, store: filepath.Join(testDir(t, "timers"), "store"), extra: timerSettings(window)}).cleanup(t)
	waitRegistered(t, namesrv)
	const topic = "E2E_TIMER"
	createTopic(t, namesrv, topic, 2)
	in := goPushConsumer(t, goSpec{Namesrv: namesrv, Group: "GID_e2e_timer", Instance: t.Name(), Topic: topic})
	due := map[string]time.Time{}
	sendTimersWithGo(t, namesrv, topic, timerOutgoing("go", due, time.Second, 2*time.Second, 5*time.Second))
	d := sharedDriver(t)
	d.send(t, namesrv, topic, "sync", forJava(timerOutgoing("java", due, time.Second, 5*time.Second)), nil)
	gone := map[string]time.Time{}
	recallWithJava(t, namesrv, topic, d.send(t, namesrv, topic, "sync", forJava(timerOutgoing("recalled", gone, delays...)), nil))
	waitFor(t, arrival, "the timer messages", func() (bool, string) {
		n := len(in.received())
		return n >= len(due), fmt.Sprintf("%d of %d", n, len(due))
	})
	for _, last := range gone {
		time.Sleep(time.Until(last.Add(2 * time.Second))) // there is no sign that nothing comes
	}
	checkTimers(t, due, in.received())
}

// One make leaves timer messages, some to roll, some recalled, the other delivers them: each once, none of them early.
func TestTimerMessagesChangeHands(t *testing.T) {
	t.Parallel()
	for name, makes := range map[string][2]func(*testing.T, brokerSpec) *process{
		"mqx leaves them": {mqxBroker, apacheBroker}, "Apache leaves them": {apacheBroker, mqxBroker},
	} {
		t.Run(name, func(t *testing.T) {
			nsPort := freePort(t)
			namesrv := loopback(nsPort)
			mqxNameserver(t, nsPort).cleanup(t)
			spec := brokerSpec{port: freePort(t), namesrv: namesrv, store: filepath.Join(testDir(t, "timers"), "store"), extra: timerSettings(280)}
			const topic = "E2E_TIMER_HANDOVER"
			first := makes[0](t, spec)
			first.cleanup(t)
			waitRegistered(t, namesrv)
			createTopic(t, namesrv, topic, 1)
			due, gone := map[string]time.Time{}, map[string]time.Time{}
			d := sharedDriver(t)
			d.send(t, namesrv, topic, "sync", forJava(timerOutgoing("java", due, time.Second, 25*time.Second, 32*time.Second)), nil)
			recallWithJava(t, namesrv, topic, d.send(t, namesrv, topic, "sync", forJava(timerOutgoing("recalled", gone, 26*time.Second)), nil))
			waitFor(t, arrival, "the short delays", func() (bool, string) {
				n := len(d.pull(t, namesrv, topic, ""))
				return n >= 3, fmt.Sprint(n)
			})
			second := takeOver(t, first, makes[1], spec, namesrv, topic)
			var all []incoming
			waitFor(t, arrival+30*time.Second, "all messages", func() (bool, string) {
				all = d.pull(t, namesrv, topic, "")
				return len(all) >= len(due), fmt.Sprintf("%d of %d", len(all), len(due))
			})
			time.Sleep(2 * time.Second) // for what must not come
			checkTimers(t, due, d.pull(t, namesrv, topic, ""))
			if err := second.stop(t, stopLimit); err != nil && strings.HasPrefix(second.name, "mqx") {
				t.Error(err)
			}
		})
	}
}
