package exporter

import (
	"strconv"
	"strings"

	"mqx/internal/metrics"
)

// oldRuntimeKeys are the numbers of a broker's state by the end of the series' name,
// behind rocketmq_brokeruntime_.
var oldRuntimeKeys = map[string]string{
	"msg_put_total_today_now": "msgPutTotalTodayNow", "msg_gettotal_today_now": "msgGetTotalTodayNow",
	"msg_puttotal_todaymorning": "msgPutTotalTodayMorning", "msg_gettotal_todaymorning": "msgGetTotalTodayMorning",
	"msg_puttotal_yesterdaymorning": "msgPutTotalYesterdayMorning", "msg_gettotal_yesterdaymorning": "msgGetTotalYesterdayMorning",
	"dispatch_behind_bytes": "dispatchBehindBytes", "dispatch_maxbuffer": "dispatchMaxBuffer",
	"put_message_size_total": "putMessageSizeTotal", "put_message_average_size": "putMessageAverageSize", "putmessage_times_total": "putMessageTimesTotal",
	"putmessage_entire_time_max": "putMessageEntireTimeMax", "getmessage_entire_time_max": "getMessageEntireTimeMax",
	"pagecache_lock_time_mills": "pageCacheLockTimeMills", "earliest_message_timestamp": "earliestMessageTimeStamp",
	"start_accept_sendrequest_time": "startAcceptSendRequestTimeStamp", "remain_transientstore_buffer_numbs": "remainTransientStoreBufferNumbs",
	"remain_howmanydata_toflush": "remainHowManyDataToFlush", // the number in front of the unit
	"commitlog_disk_ratio":       "commitLogDiskRatio", "consumequeue_disk_ratio": "consumeQueueDiskRatio",
	"commitlog_maxoffset": "commitLogMaxOffset", "commitlog_minoffset": "commitLogMinOffset",
	"send_threadpool_queue_size": "sendThreadPoolQueueSize", "send_threadpoolqueue_capacity": "sendThreadPoolQueueCapacity",
	"send_threadpoolqueue_headwait_timemills": "sendThreadPoolQueueHeadWaitTimeMills",
	"pull_threadpoolqueue_size":               "pullThreadPoolQueueSize", "pull_threadpoolqueue_capacity": "pullThreadPoolQueueCapacity",
	"pull_threadpoolqueue_headwait_timemills": "pullThreadPoolQueueHeadWaitTimeMills",
	"query_threadpoolqueue_size":              "queryThreadPoolQueueSize", "query_threadpool_queue_capacity": "queryThreadPoolQueueCapacity",
	"query_threadpoolqueue_headwait_timemills": "queryThreadPoolQueueHeadWaitTimeMills",
	"put_latency_99": "putLatency99", "put_latency_999": "putLatency999",
}

// oldRates are the rates over 10, 60 and 600 seconds.
var oldRates = map[string]string{
	"put_tps": "putTps", "getfound_tps": "getFoundTps", "getmiss_tps": "getMissTps", "gettotal_tps": "getTotalTps", "gettransfered_tps": "getTransferredTps",
}

// oldPutTimes are the classes of put times: how the broker writes them and how the
// series end.
var oldPutTimes = [][2]string{
	{"<=0ms", "0ms"},
	{"0~10ms", "0to10ms"},
	{"10~50ms", "10to50ms"},
	{"50~100ms", "50to100ms"},
	{"100~200ms", "100to200ms"},
	{"200~500ms", "200to500ms"},
	{"500ms~1s", "500to1s"},
	{"1~2s", "1to2s"},
	{"2~3s", "2to3s"},
	{"3~4s", "3to4s"},
	{"4~5s", "4to5s"},
	{"5~10s", "5to10s"},
	{"10s~", "10stomore"},
}

// oldRuntime writes what a broker says of its state. Unlike rocketmq-exporter it leaves
// out what the broker does not say, and keeps the rest.
func oldRuntime(s *metrics.Scrape, b *seen) {
	st := &b.figures.status
	des, _ := st.Text("brokerVersionDesc")
	boot, _ := st.Text("bootTimestamp")
	version, _ := st.Text("brokerVersion")
	l := []string{"cluster", b.cluster, "brokerIP", b.addr, "des", des, "boottime", boot, "broker_version", version}
	put := func(name string, v float64) { gauge(s, "rocketmq_brokeruntime_"+name, v, l...) }
	for name, key := range oldRuntimeKeys {
		if v, ok := st.Float(key); ok {
			put(name, v)
		}
	}
	for name, key := range oldRates {
		text, _ := st.Text(key)
		for i, field := range strings.Fields(text) {
			if v, err := strconv.ParseFloat(field, 64); err == nil && i < len(windows) {
				put(name+windows[i], two(v))
			}
		}
	}
	if total, free, ok := capacity(st); ok {
		put("commitlogdir_capacity_total", total)
		put("commitlogdir_capacity_free", free)
	}
	text, _ := st.Text("putMessageDistributeTime")
	for _, class := range oldPutTimes {
		_, after, ok := strings.Cut(text, "["+class[0]+"]:")
		if !ok {
			continue
		}
		n, _, _ := strings.Cut(after, " ")
		if v, err := strconv.ParseFloat(n, 64); err == nil {
			put("pmdt_"+class[1], v)
		}
	}
}
