package broker

import (
	"strconv"

	"mqx/broker/pop"
	"mqx/internal/meter"
	"mqx/internal/metrics"
	"mqx/message"
	"mqx/store"
)

// storageMetrics are Apache's series of the store and of the timer.
func (b *Broker) storageMetrics(s *metrics.Scrape, st *store.Stats) {
	now := b.now().UnixMilli()
	l := s.Labels("storage_type", "local", "storage_medium", "disk")
	for _, d := range st.Disk {
		if d.Name == "commitlog" && d.Err == "" {
			s.Gauge("rocketmq_storage_size_bytes", helpGauge, float64(d.Total-d.Free), l)
		}
	}
	s.Gauge("rocketmq_storage_flush_behind_bytes", helpGauge, float64(max(0, st.LogEnd-st.LogFlushed)), l)
	s.Gauge("rocketmq_storage_dispatch_behind_bytes", helpGauge, float64(st.DispatchBehindBytes), l)
	if at := st.EarliestMessageTimestamp; at > 0 {
		s.Gauge("rocketmq_storage_message_reserve_time_milliseconds", helpGauge, float64(max(0, now-at)), l)
	}
	if !b.timers.on() {
		return
	}
	readSeconds, toTakeUp, waiting := b.timers.behind()
	s.Gauge("rocketmq_timer_enqueue_lag", helpGauge, float64(toTakeUp), l)
	s.Gauge("rocketmq_timer_dequeue_lag", helpGauge, float64(waiting), l)
	s.Gauge("rocketmq_timer_dequeue_latency_milliseconds", helpGauge, float64(readSeconds*1000), l)
	for topic, c := range b.timers.t.Metrics().Topics {
		if c.Count > 0 {
			s.Gauge("rocketmq_timing_messages", helpGauge, float64(c.Count), s.Labels("storage_type", "local", "storage_medium", "disk", "topic", topic))
		}
	}
	s.Counter("rocketmq_timer_enqueue_total", helpCounter, float64(b.timers.rates.enqueued.Load()), l)
	s.Counter("rocketmq_timer_dequeue_total", helpCounter, float64(b.timers.rates.dequeued.Load()), l)
}

// popMetrics are Apache's series of pop consumption.
func (b *Broker) popMetrics(s *metrics.Scrape) {
	s.Gauge("rocketmq_pop_checkpoint_buffer_size", helpGauge, float64(b.pops.left()), s.Labels())
	topic := b.pops.reviveTopic
	for q := range int32(b.pops.reviveQueues()) {
		done, ok := b.offsets.Committed(topic, pop.ReviveGroup, q)
		if !ok {
			done = b.store.MinOffset(topic, q) - 1
		}
		behind := max(0, b.store.MaxOffset(topic, q)-done-1)
		// Apache's name says milliseconds; the value is a number of records.
		s.Gauge("rocketmq_pop_revive_lag_milliseconds", helpGauge, float64(behind), s.Labels("queue_id", strconv.Itoa(int(q))))
	}
}

// ownMetrics are series that Apache does not have.
func (b *Broker) ownMetrics(s *metrics.Scrape, st *store.Stats) {
	s.Histogram("mqx_put_seconds", "Time from the arrival of a message to its answer, flush included.", b.putTimes.reading(), 1e-6, s.Labels())
	s.Histogram("mqx_get_seconds", "Time to look for messages in the store, for a pull or pop.", b.getTimes.reading(), 1e-6, s.Labels())
	s.Histogram("mqx_born_to_store_seconds", "Time from the birth of a message, by the clock of its client, until it was stored; what the clocks differ is in it.",
		b.bornTimes.reading(), 1e-6, s.Labels())
	b.refusals.metrics(s, b.classes.send.Stats())
	s.Gauge("mqx_store_retention_seconds", "How long messages are kept (fileReservedTime).", float64(b.cfg().Store.FileReservedHours)*3600, s.Labels())
	s.Gauge("mqx_parked_pulls", "Pulls that wait for messages.", float64(b.hold.count.Load()), s.Labels())
	s.Gauge("mqx_start_time_seconds", "When the broker started, in seconds since 1970.", float64(b.started.UnixMilli())/1000, s.Labels())
	for _, c := range b.classes.all() {
		c.Metrics(s)
	}
	b.main.Metrics(s, "main")
	b.vip.Metrics(s, "vip")
	ownStoreMetrics(s, st)
	b.ha.metrics(s)
	b.ownQueueMetrics(s)
}

func ownStoreMetrics(s *metrics.Scrape, st *store.Stats) {
	none := s.Labels()
	s.Counter("mqx_store_put_messages_total", "Messages stored, those that the broker writes itself included.", float64(st.PutMessages), none)
	s.Counter("mqx_store_put_bytes_total", "Bytes of records stored.", float64(st.PutBytes), none)
	s.Counter("mqx_store_put_failed_total", "Messages that could not be stored.", float64(st.PutFailed), none)
	s.Counter("mqx_store_get_messages_total", "Messages read for consumers.", float64(st.GetMessages), none)
	s.Counter("mqx_store_get_bytes_total", "Bytes of messages read for consumers.", float64(st.GetBytes), none)
	s.Counter("mqx_store_gets_total", "Looks into queues, by outcome.", float64(st.GetFound), s.Labels("found", "true"))
	s.Counter("mqx_store_gets_total", "Looks into queues, by outcome.", float64(st.GetMissed), s.Labels("found", "false"))
	s.Counter("mqx_store_gets_cold_total", "Looks that found messages of which some were not in the hot end of the log.", float64(st.GetCold), none)
	s.Gauge("mqx_store_hot_bytes", "The hot end of the log: what is answered from the page cache without asking the disk.", float64(st.HotBytes), none)
	s.Histogram("mqx_store_append_seconds", "Time that the append of a batch took, with the wait for the lock.", st.AppendTimes, 1e-9, none)
	s.Histogram("mqx_store_flush_seconds", "Time that a sync of the log took.", st.FlushTimes, 1e-9, none)
	s.Histogram("mqx_store_dispatch_seconds", "Time from the append of a batch until it was in its queues.", st.DispatchTimes, 1e-9, none)
	s.Counter("mqx_store_dispatch_retries_total", "Failed attempts to build a queue unit or index entry.", float64(st.DispatchRetries), none)
	s.Counter("mqx_store_unreadable_records_total", "Records that a consumer should have got and that cannot be read.", float64(st.UnreadableRecords), none)
	s.Gauge("mqx_store_findings", "What the store found wrong with its files since the start.", float64(st.Findings), none)
	s.Gauge("mqx_store_index_behind_bytes", "Bytes of the log that are not in the index yet.", float64(st.IndexBehindBytes), none)
	s.Gauge("mqx_store_log_min_offset", "First byte of the log.", float64(st.LogMin), none)
	s.Gauge("mqx_store_log_end_offset", "End of the log.", float64(st.LogEnd), none)
	s.Gauge("mqx_store_log_flushed_offset", "Up to where the log is on disk.", float64(st.LogFlushed), none)
	s.Gauge("mqx_store_log_files", "Files of the log.", float64(st.CommitLogFiles), none)
	s.Gauge("mqx_store_log_bytes", "Size of the files of the log.", float64(st.CommitLogDirBytes), none)
	s.Gauge("mqx_store_queues", "Queues that exist on disk.", float64(st.Queues), none)
	s.Gauge("mqx_store_open_files", "Files of queues that are open.", float64(st.OpenFiles), none)
	s.Gauge("mqx_store_append_lock_held_seconds", "How long the append that runs now has held its lock.", float64(st.AppendLockHeldMs)/1000, none)
	s.Gauge("mqx_store_put_max_seconds", "Longest time that an append took since the start, with the wait for its lock.", float64(st.PutMaxLockedMs)/1000, none)
	for _, d := range st.Disk {
		if d.Err != "" {
			continue // not known now
		}
		l := s.Labels("part", d.Name)
		s.Gauge("mqx_disk_size_bytes", "Size of the volume of a part of the store.", float64(d.Total), l)
		s.Gauge("mqx_disk_free_bytes", "Room left on it.", float64(d.Free), l)
		s.Gauge("mqx_disk_used_ratio", "How full it is, from 0 to 1.", float64(d.UsedPct)/100, l)
		s.Gauge("mqx_disk_refuse_ratio", "From where on messages are refused.", float64(d.Limit)/100, l)
	}
}

// ownQueueMetrics are what waits for a time or an end.
func (b *Broker) ownQueueMetrics(s *metrics.Scrape) {
	t := &b.transactions.counts
	for what, n := range map[string]int64{
		"commit": t.commits.Load(), "rollback": t.rollbacks.Load(), "check": t.checks.Load(), "discard": t.discarded.Load(), "unanswerable": t.unanswerable.Load(),
	} {
		s.Counter("mqx_transaction_ends_total", "What became of half messages: ends, checks sent to producers, those given up, and those nobody can be asked about.", float64(n), s.Labels("what", what))
	}
	for level, done := range b.delays.table().OffsetTable {
		waiting := max(0, b.store.MaxOffset(message.TopicSchedule, level-1)-done)
		s.Gauge("mqx_delay_waiting_messages", "Messages that wait in a delay level.", float64(waiting), s.Labels("level", strconv.Itoa(int(level))))
	}
	r := &b.pops.revived
	for what, n := range map[string]int64{"revived": r.revived.Load(), "gone": r.gone.Load(), "rewritten": r.rewritten.Load()} {
		s.Counter("mqx_pop_revived_total", "Messages that were not acknowledged: put to their retry topic, no longer readable, or put off.", float64(n), s.Labels("what", what))
	}
}

// reading is the counts in the form of metrics, in microseconds, in classes of powers of
// four: those of powers of two say more than a scrape needs.
func (l *latencies) reading() meter.Reading {
	r := meter.Reading{Bounds: latencyBounds, Counts: make([]uint64, len(latencyBounds)+1), Sum: l.sumUs.Load()}
	for i := range l.buckets {
		// Bucket i holds what is below 2^i.
		at := min(max(i-latencyFirst+1, 0)/2, len(latencyBounds))
		r.Counts[at] += uint64(l.buckets[i].Load())
	}
	return r
}

// latencyFirst is the power of two, in microseconds, of the first class: 64 µs.
const latencyFirst = 6

var latencyBounds = func() (out []int64) {
	for p := latencyFirst; p <= 24; p += 2 { // to 16 s
		out = append(out, 1<<p)
	}
	return out
}()
