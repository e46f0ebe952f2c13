package broker

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"mqx/internal/fastjson"
	"mqx/remoting"
)

// sum adds up the series of a name that have all these labels.
func sum(t *testing.T, text, name string, labels ...string) (total int64) {
	t.Helper()
	found := false
	for _, m := range regexp.MustCompile(`(?m)^`+name+`\{(.*)\} (\S+)$`).FindAllStringSubmatch(text, -1) {
		all := true
		for _, l := range labels {
			all = all && strings.Contains(","+m[1]+",", ","+l+",")
		}
		if !all {
			continue
		}
		v, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		found, total = true, total+int64(v)
	}
	if !found {
		t.Errorf("no %s with %v", name, labels)
	}
	return total
}

func bodyOf[T any](r *running, code int32, header any) *T {
	r.t.Helper()
	v := new(T)
	if err := fastjson.Unmarshal(r.ok(code, header, nil).Body, v); err != nil {
		r.t.Fatal(err)
	}
	return v
}

// The statistics of Apache's tools (brokerStatus, statsAll, consumerProgress) and a scrape
// give the same numbers.
func TestStatisticsAgree(t *testing.T) {
	r := busy(t)
	r.stats.Sample(r.now().Add(10 * time.Second))
	text := r.scrape()
	stat := func(name, key string) int64 {
		return bodyOf[remoting.BrokerStatsData](r, remoting.ReqViewBrokerStatsData, &remoting.ViewBrokerStatsDataHeader{StatsName: name, StatsKey: key}).StatsMinute.Sum
	}
	state := bodyOf[remoting.KVTable](r, remoting.ReqGetBrokerRuntimeInfo, nil).Table
	num := func(key string) int64 {
		v, err := strconv.ParseFloat(state[key], 64)
		if err != nil {
			t.Errorf("%s: %v", key, err)
		}
		return int64(v)
	}
	var behind int64
	stats := bodyOf[remoting.ConsumeStats](r, remoting.ReqGetConsumeStats, &remoting.GetConsumeStatsHeader{ConsumerGroup: "G", Topic: "T"})
	for _, o := range stats.OffsetTable {
		behind += o.BrokerOffset - o.ConsumerOffset
	}
	out := sum(t, text, "rocketmq_messages_out_total", `topic="T"`, `consumer_group="G"`)
	for what, pair := range map[string][2]int64{
		"messages into the topic":      {stat("TOPIC_PUT_NUMS", "T"), sum(t, text, "rocketmq_messages_in_total", `topic="T"`)},
		"bytes into the topic":         {stat("TOPIC_PUT_SIZE", "T"), sum(t, text, "rocketmq_throughput_in_total", `topic="T"`)},
		"messages to the group":        {stat("GROUP_GET_NUMS", "T@G"), out},
		"bytes to the group":           {stat("GROUP_GET_SIZE", "T@G"), sum(t, text, "rocketmq_throughput_out_total", `topic="T"`)},
		"lag":                          {behind, sum(t, text, "rocketmq_consumer_lag_messages", `topic="T"`, `consumer_group="G"`)},
		"messages read of the broker":  {num("msgGetTotalTodayNow"), sum(t, text, "rocketmq_messages_out_total", `is_system="false"`)},
		"puts":                         {num("putMessageTimesTotal"), sum(t, text, "mqx_store_put_messages_total")},
		"bytes put":                    {num("putMessageSizeTotal"), sum(t, text, "mqx_store_put_bytes_total")},
		"end of the log":               {num("commitLogMaxOffset"), sum(t, text, "mqx_store_log_end_offset")},
		"start of the log":             {num("commitLogMinOffset"), sum(t, text, "mqx_store_log_min_offset")},
		"bytes that are not in queues": {num("dispatchBehindBytes"), sum(t, text, "rocketmq_storage_dispatch_behind_bytes")},
		"requests that wait":           {num("sendThreadPoolQueueSize"), sum(t, text, "rocketmq_processor_watermark", `processor="send"`)},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %d by RocketMQ's statistics, %d by the metrics", what, pair[0], pair[1])
		}
	}
	if got, want := num("msgPutTotalTodayNow"), stat("BROKER_PUT_NUMS", "C"); got != want {
		t.Errorf("messages stored: %d, %d", got, want)
	}
}
