package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"mqx/internal/fastjson"
	"mqx/remoting"
)

// colours are messages with properties to select by.
func colours(prefix string, n int) []outgoing {
	out := numbered(prefix, n)
	for i := range out {
		out[i].Tag = []string{"new", "paid"}[i%2]
		out[i].Properties = map[string]string{"price": fmt.Sprint(i), "colour": []string{"red", "blue", "it's green"}[i%3]}
		if i%5 == 0 {
			delete(out[i].Properties, "price")
		}
	}
	return out
}

// selections are expressions and what they mean.
var selections = map[string]func(m outgoing) bool{
	"price BETWEEN 3 AND 12 AND colour IN ('red', 'it''s green')": func(m outgoing) bool {
		return m.price() >= 3 && m.price() <= 12 && m.Properties["colour"] != "blue"
	},
	"price IS NULL OR TAGS = 'paid' AND colour STARTSWITH 'b'": func(m outgoing) bool {
		return m.Properties["price"] == "" || m.Tag == "paid" && m.Properties["colour"] == "blue"
	},
}

func (m outgoing) price() int {
	n := -1
	_, _ = fmt.Sscan(m.Properties["price"], &n)
	return n
}

func selected(ms []outgoing, expression string) (out []outgoing) {
	for _, m := range ms {
		if selections[expression](m) {
			out = append(out, m)
		}
	}
	return out
}

// lagOf is the lag of a group on a topic as mqadmin tells it, -1 for unknown.
func lagOf(t *testing.T, c cluster, group, topic string) int64 {
	t.Helper()
	resp := rawCall(t, c.broker, remoting.ReqGetConsumeStats, &remoting.GetConsumeStatsHeader{ConsumerGroup: group, Topic: topic}, nil)
	if resp.Code != remoting.RespSuccess {
		return -1
	}
	var stats remoting.ConsumeStats
	if err := fastjson.Unmarshal(resp.Body, &stats); err != nil {
		t.Fatal(err)
	}
	lag, queues := int64(0), 0
	for _, o := range stats.OffsetTable {
		lag += o.BrokerOffset - o.ConsumerOffset
		queues++
	}
	if queues == 0 {
		return -1
	}
	return lag
}

// SQL92 subscriptions of both clients, without and with bit maps beside the queue: exactly what the expression selects
// comes, of messages before and after the subscription, and progress goes on over the rest.
func TestSQL92Subscriptions(t *testing.T) {
	t.Parallel()
	for name, extra := range map[string][]string{
		"plain": nil, "bitmaps": {"enableConsumeQueueExt=true", "enableCalcFilterBitMap=true", "expectConsumerNumUseFilter=8"},
	} {
		t.Run(name, func(t *testing.T) {
			c := startCluster(t, append([]string{"enablePropertyFilter=true"}, extra...)...)
			const topic = "E2E_SQL"
			createTopic(t, c.namesrv, topic, 2)
			all := colours("before", 30)
			sharedDriver(t).send(t, c.namesrv, topic, "sync", all, nil)
			received, groups := map[string]func() []incoming{}, map[string]string{}
			for i, expression := range slices.Sorted(maps.Keys(selections)) {
				java, inGo := fmt.Sprintf("GID_sql_java_%d", i), fmt.Sprintf("GID_sql_go_%d", i)
				received[java] = pushOf(t, sharedDriver(t), c, topic, java, map[string]any{"sql": true, "expression": expression})
				received[inGo] = goPushConsumer(t, goSpec{Namesrv: c.namesrv, Group: inGo, Instance: t.Name(), Topic: topic, SQL: true, Expression: expression}).received
				groups[java], groups[inGo] = expression, expression
			}
			wait := func() {
				for group, expression := range groups {
					waitFor(t, arrival, "what "+group+" selects", func() (bool, string) {
						why := missing(selected(all, expression), received[group]())
						return why == "", why
					})
				}
			}
			wait()
			more := colours("after", 30)
			all = append(all, more...)
			sharedDriver(t).send(t, c.namesrv, topic, "sync", more, nil)
			wait()
			for group := range groups {
				waitFor(t, arrival, "the progress of "+group, func() (bool, string) {
					lag := lagOf(t, c, group, topic)
					return lag == 0, fmt.Sprint(lag)
				})
			}
			checkFilterData(t, c, topic, groups, name == "bitmaps")
		})
	}
}

// checkFilterData asks with QUERY_CONSUME_QUEUE what the broker knows of the groups' filters.
func checkFilterData(t *testing.T, c cluster, topic string, groups map[string]string, bitMaps bool) {
	t.Helper()
	for group, expression := range groups {
		resp := rawCall(t, c.broker, remoting.ReqQueryConsumeQueue, &remoting.QueryConsumeQueueHeader{Topic: topic, Count: 1000, ConsumerGroup: group}, nil)
		var q remoting.QueryConsumeQueueBody
		if err := fastjson.Unmarshal(resp.Body, &q); err != nil || resp.Code != 0 {
			t.Fatalf("%d %s: %v", resp.Code, resp.Remark, err)
		}
		var data struct {
			Expression      string
			BloomFilterData struct{ BitNum int }
		}
		if err := json.Unmarshal([]byte(q.FilterData), &data); err != nil || data.Expression != expression || data.BloomFilterData.BitNum%8 != 0 || data.BloomFilterData.BitNum == 0 {
			t.Errorf("%s: filter data %q: %v", group, q.FilterData, err)
		}
		if len(q.QueueData) != 30 {
			t.Errorf("%s: %d units", group, len(q.QueueData))
		}
		last := q.QueueData[len(q.QueueData)-1]
		bits := strings.ReplaceAll(last.BitMap, "\n", "")
		if bitMaps && (len(bits) != 32 || !strings.Contains(last.ExtendDataJSON, "msgStoreTime")) || !bitMaps && (bits != "" || last.ExtendDataJSON != "") {
			t.Errorf("%s: %+v", group, last)
		}
	}
}

// A subscription that cannot be served is refused when the consumer starts: with the place of the mistake, or because
// the broker does not filter by properties. Tags are always possible.
func TestSQL92Refusals(t *testing.T) {
	t.Parallel()
	d := sharedDriver(t)
	on, off := startCluster(t, "enablePropertyFilter=true"), startCluster(t)
	for _, tt := range []struct {
		name       string
		c          cluster
		expression string
		want       string
	}{
		{"mistake", on, "price >\n 3 AND colour = )", "line 2, column 17"}, {"foreign name", on, "a@b = 1", "line 1, column 2"}, {"off", off, "a = 1", "The broker does not support consumer to filter message by SQL92"},
	} {
		for _, client := range []*driver{d, oldClient(t)} {
			args := map[string]any{"id": "refused" + tt.name, "namesrv": tt.c.namesrv, "group": "GID_refused", "topic": "E2E_REFUSED", "sql": true, "expression": tt.expression}
			createTopic(t, tt.c.namesrv, "E2E_REFUSED", 1)
			if err := client.try("push", args, nil); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v", tt.name, err)
			}
		}
	}
}

// Messages that a filtered group failed come back to it, whatever filterSupportRetry says, and those it does not want
// neither come nor stop it.
func TestRetriesOfFilteredGroups(t *testing.T) {
	t.Parallel()
	for _, support := range []string{"false", "true"} {
		t.Run(support, func(t *testing.T) {
			c := startCluster(t, retryLevels, "enablePropertyFilter=true", "filterSupportRetry="+support)
			const topic, group = "E2E_SQL_RETRY", "GID_sql_retry"
			createTopic(t, c.namesrv, topic, 1)
			all := colours("retried", 12)
			const expression = "price IS NULL OR TAGS = 'paid' AND colour STARTSWITH 'b'"
			received := pushOf(t, sharedDriver(t), c, topic, group, map[string]any{"sql": true, "expression": expression, "failTimes": 2})
			sharedDriver(t).send(t, c.namesrv, topic, "sync", all, nil)
			want := selected(all, expression)
			waitFor(t, arrival, "three attempts of each", func() (bool, string) {
				n := len(received())
				return n >= 3*len(want), fmt.Sprintf("%d of %d", n, 3*len(want))
			})
			times := map[string][]int32{}
			for _, m := range received() {
				times[string(m.Body)] = append(times[string(m.Body)], m.Times)
			}
			for _, m := range want {
				if !slices.Equal(times[m.Body], []int32{0, 1, 2}) {
					t.Errorf("%q came with counts %v", m.Body, times[m.Body])
				}
			}
			if len(times) != len(want) {
				t.Errorf("%d messages came, %d are selected", len(times), len(want))
			}
			for _, of := range []string{topic, "%RETRY%" + group} {
				waitFor(t, arrival, "the progress on "+of, func() (bool, string) { lag := lagOf(t, c, group, of); return lag == 0, fmt.Sprint(lag) })
			}
		})
	}
}

// Tags whose hashes are equal pass the broker together: the clients tell them apart, and progress goes on over those that
// nobody wants.
func TestTagsOfOneHash(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	const topic = "E2E_HASH"
	createTopic(t, c.namesrv, topic, 1)
	send := func(tag string, n int) []outgoing {
		ms := numbered(tag, n)
		for i := range ms {
			ms[i].Tag = tag
		}
		sharedDriver(t).send(t, c.namesrv, topic, "sync", ms, nil)
		return ms
	}
	send("BB", 40) // the hash of Aa
	want := send("Aa", 3)
	send("BB", 40)
	received := map[string]func() []incoming{
		"GID_hash_java": pushOf(t, sharedDriver(t), c, topic, "GID_hash_java", map[string]any{"expression": "Aa"}),
		"GID_hash_old":  pushOf(t, oldClient(t), c, topic, "GID_hash_old", map[string]any{"expression": "Aa"}),
		"GID_hash_go":   goPushConsumer(t, goSpec{Namesrv: c.namesrv, Group: "GID_hash_go", Instance: t.Name(), Topic: topic, Expression: "Aa"}).received,
	}
	for group, got := range received {
		waitFor(t, arrival, "the tag at "+group, func() (bool, string) { why := missing(want, got()); return why == "", why })
		waitFor(t, arrival+30*time.Second, "the progress of "+group, func() (bool, string) {
			lag := lagOf(t, c, group, topic)
			return lag == 0, fmt.Sprint(lag)
		})
		if why := missing(want, got()); why != "" {
			t.Errorf("%s: %s", group, why)
		}
	}
}
