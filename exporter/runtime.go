package exporter

import (
	"strconv"
	"strings"
	"time"

	"mqx/admin"
	"mqx/internal/metrics"
)

// processors are the request classes of a broker: the label of the series, and how the
// keys of the broker's state begin.
var processors = []struct{ label, key string }{
	{"send", "sendThreadPool"},
	{"pull", "pullThreadPool"},
	{"lite_pull", "litePullThreadPool"},
	{"query_message", "queryThreadPool"},
	{"ack", "ackThreadPool"},
	{"transaction", "EndTransaction"},
}

// plainSeries are the numbers of a broker's state that are series as they stand.
var plainSeries = []struct {
	key, name, help string
	counter         bool
	factor          float64
	labels          []string
}{
	{"putMessageTimesTotal", "mqx_store_put_messages_total", "Messages stored, those that the broker writes itself included.", true, 1, nil},
	{"putMessageSizeTotal", "mqx_store_put_bytes_total", "Bytes of records stored.", true, 1, nil},
	{"putMessageFailedTimes", "mqx_store_put_failed_total", "Messages that could not be stored.", true, 1, nil},
	{"putMessageEntireTimeMax", "mqx_store_put_max_seconds", "Longest time that a put took since the start.", false, 1e-3, nil},
	{"pageCacheLockTimeMills", "mqx_store_append_lock_held_seconds", "How long the append that runs now has held its lock.", false, 1e-3, nil},
	{"commitLogMinOffset", "mqx_store_log_min_offset", "First byte of the log.", false, 1, nil},
	{"commitLogMaxOffset", "mqx_store_log_end_offset", "End of the log.", false, 1, nil},
	{"commitLogDiskRatio", "mqx_disk_used_ratio", "How full it is, from 0 to 1.", false, 1, []string{"part", "commitlog"}},
	{"consumeQueueDiskRatio", "mqx_disk_used_ratio", "How full it is, from 0 to 1.", false, 1, []string{"part", "consumequeue"}},
	{"bootTimestamp", "mqx_start_time_seconds", "When the broker started, in seconds since 1970.", false, 1e-3, nil},
	{"dispatchBehindBytes", "rocketmq_storage_dispatch_behind_bytes", helpGauge, false, 1, local},
	{"timerOffsetBehind", "rocketmq_timer_enqueue_lag", helpGauge, false, 1, local},
	{"timerCongestNum", "rocketmq_timer_dequeue_lag", helpGauge, false, 1, local},
	{"timerReadBehind", "rocketmq_timer_dequeue_latency_milliseconds", helpGauge, false, 1e3, local},
	{"msgPutTotalTodayNow", "mqx_broker_messages_in_total", "Messages stored since the start, those of system topics left out.", true, 1, nil},
	{"msgGetTotalTodayNow", "mqx_broker_messages_out_total", "Messages given to groups since the start, those of system topics left out.", true, 1, nil},
}

// local are the labels of Apache's series of the store.
var local = []string{"storage_type", "local", "storage_medium", "disk"}

// windows are the spans that a broker's own rates are over, in seconds.
var windows = []string{"10", "60", "600"}

// runtimeSeries are what a broker says of its state. What it does not say, or says as
// less than nothing, is not there.
func runtimeSeries(s *metrics.Scrape, st *admin.BrokerStatus, primary bool, now time.Time) {
	id := []string{"broker_id", strconv.FormatInt(st.ID, 10)}
	if primary {
		id = nil // as the broker's own
	}
	with := func(labels []string) metrics.Labels { return s.Labels(append(append([]string{}, labels...), id...)...) }
	for i := range plainSeries {
		p := &plainSeries[i]
		v, ok := st.Float(p.key)
		if !ok || v < 0 {
			continue
		}
		if p.counter {
			s.Counter(p.name, p.help, v*p.factor, with(p.labels))
		} else {
			s.Gauge(p.name, p.help, v*p.factor, with(p.labels))
		}
	}
	for _, p := range processors {
		if v, ok := st.Float(p.key + "QueueSize"); ok {
			s.Gauge("rocketmq_processor_watermark", helpGauge, v, with([]string{"processor", p.label}))
		}
		if v, ok := st.Float(p.key + "QueueHeadWaitTimeMills"); ok {
			s.Gauge("mqx_processor_oldest_wait_seconds", "How long the first request in the queue of a class waits.", v/1e3, with([]string{"processor", p.label}))
		}
	}
	for key, name := range map[string]string{"putTps": "in", "getTransferredTps": "out", "getFoundTps": "found", "getMissTps": "missed"} {
		text, _ := st.Text(key)
		for i, field := range strings.Fields(text) {
			if v, err := strconv.ParseFloat(field, 64); err == nil && i < len(windows) {
				s.Gauge("mqx_broker_rate", "What the broker counts a second: messages in and out, looks into queues that found messages or missed; over 10, 60 and 600 seconds.",
					v, with([]string{"what", name, "seconds", windows[i]}))
			}
		}
	}
	for key, q := range map[string]string{"putLatency99": "99", "putLatency999": "99.9"} {
		if v, ok := st.Float(key); ok && v >= 0 {
			s.Gauge("mqx_broker_put_latency_seconds", "Time within which so many percent of the puts were done, over the broker's last minute.", v/1e3, with([]string{"percent", q}))
		}
	}
	if text, ok := st.Text("remainHowManyDataToFlush"); ok {
		if v, ok := humanBytes(text); ok {
			s.Gauge("rocketmq_storage_flush_behind_bytes", helpGauge, v, with(local))
		}
	}
	if at, ok := st.Time("earliestMessageTimeStamp"); ok {
		s.Gauge("rocketmq_storage_message_reserve_time_milliseconds", helpGauge, float64(max(0, now.Sub(at).Milliseconds())), with(local))
	}
	if total, free, ok := capacity(st); ok {
		s.Gauge("mqx_disk_size_bytes", "Size of the volume of a part of the store.", total, with([]string{"part", "store"}))
		s.Gauge("mqx_disk_free_bytes", "Room left on it.", free, with([]string{"part", "store"}))
		s.Gauge("rocketmq_storage_size_bytes", helpGauge, total-free, with(local))
	}
}

// capacity reads commitLogDirCapacity: "Total : 9.9 GiB, Free : 3.1 GiB."
func capacity(st *admin.BrokerStatus) (total, free float64, ok bool) {
	text, ok := st.Text("commitLogDirCapacity")
	t, f, both := strings.Cut(strings.TrimSuffix(text, "."), ",")
	if !ok || !both {
		return 0, 0, false
	}
	_, t, _ = strings.Cut(t, ":")
	_, f, _ = strings.Cut(f, ":")
	total, okT := humanBytes(strings.TrimSpace(t))
	free, okF := humanBytes(strings.TrimSpace(f))
	return total, free, okT && okF
}

// humanBytes reads a size as brokers write it: "12 B", "1.5 KiB".
func humanBytes(text string) (float64, bool) {
	num, unit, _ := strings.Cut(text, " ")
	v, err := strconv.ParseFloat(num, 64)
	if err != nil {
		return 0, false
	}
	for i, u := range []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"} {
		if u == unit {
			return v * float64(uint64(1)<<(10*i)), true
		}
	}
	return 0, false
}
