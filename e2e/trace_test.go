package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// A producer of the Java client that traces its messages writes what it did into the trace topic, which the broker makes where it is
// told to; the records carry the ids of the messages as keys, and are found by them.
func TestTraceOfClients(t *testing.T) {
	t.Parallel()
	c := startCluster(t, "traceTopicEnable=true")
	d := sharedDriver(t)
	const topic, traces = "E2E_TRACED", "RMQ_SYS_TRACE_TOPIC"
	createTopic(t, c.namesrv, topic, 2)
	waitTopic(t, c.namesrv, traces)
	out := numbered("traced", 5)
	for i := range out {
		out[i].Keys = fmt.Sprint("order-", i)
	}
	results := d.send(t, c.namesrv, topic, "sync", out, map[string]any{"trace": true})
	var all []incoming
	missing := func() string {
		text := ""
		for _, m := range all {
			text += m.Keys + " " + string(m.Body)
		}
		for i, r := range results {
			for _, want := range []string{r.MsgID, out[i].Keys} {
				if !strings.Contains(text, want) {
					return want
				}
			}
		}
		return ""
	}
	waitFor(t, arrival, "the traces", func() (bool, string) {
		all = d.pull(t, c.namesrv, traces, "")
		return len(all) > 0 && missing() == "", fmt.Sprintf("%d records, without %s", len(all), missing())
	})
	if got := d.admin(t, "queryMsgByUniqueKey", "-n", c.namesrv, "-t", traces, "-i", all[0].MsgID); !strings.Contains(got, traces) {
		t.Errorf("a trace record cannot be found by its key: %s", got)
	}
}
